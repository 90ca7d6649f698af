#!/usr/bin/env bash
# From nothing to the table of seed 001: what does a read or a write through rbd cost, by size, if libceph hands the socket one page at
# a time, and if it hands it the data at one go? Kernels 5.10, 6.1 and 6.12 of Debian, each with Debian's libceph and with a patched one.
#
#   measure.sh [OPTION OF iotoll guest run…]        such as: measure.sh --replicates 3 --out seed-001
#
# Nothing is installed and no root is needed: packages are downloaded by apt and unpacked below $WORK. A kernel whose headers or sources
# cannot be had is measured without the patched module, and the script says so.
#
# IOTOLL    the program [default: iotoll]
# KERNELS   what is measured [default: "5.10 6.1 6.12"]
# CONTROL   1: also libceph rebuilt without a change, to tell the compiler's part from the patch's
# WORK      a folder for packages and builds, about 1 GB while it builds [default: a folder in iotoll's cache]
set -euo pipefail
shopt -s nullglob
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
iotoll=${IOTOLL:-iotoll}
read -ra kernels <<<"${KERNELS:-5.10 6.1 6.12}"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/iotoll
work=${WORK:-$cache/seed-001}

say() { echo "measure.sh: $*" >&2; }

# The unpacked kernel that iotoll takes for a version: PACKAGE_VERSION_ARCHITECTURE.
kernel_of() { # VERSION
    local found=()
    found=("$cache/kernels/linux-image-$1".*-amd64_*)
    ((${#found[@]})) || return 1
    printf '%s\n' "${found[@]##*/}" | sort -V | tail -n 1
}

# apt on the source that the kernel came from: a suite that iotoll added for itself, or the system's.
apt_of() { # PACKAGE=VERSION PROGRAM ARGUMENT…
    local package=$1 program=$2 configuration
    shift 2
    for configuration in "" "$cache"/packages/.suite-*/apt.conf; do
        if apt-cache ${configuration:+-c "$configuration"} show "$package" >/dev/null 2>&1; then
            "$program" ${configuration:+-c "$configuration"} "$@"
            return
        fi
    done
    return 1
}

unpack() { # PACKAGE[=VERSION] FOLDER
    local folder
    folder=$(mktemp -d -p "$work")
    (cd "$folder" && apt_of "$1" apt-get download -q "$1" >/dev/null 2>&1) && dpkg-deb -x "$folder"/*.deb "$2"
    local status=$?
    rm -rf "$folder"
    return "$status"
}

# Builds libceph for a kernel: unchanged, and patched.
build() { # VERSION
    local name release version headers source folder variant
    name=$(kernel_of "$1") || { say "$1: the kernel is not in iotoll's cache"; return 1; }
    release=${name#linux-image-} release=${release%%_*}
    version=${name#*_} version=${version%_*}
    folder=$work/$release
    if [[ -e $folder/one-go/libceph.ko && -e $folder/rebuilt/libceph.ko ]]; then return; fi
    rm -rf "$folder"
    mkdir -p "$folder"
    say "$1: building libceph for $release"
    # The headers, and what they consist of.
    local headers_package=linux-headers-$release package
    for package in "$headers_package" $(apt_of "$headers_package" apt-cache depends "$headers_package" | grep -oE 'linux-(headers|kbuild)-[^ ]+$' | sort -u); do
        unpack "$package" "$folder/root" || { say "$1: the package $package cannot be had; run apt-get update"; return 1; }
    done
    headers=$folder/root/usr/src/$headers_package
    # They name each other by absolute paths.
    sed -i "s|^include /usr/src/|include $folder/root/usr/src/|" "$headers/Makefile"
    source=linux-source-$1
    unpack "$source=$version" "$folder/source" || unpack "$source" "$folder/source" ||
        { say "$1: the package $source cannot be had; run apt-get update"; return 1; }
    tar xJf "$folder/source/usr/src/$source.tar.xz" -C "$folder" "$source/net/ceph"
    rm -rf "$folder/source"
    # One folder, so that only what the patch changes is compiled again.
    for variant in rebuilt one-go; do
        if [[ $variant == one-go ]]; then "$here/edit-libceph.py" "$folder/$source/net/ceph"; fi
        # Without type information of the kernel, which the headers do not have in every version.
        make -s -j"$(nproc)" -C "$headers" M="$folder/$source/net/ceph" CC="${CC:-gcc}" CONFIG_DEBUG_INFO_BTF_MODULES= modules \
            >"$folder/$variant.log" 2>&1 || {
            say "$1: libceph cannot be built: $(grep -m1 -i error "$folder/$variant.log" || tail -n1 "$folder/$variant.log"); see $folder/$variant.log"
            return 1
        }
        mkdir "$folder/$variant"
        mv "$folder/$source/net/ceph/libceph.ko" "$folder/$variant/"
    done
    rm -rf "$folder/$source" "$folder/root"
}

mkdir -p "$work"
arguments=()
for version in "${kernels[@]}"; do arguments+=(--kernel "debian:$version"); done
# The kernels, into the cache.
"$iotoll" guest prepare "${arguments[@]}" --quiet --stack tmpfs --replicates 1 --rw=read >/dev/null
patched=1
for version in "${kernels[@]}"; do
    build "$version" || patched=0
done
if ((patched)); then
    modules=("libceph=$work/{release}/one-go/libceph.ko")
    if [[ ${CONTROL:-0} == 1 ]]; then modules=("libceph=$work/{release}/rebuilt/libceph.ko" "${modules[@]}"); fi
    for module in "${modules[@]}"; do arguments+=(--module "$module"); done
    arguments+=(--versus module)
else
    say "without the patched modules: only Debian's are measured, and kernels are compared"
fi
exec "$iotoll" guest run "$here/experiment.toml" "${arguments[@]}" "$@"
