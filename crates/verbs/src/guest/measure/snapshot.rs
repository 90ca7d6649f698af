//! The saved state of a guest: QEMU's migration stream, compressed. A guest that waits for an assignment is saved once and
//! restored for each measurement.

use super::machine::{ASK_INTERVAL, Patience};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use lab::error::{Error, Result};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Receives the stream of a connection into a file. `clock` is the guest's when it paused.
pub(super) fn store(stream: UnixStream, path: &Path, clock: u64, patience: &mut Patience) -> Result<()> {
    let failed = |source: io::Error| Error::File {
        path: path.to_owned(),
        what: "saving a guest".to_owned(),
        source,
        mend: "; free some space, or name another folder in XDG_CACHE_HOME".to_owned(),
    };
    let mut stream = Patient { stream, patience, refused: None };
    let mut write = || -> io::Result<std::result::Result<(), String>> {
        stream.stream.set_read_timeout(Some(ASK_INTERVAL))?;
        let mut encoder = GzEncoder::new(File::create(path)?, Compression::fast());
        let mut tail = copy_but_tail(&mut stream, &mut encoder)?;
        let undone = undo_idle(&mut tail, clock);
        encoder.write_all(&tail)?;
        encoder.finish()?.flush()?;
        Ok(undone)
    };
    let undone = write().map_err(|error| stream.refused.take().unwrap_or_else(|| failed(error)))?;
    undone.map_err(|why| Error::Failed(format!("saving a guest: {why}")))
}

/// The devices of a guest lie behind its memory, in less than this many bytes.
const TAIL_BYTES: usize = 4 << 20;

/// Copies all but the last bytes, at least [`TAIL_BYTES`] of them, which it returns.
fn copy_but_tail(from: &mut impl Read, to: &mut impl Write) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    loop {
        // Of a slice of the stream, the part that cannot be the tail goes on.
        if from.take(TAIL_BYTES as u64).read_to_end(&mut kept)? == 0 {
            return Ok(kept);
        }
        let beyond = kept.len().saturating_sub(TAIL_BYTES);
        to.write_all(kept.get(..beyond).unwrap_or_default())?;
        kept.drain(..beyond);
    }
}

// Heads in QEMU's state, and what lies behind each: its name with its length, a device's number, the version of its layout, which QEMU keeps.

/// The clock that counts instructions: the idle time in nanoseconds, and the instructions, one a nanosecond; their sum is the clock.
const CLOCK: &[u8] = b"\x05\x0ctimer/icount\0\0\0\x01";
/// The CPU: whether it is halted, and its pending interrupts.
const CPU: &[u8] = b"\x0acpu_common\0\0\0\0\0\0\0\x01";
/// Of the pending interrupts: one from a device.
const DEVICE_INTERRUPT: u64 = 2;
/// The CPU's interrupt controller with its timer.
const CONTROLLER: &[u8] = b"\x04apic\0\0\0\0\0\0\0\x03";
/// In it: pending interrupts by vector, 32 in a word; the timer's vector; when the timer is due; when it will fire, or all ones if it has.
const PENDING: Range<usize> = 77..109;
const TIMER_VECTOR: usize = 112;
const DUE: Range<usize> = 165..173;
const WILL_FIRE: Range<usize> = 173..181;
/// Longest time between the reading of the clock and the pause: some instructions.
const PAUSE_NANOS: u64 = 1000;

