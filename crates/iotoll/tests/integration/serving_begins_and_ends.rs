//! Start and end of `iotoll serve`: what it refuses, what it leaves behind, what ends it.

use super::iotoll::{Folder, eventually};
use super::machine::tool;
use super::serving::Served;
use rustix::process::Signal;
use std::fs;
use std::time::{Duration, Instant};

#[test]
fn every_bad_argument_of_serve_is_refused_in_one_line() {
    let folder = Folder::within(&std::env::temp_dir());
    folder.write("there", b"");
    let refused = |options: &str, named: &[&str]| folder.iotoll(&format!("serve {options}")).run().refused(2, named);
    refused("--backend floppy:1m", &["--backend", "floppy:1m", "memory:SIZE"]);
    refused("--backend memory:0", &["--backend", "'0'"]);
    refused("--backend memory:many", &["'many'"]);
    refused("--backend file:nowhere", &["file:nowhere", "check the path"]);
    refused("--backend file:/tmp", &["file:/tmp", "is not a file"]);
    tool("mkfifo", &[&folder.path("pipe").display().to_string()]).unwrap();
    refused("--backend file:pipe --read-only", &["file:pipe", "is not a file"]);
    refused("--backend file:/tmp --read-only", &["file:/tmp", "is not a file"]);
    refused("--backend file:/dev/zero", &["file:/dev/zero", "is not a file", "--read-only"]);
    refused("--backend file:/proc/self/status --direct", &["status --direct", "no O_DIRECT", "leave out"]);
    refused("--backend memory:1m --direct", &["--direct", "file:PATH"]);
    refused("--backend memory:1m --path-null wire", &["--path-null", "path_null=wire"]);
    refused("--backend memory:1m --inject-ns 1 --inject-at wire", &["--inject-at", "inject_at=wire"]);
    refused("--backend memory:1m --inject-ns 1 --inject-at disk", &["--inject-at", "'disk'", "server or storage"]);
    refused("--backend memory:1m --inject-at storage", &["--inject-ns"]);
    refused("--backend memory:1m --inject-ns 2000000000", &["--inject-ns", "2000000000"]);
    refused("--backend memory:1m --path-segment 100", &["--path-segment", "512"]);
    refused("--backend memory:1m --unix there", &["--unix there", "remove the existing file"]);
    refused("--backend memory:1m --listen 0.0.0.0:0", &["--listen 0.0.0.0:0", "--insecure-network"]);
    refused(
        "--backend memory:1m --insecure-network --listen 198.51.100.1:0",
        &["198.51.100.1", "an address of this machine"],
    );
    refused(&format!("--backend memory:1m --unix {}", "x".repeat(200)), &["--unix", "shorter path"]);
    refused("--backend memory:1m --export a --export a", &["--export a", "twice"]);
    refused("--backend memory:1m --path-send fast", &["'fast'", "gather"]);
    assert!(folder.exists("there"), "files of others stay");
    assert_eq!(folder.listing().len(), 2);
}

#[test]
fn another_server_s_socket_stays() {
    let first = Served::new("--backend memory:1m --unix s");
    fs::remove_file(first.path("s")).unwrap();
    let _another = std::os::unix::net::UnixListener::bind(first.path("s")).unwrap();
    let (left, _) = first.terminated();
    assert!(left.contains(&"s".to_owned()), "{left:?}");
}

#[test]
fn a_server_outlives_its_terminal_with_nohup() {
    for (under, goes) in [(&["env"][..], true), (&["nohup"][..], false)] {
        let folder = Folder::within(&std::env::temp_dir());
        let serve = folder.iotoll("serve --backend memory:1m --unix s").under(under);
        let mut running = serve.stdout(fs::File::create(folder.path("said")).unwrap()).start();
        assert!(eventually(|| fs::read_to_string(folder.path("said")).unwrap().starts_with("listening")));
        running.signal(Signal::HUP);
        if goes {
            assert!(eventually(|| running.ended()));
        } else {
            // Long enough to catch most errors.
            std::thread::sleep(Duration::from_millis(300));
            assert!(!running.ended());
            running.signal(Signal::TERM);
        }
        running.wait();
    }
}

/// Names of the event loops, and what the server's threads have waited for.
fn threads(process: u32) -> (usize, Vec<String>) {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let statuses = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("status")).unwrap());
    let statuses: Vec<String> = statuses.collect();
    let loops = statuses.iter().filter(|status| status.starts_with("Name:\tiotoll-serve"));
    let waits = statuses.iter().flat_map(|status| status.lines()).filter(|line| line.contains("ctxt_switches"));
    (loops.count(), waits.map(str::to_owned).collect())
}

#[test]
fn a_server_has_a_thread_for_each_cpu_that_it_may_use() {
    let cpus = std::thread::available_parallelism().unwrap().get().min(256);
    let options = "--backend memory:1m --unix s";
    // It listens before all of its threads have their names.
    let has = |served: Served, loops: usize| eventually(|| threads(served.process()).0 == loops);
    assert!(has(Served::new(options), cpus));
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..).find(|&cpu| allowed.is_set(cpu)).unwrap();
    assert!(has(Served::on_cpu(options, cpu as u32), 1));
}

#[test]
fn threads_without_clients_sleep_until_the_server_ends() {
    let served = Served::new("--backend file:data --unix s --threads 64");
    let of = || threads(served.process());
    // Until all of them sleep.
    assert!(eventually(|| {
        let before = of();
        std::thread::sleep(Duration::from_millis(100));
        before == of() && before.0 == 64
    }));
    let before = of();
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(of(), before, "nothing wakes them");
    let begun = Instant::now();
    let (_, ended) = served.terminated();
    // Without the five seconds that clients may have.
    assert!(ended.code == Some(0) && begun.elapsed() < Duration::from_secs(5), "{:?} {ended:?}", begun.elapsed());
}
