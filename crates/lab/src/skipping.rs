//! What tests share: how one says that it cannot run here, in one line that `./check` counts; and a load of a known length.

use std::fmt::Display;
use std::io::Write;
use std::time::Duration;

/// Prints and logs a skipped test with its reason.
pub(crate) fn note_skipped(test: &str, why: &str) {
    let line = format!("SKIP {test}: {why}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    if let Some(path) = std::env::var_os("IOTOLL_SKIP_LOG").filter(|path| !path.is_empty()) {
        let log = std::fs::File::options().create(true).append(true).open(path);
        log.and_then(|mut log| log.write_all(line.as_bytes())).unwrap();
    }
}

/// What was opened, or `None` with the printed reason.
pub(crate) fn available<T, E: Display>(test: &str, opened: Result<T, E>) -> Option<T> {
    opened.inspect_err(|why| note_skipped(test, &why.to_string())).ok()
}

/// The same, where the only reason may be that the kernel does not allow it.
pub(crate) fn allowed<T>(test: &str, opened: Result<T, sys::bpf::Error>) -> Option<T> {
    if let Err(error) = &opened {
        assert!(error.is_refusal(), "{error}");
    }
    available(test, opened)
}

/// Computes until this thread has had so much CPU time.
pub(crate) fn spin(length: Duration) {
    let end = sys::clock::own_thread_nanos() + u64::try_from(length.as_nanos()).unwrap();
    while sys::clock::own_thread_nanos() < end {
        std::hint::spin_loop();
    }
}
