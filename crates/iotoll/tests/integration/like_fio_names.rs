//! Engines that operate on names, and engine splice, make the calls of fio, on the same files.

use super::iotoll::{Folder, PROGRAM, whole};
use super::like_fio::{joined, under_strace};
use super::machine::{has, skip};

const JOBS: &str = "[global]\nfilesize=4k\nnrfiles=3\n\
    [make]\nioengine=filecreate\ncreate_on_open=1\nopenfiles=1\nfallocate=none\n\
    [ask]\nioengine=filestat\nloops=2\n\
    [link]\nioengine=filestat\nstat_type=lstat\nrw=write\n\
    [all]\nioengine=filestat\nstat_type=statx\n\
    [gone]\nioengine=filedelete\n";

/// The operations on files of jobs, of threads or processes other than the first, sorted: the jobs run at the same time.
fn operations(command: &[&str]) -> (Vec<String>, Folder, String) {
    let folder = Folder::new();
    folder.write("job.fio", JOBS);
    let calls = "trace=open,openat,stat,lstat,newfstatat,statx,unlink,unlinkat";
    let (trace, printed) = under_strace(&folder, &["-s", "300", "-e", calls], command);
    let first = trace.split(' ').next().unwrap_or_default().to_owned();
    let operation = |line: &str| {
        let (thread, call) = line.split_once(' ')?;
        let (name, rest) = call.trim_start().split_once('(')?;
        let path = rest.split('"').nth(1)?.rsplit('/').next()?;
        let of_a_job = ["make.", "ask.", "link.", "all.", "gone."].iter().any(|stem| path.starts_with(stem));
        let what = match name {
            "open" | "openat" if rest.contains("O_CREAT") => "creates",
            "stat" => "asks for",
            "lstat" => "asks for the link",
            "newfstatat" if rest.contains("AT_SYMLINK_NOFOLLOW") => "asks for the link",
            "newfstatat" => "asks for",
            "statx" => "asks for all of",
            "unlink" | "unlinkat" => "removes",
            _ => return None,
        };
        (of_a_job && thread != first).then(|| format!("{what} {path}"))
    };
    let mut operations: Vec<String> = joined(&trace).iter().filter_map(|line| operation(line)).collect();
    operations.sort();
    (operations, folder, printed)
}

#[test]
fn operations_on_names_are_those_of_fio() {
    if !has("fio") || !has("strace") {
        return skip("operations_on_names_are_those_of_fio", "no fio or no strace here");
    }
    let (fio, ..) = operations(&["fio", "job.fio"]);
    let words = [PROGRAM, "run", "--no-save", "--background", "200ms", "--format", "json", "job.fio"];
    let (ours, folder, printed) = operations(&words);
    assert_eq!(ours, fio);
    let finding: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let of_jobs =
        |key: &str| finding["jobs"].as_array().unwrap().iter().map(|job| whole(&job[key])).collect::<Vec<_>>();
    assert_eq!((of_jobs("ios"), of_jobs("bytes")), (vec![3, 6, 3, 3, 3], vec![0; 5]));
    let left = folder.listing();
    assert_eq!(left.keys().filter(|name| name.ends_with(".0.2")).count(), 4, "{left:?}");
}

#[test]
fn folders_are_made_examined_and_removed() {
    let folder = Folder::new();
    folder.write(
        "job.fio",
        "[global]\nnrfiles=5\n[a]\nioengine=dircreate\n[b]\nioengine=dirdelete\n[c]\nioengine=dirstat\nunlink=1\n",
    );
    let finding = folder.measured("run job.fio");
    assert!((0..3).all(|job| whole(&finding["jobs"][job]["ios"]) == 5), "{finding}");
    assert!(folder.path("a.0.4").is_dir() && !folder.path("b.0.0").exists() && !folder.path("c.0.0").exists());
    for (words, says) in [
        ("run --name=a --ioengine=dircreate --nrfiles=5", "a.0.0 is there already"),
        ("run --name=a --ioengine=dirdelete --nrfiles=5", "is not iotoll's"),
        ("compare --name=a --ioengine=filedelete --candidate iodepth=1", "can be measured once"),
    ] {
        folder.iotoll(words).run().refused(2, &[says]);
    }
}

/// The calls that move pages between files and a pipe and succeed: offset, length and what was moved.
fn through_a_pipe(command: &[&str]) -> Vec<String> {
    let folder = Folder::with_file("x", 140 << 10);
    folder.write("job.fio", "[a]\nioengine=splice\nbs=64k\nfilename=x\nrw=write\nsize=128k\n");
    let (trace, _) = under_strace(&folder, &["-s", "0", "-e", "trace=splice"], command);
    let call = |line: &str| {
        let (arguments, moved) = line.split_once(" splice(")?.1.rsplit_once(" = ")?;
        let words: Vec<&str> = arguments.trim_end().split(", ").collect();
        let [_, from, _, to, length, _] = words.as_slice() else { return None };
        Some(format!("{from} {to} {length} {moved}"))
    };
    trace.lines().filter_map(call).collect()
}

#[test]
fn data_goes_through_a_pipe_as_in_fio() {
    if !has("fio") || !has("strace") {
        return skip("data_goes_through_a_pipe_as_in_fio", "no fio or no strace here");
    }
    let fio = through_a_pipe(&["fio", "job.fio"]);
    let ours = through_a_pipe(&[PROGRAM, "run", "--no-save", "--background", "200ms", "job.fio"]);
    let moved =
        |calls: &[String]| calls.iter().filter_map(|call| call.rsplit(' ').next()?.parse::<u64>().ok()).sum::<u64>();
    assert_eq!((moved(&fio), moved(&ours)), (128 << 10, 128 << 10), "{fio:?} {ours:?}");
    // A buffer that does not begin a page, as fio's, fills a pipe earlier.
    assert!(
        ours.len() <= fio.len() && ours.first().is_some_and(|call| call.starts_with("NULL [0]")),
        "{fio:?} {ours:?}"
    );
}
