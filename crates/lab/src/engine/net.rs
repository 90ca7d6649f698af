//! Sends blocks to a socket, or receives them. The other end is another job, or fio: opening and closing messages, sequence numbers and
//! flags are fio's.

mod other_end;

use super::traits::{Perform, Sync};
use super::worker::Control;
use super::{OpenEngine, Setup, moved, noisy_slots};
use crate::error::{Error, Result};
use crate::workload::request_source::{Kind, Request};
use model::plan::{JobPlan, Size};
pub(crate) use other_end::expect;
use other_end::{Listening, Place};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, recvfrom, send, sendto};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use sys::buffer::AlignedBuffer;
use sys::clock::ticks;

/// How often a call that waits looks whether its job is to end. Only a call that sleeps pays for this, by setting a timer.
const LOOK: Duration = Duration::from_millis(100);
/// A receiver that gets no datagram for this long fails: the message that ends the transfer may be lost, and nothing else tells.
const SILENCE: Duration = Duration::from_secs(10);

/// Ends a transfer, in all protocols: a magic number and a command, in little-endian order.
const CLOSE: [u8; 8] = *b"knil\x89\0\0\0";
/// Begins one over UDP: in big-endian order.
const OPEN: [u8; 8] = *b"link\0\0\0\x98";
/// Begins the numbers at the end of a datagram: magic number, sequence number, length.
const MAGIC: u64 = 0x6573_7571_6e55_6563;
const NUMBERS: usize = 24;

struct Net {
    place: Place,
    waits: bool,
    pingpong: bool,
    listening: Option<Listening>,
    socket: Option<OwnedFd>,
    /// Where datagrams go: the other end, or the last sender.
    to: Option<SocketAddr>,
    buffer: AlignedBuffer,
    calls: u64,
    /// Bytes that a pass over the job sends, and has sent. As in fio, the kernel learns when more follow.
    pass: (u64, u64),
    next_to_send: u64,
    next_to_come: u64,
    lost: u64,
    /// Ticks of ramp and runtime, and the end of the job; it may be unlimited.
    lengths: (u64, u64),
    end: u64,
    /// Time ends the job, so the other end may be gone first.
    timed: bool,
    control: Option<Arc<Control>>,
}

pub(super) fn open(setup: &Setup) -> Result<OpenEngine> {
    let plan = setup.plan;
    let place = Place::of(plan, setup.copy)?;
    let waits = plan.waits_for_other_end();
    let listening = if waits { Some(Listening::begin(plan, &place)?) } else { None };
    let pass = match plan.target.size {
        Some(Size::Bytes(bytes)) => bytes.0,
        _ => u64::MAX,
    };
    let mut net = Net {
        waits,
        pingpong: plan.net.pingpong,
        listening,
        socket: None,
        to: None,
        buffer: noisy_slots(plan, 1)?,
        calls: 0,
        pass: (pass, 0),
        next_to_send: 0,
        next_to_come: 0,
        lost: 0,
        lengths: (setup.clock.ticks(plan.duration.ramp).0, setup.clock.ticks(plan.duration.runtime).0),
        end: u64::MAX,
        timed: plan.duration.runtime.0 > 0,
        control: None,
        place,
    };
    let plan = plan.clone();
    Ok(Box::new(move |worker| {
        net.meet(&plan, worker.control())?;
        worker.ends_with_its_stream();
        let outcome = worker.run_direct(&mut net);
        worker.lost = Some(net.lost).filter(|lost| *lost > 0);
        net.close();
        outcome
    }))
}

impl Net {
    /// Waits for the other end, or connects to it.
    fn meet(&mut self, plan: &JobPlan, control: Arc<Control>) -> Result<()> {
        let (socket, to) = match &self.listening {
            Some(listening) => listening.await_other_end(plan, &self.place, &control)?,
            None => other_end::connect(plan, &self.place, &control)?,
        };
        other_end::look_often(&socket, LOOK).map_err(|error| Error::job(&plan.name, "setting up a socket", error))?;
        (self.socket, self.to, self.control) = (Some(socket), to, Some(control));
        Ok(())
    }

    fn is_udp(&self) -> bool {
        self.place.protocol().is_udp()
    }

    /// Whether the job is to end, though the other end has not said anything.
    fn is_over(&self) -> bool {
        ticks() >= self.end || self.control.as_ref().is_none_or(|control| control.stopped())
    }

    /// The result when the other end is gone: the end of a job that time ends, an error of others.
    fn gone(&self, error: Errno) -> i32 {
        let closed = matches!(error, Errno::PIPE | Errno::CONNRESET);
        if closed && self.timed { 0 } else { -error.raw_os_error() }
    }

