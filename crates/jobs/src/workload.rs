//! The workload: the requests of a job, and the files and spans that they go to.

pub mod payload;
pub mod permutation;
pub(crate) mod replay;
pub mod request_source;
pub mod target;
mod turn;

/// Lists of requests that a job keeps while it runs have room for this number before its first I/O: more would take memory by a number that
/// the user writes. Longer lists grow in the loop.
pub(crate) const ROOM_AT_FIRST: usize = 1 << 20;

/// This percentage of `bytes`, rounded down.
fn percent_of(bytes: u64, percent: u8) -> u64 {
    u64::try_from(u128::from(bytes) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}
