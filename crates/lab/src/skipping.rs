//! How a test says that it cannot run here: one line, which `./check` counts.

use std::io::Write;

/// Prints and logs a skipped test with its reason.
pub(crate) fn note_skipped(test: &str, why: &str) {
    let line = format!("SKIP {test}: {why}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    if let Some(path) = std::env::var_os("IOTOLL_SKIP_LOG").filter(|path| !path.is_empty()) {
        let log = std::fs::File::options().create(true).append(true).open(path);
        log.and_then(|mut log| log.write_all(line.as_bytes())).unwrap();
    }
}

/// What was opened, or `None` with the printed reason where the kernel does not allow it.
pub(crate) fn allowed<T>(test: &str, opened: Result<T, sys::bpf::Error>) -> Option<T> {
    match opened {
        Ok(opened) => Some(opened),
        Err(error) if error.is_refusal() => {
            note_skipped(test, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}
