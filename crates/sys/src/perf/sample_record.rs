//! Counts the records in a sample buffer. Pure: bytes in, counts out.
//!
//! A record is a header (`struct perf_event_header`: type, mode flags, size) and a body. The header contains the mode
//! of a sample, user or kernel.

use std::ops::AddAssign;

/// Samples by mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// In user mode, including guests of this machine: to its host, a guest is a process.
    pub user: u64,
    /// In the kernel, including interrupts.
    pub kernel: u64,
    /// Taken but not stored, because the buffer was full.
    pub lost: u64,
}

impl Counts {
    /// All samples, including lost ones.
    pub fn total(self) -> u64 {
        self.user.saturating_add(self.kernel).saturating_add(self.lost)
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.user = self.user.saturating_add(other.user);
        self.kernel = self.kernel.saturating_add(other.kernel);
        self.lost = self.lost.saturating_add(other.lost);
    }
}

const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;
const MISC_CPUMODE_MASK: u16 = 7;
const CPUMODE_USER: u16 = 2;
const CPUMODE_GUEST_KERNEL: u16 = 4;
const CPUMODE_GUEST_USER: u16 = 5;
const HEADER_SIZE: usize = 8;

/// Counts the records in `bytes`, which starts at a record. Skips unknown types; a record that does not fit ends the
/// count, because the next one cannot be located.
pub(super) fn count(mut bytes: &[u8]) -> Counts {
    let mut counts = Counts::default();
    while let Some((kind, misc, body, rest)) = split(bytes) {
        match (kind, misc & MISC_CPUMODE_MASK) {
            (RECORD_SAMPLE, CPUMODE_USER | CPUMODE_GUEST_USER | CPUMODE_GUEST_KERNEL) => counts.user += 1,
            (RECORD_SAMPLE, _) => counts.kernel += 1,
            (RECORD_LOST, _) => counts.lost = counts.lost.saturating_add(lost(body)),
            _ => {}
        }
        bytes = rest;
    }
    counts
}

/// Type, mode flags, and body of the first record, and the bytes behind it.
fn split(bytes: &[u8]) -> Option<(u32, u16, &[u8], &[u8])> {
    let (header, _) = bytes.split_first_chunk::<HEADER_SIZE>()?;
    let [k0, k1, k2, k3, m0, m1, s0, s1] = *header;
    let size = usize::from(u16::from_ne_bytes([s0, s1]));
    let body = bytes.get(HEADER_SIZE..size)?;
    let rest = bytes.get(size..)?;
    Some((u32::from_ne_bytes([k0, k1, k2, k3]), u16::from_ne_bytes([m0, m1]), body, rest))
}

/// The body of a lost record is the event's id and the number of samples lost.
fn lost(body: &[u8]) -> u64 {
    body.get(8..).and_then(|tail| tail.first_chunk::<8>()).map_or(0, |count| u64::from_ne_bytes(*count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let size = u16::try_from(HEADER_SIZE + body.len()).unwrap();
        [&kind.to_ne_bytes()[..], &misc.to_ne_bytes()[..], &size.to_ne_bytes()[..], body].concat()
    }

    #[test]
    fn samples_are_counted_by_mode_and_losses_are_added() {
        let lost = [7u64.to_ne_bytes(), 40u64.to_ne_bytes()].concat();
        let bytes = [
            record(RECORD_SAMPLE, CPUMODE_USER, &[0; 16]),
            record(RECORD_SAMPLE, 1, &[0; 16]),
            record(RECORD_SAMPLE, CPUMODE_USER | 1 << 14, &[]),
            record(RECORD_LOST, 0, &lost),
            record(5, 0, &[0; 24]),
            record(RECORD_SAMPLE, 0, &[]),
        ]
        .concat();
        assert_eq!(count(&bytes), Counts { user: 2, kernel: 2, lost: 40 });
        assert_eq!(count(&bytes).total(), 44);
    }

    #[test]
    fn truncated_and_invalid_records_end_the_count() {
        let whole = record(RECORD_SAMPLE, CPUMODE_USER, &[0; 16]);
        let torn = [&whole[..], &whole[..20]].concat();
        assert_eq!(count(&torn).user, 1);
        assert_eq!(count(&[0; 64]), Counts::default());
        assert_eq!(count(&record(RECORD_LOST, 0, &[1, 2, 3])), Counts::default());
    }
}
