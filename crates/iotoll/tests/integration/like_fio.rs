//! Jobs do what fio does with them, system call by system call, or say what they do instead.

use super::iotoll::{Folder, PROGRAM, at_once, whole};
use super::machine::{has, skip};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// What a job does, compared with fio.
pub(super) enum Like {
    /// The same calls in the same order.
    Fio,
    /// The same calls in another order: chance decides it.
    FioInAnyOrder,
    /// The same reads in another order, so that other ones need no lseek.
    Seeking,
    /// Chance decides offsets and sizes: the same bytes, in blocks of the same sizes, and a number of calls that differs by
    /// up to a tenth.
    ByChance,
    /// The same calls, those that verify in another thread and order.
    Verifying,
    /// Other calls, deliberately: reads, writes and syncs of fio and of ours, and a part of the caveat.
    Deliberately([usize; 3], [usize; 3], &'static str),
}

use Like::{ByChance, Deliberately, Fio, FioInAnyOrder, Seeking, Verifying};

/// A job file, its files in KiB, and the comparison.
pub(super) type Case = (&'static str, &'static [(&'static str, usize)], Like);

const CASES: &[Case] = &[
    ("[global]\nrw=write\nsize=32k\nfilename=x\n[a]\nfilename=y", &[], Fio),
    ("[a]\nrw=read\noffset=33%\nfilename=x", &[("x", 100)], Fio),
    ("[a]\nrw=randwrite\noffset=50%\nsize=20k\nfilename=x", &[("x", 101)], FioInAnyOrder),
    ("[a]\nrw=read\nbs=4k,1000\nsize=10k\nfilename=x", &[], Fio),
    ("[a]\nrw=write\nbs=4k,64k\nsize=100k\nfilename=x", &[], Fio),
    ("[a]\nrw=write\nbs=4k-64k\nsize=100k\nfilename=x", &[], Deliberately([0, 1, 0], [0, 1, 0], "bsrange draws sizes")),
    ("[a]\nrw=read\nfilename=x:y", &[("x", 16), ("y", 64)], Fio),
    ("[a]\nrw=randread\nfilename=x:y", &[("x", 16), ("y", 64)], FioInAnyOrder),
    ("[a]\nrw=write\nsize=50%\nfilename=x:y\nloops=2", &[("x", 32), ("y", 64)], Fio),
    ("[a]\nrw=write\nsize=64k\nio_size=160k\nloops=3\nfilename=x", &[], Fio),
    ("[a]\nrw=write\nsize=64k\nio_size=20k\nloops=3\nfilename=x", &[], Fio),
    ("[a]\nrw=read\nsize=10k\nfilename=x", &[("x", 98)], Fio),
    ("[a]\nrw=randread\nsize=10k\nfilename=x", &[("x", 98)], FioInAnyOrder),
    ("[a]\nrw=write\nsize=10k\nio_size=40k\nfilename=x", &[], Fio),
    ("[a]\nrw=write\nsize=18k\nfsync=2\nfilename=x", &[], Fio),
    (
        "[a]\nrw=write\nsize=18k\nfsync=2\nloops=3\nend_fsync=1\nfdatasync=3\nfilename=x",
        &[],
        Deliberately([0, 12, 10], [0, 12, 10], "each pass"),
    ),
    ("[a]\nrw=read\nsize=64k\nend_fsync=1\nfilename=x", &[], Fio),
    ("[a]\nrw=write\nsize=64k\nend_fsync=1\nfilename=x:y", &[], Fio),
    ("[a]\nname=b\nrw=write\nsize=16k", &[], Fio),
    ("[a/b]\nrw=write\nsize=16k", &[], Fio),
    ("[ a b ]\nrw=write\nsize=16k", &[], Fio),
    ("[a]\nrw=write\nsize=16k\nfilename=p/q/x:p/r/y", &[("p/", 0), ("p/r/", 0)], Fio),
    ("[a]\nrw=write\nsize=16k\nnumjobs=3\ndirectory=d:e", &[("d/", 0), ("e/", 0)], Fio),
    ("[a]\nrw=write\nbs=$pagesize\nsize=$pagesize*4\nfilename=x", &[], Fio),
    ("[a]\nioengine=sync\nrw=write\nsize=32k\nfsync=3\nfilename=x", &[], Fio),
    ("[a]\nioengine=sync\nrw=read\nsize=64k\nfilename=x", &[("x", 64)], Fio),
    ("[a]\nioengine=sync\nrw=randread\nsize=64k\nfilename=x", &[("x", 64)], Seeking),
    (
        "[a]\nrw=write\nsize=64k\nend_fsync=1\nloops=3\nfilename=x",
        &[],
        Deliberately([0, 48, 3], [0, 48, 1], "after each pass"),
    ),
    (
        "[a]\nrw=write\nsize=96k\nfsync=1\nfilename=x:y:z",
        &[],
        Deliberately([0, 24, 23], [0, 24, 23], "the next in turn"),
    ),
    ("[a]\nrw=write\nsize=64k\nfsync=2\nfilename=x:y", &[], Deliberately([0, 16, 7], [0, 16, 14], "the next in turn")),
    ("[a]\nrw=randwrite\nbs=4k,8k\nsize=64k\nfilename=x", &[], Deliberately([0, 6, 0], [0, 8, 0], "leaves blocks out")),
    (
        "[a]\nrw=write\nsize=16k\nunlink=1\nfilename=x",
        &[("x", 16)],
        Deliberately([0, 4, 0], [0, 4, 0], "keeps x, because"),
    ),
    (
        "[a]\nrw=write\nsize=16k\nunlink=1\nfilename=x\n[b]\nstonewall\nrw=write\nsize=16k\nfilename=y",
        &[],
        Deliberately([0, 8, 0], [0, 8, 0], "removes x when the measurement ends"),
    ),
    ("[a]\nrw=write\nsize=32k\nrefill_buffers\nfilename=x", &[], Fio),
    ("[a]\nrw=read\nsize=32k\nverify=pattern\nverify_pattern=0x5a\nfilename=x", &[("x", 32)], Fio),
    ("[a]\nrw=write\nsize=32k\nverify=md5\nfilename=x:y", &[], Verifying),
    ("[a]\nrw=randwrite\nsize=32k\nverify=crc32c\nfilename=x", &[], Verifying),
    ("[a]\nrw=write\nsize=32k\nverify=md5\nnumber_ios=3\nfilename=x", &[], Verifying),
    ("[a]\nrw=write\nsize=32k\nverify=md5\ndo_verify=0\nfilename=x", &[], Fio),
    ("[a]\nrw=write\nsize=32k\nverify=md5\nverify_backlog=4\nfilename=x", &[], Fio),
    ("[a]\nrw=write\nsize=32k\nverify=md5\nverify_backlog=4\nfilename=x", &[], Verifying),
    (
        "[a]\nrw=write\nsize=32k\nverify=md5\nloops=2\nfilename=x",
        &[],
        Deliberately([16, 16, 0], [8, 16, 0], "once, at the end"),
    ),
    (
        "[a]\nrw=write\nsize=32k\nverify=md5\nverify_async=2\nfilename=x",
        &[],
        Deliberately([8, 8, 0], [8, 8, 0], "the job's own thread"),
    ),
    (
        "[a]\nrw=write\nsize=32k\nio_size=64k\nverify=crc32c\nfilename=x",
        &[],
        Deliberately([8, 8, 0], [8, 16, 0], "fio counts what it reads back as part of io_size"),
    ),
    ("[a;1]\nrw=write\nsize=16k", &[], Deliberately([0, 4, 0], [0, 4, 0], "calls the job ''")),
    // Sizes.
    ("[a]\nrw=read\nbssplit=8k\nfilename=x", &[("x", 64)], Fio),
    ("[a]\nrw=read\nbssplit=3k/50:4k/50\nfilename=x", &[("x", 64)], Fio),
    ("[a]\nrw=write\nbs=16k\nbssplit=4k/100,\nsize=64k\nfilename=x", &[], Fio),
    ("[a]\nrw=write\nbs=16k\nbssplit=,4k/100\nsize=64k\nfilename=x", &[], Fio),
    ("[a]\nrw=read\nbs=16k\nbsrange=4k-4k\nfilename=x", &[("x", 64)], Fio),
    ("[a]\nrw=read\nbssplit=4k/60:16k/\nfilename=x", &[("x", 4096)], ByChance),
    ("[a]\nrw=randread\nbssplit=4k/60:16k/\nfilename=x", &[("x", 4096)], ByChance),
    ("[a]\nrw=randwrite\nbsrange=4k-20k\nsize=4m\nfilename=x", &[], ByChance),
    ("[a]\nrw=randread\nbssplit=8k/30:4k/60\nnorandommap\nsize=4m\nfilename=x", &[("x", 4096)], ByChance),
    (
        "[a]\nrw=read\nbssplit=4k-8k\nfilename=x",
        &[("x", 64)],
        Deliberately([16, 0, 0], [16, 0, 0], "only the first one is used, as by fio"),
    ),
    // Orders.
    ("[a]\nrw=randread:4\nfilename=x", &[("x", 256)], ByChance),
    ("[a]\nrw=randread\npercentage_random=0\nfilename=x", &[("x", 64)], Fio),
    (
        "[a]\nrw=randread\npercentage_random=0%\nfilename=x",
        &[("x", 64)],
        Deliberately([16, 0, 0], [16, 0, 0], "has a percent sign"),
    ),
    ("[a]\nrw=read\nbssplit=8k/100.\nfilename=x", &[("x", 64)], Fio),
    ("[a]\nrw=randread\npercentage_random=50\nfilename=x", &[("x", 256)], ByChance),
    ("[a]\nrw=randwrite\npercentage_random=0,25,0\nsize=256k\nfilename=x", &[], ByChance),
    ("[a]\nrw=randread\nrandom_generator=tausworthe64\nfilename=x", &[("x", 64)], FioInAnyOrder),
    // Positions.
    ("[a]\nrw=randread\nblockalign=4k\nfilename=x", &[("x", 64)], FioInAnyOrder),
    ("[a]\nrw=read\nblockalign=8k\nfilename=x", &[("x", 64)], Fio),
    ("[a]\nrw=randread\nblockalign=512\nfilename=x", &[("x", 64)], ByChance),
    ("[a]\nrw=randwrite\nblockalign=16k\nsize=256k\nfilename=x", &[], ByChance),
    ("[a]\nrw=randread\nrandom_distribution=zipf:1.2\nfilename=x", &[("x", 256)], ByChance),
    // Zones and regions.
    ("[a]\nrw=read\noffset=4k\noffset_increment=16k\nnumjobs=3\nsize=8k\nfilename=x", &[("x", 64)], Fio),
    ("[a]\nrw=read\noffset_increment=25%\nnumjobs=3\nsize=8k\nfilename=x", &[("x", 64)], Fio),
    ("[a]\nrw=read\noffset_increment=30%\nnumjobs=2\nsize=10%\nfilename=x", &[("x", 90)], Fio),
    ("[a]\nrw=read\noffset=33%\noffset_align=8k\nfilename=x", &[("x", 100)], Fio),
    ("[a]\nrw=write\noffset_increment=64k\nnumjobs=2\nsize=16k\nfilename=x", &[], Fio),
];

/// The same about the options of files.
const FILES: &[Case] = &[
    ("[a]\nrw=write\nsize=20k\nnrfiles=3", &[], Fio),
    ("[a]\nrw=read\nnrfiles=2", &[("a.0.0", 16), ("a.0.1", 24)], Fio),
    ("[a]\nrw=read\nsize=50%\nnrfiles=2", &[("a.0.0", 32), ("a.0.1", 64)], Fio),
    ("[a]\nrw=randwrite\nsize=96k\nnrfiles=4", &[], FioInAnyOrder),
    ("[a]\nrw=write\nfilesize=8k\nnrfiles=2\nloops=2", &[], Fio),
    ("[a]\nrw=write\nfilesize=8k\nnrfiles=3\nsize=20k", &[], Fio),
    ("[a]\nrw=write\nfilesize=8k\nnrfiles=2\nsize=12k\nloops=2", &[], Fio),
    ("[a]\nrw=write\nfilesize=8k\nnrfiles=2\nio_size=24k", &[], Fio),
    ("[a]\nrw=write\nfilesize=16k\noffset=4k", &[], Fio),
    ("[a]\nrw=write\nfilesize=16k\nsize=50%", &[], Fio),
    ("[a]\nrw=read\nfilesize=16k\nfilename=x", &[("x", 32)], Fio),
    ("[a]\nrw=write\nsize=36k\nnrfiles=3\nfile_service_type=sequential", &[], Fio),
    ("[a]\nrw=write\nsize=48k\nnrfiles=2\nfile_service_type=roundrobin:2", &[], Fio),
    ("[a]\nrw=write\nsize=48k\nnrfiles=3\nfile_service_type=random:2", &[], FioInAnyOrder),
    ("[a]\nrw=write\nsize=16k\nnumjobs=2\nnrfiles=2\nfilename_format=d/$jobname-$jobnum/$filenum$clientuid", &[], Fio),
    ("[a]\nrw=write\nsize=8k\ncreate_on_open=1\nnrfiles=2", &[], Fio),
    ("[a]\nrw=write\nsize=16k\nfsync_on_close=1\nfilename=x:y", &[], Fio),
    ("[a]\nrw=write\nsize=16k\nfsync_on_close=1\nend_fsync=1\nfilename=x:y", &[], Fio),
    ("[a]\nrw=read\nsize=16k\nfsync_on_close=1\nfilename=x", &[], Fio),
    (
        "[a]\nrw=write\nsize=16k\nfsync_on_close=1\nfilename=x\nloops=2",
        &[],
        Deliberately([0, 8, 3], [0, 8, 1], "closes files after each pass"),
    ),
    ("[a]\nrw=write\nsize=32k\noverwrite=1\nfilename=x", &[], Fio),
];

/// The calls of each thread but the first, in order, as "R x 0 4096" or, at the file's position, "r x 4096"; paths are relative to
/// `folder`.
fn calls(trace: &str, folder: &str) -> Vec<Vec<String>> {
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
pub(super) fn joined(trace: &str) -> Vec<String> {
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
        .env("XDG_STATE_HOME", folder.path("state"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {printed}{}", String::from_utf8_lossy(&output.stderr));
    (String::from_utf8_lossy(&folder.read("trace")).into_owned(), printed)
}

/// Runs a command under strace in a folder with these files: the calls, and what it printed.
fn traced(command: &[&str], job: &str, files: &[(&str, usize)]) -> (Vec<Vec<String>>, String) {
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
    let (fio, _) = traced(&["fio", "--output-format=json", "job.fio"], job, files);
    let words = [PROGRAM, "run", "--no-save", "--background", "200ms", "--format", "json", "job.fio"];
    let (ours, printed) = traced(&words, job, files);
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
    let as_expected = match like {
        Fio => fio == ours,
        FioInAnyOrder => sorted(&fio) == sorted(&ours),
        ByChance => {
            let calls = [&fio, &ours].map(|threads| counts(threads).iter().sum::<usize>());
            lengths(&fio) == lengths(&ours) && calls[0].abs_diff(calls[1]) * 10 <= calls[0]
        }
        Verifying => {
            let all = |threads: &[Vec<String>]| {
                let mut calls = threads.concat();
                calls.sort();
                calls
            };
            all(&fio) == all(&ours)
        }
        // Each read is at its place: after an lseek to it, or after the block before it.
        Seeking => counts(&fio) == counts(&ours) && places(&fio) == places(&ours),
        Deliberately(theirs, own, says) => (counts(&fio), counts(&ours)) == (*theirs, *own) && caveats.contains(says),
    };
    // A difference has its caveat, and nothing else has one.
    let says = caveats.contains("option_differs") == matches!(like, Deliberately(..));
    (!as_expected || !says).then(|| {
        let counted = (counts(&fio), counts(&ours));
        format!("{job}\nfio and ours: {counted:?}\nfio: {fio:?}\nours: {ours:?}\ncaveats: {caveats}")
    })
}

#[test]
fn a_job_makes_the_calls_of_fio_or_says_what_it_does_instead() {
    if !has("fio") || !has("strace") {
        return skip("a_job_makes_the_calls_of_fio_or_says_what_it_does_instead", "no fio or no strace here");
    }
    compare(CASES);
}

#[test]
fn files_are_used_as_fio_uses_them() {
    if !has("fio") || !has("strace") {
        return skip("files_are_used_as_fio_uses_them", "no fio or no strace here");
    }
    compare(FILES);
}

pub(super) fn compare(cases: &[Case]) {
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
    if !has("fio") || !has("strace") {
        return skip("files_are_opened_and_advised_as_fio_does", "no fio or no strace here");
    }
    at_once(
        [
            "fadvise_hint=0",
            "sync=1",
            "sync=dsync",
            "sync=none\nfadvise_hint=random",
            "fadvise_hint=sequential",
            "direct=0\nbuffered=0",
            "buffered=0\ndirect=0",
        ],
        |options| {
            let fio = opened(&["fio", "job.fio"], options);
            let ours = opened(&[PROGRAM, "run", "--no-save", "--background", "200ms", "job.fio"], options);
            assert_eq!(fio, ours, "{options}");
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
    if !has("fio") || !has("strace") {
        return skip("each_thread_locks_the_memory_that_fio_locks", "no fio or no strace here");
    }
    let ours = locked(&[PROGRAM, "run", "--no-save", "--background", "200ms", "job.fio"]);
    assert_eq!((locked(&["fio", "job.fio"]), ours), (vec![1, 3 << 20, 3 << 20], vec![1, 3 << 20, 3 << 20]));
}

#[test]
fn a_file_that_is_named_again_is_added_and_named() {
    let folder = Folder::new();
    let finding = folder.measured_job("[global]\nrw=write\nsize=32k\nfilename=x\n[a]\nfilename=y\n");
    assert!(finding["warnings"].to_string().contains("the job uses all of 'x:y'"), "{}", finding["warnings"]);
    assert!(folder.exists("x") && folder.exists("y"));
    // On the command line it applies to every job, and replaces.
    folder.measured("run job.fio --filename=z");
    assert!(folder.exists("z"));
    assert_eq!(folder.listing().get("z"), Some(&Some(32 << 10)));
}

/// A job that only time ends has worked until then, although its last I/O was earlier.
#[test]
fn the_time_of_a_job_is_its_runtime() {
    let folder = Folder::new();
    for options in ["rate_iops=2", "thinktime=500ms"] {
        let finding =
            folder.measured(&format!("run --name=a --rw=write --size=1m --filename=x --runtime=1750ms --{options}"));
        let seconds = finding["jobs"][0]["wall_seconds"].as_f64().unwrap();
        // The last I/O is at 1.5 s or earlier, and its pause would end at 2 s.
        assert!((1.74..1.99).contains(&seconds), "{options}: {seconds} s");
        assert!((3..=4).contains(&whole(&finding["jobs"][0]["ios"])), "{options}");
    }
}

#[test]
fn folders_that_a_failed_run_made_are_removed() {
    let folder = Folder::new();
    folder.write("job.fio", "[made]\nrw=read\nsize=1m\nfilename=p/q/x\n[bad]\ndirectory=nowhere\nrw=read\nsize=1m\n");
    let before = folder.listing();
    folder.iotoll("run job.fio").run().refused(2, &["directory=nowhere", "make it first"]);
    assert_eq!(folder.listing(), before);
}
