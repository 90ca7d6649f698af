//! Feeds arbitrary text to the parser of job files.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::plan::parse::{Settings, job_file};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let settings = Settings { environment: &|_| Some("4".to_owned()), ..Settings::default() };
    let _ = job_file("a.fio", text, &settings);
});
