//! Output of a service: stdout and stderr go to one pipe. A thread drains it, so that a service that prints much neither blocks nor
//! fills a disk; only the end of its output is kept.

use crate::shell::short;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ioctl_fionbio, read};
use std::io::{self, PipeReader, PipeWriter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Number of lines in an error message.
const LINES: usize = 5;
/// Bytes at the end of the output that are kept.
const TAIL: usize = 64 << 10;
/// Reads before others may have the lock: a service can print as fast as it is read.
const READS: usize = 16;

/// The output of a service.
#[derive(Debug)]
pub struct Output(Arc<Mutex<Captured>>);

#[derive(Debug)]
struct Captured {
    pipe: PipeReader,
    tail: Vec<u8>,
    /// The text that says that it is ready.
    wanted: Option<String>,
    was_printed: bool,
}

impl Output {
    /// The output, and the pipe for stdout and stderr of a service that is ready when it has printed `wanted`.
    pub fn new(wanted: Option<&str>) -> io::Result<(Self, PipeWriter)> {
        let (pipe, writer) = io::pipe()?;
        ioctl_fionbio(&pipe, true)?;
        let watched = pipe.try_clone()?;
        let captured = Captured { pipe, tail: Vec::new(), wanted: wanted.map(str::to_owned), was_printed: false };
        let captured = Arc::new(Mutex::new(captured));
        let drained = captured.clone();
        let drain = move || {
            loop {
                match poll(&mut [PollFd::new(&watched, PollFlags::IN)], None) {
                    Ok(_) if lock(&drained).drain() => {}
                    Err(Errno::INTR) => {}
                    _ => return,
                }
            }
        };
        std::thread::Builder::new().name("iotoll-output".to_owned()).stack_size(256 << 10).spawn(drain)?;
        Ok((Self(captured), writer))
    }

    /// Whether it has printed the wanted text.
    pub fn is_wanted(&self) -> bool {
        let mut captured = lock(&self.0);
        captured.drain();
        captured.was_printed
    }

    /// The last lines for a message: "; its output ends: 'a', 'b'".
    pub fn last_lines(&self) -> String {
        let mut captured = lock(&self.0);
        captured.drain();
        let text = String::from_utf8_lossy(&captured.tail);
        let mut lines: Vec<String> = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(short).collect();
        let last = lines.split_off(lines.len().saturating_sub(LINES));
        match last.as_slice() {
            [] => "; it printed nothing".to_owned(),
            last => format!("; its output ends: '{}'", last.join("' '")),
        }
    }
}

impl Captured {
    /// Reads what the pipe holds. Returns false when nothing more can come.
    fn drain(&mut self) -> bool {
        let mut bytes = [0; TAIL];
        for _ in 0..READS {
            match read(&self.pipe, &mut bytes) {
                Ok(0) => return false,
                Ok(count) => self.add(bytes.get(..count).unwrap_or_default()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            }
        }
        true
    }

    fn add(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
        // Before the tail is cut: the text may span two reads.
        let wanted = self.wanted.as_ref().filter(|wanted| !wanted.is_empty() && !self.was_printed);
        if let Some(wanted) = wanted {
            self.was_printed = self.tail.windows(wanted.len()).any(|part| part == wanted.as_bytes());
        }
        self.tail.drain(..self.tail.len().saturating_sub(TAIL));
    }
}

fn lock(captured: &Mutex<Captured>) -> MutexGuard<'_, Captured> {
    captured.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn run(writer: &PipeWriter, script: &str) {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdout(writer.try_clone().unwrap()).stderr(writer.try_clone().unwrap());
        assert!(shell.status().unwrap().success());
    }

    #[test]
    fn both_streams_are_read_while_they_are_written() {
        let (output, writer) = Output::new(Some("err 2")).unwrap();
        assert_eq!(output.last_lines(), "; it printed nothing");
        assert!(!output.is_wanted());
        run(&writer, "for i in 1 2 3; do echo out $i; echo err $i >&2; echo; done");
        assert!(output.is_wanted());
        run(&writer, "echo out 4");
        assert_eq!(output.last_lines(), "; its output ends: 'out 2' 'err 2' 'out 3' 'err 3' 'out 4'");
    }

    #[test]
    fn much_output_blocks_nothing_and_is_not_kept() {
        let (output, writer) = Output::new(Some("ready")).unwrap();
        run(&writer, "echo ready; head -c 8000000 /dev/zero | tr '\\0' x; echo; echo the end");
        assert!(output.is_wanted());
        assert!(output.last_lines().ends_with("' 'the end'"), "{}", output.last_lines());
        assert!(lock(&output.0).tail.len() <= TAIL);
    }
}
