#!/usr/bin/env bash
# Measures the records of the reports in README.md, and takes the picture of a recording (ftq.png, with Chromium): a minute, on a machine where
# nothing else runs.
#
#   cargo build --release && docs/images/measure.sh target/release/iotoll
set -euo pipefail
program=$(realpath "${1:?usage: docs/images/measure.sh PROGRAM}")
images=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
# On a disk: a temporary folder is often in memory.
folder=$(mktemp -d "$images/measure.XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
head -c 256M /dev/urandom >data
job=(--name=read --rw=randread --bs=4k --filename=data --size=256m)
# The job of the README, whose own CPU figures miss interrupts, softirqs and the way in and out of idle.
"$program" cost --out cost -- fio "${job[@]}" --ioengine=libaio --iodepth=8 --direct=1 --runtime=5 --time_based
"$program" compare "${job[@]}" --iodepth=8 --baseline ioengine=libaio --candidate ioengine=io_uring --slice 50ms --budget 30s --out compare
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
cp cost/record.jsonl "$images/cost-sheet.record.jsonl"
cp compare/record.jsonl "$images/compare.record.jsonl"
