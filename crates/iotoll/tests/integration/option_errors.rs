//! Bad usage: one line with the place, the option and a suggestion, exit status 2, nothing done.

use super::iotoll::Folder;

#[test]
fn flags_are_refused_in_one_line() {
    let folder = Folder::with_file("data", 1 << 20);
    folder.write("a.fio", "[a]\nioengine=null\nsize=1m\n");
    folder.write("a.toml", "title = \"a\"\n");
    folder.write("guest.toml", "kind = \"guest\"\n");
    folder.write("other.toml", "kind = \"ftq\"\n");
    std::fs::create_dir(folder.path("kept")).unwrap();
    folder.write("kept/record.jsonl", "");
    let before = folder.listing();
    let cases: &[(&str, &[&str])] = &[
        ("run", &["no job", "JOB.fio", "--rw"]),
        ("run --quiet", &["no job"]),
        ("run --name=a --frobnicate=1", &["'--frobnicate'"]),
        ("run --name=a --iodeph=4", &["'--iodeph'", "'iodepth'"]),
        ("run --name=a --ioengin=null", &["'--ioengin'", "'ioengine'"]),
        ("run --name=a --bs=4x", &["'--bs'", "4x", "bs=4k"]),
        ("run --name=a --bs=0", &["'--bs'"]),
        ("run --name=a --rw=raedwrite", &["'--rw'", "'readwrite'"]),
        ("run --name=a --rw=read:8x", &["'--rw'", "something behind a ':'"]),
        ("run --name=a --ioengine=libpmem", &["'--ioengine'", "mem comes nearest"]),
        (
            "run --name=a --size=1m --ioengine=posixaio",
            &["is an engine of fio that is not supported", "iotoll cost -- fio"],
        ),
        ("run --name=a --size=1m --zonemode=zbd", &["'--zonemode'", "into zones", "iotoll cost -- fio"]),
        ("run --name=a --iodepth=0", &["'--iodepth'"]),
        ("run --name=a --rwmixread=101", &["'--rwmixread'"]),
        ("run --name=a --numjobs=-1", &["'--numjobs'"]),
        ("run --name=a --runtime=10x", &["'--runtime'"]),
        ("run --name=a --direct=yes", &["'--direct'"]),
        ("run --name=a --size=0", &["'--size'"]),
        ("run --name=a --percentile_list=nan", &["'--percentile_list'"]),
        ("run --name=a --cpus_allowed=3-0", &["'--cpus_allowed'"]),
        ("run --name=a --wait_for=b --size=1m", &["wait_for", "stonewall waits", "iotoll cost -- fio"]),
        ("run --name=a --ioengine=null", &["size", "null"]),
        ("run --name=a --ioengine=spin --size=1m", &["spin_cycles"]),
        ("run --name=a --ioengine=null --size=1m --inject_ns=1 --inject_at=wire", &["'--inject_at'", "submit", "nbd"]),
        ("run --name=a --ioengine=null --size=1m --inject_at=submit", &["'--inject_at'", "inject_ns"]),
        ("run --name=a --bs=1m --size=4k", &["'--bs'", "does not fit"]),
        ("run --bs=4k", &["job 'job'", "size"]),
        ("run other.toml", &["other.toml: kind = \"ftq\": there is no such kind", "compare, guest or blast"]),
        ("run guest.toml --margin 5%", &["guest.toml", "missing field `kernels`"]),
        ("compare guest.toml", &["guest.toml", "kind \"guest\"", "iotoll guest run guest.toml"]),
        ("blast guest.toml", &["guest.toml", "kind \"guest\"", "iotoll guest run guest.toml"]),
        ("guest run a.toml", &["a.toml", "names no kind", "iotoll compare a.toml"]),
        ("run --name=", &["'--name'"]),
        ("run a.fio absent.fio", &["absent.fio", "there is no such file"]),
        ("compare a.fio a.fio --aa", &["only one job file is allowed"]),
        ("run a.fio --frobnicate=1", &["frobnicate", "unknown"]),
        ("run absent.fio", &["absent.fio", "there is no such file", "the job file"]),
        ("run rw=read", &["rw=read: there is no such file", "an option begins with --"]),
        ("run .", &[".", "reading the job file", "Is a directory"]),
        ("run a.fio --format=csvv", &["--format", "table, json, mail", "--help"]),
        ("run a.fio --format", &["--format", "--help"]),
        ("run a.fio --background=1ms", &["--background", "200ms"]),
        ("run a.fio --meters=sponge", &["--meters", "'sponge' is not a meter", "idle"]),
        ("run a.fio --out o --no-save", &["--out", "--no-save"]),
        ("run a.fio --seed=x", &["--seed"]),
        ("frobnicate", &["frobnicate", "--help"]),
        ("cost", &["COMMAND", "--help"]),
        ("cost --", &["COMMAND"]),
        ("cost true", &["true"]),
        ("cost --ios=0 -- true", &["--ios"]),
        ("cost --ios=x -- true", &["--ios"]),
        ("cost --repeat=0 -- true", &["--repeat"]),
        ("cost --count vda -- true", &["--count", "block:DEVICE"]),
        ("cost --count task:read -- true", &["--count", "take turns", "block:DEVICE"]),
        ("cost --count vmstat.nr_dirty -- true", &["--count", "gauge"]),
        ("cost --count block:vda --ios 5 -- true", &["--count", "--ios"]),
        ("report", &["iotoll-runs: no record is there", "give the folder"]),
        ("doctor --format=pdf", &["--format", "table, json, mail"]),
        ("demo --nonsense", &["--nonsense"]),
        ("demo --out data", &["data: cannot save a record there", "--out"]),
        ("run a.fio --cpus_allowed=1023 --parse-only", &["job 'a'", "cpus_allowed=1023: not online"]),
        ("run a.fio --place 1023 --parse-only", &["--place 1023", "CPU 1023 is not online"]),
        ("compare a.fio --aa --place 1023 --parse-only", &["--place 1023", "CPU 1023 is not online"]),
        ("compare a.fio --aa --fail-on fast", &["'--fail-on <LIMIT>': expected a limit such as"]),
        ("cost --bogus -- true", &["unexpected argument '--bogus' found; see iotoll cost --help"]),
        ("--version extra", &["'extra'", "--version"]),
        ("help job iodepht", &["'iodepht'", "no job option", "'iodepth'"]),
        ("help frobnicate", &["frobnicate", "--help"]),
        // Of comparisons.
        ("compare --rw=read --candidate bs=8k --target seconds", &["target", "cycles_per_io"]),
        ("compare --rw=read --sweep bs=4k,8k --candidate blocksize=4k", &["bs is swept"]),
        ("compare", &["a comparison needs two arms", "--candidate"]),
        ("compare --rw=read", &["a comparison needs two arms"]),
        ("compare --rw=read --candidate bz=8k", &["bz"]),
        ("compare --rw=read --candidate bs=8k --aa", &["--aa"]),
        ("compare --candidate-cmd true", &["arm 'baseline' has no command", "--baseline-cmd"]),
        ("compare --rw=read --candidate bs=8k --sweep bs", &["--sweep", "NAME=A,B"]),
        ("compare --rw=read --candidate bs=8k --sweep bs=4k,8k", &["bs is swept", "use only one"]),
        ("compare --rw=read --candidate-set vm.x=1", &["sysctl:NAME=VALUE"]),
        ("compare --rw=read --candidate-setup true", &["--candidate-cleanup"]),
        ("compare --rw=read --candidate bs=8k --fail-on fast", &["--fail-on", "expected a limit"]),
        ("compare --rw=read --candidate bs=8k --budget 0s", &["--budget", "expected 1s to 1d"]),
        ("compare --rw=read --candidate bs=8k -- fio", &["give one of them"]),
        ("compare --slices 1ms --aa -- true", &["--slices", "auto, off, or a time from 5ms to 10s"]),
        ("compare --count rchar --aa -- true", &["--count", "expected auto, io_uring"]),
        ("compare --count vmstat.nr_dirty --aa -- sleep 60", &["--count vmstat.nr_dirty", "gauge"]),
        ("compare --count block:nosuch --aa -- sleep 60", &["--count block:nosuch", "there is no"]),
        ("compare --end-signal STOP --aa -- true", &["--end-signal", "expected one of INT"]),
        ("compare --slices off --rw=read --size=1m --aa", &["--slices", "only work with commands", "--slice"]),
        (
            "compare --no-save --rw=randread --filename=data --invalidate=0 --cache warm --aa",
            &["both control the page cache"],
        ),
        ("compare --no-save --rw=randread --filename=data --prepare true --aa", &["only works with commands"]),
        ("compare --no-save --cache warm --aa -- true", &["only works with jobs"]),
        ("compare --no-save --rw=randread --filename=data --cache hot --aa", &["expected warm, cold or as-is"]),
        (
            "compare --no-save --rw=randread --filename=data --direct=1 --cache warm --aa",
            &["no job uses the page cache"],
        ),
        ("compare --no-save --ioengine=null --size=1m --cache as-is --aa", &["no job uses the page cache"]),
        ("compare --aa --same-boot --ioengine=null --size=1m", &["--same-boot", "when ="]),
        ("compare --resume kept -- true", &["--resume"]),
        ("compare --resume kept --ignore-unknown", &["--resume", "--ignore-unknown"]),
        ("compare --resume kept --allow-device-write", &["--resume", "--allow-device-write"]),
        ("compare --resume kept --stored old", &["--resume", "--stored"]),
        ("compare --resume kept --meters all", &["--resume", "--meters"]),
        ("compare --resume kept --seed 3", &["--resume", "--seed"]),
        ("compare --resume kept --rw=read", &["--resume", "--rw=read"]),
        ("compare --resume kept x.toml", &["--resume", "x.toml"]),
        (
            "compare --ioengine=spin --size=1m --spin_cycles=20000 --candidate-set sysctl:no.such=1",
            &["sysctl:no.such=1", "/proc/sys/no/such"],
        ),
        // Of recordings.
        ("ftq --no-save", &["no worker; give --target"]),
        ("ftq --no-save data", &["takes no job file; give --target data"]),
        ("ftq --no-save --target data --cpu", &["cannot be used with"]),
        ("ftq --no-save --target missing", &["give size="]),
        ("ftq --no-save --target data --numjobs=2", &["one worker"]),
        ("ftq --no-save --target data --quantum 5us", &["10us to 1s"]),
        ("ftq --no-save --target data --duration 1ms", &["10ms to 24h"]),
        ("ftq --no-save --target data --duration 24h --quantum 10us", &["use a longer --quantum"]),
        ("ftq --no-save --target data --probe worker.naps", &["sleeps, preemptions"]),
        ("ftq --no-save --target data --probe x=worker.sleeps,x=worker.run_delay", &["two probes have this name"]),
        ("ftq --no-save --target data --count dirty", &["is a gauge"]),
        ("ftq --no-save --target data --probe pressure.io.some", &["use --quantum 20ms"]),
        ("ftq --no-save --target data --inject_every=1s", &["without inject_ns"]),
        ("ftq --no-save --target data --recorder-cpu 4000", &["may not use it"]),
        ("ftq --target data --out kept", &["already contains a record"]),
        ("ftq --no-save --cpu --bs=4k", &["is an option of a job"]),
        ("ftq --no-save --pid 4000000000", &["there is no process"]),
        ("ftq --no-save --pid 1 --worker-cpu 0", &["taskset"]),
        ("ftq --no-save --rw=trim -- true", &["counted by read, write or rw"]),
        ("ftq --no-save -- /no/such/program", &["check the command after --"]),
        ("run --name=a --filename=data --probe worker.sleeps --no-save", &["only a recording"]),
        // Of packets.
        ("blast --no-save 8.8.8.8:9", &["public address", "--target-is-mine"]),
        ("blast --no-save no.such.host.invalid:9", &["cannot be resolved", "give a host name"]),
        ("blast --no-save 127.0.0.1:1", &["no receiver answers", "--serve"]),
        ("blast --no-save --submitter-cpus 1000", &["CPU 1000", "taskset"]),
        ("blast --no-save 127.0.0.1:9 --receiver-cpu 0", &["--receiver-cpu", "--serve"]),
        ("blast --no-save --rounds 1000 --duration 1", &["--rounds", "--duration"]),
        ("blast --no-save 127.0.0.1", &["HOST:PORT", "--help"]),
        ("blast --no-save 127.0.0.1:9 9", &["HOST:PORT", "one word"]),
        ("blast --no-save 127.0.0.1 9", &["HOST:PORT", "9"]),
        ("blast --no-save --method sendfile", &["sendmmsg", "--help"]),
        ("blast --no-save --submitters 0", &["1 to 1024", "--help"]),
        ("blast --no-save --payload 65508", &["65508", "--help"]),
        ("blast --no-save --probe no.such", &["no.such", "--help"]),
        ("blast --serve 192.0.2.1:5001", &["is not an address of this machine", "192.0.2.1"]),
        ("run --no-save --name=rr --ioengine=rr --bs=1 --number_ios=3", &["rr_peer", "tcp://127.0.0.1:5007"]),
        (
            "run --no-save --name=rr --ioengine=rr --rr_peer=127.0.0.1:7 --bs=1 --number_ios=3",
            &["rr_peer", "tcp://HOST:PORT"],
        ),
        (
            "run --no-save --name=rr --ioengine=rr --rr_peer=udp://127.0.0.1:9 --bs=64k --iodepth=4 --number_ios=3",
            &["128 KiB", "iodepth"],
        ),
        (
            "run --no-save --name=rr --ioengine=rr --rr_peer=udp://127.0.0.1:9 --bs=65508 --number_ios=3",
            &["65507", "bs"],
        ),
        ("serve --echo tcp://0.0.0.0:0", &["--insecure-network", "tcp://0.0.0.0:0"]),
        ("serve --echo unix:/no/such/folder/x", &["unix:/no/such/folder/x", "choose another"]),
        // Of places.
        ("run --place both --name=a --ioengine=null --size=1m", &["--place", "'both'", "same, apart"]),
        ("run --place 1023 --name=a --ioengine=null --size=1m", &["--place 1023", "CPU 1023"]),
        (
            "run --place same --name=a --ioengine=null --size=1m --cpus_allowed=0",
            &["--place same", "'a'", "cpus_allowed"],
        ),
        ("cost --place apart -- true", &["--place apart", "taskset"]),
        (
            "compare --no-save --quiet --ioengine=null --size=1m --place same --candidate cpus_allowed=0",
            &["--place same", "cpus_allowed"],
        ),
        ("compare --no-save --place apart --baseline-cmd true --candidate-cmd /usr/bin/true", &["--place apart"]),
        // Of fio.
        ("run --client=host --name=a", &["--client", "ssh"]),
        ("run --status-interval 1 --name=a --filename=data", &["--status-interval", "at the end"]),
        ("run --eta=never --name=a --filename=data", &["--eta", "leave it out"]),
        ("run --output nowhere/x --name=a --filename=data", &["--output nowhere/x", "can be written"]),
        ("compare --format fio-json --name=a --filename=data", &["--format fio-json", "only iotoll run"]),
        (
            "cost --background 200ms -- fio --output=x --name=a --size=1m",
            &["fio", "--output=x", "leave it out", "--ios"],
        ),
        (
            "cost --background 200ms -- fio --output-format=json --name=a --size=1m",
            &["fio", "--output-format=json", "leave it out", "--ios"],
        ),
        ("cost --background 200ms -- fio --minimal --name=a --size=1m", &["fio", "--minimal", "leave it out", "--ios"]),
        ("cost --count block:nosuch -- touch began", &["block:nosuch", "there is no /sys"]),
        ("cost --count net:nosuch -- touch began", &["net:nosuch", "there is no /sys"]),
        ("run --name=a --rw=write --size=8k --write_bw_log=no/x", &["write_bw_log: no/x_bw.1.log", "make it first"]),
        (
            "run --name=a --rw=write --size=8k --filename=f_lat.1.log --write_lat_log=f",
            &["f_lat.1.log", "choose another name"],
        ),
        ("run --name=a --rw=write --size=8k --write_iops_log --log_avg_msec=1s", &["log_avg_msec", "milliseconds"]),
        (
            "compare --rw=read --size=8k --write_lat_log=l --candidate bs=8k",
            &["write_lat_log", "only iotoll run writes logs"],
        ),
    ];
    for (words, named) in cases {
        folder.iotoll(words).run().refused(2, named);
        assert_eq!(folder.listing(), before, "{words} left something behind");
    }
}

