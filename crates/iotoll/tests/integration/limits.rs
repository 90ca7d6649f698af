//! Without root, and with low limits: limits of the process, and kernels that refuse a feature.

use super::iotoll::{Folder, Iotoll, PROGRAM, at_once, whole};
use super::machine::{has, is_root, needs, skip};
use rustix::process::Signal;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

const READ: &str = "run --background 200ms --no-save --quiet --format json --name=r --filename=data --rw=randread --runtime=300ms --time_based";

const WITHOUT_IO_URING: &str = include_str!("programs/without_io_uring.py");

#[test]
fn a_kernel_without_io_uring_is_reported() {
    needs!("python3");
    let folder = Folder::with_file("data", 1 << 20);
    let before = folder.listing();
    for errno in ["1", "38"] {
        let filtered = |options: &str| {
            folder.iotoll(READ).word_list(options).under(&["python3", "-c", WITHOUT_IO_URING, errno]).run()
        };
        let ended = filtered("--ioengine=io_uring");
        if ended.code == Some(99) {
            return skip("this kernel supports no seccomp filter");
        }
        ended.refused(2, &["'r'", "io_uring is not allowed here", "kernel.io_uring_disabled", "ioengine=libaio"]);
        filtered("--ioengine=libaio").done();
        assert_eq!(folder.listing(), before);
    }
}

/// What a first-time user tries in a container whose seccomp profile refuses io_uring, as Docker's does.
#[test]
fn the_first_contact_needs_no_io_uring() {
    needs!("python3");
    let folder = Folder::with_file("data", 1 << 20);
    let filtered = |words: &str| folder.iotoll(words).under(&["python3", "-c", WITHOUT_IO_URING, "1"]);
    let doctor = filtered("doctor --full").run();
    if doctor.code == Some(99) {
        return skip("this kernel supports no seccomp filter");
    }
    assert!(doctor.code == Some(0) && doctor.stdout.contains("seccomp"), "{doctor:?}");
    let demo = filtered("demo --quiet --format json --out kept").start();
    let demo = demo.when(|_| !folder.lines("round").is_empty()).ended_by(Signal::INT);
    assert_eq!((demo.code, demo.stderr.as_str()), (Some(130), ""), "{demo:?}");
    assert!(folder.reported("kept").to_string().contains("ioengine=mmap"), "{demo:?}");
    filtered(READ).run().done();
    filtered("compare --meters thread --quiet --no-save --budget 1s --name=r --filename=data --rw=randread --candidate bs=8k").run().done();
    filtered("cost --background 200ms --quiet --no-save --ios 10 -- sleep 0.2").run().done();
}

#[test]
fn too_few_open_files_are_reported_in_one_line() {
    let folder = Folder::with_file("data", 1 << 20);
    let names: Vec<String> = (0..64).map(|number| format!("f{number}")).collect();
    names.iter().for_each(|name| folder.write(name, [1; 4096]));
    let before = folder.listing();
    for engine in ["psync", "libaio", "io_uring"] {
        let many =
            format!("run --background 200ms --name=m --rw=read --ioengine={engine} --filename={}", names.join(":"));
        let ended = folder.iotoll(&many).under(&["prlimit", "--nofile=48:48"]).run();
        ended.refused(2, &["opens 64 files at the same time", "use fewer files", "ulimit -Hn"]);
        assert_eq!(folder.listing(), before, "{engine}");
    }
    // Fewer than five would not suffice for the loader. With this few, even the meters fail: any result but a panic is
    // accepted.
    at_once(["6", "8", "12", "16", "24"], |limit| {
        let ended = folder.iotoll(READ).under(&["prlimit", &format!("--nofile={limit}:{limit}")]).run();
        assert!(matches!(ended.code, Some(0..=2)), "{limit}: {ended:?}");
        assert!(!ended.stderr.contains("panicked") && ended.stderr.lines().count() <= 1, "{limit}: {ended:?}");
        match ended.code {
            Some(0) => {}
            // The files of the job do not fit, or those of the meters.
            Some(2) => ended.refused(2, &["may not open more files", "ulimit -n"]),
            _ => ended.refused(1, &["Too many open files", "ulimit -n"]),
        }
    });
    assert_eq!(folder.listing(), before);
}

/// A folder that all users may write to, with a copy of the binary beside it; and how to become an ordinary user, if we are root.
pub struct Ordinary {
    pub folder: Folder,
}

impl Ordinary {
    const SETPRIV: [&'static str; 5] =
        ["setpriv", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--regid=65534"];

    pub fn new() -> Option<Self> {
        if is_root() && !has("setpriv") {
            skip("setpriv becomes another user, and is not here");
            return None;
        }
        // Other users may not be able to read the build folder.
        let folder = Folder::temporary();
        fs::copy(PROGRAM, folder.path("../iotoll")).unwrap();
        folder.write("data", vec![1; 1 << 20]);
        for (name, mode) in [("..", 0o755), (".", 0o777), ("data", 0o666)] {
            fs::set_permissions(folder.path(name), Permissions::from_mode(mode)).unwrap();
        }
        Some(Self { folder })
    }

    pub fn iotoll(&self, words: &str) -> Iotoll {
        self.as_user(65534, words)
    }

    /// A number of its own keeps the processes of other tests out of a limit.
    pub fn as_user(&self, user: u32, words: &str) -> Iotoll {
        let user = format!("--reuid={user}");
        let become_one = [&Self::SETPRIV[..], &[user.as_str(), "--"]].concat();
        let iotoll = self.folder.iotoll(words).program(&self.folder.path("../iotoll"));
        if is_root() { iotoll.under(&become_one) } else { iotoll }
    }
}

#[test]
fn files_of_others_are_refused() {
    if !is_root() {
        return skip("making files of another user takes root");
    }
    let Some(ordinary) = Ordinary::new() else { return };
    let folder = &ordinary.folder;
    folder.write("secret", [1; 4096]);
    fs::set_permissions(folder.path("secret"), Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(folder.path("closed")).unwrap();
    let before = folder.listing();
    let run = "run --background 200ms --name=a --rw=read";
    let cases: &[(&str, &[&str])] = &[
        ("--filename=secret", &["secret", "Permission denied", "run as root"]),
        ("--filename=secret --rw=write", &["secret", "Permission denied"]),
        ("--filename=closed/new --size=1m", &["closed/new", "Permission denied"]),
        ("--filename=data --out closed", &["closed", "Permission denied", "another --out"]),
        ("--filename=data --out closed/new", &["closed/new", "Permission denied", "another --out"]),
    ];
    for (options, named) in cases {
        ordinary.iotoll(&format!("{run} {options}")).run().refused(2, named);
        assert_eq!(folder.listing(), before, "{options}");
    }
}

#[test]
fn too_little_locked_memory_is_reported_in_one_line() {
    let Some(ordinary) = Ordinary::new() else { return };
    let run = |options: &str| {
        let iotoll = ordinary.iotoll(READ).word_list(options).word_list("--ioengine=io_uring --iodepth=32 --bs=64k");
        iotoll.under(&["prlimit", "--memlock=65536:65536"]).run()
    };
    run("").refused(1, &["'r'", "ulimit -l", "smaller buffers"]);
    let unregistered = run("--fixedbufs=0").done();
    assert!(whole(&unregistered.json()["jobs"][0]["ios"]) > 0);
}
