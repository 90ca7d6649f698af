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
