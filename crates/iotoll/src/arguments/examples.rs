//! Three examples of each verb: for its help, its man page, and the test that parses them.

/// The examples of the program and of each verb: a command, and below it what it is for.
const TEXT: &str = "\
iotoll
  iotoll demo
      half a minute: two cost sheets and a comparison, on a scratch file that it removes
  iotoll cost -- fio job.fio
      what an unmodified command costs the whole machine
  iotoll compare job.fio --baseline ioengine=libaio --candidate ioengine=io_uring
      which of two engines costs less for the same job
iotoll run
  iotoll run job.fio
      a job file, in fio's language
  iotoll run --rw=randread --bs=4k --filename=data --size=256m --runtime=5 --time_based
      a job as flags
  iotoll run job.fio --iodepth=32 --parse-only
      the plan of a job with another depth; nothing runs
iotoll cost
  iotoll cost -- fio job.fio
      a program that reports its I/Os itself
  iotoll cost --repeat 5 -- iperf3 -c 127.0.0.1 -t 5
      five executions; the interval comes from their spread
  iotoll cost --bytes 1g -- cp big copy
      a program that reports nothing: you state what it moves
iotoll compare
  iotoll compare job.fio --baseline ioengine=libaio --candidate ioengine=io_uring
      two engines for the same job
  iotoll compare --candidate-set sysctl:vm.dirty_ratio=5 -- fio job.fio
      a command with and without a setting, which is restored
  iotoll compare job.fio --candidate bs=8k --fail-on 'cycles_per_io > +3%'
      a limit for CI: exit status 3 if it is exceeded, 4 if that is undecided
iotoll ftq
  iotoll ftq --target data --rw=write --bs=64k
      a writer, with the kernel's writeback on the same time axis
  iotoll ftq --pid 1234 --duration 10s
      a process that runs already
  iotoll ftq --cpu
      the noise of the machine itself
iotoll blast
  iotoll blast --method own --submitters 1,2,4
      four ways of sending, from 1, 2 and 4 threads, over loopback
  iotoll blast --serve 192.168.1.2:9999
      the receiver, on the other machine
  iotoll blast 192.168.1.2:9999 --payload 64
      the sender, on this one
iotoll guest
  iotoll guest list
      the stacks, and what the cache holds
  iotoll guest run --kernel debian:6.12 --stack ext4-dax --rw=randread --bs=4k
      instructions of a read
  iotoll guest shell --kernel debian:6.12 --stack nfs-rdma
      a look around in the guest
iotoll guest run
  iotoll guest run --kernel debian:6.12 --rw=randread --bs=4k
      instructions of a read from tmpfs
  iotoll guest run --kernel debian:6.1 --kernel ../linux --rw=randread --bs=4k --fail-on 'instructions_per_io > +0.5%'
      two kernels, as a gate: exit status 3 if the second executes more
  iotoll guest run --kernel debian:6.12 --rw=randread --bs=4k --by-function
      by function of the kernel
iotoll guest prepare
  iotoll guest prepare --kernel debian:6.12 --rw=randread --bs=4k
      the guest of this job, booted and saved
  iotoll guest prepare --kernel debian:6.1 --kernel debian:6.12 --rw=randread --bs=4k
      of two kernels
  iotoll guest prepare --kernel debian:6.12 --stack nfs-rdma --rw=randread --bs=4k
      of a stack
iotoll guest shell
  iotoll guest shell --kernel debian:6.12
      a guest with a tmpfs
  iotoll guest shell --kernel debian:6.12 --stack nfs-rdma
      with NFS over RDMA
  iotoll guest shell --kernel debian:6.12 --cmdline 'mitigations=off'
      with a parameter of the kernel
iotoll guest list
  iotoll guest list
      the stacks, and what the cache holds
  iotoll guest list --clear=superseded
      removes kernels of which the cache has a newer one
  iotoll guest list --clear
      empties the cache
iotoll serve
  iotoll serve --backend memory:256m
      an NBD server at 127.0.0.1:10809
  iotoll serve --backend file:disk.img --read-only --unix nbd.sock
      a file, at a Unix socket
  iotoll serve --echo tcp://127.0.0.1:0
      returns what arrives, for engine rr
iotoll report
  iotoll report --full
      all of the last measurement
  iotoll report iotoll-runs/before --format mail
      in 72 columns, for a patch thread
  iotoll report after --stored before
      what differs between two measurements
iotoll doctor
  iotoll doctor
      what this machine can measure, how well, and how to fix what is missing
  iotoll doctor --format markdown
      for a bug report
  iotoll doctor --format json
      for a script
iotoll history
  iotoll history
      what changed between the records in iotoll-runs
  iotoll history nightly --format markdown
      the records of a CI job, for an issue
  iotoll history nightly --format html > history.html
      with a chart of each metric that changed
iotoll demo
  iotoll demo
      two cost sheets and a comparison, on a scratch file that it removes
  iotoll demo --out shown
      the record and report.html in this folder
  iotoll demo --no-save
      leaves nothing
iotoll completions
  iotoll completions bash
      to source: source <(iotoll completions bash)
  iotoll completions zsh
      to save as _iotoll in a folder of fpath
  iotoll completions fish
      to save as iotoll.fish in ~/.config/fish/completions
";

/// The commands of a verb, each with what it is for, by the verb's words: `["guest", "run"]`; none for the program.
pub fn of<Word: AsRef<str>>(verb: &[Word]) -> Vec<(&'static str, &'static str)> {
    let words = std::iter::once("iotoll").chain(verb.iter().map(AsRef::as_ref));
    let heading = words.collect::<Vec<_>>().join(" ");
    let below = TEXT.lines().skip_while(|line| *line != heading).skip(1);
    let lines: Vec<&str> = below.take_while(|line| line.starts_with(' ')).map(str::trim_start).collect();
    lines.chunks_exact(2).filter_map(|pair| Some((*pair.first()?, *pair.last()?))).collect()
}
