//! Nobody reads standard error: a full pipe, or a stopped terminal. Nothing waits for it for long.

use super::iotoll::{Folder, Running, eventually};
use super::machine::{has, skip};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::Signal;
use std::fs;
use std::io::{ErrorKind, PipeReader, PipeWriter, Read, Write, pipe};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A pipe that takes nothing more.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = pipe().unwrap();
    fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
    // Page by page, then byte by byte.
    for part in [4096, 1] {
        while writer.write(&vec![b'\n'; part]).is_ok() {}
    }
    // The program's writes wait, as they do on every pipe.
    fcntl_setfl(&writer, OFlags::empty()).unwrap();
    (reader, writer)
}

/// A server whose standard error nobody reads.
fn served() -> (Folder, Running, PipeReader) {
    let folder = Folder::within(&std::env::temp_dir());
    let (reader, writer) = full_pipe();
    let serve = folder.iotoll("serve --backend memory:1m --unix s").stderr(writer);
    let running = serve.stdout(fs::File::create(folder.path("said")).unwrap()).start();
    assert!(eventually(|| fs::read_to_string(folder.path("said")).unwrap().starts_with("listening")));
    (folder, running, reader)
}

/// Waits until the server has closed the connection of a client that breaks the protocol.
fn be_bad(folder: &Folder) {
    let mut stream = UnixStream::connect(folder.path("s")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let _ = stream.write_all(&[0; 64]);
    let stopped = stream.read_to_end(&mut Vec::new()).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    assert!(!stopped, "the server has stopped serving");
}

#[test]
fn a_server_whose_standard_error_nobody_reads_serves_on_and_ends() {
    let (folder, running, _reader) = served();
    // Without a limit, more lines than a pipe has room for.
    (0..1000).for_each(|_| be_bad(&folder));
    be_bad(&folder);
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code, Some(0));
    assert!(!folder.exists("s"));
}

#[test]
fn a_server_counts_the_lines_about_bad_clients_that_it_does_not_show() {
    let (folder, running, mut reader) = served();
    (0..100).for_each(|_| be_bad(&folder));
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        reader.read_to_string(&mut text).map(|_| text)
    });
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code, Some(0));
    let text = reading.join().unwrap().unwrap();
    assert!(text.contains(" more lines about clients on the Unix socket not shown"), "{text}");
    assert!(text.contains(" requests in "), "the report at the end: {text}");
}

#[test]
fn a_measurement_whose_standard_error_nobody_reads_ends() {
    let folder = Folder::with_file("data", 1 << 20);
    let (_reader, writer) = full_pipe();
    let job = "run --name=j --filename=data --size=1m --rw=read --bs=4k --runtime=1 --time_based --format json";
    let ended = folder.iotoll(job).stderr(writer).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.json();
    // A refusal too.
    let (_reader, writer) = full_pipe();
    assert_eq!(folder.iotoll("run --name=j --rw=nonsense").stderr(writer).run().code, Some(2));
}

/// Ctrl-S stops the output of a terminal. The progress line is then left out.
#[test]
fn a_measurement_on_a_stopped_terminal_ends() {
    if !has("python3") {
        return skip("python3 makes the terminal, and is not here");
    }
    let folder = Folder::with_file("data", 1 << 20);
    let job = "run --name=j --filename=data --size=1m --rw=read --bs=4k --runtime=1 --time_based";
    let ended = folder.iotoll(job).under(&["python3", "-c", include_str!("programs/stopped_terminal.py")]).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
