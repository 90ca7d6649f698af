#!/usr/bin/env bash
# Does the patched libceph move the right bytes? On each kernel, with Debian's module and with the one that measure.sh has built: 8 MiB of
# random data written through the kernel's rbd, read back through it, and read by librbd, with and without CRC, in several sizes of I/O. A
# line for each; a difference ends it with status 1.
#
# IOTOLL, KERNELS and WORK as in measure.sh.
set -euo pipefail
iotoll=${IOTOLL:-iotoll}
read -ra kernels <<<"${KERNELS:-5.10 6.1 6.12}"
work=${WORK:-${XDG_CACHE_HOME:-$HOME/.cache}/iotoll/seed-001}

# For the shell in the guest.
commands='
stty -echo; cat > /tmp/check << \END
remap() {
  echo 0 > /sys/bus/rbd/remove_single_major
  echo "127.0.0.1:6789 name=admin,$1 rbd iotoll" > /sys/bus/rbd/add_single_major
  while ! [ -b /dev/rbd0 ]; do sleep 1; done
}
sum() { md5sum | cut -c 1-32; }
check() {
  head -c 8388608 /dev/urandom > /tmp/data
  dd if=/tmp/data of=/dev/rbd0 bs=$2 oflag=direct 2> /dev/null
  echo "= $1 $2 $(sum < /tmp/data) $(dd if=/dev/rbd0 bs=$2 count=$((8388608 / $2)) iflag=direct 2> /dev/null | sum) $(rbd export --no-progress rbd/iotoll - 2> /dev/null | head -c 8388608 | sum)"
}
for options in crc nocrc; do remap $options; for size in 4096 65536 1048576; do check $options $size; done; done
END
sh /tmp/check; exit
'
status=0
for version in "${kernels[@]}"; do
    for module in "" "libceph=$work/{release}/edited/libceph.ko"; do
        # The guest needs a terminal. What is typed before its shell reads is lost: empty lines go first.
        said=$(printf '%128s%s' '' "$commands" | sed '1s/ /\n/g' |
            script -qefc "'$iotoll' guest shell --quiet --stack rbd --kernel debian:$version --module '$module'" /dev/null | tr -d '\r' |
            sed -n 's/^.*= \(crc\|nocrc\) \([0-9]\)/\1 \2/p') || true
        lines=0
        while read -r options size written kernel librbd; do
            result=same
            if [[ ${#written} != 32 || $written != "$kernel" || $written != "$librbd" ]]; then result=DIFFERENT status=1; fi
            printf '%-5s %-8s %-5s %7s  %s  %s\n' "$version" "${module:+patched}" "$options" "$size" "$written" "$result"
            lines=$((lines + 1))
        done <<<"$said"
        if ((lines != 6)); then echo "$version ${module:+patched}: $lines of 6 checks" && status=1; fi
    done
done
exit "$status"
