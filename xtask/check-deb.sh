#!/usr/bin/env bash
# Packages a program (default: the release build), installs the package, uses it and removes it again.
#
#   xtask/check-deb.sh [PROGRAM]
#
# It leaves the machine as it was. Without root it looks into the package without installing it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

skip() {
    echo "SKIP package: $1"
    if [[ -n ${IOTOLL_SKIP_LOG-} ]]; then echo "SKIP package: $1" >>"$IOTOLL_SKIP_LOG"; fi
    exit 0
}

fail() {
    echo "check-deb: $1" >&2
    exit 1
}

for tool in dpkg-deb strip gzip; do
    command -v "$tool" >/dev/null || skip "there is no $tool"
done
rm -f target/deb/*.deb
cargo run --locked -q -p xtask -- deb ${1+--program "$1"}
packages=(target/deb/*.deb)
package=${packages[0]}

# A release build holds no debug information.
most_mebibytes=30
if [[ -z ${1-} ]]; then
    bytes=$(stat --format %s target/release/iotoll)
    ((bytes < most_mebibytes << 20)) || fail "target/release/iotoll has $((bytes >> 20)) MiB, more than $most_mebibytes"
    # The names of its functions are there, for backtraces.
    [[ $(nm target/release/iotoll | grep -c ' T main$') == 1 ]] || fail "target/release/iotoll has no names of functions"
fi

files=(
    usr/bin/iotoll
    usr/share/man/man1/iotoll.1.gz
    usr/share/man/man1/iotoll-run.1.gz
    usr/share/bash-completion/completions/iotoll
    usr/share/zsh/vendor-completions/_iotoll
    usr/share/fish/vendor_completions.d/iotoll.fish
    usr/share/doc/iotoll/copyright
    usr/share/doc/iotoll/changelog.gz
)
contents=$(dpkg-deb --contents "$package")
for file in "${files[@]}"; do
    grep -q " \./$file\$" <<<"$contents" || fail "$package lacks $file"
done
if grep -v ' root/root ' <<<"$contents"; then fail "a file of the package is not root's"; fi

if [[ $(id -u) != 0 ]]; then skip "installing it needs root"; fi
if dpkg-query -W iotoll >/dev/null 2>&1; then skip "a package of iotoll is installed already"; fi
if [[ -e /usr/bin/iotoll ]]; then skip "/usr/bin/iotoll is there already"; fi

purge() { dpkg --purge iotoll >/dev/null; }
trap purge EXIT
dpkg --install "$package" >/dev/null
installed=$(dpkg-query --listfiles iotoll)
version=$(/usr/bin/iotoll --version)
[[ $version == "iotoll "* ]] || fail "it calls itself '$version'"
# A line of the cost sheet, from a measurement that reads nothing and keeps nothing.
/usr/bin/iotoll run --full --name=empty --ioengine=null --size=4m --number_ios=1000 --background=200ms --no-save --quiet |
    grep -q '^Jobs' || fail "a run does not report its jobs"
if grep -rqs 'path-exclude=/usr/share/man' /etc/dpkg; then
    echo "check-deb: this machine installs no man pages; they are in the package"
elif command -v man >/dev/null; then
    man --where iotoll-run >/dev/null || fail "man does not find iotoll-run"
fi
purge
trap - EXIT
while read -r path; do
    if [[ -e $path && ! -d $path ]]; then fail "$path is still there after the purge"; fi
done <<<"$installed"
[[ ! -e /usr/share/doc/iotoll ]] || fail "/usr/share/doc/iotoll is still there after the purge"
echo "check-deb: $package installs, runs and is removed"
