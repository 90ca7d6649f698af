//! Settings that are none: refused at once, in one line, and nothing hangs.

use super::iotoll::{Folder, at_once, eventually};
use std::fs::File;
use std::time::{Duration, Instant};

/// Well below the 60 s of a test that hangs.
const AT_ONCE: Duration = Duration::from_secs(20);

#[test]
fn a_file_that_is_no_setting_is_refused_at_once() {
    let folder = Folder::new();
    File::create(folder.path("sparse")).unwrap().set_len(2 << 30).unwrap();
    folder.write("bytes", [0xff, 0xfe]);
    folder.write("long", "a value\n".repeat(1000));
    rustix::fs::mknodat(rustix::fs::CWD, folder.path("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let here = |name: &str| folder.path(name).display().to_string();
    let cases = vec![
        (here("sparse"), "longer than 4096 bytes"),
        (here("long"), "longer than 4096 bytes"),
        (here("bytes"), "not text"),
        (here("pipe"), "not a regular file"),
        (here(""), "not a regular file"),
        ("/dev/zero".to_owned(), "not a regular file"),
        ("/proc/kmsg".to_owned(), "lets nobody write to it"),
    ];
    at_once(cases, |(path, why)| {
        let begun = Instant::now();
        let compare = "compare --quiet --no-save --ioengine=null --size=1m --budget 1s";
        let ended = folder.iotoll(compare).word(format!("--candidate-set=file:{path}=1")).run();
        ended.refused(2, &[&path, why]);
        assert!(begun.elapsed() < AT_ONCE, "{path}: {:?}", begun.elapsed());
        assert!(ended.stderr.len() < 600, "{ended:?}");
    });
}

#[test]
fn what_the_user_writes_or_puts_there_meanwhile_stays() {
    type Edit = fn(&Folder);
    let edits: [(&str, Edit); 3] = [
        ("written", |folder| folder.write("knob", "mine")),
        ("renamed", |folder| {
            folder.write("other", "mine");
            std::fs::rename(folder.path("other"), folder.path("knob")).unwrap();
        }),
        ("linked", |folder| {
            folder.write("other", "mine");
            std::fs::remove_file(folder.path("knob")).unwrap();
            std::os::unix::fs::symlink("other", folder.path("knob")).unwrap();
        }),
    ];
    at_once(edits, |(how, edit)| {
        let folder = Folder::new();
        folder.write("knob", "old");
        let setting = format!("--candidate-set=file:{}=new", folder.path("knob").display());
        let compare = "compare --quiet --no-save --ioengine=null --size=1m --budget 20s";
        let running = folder.iotoll(compare).word(setting).start();
        // Once while it is rehearsed, then in slices.
        assert!(eventually(|| folder.read("knob") == b"new"));
        std::thread::sleep(Duration::from_secs(2));
        assert!(eventually(|| folder.read("knob") == b"new"));
        edit(&folder);
        let ended = running.wait();
        ended.failed(1, &["knob", "another process changed it", "left as it is"]);
        assert_eq!(folder.read("knob"), b"mine", "{how}");
    });
}

#[test]
fn what_has_no_end_is_no_input_but_pipes_of_its_own_are() {
    let folder = Folder::new();
    folder.write("job", "[a]\nioengine=null\nsize=1m\nruntime=1\n");
    for words in [
        "run /dev/zero",
        "run /dev/zero.toml",
        "compare --experiment /dev/zero",
        "run --name=r --read_iolog=/dev/zero",
        "report /dev/zero",
    ] {
        let begun = Instant::now();
        let ended = folder.iotoll(words).run();
        assert!(ended.code == Some(2) && begun.elapsed() < AT_ONCE, "{words}: {ended:?}");
    }
    let program = super::iotoll::PROGRAM;
    for line in ["run --no-save --quiet <(cat job)", "run --no-save --quiet - < <(cat job)"] {
        let mut shell = std::process::Command::new("bash");
        let shell = shell.args(["-c", &format!("{program} {line}")]);
        let ended = shell.current_dir(folder.path(".")).output().unwrap();
        assert!(ended.status.success(), "{line}: {}", String::from_utf8_lossy(&ended.stderr));
    }
    for line in ["run - < /dev/zero", "run <(cat /dev/zero)"] {
        let mut shell = std::process::Command::new("bash");
        let shell = shell.args(["-c", &format!("{program} {line}")]);
        let ended = shell.current_dir(folder.path(".")).output().unwrap();
        let why = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.code() == Some(2) && why.contains("longer than 16 MiB"), "{line}: {why}");
    }
}
