//! What `iotoll serve` confirms as durable is durable: system calls in order, and file systems that lose everything
//! else.

use super::iotoll::{Folder, eventually};
use super::machine::{LoopDevice, Mount, is_root, skip, tool};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A program for the Python that Debian's libnbd is built for.
fn python(script: &str) -> Command {
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", script]).stdin(Stdio::null());
    command
}

/// Between the system call that received a request and the one that sent its reply.
#[test]
fn a_reply_that_promises_durability_is_sent_after_fdatasync_and_no_other_waits_for_it() {
    let folder = Folder::temporary();
    folder.write("data", vec![1; 1 << 20]);
    let trace = ["strace", "-f", "-o", "trace", "-e", "trace=fdatasync,recvfrom,sendmsg"];
    let output = fs::File::create(folder.path("said")).unwrap();
    let server = folder.iotoll("serve --backend file:data --unix s").under(&trace).stdout(output).start();
    if !eventually(|| folder.exists("s")) {
        return skip("no strace here");
    }
    let script = format!(
        "import nbd\nh = nbd.NBD()\nh.connect_uri('nbd+unix:///?socket={}')\nfua = nbd.CMD_FLAG_FUA\n\
         for i in range(20):\n h.pwrite(b'x' * 512, i * 512)\n h.pwrite(b'y' * 512, i * 512, fua)\n h.flush()\n \
         h.zero(4096, 8192, fua)\n h.trim(4096, 65536, fua)\n h.trim(4096, 65536)\nh.shutdown()\n",
        folder.path("s").display()
    );
    let ended = python(&script).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    // strace passes it on.
    tool("pkill", &["-TERM", "-P", &server.id().to_string()]).unwrap();
    server.wait();
    let trace = folder.text("trace");
    let call = |line: &str| {
        let failed = line.contains(" = -1 ") || line.contains(" = 0 ") && line.contains("recvfrom");
        let known = [("recvfrom(", 'r'), ("fdatasync(", 'd'), ("sendmsg(", 's')];
        known.iter().find(|(name, _)| line.contains(name) && !failed).map(|(_, letter)| *letter)
    };
    let mut calls: Vec<char> = trace.lines().filter_map(call).collect();
    // A write's header and payload may come one after the other.
    calls.dedup_by(|one, other| (*one, *other) == ('r', 'r'));
    let calls: String = calls.into_iter().collect();
    let each = "rs".to_owned() + &"rds".repeat(4) + "rs";
    assert!(calls.trim_end_matches('r').ends_with(&each.repeat(20)), "{calls}");
}

const BLOCK: usize = 4096;
const BLOCKS: u64 = 64;

/// Ends a file system like a power cut: unflushed data is lost (FS_IOC_SHUTDOWN without a flush of the journal).
const POWER_CUT: &str = "import fcntl, os, struct, sys\n\
    fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587d, struct.pack('I', 2))";

/// Kills the server and cuts the power while a client writes, repeatedly (`IOTOLL_KILLS` times; 200 were shown).
#[test]
fn durable_writes_survive_a_power_cut() {
    let kills = std::env::var("IOTOLL_KILLS").map_or(8, |kills| kills.parse().unwrap());
    if !is_root() {
        return skip("mounting takes root");
    }
    let folder = Folder::temporary();
    let path = |name: &str| folder.name(name);
    folder.write("disk", vec![0; 16 << 20]);
    tool("mkfs.ext4", &["-q", "-F", &path("disk")]).unwrap();
    let Some(device) = LoopDevice::attach(&folder.path("disk"), &[]) else { return };
    let mount = || Mount::new(folder.path("mounted"), &[&device.path]).unwrap();
    {
        let _mounted = mount();
        fs::write(folder.path("mounted/data"), vec![0; BLOCK * BLOCKS as usize]).unwrap();
    }
    let (mut last, mut lost) = (0, 0);
    let mut durable: BTreeMap<u64, u64> = (0..BLOCKS).map(|block| (block, 0)).collect();
    for kill in 0..10 * kills {
        // Now and then all is flushed.
        if kill >= kills && lost > 0 {
            break;
        }
        let mounted = mount();
        let server = folder.iotoll("serve --backend file:mounted/data --unix s").start();
        assert!(eventually(|| folder.exists("s")));
        let log = fs::File::create(folder.path("log")).unwrap();
        let uri = format!("nbd+unix:///?socket={}", path("s"));
        let mut client = python(include_str!("programs/writer.py"));
        client.args([uri, last.to_string()]).stdout(log).stderr(Stdio::null());
        let mut client = client.spawn().unwrap();
        assert!(eventually(|| fs::metadata(folder.path("log")).unwrap().len() > 1000));
        std::thread::sleep(Duration::from_millis(kill * 37 % 100));
        server.ended_by(Signal::KILL);
        client.wait().unwrap();
        let cut = python(POWER_CUT).arg(&mounted.path).output().unwrap();
        if !cut.status.success() {
            return skip("the file system knows no FS_IOC_SHUTDOWN");
        }
        drop(mounted);
        fs::remove_file(folder.path("s")).unwrap();

        let mut written = BTreeMap::new();
        for line in folder.text("log").lines() {
            let (what, number) = line.split_once(' ').unwrap();
            let number: u64 = number.parse().unwrap();
            last = last.max(number);
            match what {
                "w" => _ = written.insert(number % BLOCKS, number),
                "d" => {
                    written.remove(&(number % BLOCKS));
                    durable.insert(number % BLOCKS, number);
                }
                _ => durable.extend(std::mem::take(&mut written)),
            }
        }
        let _mounted = mount();
        let found = fs::read(folder.path("mounted/data")).unwrap();
        for (block, content) in (0..).zip(found.chunks(BLOCK)) {
            let number = u64::from_le_bytes(content[..8].try_into().unwrap());
            assert!(content.chunks(8).all(|word| word == number.to_le_bytes()), "kill {kill}: block {block} is torn");
            let least = durable[&block];
            // The last write may have been done without a reply.
            assert!(
                (least..=last + 1).contains(&number),
                "kill {kill}: block {block} is {number}, {least} was durable"
            );
            lost += u64::from(written.get(&block).is_some_and(|written| *written > number));
            durable.insert(block, number);
        }
        last += 1;
    }
    assert!(lost > 0, "no power was cut: all unflushed data is there");
}
