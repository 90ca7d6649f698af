#!/usr/bin/env bash
# Builds one module of Debian's kernel twice, unchanged and edited, for `iotoll guest run --module NAME=FILE`.
#
#   build-module.sh VERSION FOLDER OUT EDIT…     such as: build-module.sh 6.12 net/ceph built ./edit-libceph.py
#
# VERSION is a kernel that iotoll has in its cache (`iotoll guest run --kernel debian:VERSION …`), FOLDER the module's folder in
# Linux, and EDIT a command that gets the path of a copy of it. The modules are in OUT/RELEASE/unchanged and OUT/RELEASE/edited. Sources
# and headers come from Debian's packages of the same version. Nothing is installed, and no root is needed.
set -euo pipefail
shopt -s nullglob

fail() {
    echo "build-module.sh: $*" >&2
    exit 1
}

if (($# < 4)); then
    sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
version=$1 module=$2 edit=("${@:4}")
out=$(realpath -m "$3")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/iotoll

# The unpacked kernel that iotoll takes for the version: linux-image-RELEASE_VERSION_ARCHITECTURE.
images=("$cache/kernels/linux-image-$version".*-amd64_*)
((${#images[@]})) || fail "kernel $version: is not in $cache; run: iotoll guest run --kernel debian:$version --rw=read --no-save"
image=$(printf '%s\n' "${images[@]##*/}" | sort -V | tail -n 1)
release=${image#linux-image-} release=${release%%_*}
package_version=${image#*_} package_version=${package_version%_*}
folder=$out/$release
if [[ -d $folder/edited && -d $folder/unchanged ]]; then exit 0; fi

# apt, on the system's lists or on those of a suite that iotoll added for itself: where the kernel's headers are.
headers=linux-headers-$release
configuration=none
for candidate in "" "$cache"/packages/.suite-*/apt.conf; do
    if apt-cache ${candidate:+-c "$candidate"} show "$headers" >/dev/null 2>&1; then
        configuration=$candidate
        break
    fi
done
[[ $configuration != none ]] || fail "kernel $version: apt knows no package $headers; run apt-get update"
apt() { # PROGRAM ARGUMENT…
    "$1" ${configuration:+-c "$configuration"} "${@:2}"
}

scratch=$folder/scratch
rm -rf "$folder"
mkdir -p "$scratch"
trap 'rm -rf "$scratch"' EXIT

unpack() { # PACKAGE[=VERSION]
    mkdir "$scratch/package"
    (cd "$scratch/package" && apt apt-get download -q "$1" >../apt.log 2>&1) ||
        fail "kernel $version: the package $1 cannot be downloaded: $(grep '^E:' "$scratch/apt.log" | tail -n 1)"
    dpkg-deb -x "$scratch"/package/*.deb "$scratch/root"
    rm -r "$scratch/package"
}

echo "build-module.sh: building $module of $release" >&2
needed=$(apt apt-cache depends "$headers" | grep -oE 'linux-(headers|kbuild)-[^ ]+$' | sort -u)
for package in "$headers" $needed; do unpack "$package"; done
# They name each other by absolute paths.
sed -i "s|^include /usr/src/|include $scratch/root/usr/src/|" "$scratch/root/usr/src/$headers/Makefile"
source=linux-source-$version
unpack "$source=$package_version"
tar xJf "$scratch/root/usr/src/$source.tar.xz" -C "$scratch" "$source/$module" ||
    fail "$module: is not a folder of Linux $version"
for variant in unchanged edited; do
    # In one folder, so that only what the edit changes is compiled again.
    if [[ $variant == edited ]]; then "${edit[@]}" "$scratch/$source/$module"; fi
    # Without type information of the kernel, which not every version's headers have.
    make -s -j"$(nproc)" -C "$scratch/root/usr/src/$headers" M="$scratch/$source/$module" CC="${CC:-gcc}" \
        CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$folder/$variant.log" 2>&1 ||
        fail "$module: does not compile ($variant): $(grep -m 1 -iE 'error|not found' "$folder/$variant.log"); see $folder/$variant.log"
    mkdir "$folder/$variant.new"
    mv "$scratch/$source/$module"/*.ko "$folder/$variant.new/"
done
mv "$folder/unchanged.new" "$folder/unchanged"
mv "$folder/edited.new" "$folder/edited"
