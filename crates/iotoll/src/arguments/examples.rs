//! Three examples of each verb: for its help, its man page, and the test that parses them.

/// A command, and what it is for.
pub struct Example {
    pub command: &'static str,
    pub what: &'static str,
}

const fn example(command: &'static str, what: &'static str) -> Example {
    Example { command, what }
}

/// The examples of the program, and of each verb by its words.
const TABLE: [(&str, [Example; 3]); 17] = [
    (
        "",
        [
            example(
                "iotoll demo",
                "half a minute: two cost sheets and a comparison, on a scratch file that it removes",
            ),
            example("iotoll cost -- fio job.fio", "what an unmodified command costs the whole machine"),
            example(
                "iotoll compare job.fio --baseline ioengine=libaio --candidate ioengine=io_uring",
                "which of two engines costs less for the same job",
            ),
        ],
    ),
    (
        "run",
        [
            example("iotoll run job.fio", "a job file, in fio's language"),
            example(
                "iotoll run --rw=randread --bs=4k --filename=data --size=256m --runtime=5 --time_based",
                "a job as flags",
            ),
            example(
                "iotoll run job.fio --iodepth=32 --parse-only",
                "the plan of a job with another depth; nothing runs",
            ),
        ],
    ),
    (
        "cost",
        [
            example("iotoll cost -- fio job.fio", "a program that reports its I/Os itself"),
            example(
                "iotoll cost --repeat 5 -- iperf3 -c 127.0.0.1 -t 5",
                "five executions; the interval comes from their spread",
            ),
            example("iotoll cost --bytes 1g -- cp big copy", "a program that reports nothing: you state what it moves"),
        ],
    ),
    (
        "compare",
        [
            example(
                "iotoll compare job.fio --baseline ioengine=libaio --candidate ioengine=io_uring",
                "two engines for the same job",
            ),
            example(
                "iotoll compare --candidate-set sysctl:vm.dirty_ratio=5 -- fio job.fio",
                "a command with and without a setting, which is restored",
            ),
            example(
                "iotoll compare job.fio --candidate bs=8k --fail-on 'cycles_per_io > +3%'",
                "a limit for CI: exit status 3 if it is exceeded, 4 if that is undecided",
            ),
        ],
    ),
    (
        "ftq",
        [
            example(
                "iotoll ftq --target data --rw=write --bs=64k",
                "a writer, with the kernel's writeback on the same time axis",
            ),
            example("iotoll ftq --pid 1234 --duration 10s", "a process that runs already"),
            example("iotoll ftq --cpu", "the noise of the machine itself"),
        ],
    ),
    (
        "blast",
        [
            example(
                "iotoll blast --method own --submitters 1,2,4",
                "four ways of sending, from 1, 2 and 4 threads, over loopback",
            ),
            example("iotoll blast --serve 192.168.1.2:9999", "the receiver, on the other machine"),
            example("iotoll blast 192.168.1.2:9999 --payload 64", "the sender, on this one"),
        ],
    ),
    (
        "guest",
        [
            example("iotoll guest list", "the stacks, and what the cache holds"),
            example(
                "iotoll guest run --kernel debian:6.12 --stack ext4-dax --rw=randread --bs=4k",
                "instructions of a read",
            ),
            example("iotoll guest shell --kernel debian:6.12 --stack nfs-rdma", "a look around in the guest"),
        ],
    ),
    (
        "guest run",
        [
            example("iotoll guest run --kernel debian:6.12 --rw=randread --bs=4k", "instructions of a read from tmpfs"),
            example(
                "iotoll guest run --kernel debian:6.1 --kernel ../linux --rw=randread --bs=4k --fail-on 'instructions_per_io > +0.5%'",
                "two kernels, as a gate: exit status 3 if the second executes more",
            ),
            example(
                "iotoll guest run --kernel debian:6.12 --rw=randread --bs=4k --by-function",
                "by function of the kernel",
            ),
        ],
    ),
    (
        "guest prepare",
        [
            example(
                "iotoll guest prepare --kernel debian:6.12 --rw=randread --bs=4k",
                "the guest of this job, booted and saved",
            ),
            example(
                "iotoll guest prepare --kernel debian:6.1 --kernel debian:6.12 --rw=randread --bs=4k",
                "of two kernels",
            ),
            example("iotoll guest prepare --kernel debian:6.12 --stack nfs-rdma --rw=randread --bs=4k", "of a stack"),
        ],
    ),
    (
        "guest shell",
        [
            example("iotoll guest shell --kernel debian:6.12", "a guest with a tmpfs"),
            example("iotoll guest shell --kernel debian:6.12 --stack nfs-rdma", "with NFS over RDMA"),
            example(
                "iotoll guest shell --kernel debian:6.12 --cmdline 'mitigations=off'",
                "with a parameter of the kernel",
            ),
        ],
    ),
    (
        "guest list",
        [
            example("iotoll guest list", "the stacks, and what the cache holds"),
            example("iotoll guest list --clear=superseded", "removes kernels of which the cache has a newer one"),
            example("iotoll guest list --clear", "empties the cache"),
        ],
    ),
    (
        "serve",
        [
            example("iotoll serve --backend memory:256m", "an NBD server at 127.0.0.1:10809"),
            example("iotoll serve --backend file:disk.img --read-only --unix nbd.sock", "a file, at a Unix socket"),
            example("iotoll serve --echo tcp://127.0.0.1:0", "returns what arrives, for engine rr"),
        ],
    ),
    (
        "report",
        [
            example("iotoll report --full", "all of the last measurement"),
            example("iotoll report iotoll-runs/before --format mail", "in 72 columns, for a patch thread"),
            example("iotoll report after --stored before", "what differs between two measurements"),
        ],
    ),
    (
        "doctor",
        [
            example("iotoll doctor", "what this machine can measure, how well, and how to fix what is missing"),
            example("iotoll doctor --format markdown", "for a bug report"),
            example("iotoll doctor --format json", "for a script"),
        ],
    ),
    (
        "history",
        [
            example("iotoll history", "what changed between the records in iotoll-runs"),
            example("iotoll history nightly --format markdown", "the records of a CI job, for an issue"),
            example("iotoll history nightly --format html > history.html", "with a chart of each metric that changed"),
        ],
    ),
    (
        "demo",
        [
            example("iotoll demo", "two cost sheets and a comparison, on a scratch file that it removes"),
            example("iotoll demo --out shown", "the record and report.html in this folder"),
            example("iotoll demo --no-save", "leaves nothing"),
        ],
    ),
    (
        "completions",
        [
            example("iotoll completions bash", "to source: source <(iotoll completions bash)"),
            example("iotoll completions zsh", "to save as _iotoll in a folder of fpath"),
            example("iotoll completions fish", "to save as iotoll.fish in ~/.config/fish/completions"),
        ],
    ),
];

/// Of a verb, by its words: `["guest", "run"]`; none for the program.
pub fn of<Word: AsRef<str>>(verb: &[Word]) -> &'static [Example] {
    let name = verb.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" ");
    TABLE.iter().find(|(known, _)| *known == name).map_or(&[], |(_, examples)| examples)
}