#[test]
fn job_files_are_refused_with_file_line_and_option() {
    let folder = Folder::new();
    let cases: &[(&str, &[&str])] = &[
        ("[a]\nrw=read\n\niodeph=4\n", &["job.fio:4", "'iodeph'", "'iodepth'"]),
        ("[global]\nbs=4x\n[a]\n", &["job.fio:2", "'bs'", "4x"]),
        ("bs=4k\n[a]\n", &["job.fio:1", "'bs'", "before the first section"]),
        ("[a\nbs=4k\n", &["job.fio:1", "']'"]),
        ("[]\n", &["job.fio:1", "has no name"]),
        ("", &["job.fio:1", "no file has a job"]),
        ("[global]\nbs=4k\n", &["job.fio:2", "no file has a job"]),
        ("[a]\ninclude other.fio\n", &["job.fio:2", "'include'"]),
        ("[a]\nsize=$pagesize/0\n", &["job.fio:2", "cannot be calculated"]),
        ("[a]\nprofile=tiobench\n", &["job.fio:2", "known to fio, not supported; jobs are written out"]),
        ("[a]\nfilename=${IOTOLL_NOT_SET}\n", &["job.fio:2", "IOTOLL_NOT_SET"]),
        ("; c\n[a]\nioengine=libaoi\n", &["job.fio:3", "'libaio'"]),
        ("[a]\nrw\n", &["job.fio:2", "'rw'", "needs a value"]),
    ];
    for (text, named) in cases {
        folder.write("job.fio", text);
        let before = folder.listing();
        folder.iotoll("run job.fio").run().refused(2, named);
        assert_eq!(folder.listing(), before, "{text}");
    }
}

