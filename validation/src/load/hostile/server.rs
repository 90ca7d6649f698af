//! One client of `iotoll serve` does its worst, while another reads a block at a time on the same thread of the server.

use super::Attempt;
use crate::bench::Beside;
use crate::bench::seeded::Seeded;
use anyhow::{Context, bail, ensure};
use std::fs::File;
use std::io::{ErrorKind, Read, Write, pipe};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Size of the export, and of the largest request; it is in memory (tmpfs).
const SIZE: u32 = 1 << 30;
/// Longest wait of the other client. A disk of rotating platters would not notice it.
const LONGEST: Duration = Duration::from_millis(250);
/// Longest time for the hostile client's request.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Commands of NBD, with the flag that makes them expensive.
const REQUESTS: [(&str, u16, u16); 5] =
    [("write_zeroes without holes", 6, 2), ("write_zeroes", 6, 0), ("trim", 4, 0), ("flush", 3, 0), ("cache", 5, 0)];

pub(super) fn attempt(seeded: &mut Seeded) -> anyhow::Result<Attempt> {
    let folder = tempfile::tempdir_in("/dev/shm").context("a folder in memory")?;
    let (data, socket) = (folder.path().join("data"), folder.path().join("s"));
    File::create(&data)?.set_len(u64::from(SIZE))?;
    // Nobody reads its standard error, and the pipe is full.
    let (_unread, full) = full_pipe()?;
    let mut serve = std::process::Command::new("iotoll");
    serve
        .args(["serve", "--threads", "1", "--backend"])
        .arg(format!("file:{}", data.display()))
        .arg("--unix")
        .arg(&socket);
    let _server = Beside { child: serve.stdout(Stdio::null()).stderr(full).spawn().context("starting iotoll serve")? };
    let mut other = connected(&socket)?;
    let over = AtomicBool::new(false);
    let (input, hostile, waits) = std::thread::scope(|scope| {
        let reading = scope.spawn(|| longest_wait(&mut other, &over));
        let (input, hostile) = worst(&socket, seeded);
        over.store(true, Ordering::Relaxed);
        (input, hostile, reading.join())
    });
    let longest = match waits {
        Ok(Ok(longest)) => longest,
        Ok(Err(error)) => {
            return Ok(Attempt { input, fell: Some(format!("the other client failed: {error:#}")), wait_millis: None });
        }
        Err(_) => bail!("the thread of the other client ended"),
    };
    let slow = (longest > LONGEST).then(|| format!("the other client waited for {} ms", longest.as_millis()));
    let fell = hostile.err().map(|error| format!("{error:#}")).or(slow);
    Ok(Attempt { input, fell, wait_millis: Some(longest.as_secs_f64() * 1e3) })
}

/// A pipe that takes nothing more.
fn full_pipe() -> anyhow::Result<(std::io::PipeReader, std::io::PipeWriter)> {
    use rustix::fs::{OFlags, fcntl_setfl};
    let (reader, mut writer) = pipe()?;
    fcntl_setfl(&writer, OFlags::NONBLOCK)?;
    for part in [4096, 1] {
        while writer.write(&vec![b'\n'; part]).is_ok() {}
    }
    fcntl_setfl(&writer, OFlags::empty())?;
    Ok((reader, writer))
}

/// What the hostile client does, and whether the server replied or closed the connection.
fn worst(socket: &Path, seeded: &mut Seeded) -> (String, anyhow::Result<()>) {
    let request = usize::try_from(seeded.below(REQUESTS.len() as u64 + 2)).unwrap_or(0);
    match REQUESTS.get(request) {
        Some((name, command, flags)) => {
            let length = if *command == 3 { 0 } else { SIZE - seeded.below(4096) as u32 };
            (format!("{name} of {} MiB", length >> 20), large(socket, *command, *flags, length))
        }
        None => {
            let garbage: Vec<u8> = (0..1 + seeded.below(4096)).map(|_| seeded.below(256) as u8).collect();
            (format!("a handshake of {} random bytes, 100 times", garbage.len()), broken(socket, &garbage))
        }
    }
}

fn large(socket: &Path, command: u16, flags: u16, length: u32) -> anyhow::Result<()> {
    let mut stream = connected(socket)?;
    ask(&mut stream, command, flags, length)?;
    let mut reply = [0; 16];
    stream.read_exact(&mut reply).context("no reply to the hostile client")
}

fn broken(socket: &Path, garbage: &[u8]) -> anyhow::Result<()> {
    for _ in 0..100 {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        // The server may close the connection before it has received all.
        let _ = stream.write_all(garbage);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let waits = stream.read_to_end(&mut Vec::new()).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        ensure!(!waits, "the server neither answers nor closes the connection");
    }
    Ok(())
}

/// The longest wait for a read of 512 bytes.
fn longest_wait(stream: &mut UnixStream, over: &AtomicBool) -> anyhow::Result<Duration> {
    let mut longest = Duration::ZERO;
    while !over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        ask(stream, 0, 0, 512)?;
        stream.read_exact(&mut [0; 16 + 512])?;
        longest = longest.max(begun.elapsed());
    }
    Ok(longest)
}

/// Sends a request at offset 0 (28 bytes: magic, flags, command, cookie, offset, length).
fn ask(stream: &mut UnixStream, command: u16, flags: u16, length: u32) -> anyhow::Result<()> {
    let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
    request.extend([flags.to_be_bytes(), command.to_be_bytes()].concat());
    request.extend([0; 16]);
    request.extend(length.to_be_bytes());
    Ok(stream.write_all(&request)?)
}

/// A connection to the default export, by the oldest option that every server knows (NBD_OPT_EXPORT_NAME).
fn connected(socket: &Path) -> anyhow::Result<UnixStream> {
    let begun = Instant::now();
    let mut stream = loop {
        match UnixStream::connect(socket) {
            Ok(stream) => break stream,
            Err(error) if begun.elapsed() > TIMEOUT => return Err(error).context("the server does not listen"),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.read_exact(&mut [0; 18])?;
    // Fixed newstyle, no zeroes; the option, and its length.
    let mut hello = 3_u32.to_be_bytes().to_vec();
    hello.extend(b"IHAVEOPT");
    hello.extend([1_u32.to_be_bytes(), 0_u32.to_be_bytes()].concat());
    stream.write_all(&hello)?;
    stream.read_exact(&mut [0; 10])?;
    Ok(stream)
}
