#!/usr/bin/env bash
# From nothing to the table of seed 001: what does a read or a write through rbd cost, by size, if libceph hands the socket one page at
# a time, and if it hands it the data at one go? Kernels 5.10, 6.1 and 6.12 of Debian, each with Debian's libceph and with a patched one.
#
#   measure.sh [OPTION OF iotoll guest run…]        such as: measure.sh --replicates 3 --out seed-001
#
# Nothing is installed and no root is needed: packages are downloaded by apt and unpacked below $WORK. If the headers or the sources of a
# kernel cannot be had, Debian's kernels are measured without the patched modules, and the script says so.
#
# IOTOLL    the program [default: iotoll]
# KERNELS   what is measured [default: "5.10 6.1 6.12"]
# CONTROL   1: also libceph rebuilt without a change, to tell the compiler's part from the patch's
# WORK      a folder for the modules, 600 MB while it builds [default: a folder in iotoll's cache]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
iotoll=${IOTOLL:-iotoll}
read -ra kernels <<<"${KERNELS:-5.10 6.1 6.12}"
work=${WORK:-${XDG_CACHE_HOME:-$HOME/.cache}/iotoll/seed-001}

arguments=()
for version in "${kernels[@]}"; do arguments+=(--kernel "debian:$version"); done
# The kernels, into the cache.
"$iotoll" guest run "${arguments[@]}" --quiet --stack tmpfs --replicates 1 --rw=read --no-save >/dev/null
patched=1
for version in "${kernels[@]}"; do
    "$here/../build-module.sh" "$version" net/ceph "$work" "$here/edit-libceph.py" || patched=0
done
if ((patched)); then
    if [[ ${CONTROL:-0} == 1 ]]; then arguments+=(--module "libceph=$work/{release}/unchanged/libceph.ko"); fi
    arguments+=(--module "libceph=$work/{release}/edited/libceph.ko" --versus module)
else
    echo "measure.sh: without patched modules: only Debian's are measured, and kernels are compared" >&2
fi
exec "$iotoll" guest run "$here/experiment.toml" "${arguments[@]}" "$@"