#[test]
fn files_that_are_not_text_are_refused() {
    let folder = Folder::new();
    folder.write("latin1.fio", b"[a]\nfilename=caf\xe9\n");
    folder.iotoll("run latin1.fio").run().refused(2, &["latin1.fio", "UTF-8"]);
    use std::os::unix::ffi::OsStrExt;
    let output = std::process::Command::new(super::iotoll::PROGRAM)
        .args(["run", "--name=a"])
        .arg(std::ffi::OsStr::from_bytes(b"--filename=caf\xe9"))
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && stderr.contains("UTF-8"), "{stderr}");
}

#[test]
fn help_goes_to_standard_output() {
    let folder = Folder::new();
    for (words, named) in [
        ("--help", "cost"),
        ("run --help", "--background"),
        ("run -h", "--background"),
        ("help job", "iodepth"),
        ("help job bs", "--bs="),
        ("cost --help", "--repeat"),
        ("--version", "0."),
    ] {
        let ended = folder.iotoll(words).run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{words}");
        assert!(ended.stdout.contains(named), "{ended:?}");
    }
    let bare = folder.iotoll("").run();
    assert_eq!((bare.code, bare.stdout.as_str()), (Some(2), ""));
    assert!(bare.stderr.contains("Usage"), "{bare:?}");
}
