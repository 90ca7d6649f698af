//! Values of the options that choose sizes and positions of requests.

use super::{Quoted, Wrong, each_direction, integer_in, percent, plain_number};
use crate::plan::job::{Distribution, SizeRange, SizeShare};
use crate::unit::Bytes;
use std::ops::RangeInclusive;

/// The largest block: fio's limit less a page, because a result of a system call is a length or one of 4095 errors.
pub const LARGEST_BLOCK: u64 = (4 << 30) - 4096;

/// The sizes of a block.
pub const BLOCK: RangeInclusive<u64> = 1..=LARGEST_BLOCK;

/// The most sizes of a direction, as in fio.
const MOST_SHARES: usize = 64;

/// `bs`: the sizes of reads, writes and trims. As in fio, a range has the size of reads and that of the others.
pub fn blocks(text: &str) -> Result<[Option<u64>; 3], Wrong> {
    let size = |item: &str| integer_in(item, &BLOCK);
    match text.split_once('-').filter(|_| is_range_of_blocks(text)) {
        Some((read, others)) => {
            let others = size(others)?;
            Ok([Some(size(read)?), Some(others), Some(others)])
        }
        None => each_direction(text, size),
    }
}

/// Whether a value of `bs` is a range, which fio does not read as one.
pub fn is_range_of_blocks(text: &str) -> bool {
    text.contains('-') && !text.contains(',')
}

/// A size, or two between `-` or `:`, in any order, each within `limits`.
pub fn range(text: &str, limits: &RangeInclusive<u64>) -> Result<SizeRange, Wrong> {
    let (one, other) = text.split_once(['-', ':']).unwrap_or((text, text));
    let (one, other) = (integer_in(one, limits)?, integer_in(other, limits)?);
    Ok(SizeRange { least: Bytes(one.min(other)), most: Bytes(one.max(other)) })
}

/// `bssplit` of one direction: sizes with percentages, in fio's order: the greatest percentage last. A percentage that
/// is missing or 0 is an equal share of the rest. The last one also has what the others leave. Of a range of sizes, fio
/// reads the first one.
pub fn split(text: &str) -> Result<Vec<SizeShare>, Wrong> {
    let one = |item: &str| {
        let (bytes, share) = item.split_once('/').unwrap_or((item, ""));
        let first = bytes.split_once('-').map_or(bytes, |(first, _)| first);
        // fio reads the digits of `5.` too.
        let share = share.strip_suffix('.').unwrap_or(share);
        let share = if share.is_empty() { 0 } else { percent(share)? };
        Ok((integer_in(first, &BLOCK)?, share))
    };
    let items = text.split(':').map(one).collect::<Result<Vec<(u64, u8)>, Wrong>>()?;
    if items.len() > MOST_SHARES {
        return Err(Wrong::because(text, format_args!("has more than {MOST_SHARES} sizes")));
    }
    let sum: u64 = items.iter().map(|(_, percent)| u64::from(*percent)).sum();
    if sum > 100 {
        return Err(Wrong::because(text, format_args!("has percentages that add up to {sum}")));
    }
    let missing = items.iter().filter(|(_, percent)| *percent == 0).count().max(1) as u64;
    let equal = u8::try_from((100 - sum) / missing).unwrap_or(0);
    let filled = items.into_iter().map(|(size, percent)| (size, if percent == 0 { equal } else { percent }));
    let mut shares: Vec<_> = filled.map(|(size, percent)| SizeShare { size: Bytes(size), percent }).collect();
    shares.sort_by_key(|share| share.percent);
    let given: u32 = shares.iter().map(|share| u32::from(share.percent)).sum();
    if let Some(last) = shares.last_mut() {
        last.percent += u8::try_from(100_u32.saturating_sub(given)).unwrap_or(0);
    }
    Ok(shares)
}

/// Whether a value of `bssplit` has a range of sizes.
pub fn has_ranges(text: &str) -> bool {
    text.split([',', ':']).any(|item| item.split('/').next().is_some_and(|size| size.contains('-')))
}

/// `random_distribution`.
pub fn distribution(text: &str) -> Result<Distribution, Wrong> {
    let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
    match name {
        "random" => Ok(Distribution::Random),
        "zipf" => match rest.map_or(Some(1.1), plain_number) {
            Some(theta) if theta > 0.0 => Ok(Distribution::Zipf(theta)),
            _ => Err(Wrong::because(text, "has no theta above 0")),
        },
        _ => Err(Wrong::because(text, format_args!("has {}, which is no distribution", Quoted(name)))),
    }
}

/// Percentages for each direction. fio reads one with a percent sign as a number above all percentages.
pub fn percentages(text: &str) -> Result<[Option<u8>; 3], Wrong> {
    each_direction(text, |item| match item.strip_suffix('%') {
        Some(share) => percent(share).map(|_| 100),
        None => percent(item),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_one_or_two_sizes() {
        let ends = |text| range(text, &BLOCK).map(|range| (range.least.0, range.most.0));
        assert_eq!((ends("4k-16k"), ends("16k:4k")), (Ok((4096, 16384)), Ok((4096, 16384))));
        assert_eq!(ends("4k"), Ok((4096, 4096)));
        for text in ["0", "4k-", "-4k", "0-4k", "4k-8k-16k", "4k-16g"] {
            assert!(range(text, &BLOCK).is_err(), "{text}");
        }
    }

    #[test]
    fn a_range_of_blocks_is_a_size_for_reads_and_one_for_the_others() {
        assert_eq!(blocks("4k-512k"), Ok([Some(4096), Some(512 << 10), Some(512 << 10)]));
        assert_eq!(blocks("4k,8k,"), Ok([Some(4096), Some(8192), None]));
        for text in ["4k-", "-4k", "4k-8k-16k", "4k-8k,16k", "0-4k", "4k-4g"] {
            assert!(blocks(text).is_err(), "{text}");
        }
        assert_eq!(LARGEST_BLOCK, 4_194_300 << 10, "as the table of options says");
    }

    #[test]
    fn splits_that_say_nothing_or_too_much_are_refused() {
        for text in ["", "4k/x", "4k/101", "4k/60:8k/50", "/50", "4k/5.5", "4k::8k"] {
            assert!(split(text).is_err(), "{text}");
        }
        assert_eq!(split("4k/5.:8k/95"), split("4k/5:8k/95"));
        assert_eq!(percentages("5%,20").unwrap(), [Some(100), Some(20), Some(20)]);
        assert!(percentages("%").is_err() && percentages("101%").is_err());
        assert_eq!(split("4k/50:8k-16k/50").unwrap().iter().map(|share| share.size.0).max(), Some(8192));
        assert!(has_ranges("4k/50:8k-16k/50") && !has_ranges("4k/50:8k/50"));
        assert_eq!(split(&vec!["4k"; 65].join(":")).unwrap_err().reason.split(' ').next_back(), Some("sizes"));
    }

    #[test]
    fn distributions_have_the_limits_of_fio() {
        for (text, theta) in [("zipf", 1.1), ("zipf:1.2", 1.2), ("zipf:1", 1.0)] {
            assert_eq!(distribution(text), Ok(Distribution::Zipf(theta)), "{text}");
        }
        for text in ["zipf:0", "zipf:x", "zipf:-1", "zipf:1:2", "pareto:0.2", "zipf:"] {
            assert!(distribution(text).is_err(), "{text}");
        }
    }
}
