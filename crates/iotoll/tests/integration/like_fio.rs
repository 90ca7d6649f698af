//! Jobs do what fio does with them, system call by system call, or say what they do instead.

use super::iotoll::{Folder, PROGRAM, at_once, whole};
use super::machine::needs;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// What does with a job file what fio does.
const OURS: [&str; 8] = [PROGRAM, "run", "--no-save", "--meters", "thread", "--background", "200ms", "job.fio"];

/// A job file, its files in KiB, and what it does, compared with fio: a word that [`wrong`] explains, or what differs deliberately.
type Case = (String, Vec<(String, usize)>, Value);

/// The calls of each thread but the first, in order, as "R x 0 4096" or, at the file's position, "r x 4096"; paths are relative to
/// `folder`.
pub fn calls(trace: &str, folder: &str) -> Vec<Vec<String>> {
    let mut threads: Vec<(String, Vec<String>)> = Vec::new();
    let mut first = None;
    for line in &joined(trace) {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let first = first.get_or_insert_with(|| thread.to_owned());
        let Some((name, arguments)) = call.trim_start().split_once('(') else { continue };
        let letter = match name {
            "pread64" => "R",
            "pwrite64" => "W",
            "read" => "r",
            "write" => "w",
            "lseek" => "S",
            "fsync" => "F",
            "fdatasync" => "D",
            _ => continue,
        };
        let Some(path) = arguments.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(path, _)| path)
        else {
            continue;
        };
        let Some(path) = path.strip_prefix(folder).and_then(|path| path.strip_prefix('/')) else { continue };
        // fio saves the state of a job that verifies.
        if thread == first || path.ends_with("-verify.state") {
            continue;
        }
        let numbers = arguments.split(')').next().unwrap_or_default();
        let numbers: Vec<&str> = numbers.rsplit(", ").take(2).collect();
        let text = match numbers.as_slice() {
            [offset, length] if "RW".contains(letter) => {
                format!("{letter} {path} {} {}", number(offset), number(length))
            }
            [length, _] if "rw".contains(letter) => format!("{letter} {path} {}", number(length)),
            [_, offset] if letter == "S" => format!("{letter} {path} {}", number(offset)),
            _ => format!("{letter} {path}"),
        };
        match threads.iter_mut().find(|(known, _)| known == thread) {
            Some((_, calls)) => calls.push(text),
            None => threads.push((thread.to_owned(), vec![text])),
        }
    }
    let mut calls: Vec<_> = threads.into_iter().map(|(_, calls)| calls).collect();
    calls.sort();
    calls
}

/// Lines of strace in which each call is whole: it cuts a call in two where another thread's call ends in between.
fn joined(trace: &str) -> Vec<String> {
    const CUT: &str = " <unfinished ...>";
    let mut begun: Vec<(&str, &str)> = Vec::new();
    let mut lines = Vec::new();
    for line in trace.lines() {
        let (thread, call) = line.split_once(' ').unwrap_or((line, ""));
        let resumed = call.trim_start().strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>"));
        if let Some(begin) = line.strip_suffix(CUT) {
            begun.push((thread, begin));
        } else if let Some((_, rest)) = resumed {
            let place = begun.iter().position(|(of, _)| *of == thread);
            lines.extend(place.map(|place| begun.swap_remove(place).1.to_owned() + rest));
        } else {
            lines.push(line.to_owned());
        }
    }
    lines
}