/// Makes a saved guest what it was when it paused at `clock`.
///
/// QEMU's main loop and the CPU's thread race when a guest pauses. If the thread stops first, the main loop takes the CPU for idle, sets the clock
/// forward to the CPU's timer and perhaps fires it. A restored guest would get this tick at another instruction than one of another boot.
fn undo_idle(tail: &mut [u8], clock: u64) -> std::result::Result<(), String> {
    let (at_clock, at_cpu, at_controller) = (behind(tail, CLOCK)?, behind(tail, CPU)?, behind(tail, CONTROLLER)?);
    let idle = field(tail, at_clock, 0..8)?.get();
    let instructions = field(tail, at_clock, 8..16)?.get();
    let saved = idle.saturating_add(instructions);
    let (due, will_fire) = (field(tail, at_controller, DUE)?.get(), field(tail, at_controller, WILL_FIRE)?.get());
    let ahead = saved.checked_sub(clock).zip(clock.checked_sub(instructions));
    let (ahead, true_idle) = ahead
        .ok_or_else(|| format!("QEMU's clock, {idle} + {instructions} ns, disagrees with the guest's, {clock} ns"))?;
    if ahead > PAUSE_NANOS && saved != due {
        // Set forward to the timer of another device, whose traces are unknown: restored, it repeats itself all the same.
        return Ok(());
    }
    field(tail, at_clock, 0..8)?.set(true_idle);
    if ahead > PAUSE_NANOS && will_fire == u64::MAX {
        field(tail, at_controller, WILL_FIRE)?.set(due);
        let vector = field(tail, at_controller, TIMER_VECTOR..TIMER_VECTOR + 1)?.get() as usize;
        let word = PENDING.start + vector / 32 * 4;
        let mut pending = field(tail, at_controller, word..word + 4)?;
        pending.set(pending.get() & !(1 << (vector % 32)));
        if tail
            .get(at_controller + PENDING.start..at_controller + PENDING.end)
            .is_some_and(|words| words.iter().all(|byte| *byte == 0))
        {
            let mut interrupts = field(tail, at_cpu, 4..8)?;
            interrupts.set(interrupts.get() & !DEVICE_INTERRUPT);
        }
    }
    Ok(())
}

/// The number in this range behind a head.
fn field(tail: &mut [u8], at: usize, range: Range<usize>) -> std::result::Result<Field<'_>, &'static str> {
    tail.get_mut(at + range.start..at + range.end).map(Field).ok_or("QEMU's state ends in a device")
}

/// Where what lies behind the last such head begins.
fn behind(tail: &[u8], head: &[u8]) -> std::result::Result<usize, String> {
    let found = tail.windows(head.len()).rposition(|bytes| bytes == head);
    let name = || head.iter().filter(|byte| byte.is_ascii_graphic()).map(|byte| char::from(*byte)).collect::<String>();
    found.map(|place| place + head.len()).ok_or_else(|| format!("QEMU's state has no device {}", name()))
}

/// A number of QEMU's state, most significant byte first.
struct Field<'a>(&'a mut [u8]);

impl Field<'_> {
    fn get(&self) -> u64 {
        self.0.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn set(&mut self, number: u64) {
        for (place, byte) in self.0.iter_mut().rev().zip(number.to_le_bytes()) {
            *place = byte;
        }
    }
}

/// Sends the stream of a file to a QEMU that waits for one.
pub(super) fn feed(path: &Path, stream: UnixStream, patience: &mut Patience) -> Result<()> {
    let failed = |error| Error::file(path, "restoring a guest", error);
    let mut stream = Patient { stream, patience, refused: None };
    let mut feed = || -> io::Result<()> {
        stream.stream.set_write_timeout(Some(ASK_INTERVAL))?;
        let mut decoder = GzDecoder::new(BufReader::with_capacity(1 << 20, File::open(path)?));
        io::copy(&mut decoder, &mut stream)?;
        Ok(())
    };
    feed().map_err(|error| stream.refused.take().unwrap_or_else(|| failed(error)))
}

/// A stream whose other end may hang: before each read and write, and as long as nothing moves, patience is asked for.
struct Patient<'a, 'b> {
    stream: UnixStream,
    patience: &'a mut Patience<'b>,
    /// Why there is none left.
    refused: Option<Error>,
}

