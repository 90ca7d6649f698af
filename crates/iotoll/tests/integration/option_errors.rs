//! Bad usage: one line with the place, the option and a suggestion, exit status 2, nothing done.

use super::iotoll::Folder;

#[test]
fn flags_are_refused_in_one_line() {
    let folder = Folder::with_file("data", 1 << 20);
    folder.write("a.fio", "[a]\nioengine=null\nsize=1m\n");
    folder.write("a.toml", "title = \"a\"\n");
    folder.write("guest.toml", "kind = \"guest\"\n");
    folder.write("other.toml", "kind = \"ftq\"\n");
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
        ("run --name=a --rw=read:8x", &["'--rw'", "has no number of bytes"]),
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
        ("run --name=a --wait_for=b --size=1m", &["wait_for", "'b'"]),
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