fn number(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

fn counts(threads: &[Vec<String>]) -> [usize; 3] {
    let of = |letters: &str| threads.iter().flatten().filter(|call| letters.contains(&call[..1])).count();
    [of("Rr"), of("Ww"), of("FD")]
}

/// The bytes of all calls, and the lengths that occur.
fn lengths(threads: &[Vec<String>]) -> (u64, BTreeSet<u64>) {
    let length = |call: &String| call.rsplit(' ').next().and_then(|number| number.parse::<u64>().ok());
    let lengths = threads.iter().flatten().filter_map(length);
    (lengths.clone().sum(), lengths.collect())
}

/// Where reads at the file's position begin, in order of place.
fn places(threads: &[Vec<String>]) -> Vec<u64> {
    let (mut places, mut position) = (Vec::new(), 0);
    for call in threads.iter().flatten() {
        let last = call.rsplit(' ').next().and_then(|number| number.parse::<u64>().ok()).unwrap_or_default();
        match &call[..1] {
            "S" => position = last,
            "r" => {
                places.push(position);
                position += last;
            }
            _ => {}
        }
    }
    places.sort_unstable();
    places
}

/// Runs a command in a folder under strace with these options: the trace, and what the command printed. The kernel stops it only at
/// the calls of the trace: iotoll makes thousands of others to measure other programs' use of the CPUs.
pub fn under_strace(folder: &Folder, options: &[&str], command: &[&str]) -> (String, String) {
    let output = Command::new("strace")
        .args(["-f", "--seccomp-bpf", "-o", "trace"])
        .args(options)
        .args(command)
        .current_dir(folder.path("."))
        .env("XDG_STATE_HOME", folder.path("../state"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {printed}{}", String::from_utf8_lossy(&output.stderr));
    (String::from_utf8_lossy(&folder.read("trace")).into_owned(), printed)
}

/// Runs a command under strace in a folder with these files: the calls, and what it printed.
fn traced(command: &[&str], job: &str, files: &[(String, usize)]) -> (Vec<Vec<String>>, String) {
    let folder = Folder::new();
    for (name, kib) in files {
        match name.strip_suffix('/') {
            Some(name) => std::fs::create_dir(folder.path(name)).unwrap(),
            None => folder.write(name, vec![0x5a; kib << 10]),
        }
    }
    folder.write("job.fio", format!("{job}\n"));
    // Only engine sync reads its files by `read`, by which iotoll reads thousands of others: each would stop it.
    let read = if job.contains("ioengine=sync") { ",read" } else { "" };
    let calls_of = format!("trace=pread64,pwrite64,write,lseek,fsync,fdatasync{read}");
    let (trace, printed) = under_strace(&folder, &["-y", "-s", "0", "-e", &calls_of], command);
    let path = std::fs::canonicalize(folder.path(".")).unwrap();
    (calls(&trace, &path.display().to_string()), printed)
}

/// What is wrong with a case, if anything is.
fn wrong((job, files, like): &Case) -> Option<String> {
    // With a clock that it is given, fio calibrates that of the CPU once, not twice.
    let (fio, _) = traced(&["fio", "--clocksource=clock_gettime", "--output-format=json", "job.fio"], job, files);
    let (ours, printed) = traced(&[&OURS[..], &["--format", "json"]].concat(), job, files);
    let finding: Value = serde_json::from_str(&printed).unwrap();
    let reported = |key: &str| finding["jobs"].as_array().unwrap().iter().map(|job| whole(&job[key])).sum::<u64>();
    let reported = [reported("ios"), reported("syncs")];
    let [reads, writes, syncs] = counts(&ours);
    // What is read back at the end is not among the I/Os.
    let all = |key: fn(&Value) -> u64| finding["jobs"].as_array().unwrap().iter().map(key).sum::<u64>();
    let verified = all(|job| job["verified"]["ios"].as_u64().unwrap_or(0));
    let read = all(|job| whole(&job["read"]["ios"]));
    let after = verified.saturating_sub(read);
    if reported != [(reads + writes) as u64 - after, syncs as u64] {
        return Some(format!("{job}\nreports I/Os and syncs {reported:?}, made {:?}", counts(&ours)));
    }
    let caveats = finding["warnings"].to_string();
    let sorted = |threads: &[Vec<String>]| {
        let mut threads = threads.to_vec();
        threads.iter_mut().for_each(|calls| calls.sort());
        threads.sort();
        threads
    };
    let as_expected = match like.as_str() {
        Some("same") => fio == ours,
        // The same calls: chance decides their order.
        Some("in any order") => sorted(&fio) == sorted(&ours),
        // Chance decides offsets and sizes: the same bytes, in blocks of the same sizes, and a number of calls that differs by up to a
        // tenth.
        Some("by chance") => {
            let calls = [&fio, &ours].map(|threads| counts(threads).iter().sum::<usize>());
            lengths(&fio) == lengths(&ours) && calls[0].abs_diff(calls[1]) * 10 <= calls[0]
        }
        // The same calls, those that verify in another thread and order.
        Some("verifying") => sorted(&[fio.concat()]) == sorted(&[ours.concat()]),
        // The same reads in another order, so that other ones need no lseek: each is at its place, after an lseek to it, or after the
        // block before it.
        Some("seeking") => counts(&fio) == counts(&ours) && places(&fio) == places(&ours),
        // Other calls: reads, writes and syncs of fio and of ours, and a part of the caveat.
        _ => {
            let counted = (json!(counts(&fio)), json!(counts(&ours)));
            counted == (like["fio"].clone(), like["ours"].clone()) && caveats.contains(like["says"].as_str().unwrap())
        }
    };
    // A difference has its caveat, and nothing else has one.
    let says = caveats.contains("option_differs") == like.is_object();
    (!as_expected || !says).then(|| {
        let counted = (counts(&fio), counts(&ours));
        format!("{job}\nfio and ours: {counted:?}\nfio: {fio:?}\nours: {ours:?}\ncaveats: {caveats}")
    })
}

#[test]
fn a_job_makes_the_calls_of_fio_or_says_what_it_does_instead() {
    needs!("fio", "strace");
    let cases: BTreeMap<String, Vec<Case>> = serde_json::from_str(include_str!("cases/like_fio.json")).unwrap();
    let cases = cases.into_values().flatten().collect::<Vec<_>>();
    let found = Mutex::new(Vec::new());
    // Four at once: they mostly wait.
    at_once(0..4, |part| {
        let here: Vec<String> = cases.iter().skip(part).step_by(4).filter_map(wrong).collect();
        found.lock().unwrap().extend(here);
    });
    let found = found.into_inner().unwrap();
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

/// What a job says when it opens a file for its I/O: whether writes are durable, the advice.
fn opened(command: &[&str], options: &str) -> Vec<String> {
    let folder = Folder::with_file("x", 16 << 10);
    folder.write("job.fio", format!("[a]\nrw=write\nsize=16k\nfilename=x\n{options}\n"));
    let (trace, _) = under_strace(&folder, &["-y", "-s", "0", "-e", "trace=openat,fadvise64,pwrite64"], command);
    let lines = joined(&trace);
    // The thread that writes, up to its first write.
    let writer = lines.iter().find(|line| line.contains("pwrite64")).and_then(|line| line.split(' ').next()).unwrap();
    let of_writer = lines.iter().filter(|line| line.starts_with(writer)).take_while(|line| !line.contains("pwrite64"));
    let of_file: Vec<&String> = of_writer.filter(|line| line.contains("/x>") || line.contains("\"x\"")).collect();
    let words = ["O_SYNC", "O_DSYNC", "O_DIRECT", "FADV_RANDOM", "FADV_SEQUENTIAL"];
    words
        .iter()
        .filter(|word| of_file.iter().any(|line| line.contains(**word)))
        .map(|word| (*word).to_owned())
        .collect()
}

#[test]
fn files_are_opened_and_advised_as_fio_does() {
    needs!("fio", "strace");
    at_once(
        ["fadvise_hint=0", "sync=1", "sync=dsync", "sync=none", "direct=0\nbuffered=0", "buffered=0\ndirect=0"],
        |options| {
            let fio = opened(&["fio", "job.fio"], options);
            assert_eq!(fio, opened(&OURS, options), "{options}");
        },
    );
}

/// The memory that threads lock.
fn locked(command: &[&str]) -> Vec<u64> {
    let folder = Folder::with_file("x", 16 << 10);
    folder.write("job.fio", "[global]\nrw=read\nfilename=x\n[a]\nnumjobs=2\nlockmem=3m\n[b]\nlockmem=1\n[c]\n");
    let (trace, _) = under_strace(&folder, &["-e", "trace=mlock"], command);
    let lengths = joined(&trace).into_iter().filter_map(|line| {
        let (arguments, result) = line.split_once("mlock(")?.1.split_once(')')?;
        assert!(result.trim_start().starts_with("= 0"), "{line}");
        arguments.split_once(", ")?.1.parse().ok()
    });
    let mut lengths: Vec<u64> = lengths.collect();
    lengths.sort_unstable();
    lengths
}

#[test]
fn each_thread_locks_the_memory_that_fio_locks() {
    needs!("fio", "strace");
    let expected = vec![1, 3 << 20, 3 << 20];
    assert_eq!([locked(&["fio", "job.fio"]), locked(&OURS)], [expected.clone(), expected]);
}