    /// Sends a block; returns the bytes that were sent, 0 at the end.
    fn send(&mut self, length: usize) -> i32 {
        if self.is_udp() {
            return self.send_datagram(length);
        }
        let (whole, before) = self.pass;
        let after = before.saturating_add(length as u64);
        let more = !self.pingpong && after < whole;
        self.pass.1 = if after >= whole { 0 } else { after };
        let mut flags = SendFlags::NOSIGNAL;
        flags.set(SendFlags::MORE, more);
        let mut sent = 0;
        while sent < length {
            let (Some(socket), Some(rest)) = (&self.socket, self.buffer.get(sent..length)) else { return -9 };
            self.calls += 1;
            match send(socket, rest, flags) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if !self.is_over() => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return self.gone(error),
            }
        }
        moved(sent)
    }

    fn send_datagram(&mut self, length: usize) -> i32 {
        let Some(bytes) = self.buffer.get_mut(..length) else { return -14 };
        if let Some(numbers) = length.checked_sub(NUMBERS).and_then(|begin| bytes.get_mut(begin..)) {
            let words = [MAGIC, self.next_to_send, length as u64];
            numbers.chunks_exact_mut(8).zip(words).for_each(|(place, word)| place.copy_from_slice(&word.to_le_bytes()));
            self.next_to_send += 1;
        }
        loop {
            let (Some(socket), Some(bytes)) = (&self.socket, self.buffer.get(..length)) else { return -9 };
            // A peer is known once it has sent a block: before that there is nowhere to send one back.
            let Some(to) = &self.to else { return moved(length) };
            self.calls += 1;
            match sendto(socket, bytes, SendFlags::NOSIGNAL, to) {
                Ok(count) => return moved(count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if !self.is_over() => {}
                Err(Errno::AGAIN) => return 0,
                Err(error) => return self.gone(error),
            }
        }
    }

    /// Receives a block; returns the bytes that came, 0 at the end.
    fn receive(&mut self, length: usize) -> i32 {
        if self.is_udp() {
            return self.receive_datagram(length);
        }
        let mut came = 0;
        while came < length {
            let (Some(socket), Some(rest)) = (&self.socket, self.buffer.get_mut(came..length)) else { return -9 };
            self.calls += 1;
            match recv(socket, rest, RecvFlags::empty()) {
                Ok((_, 0)) => {
                    // What came last says that nothing else does.
                    let ends = came >= CLOSE.len() && self.buffer.get(came - CLOSE.len()..came) == Some(&CLOSE[..]);
                    return moved(if ends { came - CLOSE.len() } else { came });
                }
                Ok((_, count)) => came += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if !self.is_over() => {}
                Err(Errno::AGAIN) => break,
                Err(Errno::CONNRESET) if came > 0 => break,
                Err(error) => return self.gone(error),
            }
            if came == CLOSE.len() && self.buffer.get(..came) == Some(&CLOSE[..]) {
                return 0;
            }
        }
        moved(came)
    }

    fn receive_datagram(&mut self, length: usize) -> i32 {
        let mut looks = 0;
        let (count, from) = loop {
            let (Some(socket), Some(bytes)) = (&self.socket, self.buffer.get_mut(..length)) else { return -9 };
            self.calls += 1;
            match recvfrom(socket, bytes, RecvFlags::empty()) {
                Ok((_, count, from)) => break (count, from),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if self.is_over() => return 0,
                Err(Errno::AGAIN) if LOOK * looks >= SILENCE => return -Errno::TIMEDOUT.raw_os_error(),
                Err(Errno::AGAIN) => looks += 1,
                Err(error) => return self.gone(error),
            }
        };
        if count == CLOSE.len() && self.buffer.get(..count) == Some(&CLOSE[..]) {
            return 0;
        }
        if self.waits {
            self.to = from.and_then(|from| from.try_into().ok()).or(self.to);
        }
        if count == length {
            self.note_numbers(length);
        }
        moved(count)
    }

    /// Counts the datagrams that did not come before this one.
    fn note_numbers(&mut self, length: usize) {
        let numbers = length.checked_sub(NUMBERS).and_then(|begin| self.buffer.get(begin..length));
        let mut words = numbers.unwrap_or_default().chunks_exact(8).filter_map(|word| word.try_into().ok());
        let mut next = || words.next().map(u64::from_le_bytes);
        if let (Some(MAGIC), Some(number), Some(of)) = (next(), next(), next())
            && of == length as u64
        {
            // One that comes late was counted as lost.
            self.lost = match number.checked_sub(self.next_to_come) {
                Some(missing) => self.lost.saturating_add(missing),
                None => self.lost.saturating_sub(1),
            };
            self.next_to_come = self.next_to_come.max(number.saturating_add(1));
        }
    }

    /// Tells the other end that nothing else comes.
    fn close(&mut self) {
        let Some(socket) = self.socket.take() else { return };
        // The other end may be gone, or its buffer full: then a datagram is lost, and comes again.
        let _ = match &self.to {
            Some(to) => sendto(&socket, &CLOSE, SendFlags::NOSIGNAL, to),
            None => send(&socket, &CLOSE, SendFlags::NOSIGNAL | SendFlags::DONTWAIT),
        };
        if let (Some(to), false) = (&self.to, self.waits) {
            for _ in 0..2 {
                std::thread::sleep(LOOK / 10);
                let _ = sendto(&socket, &CLOSE, SendFlags::NOSIGNAL, to);
            }
        }
        self.listening = None;
    }
}

