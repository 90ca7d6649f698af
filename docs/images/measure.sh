#!/usr/bin/env bash
# Records a writer, and takes the picture of the page (ftq.png, with Chromium): half a minute, on a machine where nothing else runs.
#
#   cargo build --release && docs/images/measure.sh target/release/iotoll
set -euo pipefail
program=$(realpath "${1:?usage: docs/images/measure.sh PROGRAM}")
images=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
# On a disk: a temporary folder is often in memory.
folder=$(mktemp -d "$images/measure.XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
# One file of 256 MiB again and again, with fsync a second after the last one.
cat >fsync.py <<'PROGRAM'
import os, time
file = os.open("file", os.O_CREAT | os.O_WRONLY)
block = os.urandom(1 << 16)
last = time.monotonic()
while True:
    os.lseek(file, 0, 0)
    for _ in range(4096):
        os.write(file, block)
        if time.monotonic() - last > 1:
            os.fsync(file)
            last = time.monotonic()
PROGRAM
"$program" ftq --rw=write --duration 20s --out ftq -- python3 fsync.py
chromium --headless --no-sandbox --disable-gpu --virtual-time-budget=8000 --window-size=1100,1620 --screenshot="$images/ftq.png" "file://$folder/ftq/report.html"
