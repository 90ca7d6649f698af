//! Targets that cannot be used as asked, or vanish: one clear line, the right status. `cases/refusals.json` has the others.

use super::iotoll::{Folder, at_once, warns, whole};
use super::machine::skip;
use std::fs;

#[test]
fn direct_io_that_is_not_aligned_is_refused() {
    let folder = Folder::with_file("data", 1 << 20);
    let run = |options: &str| {
        let words = format!("--quiet --format json --name=a --filename=data --direct=1 {options}");
        folder.iotoll(&format!("run --background 200ms {words}")).run()
    };
    let usable = run("--rw=read --bs=4k --out direct");
    if usable.stderr.contains("has no O_DIRECT") {
        return skip("the build folder's file system has no O_DIRECT");
    }
    usable.done();
    let before = folder.listing();
    for (options, what) in [
        ("--rw=read --bs=1000", "bs=1000"),
        ("--rw=read --bs=4k --offset=100", "offset=100"),
        ("--rw=randrw --bs=4k,4000", "bs of writes=4000"),
    ] {
        for engine in ["psync", "libaio", "io_uring"] {
            let ended = run(&format!("{options} --ioengine={engine}"));
            // If the kernel does not report its alignment, only the first I/O shows the error.
            if ended.code == Some(1) {
                assert!(ended.json()["outcome"]["failed"].to_string().contains("Invalid argument"), "{ended:?}");
                continue;
            }
            ended.refused(2, &["'a'", what, "data", "multiple", "direct=0"]);
            assert_eq!(folder.listing(), before, "{options}");
        }
    }
}

#[test]
fn a_vanished_target_ends_the_run_and_keeps_the_results() {
    at_once(["psync", "libaio", "io_uring", "mmap"], |engine| {
        let folder = Folder::with_file("data", 4 << 20);
        let options = "--format json --quiet --name=v --filename=data --rw=randread --runtime=30 --time_based";
        let running =
            folder.iotoll(&format!("run --background 200ms {options} --out kept --ioengine={engine}")).start();
        let running = running.when(|running| running.has_threads("job v", 1));
        std::thread::sleep(std::time::Duration::from_millis(300));
        fs::OpenOptions::new().write(true).open(folder.path("data")).unwrap().set_len(0).unwrap();
        let ended = running.wait();
        // The kernel cannot fail one access to a mapping.
        if engine == "mmap" {
            return ended.refused(1, &["a mapped file (ioengine=mmap) has become shorter"]);
        }
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), ""), "{engine} {ended:?}");
        let finding = ended.json();
        let why = finding["outcome"]["failed"].as_str().unwrap_or_default();
        assert!(why.contains("'v'") && why.contains("truncated"), "{engine}: {why}");
        assert!(warns(&finding, "job_failed", &["truncated"]), "{}", finding["warnings"]);
        let job = &finding["jobs"][0];
        assert!(whole(&job["ios"]) > 100 && whole(&job["errors"]) == 1, "{engine}: {job}");
        assert!(folder.exists("data"), "{engine}: the user's own file stays");
        assert_eq!(folder.reported("kept"), finding, "{engine}");
    });
}