impl Perform for Net {
    fn perform(&mut self, request: &Request) -> i32 {
        let length = request.length as usize;
        let (first, receives) = match request.kind {
            Kind::Read => (self.receive(length), true),
            Kind::Write => (self.send(length), false),
            Kind::Trim => return -95,
        };
        if !self.pingpong || first != moved(length) {
            return first;
        }
        let back = if receives { self.send(length) } else { self.receive(length) };
        if back < 0 { back } else { first.min(back) }
    }

    fn with_memory(&mut self, length: u32, work: &mut dyn FnMut(&mut [u8])) {
        self.buffer.get_mut(..length as usize).into_iter().for_each(work);
    }

    fn sync(&mut self, _: u32, _: Sync) -> std::io::Result<bool> {
        Ok(false)
    }

    fn count_from(&mut self, now: u64) {
        // Called when the job begins, and again when its ramp is over.
        let (ramp, runtime) = self.lengths;
        self.lengths.0 = 0;
        self.end = if runtime == 0 { u64::MAX } else { now.saturating_add(ramp).saturating_add(runtime) };
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.calls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(buffer: usize) -> Net {
        Net {
            place: Place::Path("p".into()),
            waits: true,
            pingpong: false,
            listening: None,
            socket: None,
            to: None,
            buffer: AlignedBuffer::zeroed(buffer).unwrap(),
            calls: 0,
            pass: (0, 0),
            next_to_send: 0,
            next_to_come: 0,
            lost: 0,
            lengths: (0, 0),
            end: u64::MAX,
            timed: false,
            control: Some(Arc::default()),
        }
    }

    #[test]
    fn missing_datagrams_are_counted_and_late_ones_are_not_lost() {
        let mut net = net(64);
        let mut come = |number: u64, of: u64| {
            let words = [MAGIC, number, of];
            net.buffer[40..]
                .chunks_exact_mut(8)
                .zip(words)
                .for_each(|(place, word)| place.copy_from_slice(&word.to_le_bytes()));
            net.note_numbers(64);
            net.lost
        };
        let lost: Vec<u64> =
            [(0, 64), (1, 64), (4, 64), (3, 64), (9, 32), (5, 64)].map(|(number, of)| come(number, of)).into();
        assert_eq!(lost, [0, 0, 2, 1, 1, 1]);
    }

    #[test]
    fn a_stream_ends_with_its_closing_message_or_without() {
        use std::io::Write;
        for (pieces, results) in [
            (vec![&b"12345678abcdefgh"[..], b"1234knil\x89\0\0\0"], vec![16, 4, 0]),
            (vec![b"12345678abcdefgh", b"1234"], vec![16, 4, 0]),
            (vec![b"12345678abcdefgh", &CLOSE], vec![16, 0]),
            (vec![], vec![0]),
        ] {
            let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
            let mut net = net(16);
            net.socket = Some(theirs.into());
            pieces.iter().for_each(|piece| ours.write_all(piece).unwrap());
            drop(ours);
            let found: Vec<i32> = results.iter().map(|_| net.receive(16)).collect();
            assert_eq!(found, results, "{pieces:?}");
        }
    }

    #[test]
    fn the_other_end_may_be_gone_first_if_time_ends_the_job() {
        let mut net = net(16);
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        net.socket = Some(ours.into());
        drop(theirs);
        assert_eq!(net.send(16), -Errno::PIPE.raw_os_error());
        net.timed = true;
        assert_eq!(net.send(16), 0);
    }
}
