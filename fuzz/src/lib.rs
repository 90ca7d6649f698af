//! What the targets have in common: bytes that arrive in pieces.

/// This end says at most so much without being heard: what it has to say does not grow with what it is told.
pub const MOST_UNHEARD: usize = 1 << 20;
/// The same in a handshake: 64 KiB, and one answer.
pub const MOST_UNHEARD_IN_HANDSHAKE: usize = 80 << 10;

/// How many bytes arrive at one time: all of them, or pieces of 1 to 64.
pub fn pieces(choice: u8) -> [usize; 2] {
    [usize::MAX, 1 + usize::from(choice % 64)]
}

/// The first bytes choose, the rest is said.
pub fn split<const CHOICES: usize>(data: &[u8]) -> Option<([u8; CHOICES], &[u8])> {
    data.split_first_chunk::<CHOICES>().map(|(choices, rest)| (*choices, rest))
}

/// Gives `said` to `take` as it arrives, each time what is there and was not taken, until all has arrived and nothing more is taken.
/// `take` gives how many bytes it took, and whether it goes on.
///
/// # Panics
/// When more is taken than there is.
pub fn arrive(said: &[u8], piece: usize, mut take: impl FnMut(&[u8]) -> (usize, bool)) {
    let (mut begin, mut end) = (0, piece.min(said.len()));
    let mut idle = 0;
    loop {
        let (taken, on) = take(&said[begin..end]);
        assert!(taken <= end - begin, "{taken} bytes of {} are taken", end - begin);
        begin += taken;
        if !on {
            return;
        }
        let more = piece.min(said.len() - end);
        if taken == 0 && more == 0 {
            // Once more in vain is allowed: something may have had to be sent first.
            idle += 1;
            if idle > 1 {
                return;
            }
        } else {
            idle = 0;
        }
        end += more;
    }
}