impl Patient<'_, '_> {
    fn until_it_moves(&mut self, mut step: impl FnMut(&mut UnixStream) -> io::Result<usize>) -> io::Result<usize> {
        loop {
            if let Err(why) = (self.patience)() {
                self.refused = Some(why);
                return Err(io::Error::other("not waited for any longer"));
            }
            match step(&mut self.stream) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                other => return other,
            }
        }
    }
}

impl Read for Patient<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.until_it_moves(|stream| stream.read(buffer))
    }
}

impl Write for Patient<'_, '_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.until_it_moves(|stream| stream.write(buffer))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The devices of a guest, and a byte pattern that must not be taken for one.
    fn tail(idle: u64, pending: u32, interrupts: u32, will_fire: u64) -> Vec<u8> {
        let mut controller = vec![7; WILL_FIRE.end];
        controller[PENDING].fill(0);
        controller[PENDING.end - 4..PENDING.end].copy_from_slice(&pending.to_be_bytes());
        controller[TIMER_VECTOR] = 0xec;
        controller[DUE].copy_from_slice(&11_174_544_726_u64.to_be_bytes());
        controller[WILL_FIRE].copy_from_slice(&will_fire.to_be_bytes());
        let (halted, interrupts) = (0_u32.to_be_bytes(), interrupts.to_be_bytes());
        let (idle, instructions) = (idle.to_be_bytes(), 6_156_879_250_u64.to_be_bytes());
        [CLOCK, b"memory", CLOCK, &idle, &instructions, CPU, &halted, &interrupts, CONTROLLER, &controller, b"rest"]
            .concat()
    }

    #[test]
    fn a_saved_guest_is_what_it_was_when_it_paused() {
        const DUE: u64 = 11_174_544_726;
        // Three boots of one guest: not idle; idle until the tick; idle until it, with the tick pending.
        let paused = tail(5_015_094_000, 0, 0, DUE);
        let timer = 1 << (0xec % 32);
        for (idle, pending, interrupts, will_fire) in
            [(5_015_094_034, 0, 0, DUE), (5_017_665_476, 0, 0, DUE), (5_017_665_476, timer, 2, u64::MAX)]
        {
            let mut saved = tail(idle, pending, interrupts, will_fire);
            undo_idle(&mut saved, 11_171_973_250).unwrap();
            assert!(saved == paused, "{idle} {pending}");
        }
        // Another device's interrupt stays.
        let mut saved = tail(5_017_665_476, timer | 1, 3, u64::MAX);
        undo_idle(&mut saved, 11_171_973_250).unwrap();
        assert!(saved == tail(5_015_094_000, 1, 3, DUE));
        // Idle until something else.
        let mut saved = tail(5_016_000_000, timer, 2, u64::MAX);
        undo_idle(&mut saved, 11_171_973_250).unwrap();
        assert!(saved == tail(5_016_000_000, timer, 2, u64::MAX));
    }

    #[test]
    fn a_state_that_is_not_understood_is_refused() {
        let mut saved = tail(5_015_094_034, 0, 0, 0);
        for clock in [6_156_879_249, 11_171_973_285] {
            assert!(undo_idle(&mut saved, clock).unwrap_err().contains("disagrees"));
        }
        let short = saved.len() - 10;
        assert!(undo_idle(&mut saved[..short], 11_171_973_250).unwrap_err().contains("ends in"));
        assert!(undo_idle(&mut b"memory".to_vec(), 0).unwrap_err().contains("no device timer/icount"));
    }

    #[test]
    fn a_stream_is_copied_but_for_its_tail() {
        for bytes in [0, 1, TAIL_BYTES, TAIL_BYTES + 1, 3 * TAIL_BYTES + 17] {
            let stream: Vec<u8> = (0..bytes).map(|byte| (byte % 251) as u8).collect();
            let mut copied = Vec::new();
            let kept = copy_but_tail(&mut stream.as_slice(), &mut copied).unwrap();
            assert!(kept.len() >= bytes.min(TAIL_BYTES) && kept.len() <= 2 * TAIL_BYTES);
            assert_eq!([copied, kept].concat(), stream);
        }
    }
}
