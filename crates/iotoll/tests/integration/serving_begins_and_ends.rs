//! Start and end of `iotoll serve`: what it refuses, what it leaves behind, what ends it.

use super::iotoll::{Folder, eventually};
use super::machine::tool;
use super::serving::Served;
use rustix::process::Signal;
use std::fs;

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
            std::thread::sleep(std::time::Duration::from_millis(300));
            assert!(!running.ended());
            running.signal(Signal::TERM);
        }
        running.wait();
    }
}
