//! The two text files of FTQ (Sottile and Minnich): one number a line, a line for each interval.
//!
//! Their scripts expect intervals of one length. A late reading makes a longer one, which the times show.

use model::ftq::FtqRecord;
use std::io::{self, Write};

/// The start of each interval, in nanoseconds since the recording began.
///
/// # Errors
/// When it cannot be written.
pub fn times(mut file: impl Write, record: &FtqRecord) -> io::Result<()> {
    let at: Vec<u64> = record.chunks.iter().flat_map(|chunk| chunk.at.iter().map(|at| at.0)).collect();
    let (_, starts) = at.split_last().unwrap_or((&0, &[]));
    starts.iter().try_for_each(|at| writeln!(file, "{at}"))
}

/// The worker's amount in each interval.
///
/// # Errors
/// When it cannot be written.
pub fn counts(mut file: impl Write, record: &FtqRecord) -> io::Result<()> {
    let amounts: Vec<u64> = record.chunks.iter().flat_map(|chunk| chunk.amount.iter().copied()).collect();
    amounts.windows(2).try_for_each(|pair| match pair {
        [before, after] => writeln!(file, "{}", after.saturating_sub(*before)),
        _ => Ok(()),
    })
}
