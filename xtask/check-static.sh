#!/usr/bin/env bash
# Builds the static binary and runs it in a root that contains nothing else: no library, no shell. The kernel's file
# systems are mounted there, as in a container.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

skip() {
    echo "SKIP static: $1"
    if [[ -n ${IOTOLL_SKIP_LOG-} ]]; then echo "SKIP static: $1" >>"$IOTOLL_SKIP_LOG"; fi
    exit 0
}

program=$(cargo run --locked -q -p xtask -- static)
if ! unshare --mount true 2>/dev/null; then skip "a root of its own needs unshare --mount"; fi
root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
mkdir "$root"/{proc,sys,dev}
cp "$program" "$root/iotoll"

# The mounts exist only for this command.
in_root() {
    # shellcheck disable=SC2016
    unshare --mount --propagation private bash -c '
        for system in proc sys dev; do mount --rbind "/$system" "$0/$system"; done
        exec chroot "$0" "$@"' "$root" /iotoll "$@"
}

check() {
    local output
    if ! output=$(in_root "$@" 2>&1); then
        echo "check-static: iotoll $* failed: $output" >&2
        exit 1
    fi
    echo "iotoll $1: ${output%%$'\n'*}"
}

check --version
check doctor
check run --name=empty --ioengine=null --size=4m --number_ios=1000 --background=200ms --no-save --quiet
