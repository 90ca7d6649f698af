//! Settings that are none: refused at once, in one line, and nothing hangs.

use super::iotoll::{Folder, at_once};
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
