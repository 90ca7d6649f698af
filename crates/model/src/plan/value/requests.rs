//! Values of the options that choose sizes and positions of requests.

use super::{LARGEST_FILE, Quoted, Wrong, each_direction, integer, integer_in, percent, plain_number};
use crate::plan::job::{AccessZone, Distribution, Each, Shape, Size, SizeRange, SizeShare};
use crate::unit::Bytes;
use std::ops::RangeInclusive;

/// The largest block: fio's limit less a page, because a result of a system call is a length or one of 4095 errors.
pub const LARGEST_BLOCK: u64 = (4 << 30) - 4096;

const BLOCK: RangeInclusive<u64> = 1..=LARGEST_BLOCK;

/// The most sizes of a direction, and the most zones, as in fio.
const MOST_SHARES: usize = 64;
const MOST_ZONES: usize = 256;

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

/// `bsrange`: two sizes between `-` or `:`, in any order.
pub fn range(text: &str) -> Result<SizeRange, Wrong> {
    let Some((one, other)) = text.split_once(['-', ':']) else {
        return Err(Wrong::because(text, "is no range"));
    };
    let (one, other) = (integer_in(one, &BLOCK)?, integer_in(other, &BLOCK)?);
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

/// Bytes that may be negative: `-4k`.
pub fn signed(text: &str) -> Result<i64, Wrong> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let bytes = integer(digits).map_err(|_| Wrong::because(text, "is no number of bytes"))?;
    let bytes = i64::try_from(bytes).map_err(|_| Wrong::because(text, "is too large"))?;
    Ok(if negative { -bytes } else { bytes })
}

/// `random_distribution`.
pub fn distribution(text: &str) -> Result<Distribution, Wrong> {
    let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
    match name {
        "random" => Ok(Distribution::Random),
        "zipf" => {
            let shape = shape(text, rest, 1.1)?;
            (shape.parameter > 0.0)
                .then_some(Distribution::Zipf(shape))
                .ok_or_else(|| Wrong::because(text, "has a theta that is not above 0"))
        }
        "pareto" => {
            let shape = shape(text, rest, 0.2)?;
            (shape.parameter > 0.0 && shape.parameter < 1.0)
                .then_some(Distribution::Pareto(shape))
                .ok_or_else(|| Wrong::because(text, "has a power that is not between 0 and 1"))
        }
        "normal" => {
            let shape = shape(text, rest, 0.0)?;
            (shape.parameter > 0.0 && shape.parameter <= 100.0)
                .then_some(Distribution::Normal(shape))
                .ok_or_else(|| Wrong::because(text, "has a deviation that is not above 0 and up to 100 percent"))
        }
        "zoned" => zones(text, rest, |item| percent(item).map(Size::Percent)),
        "zoned_abs" => {
            zones(text, rest, |item| integer_in(item, &(0..=LARGEST_FILE)).map(|bytes| Size::Bytes(Bytes(bytes))))
        }
        _ => Err(Wrong::because(text, format_args!("has {}, which is no distribution", Quoted(name)))),
    }
}

fn shape(text: &str, rest: Option<&str>, usual: f64) -> Result<Shape, Wrong> {
    let number = |item: &str| plain_number(item).ok_or_else(|| Wrong::because(text, "has no number behind its ':'"));
    let Some(rest) = rest else { return Ok(Shape { parameter: usual, center: None }) };
    let (parameter, center) = rest.split_once(':').map_or((rest, None), |(first, second)| (first, Some(second)));
    let center = center.map(number).transpose()?;
    if center.is_some_and(|center| center > 1.0) {
        return Err(Wrong::because(text, "has a centre that is not from 0 to 1"));
    }
    Ok(Shape { parameter: number(parameter)?, center })
}

fn zones(text: &str, rest: Option<&str>, parse: impl Fn(&str) -> Result<Size, Wrong>) -> Result<Distribution, Wrong> {
    let rest = rest.ok_or_else(|| Wrong::because(text, "has no zones"))?;
    let mut all = Each::<Vec<AccessZone>>::default();
    all.update(each_direction(rest, |item| zones_of(item, &parse))?);
    Ok(Distribution::Zoned(all))
}

fn zones_of(text: &str, parse: &impl Fn(&str) -> Result<Size, Wrong>) -> Result<Vec<AccessZone>, Wrong> {
    let mut zones = Vec::new();
    let mut open = Vec::new();
    for (place, item) in text.split(':').enumerate() {
        let Some((share, part)) = item.split_once('/') else {
            return Err(Wrong::because(item, "is no percentage of accesses, slash, size of a zone"));
        };
        let share = percent(share)?;
        if part.is_empty() {
            open.push(place);
        }
        let size = if part.is_empty() { Size::Percent(0) } else { parse(part)? };
        zones.push(AccessZone { percent: share, size });
    }
    if zones.len() > MOST_ZONES {
        return Err(Wrong::because(text, format_args!("has more than {MOST_ZONES} zones")));
    }
    let accesses: u32 = zones.iter().map(|zone| u32::from(zone.percent)).sum();
    if accesses != 100 {
        return Err(Wrong::because(
            text,
            format_args!("has percentages of accesses that add up to {accesses}, not to 100"),
        ));
    }
    let part = |zone: &AccessZone| if let Size::Percent(percent) = zone.size { u32::from(percent) } else { 0 };
    let parts: u32 = zones.iter().map(part).sum();
    if parts > 100 {
        return Err(Wrong::because(text, format_args!("has zones that add up to {parts}% of the region")));
    }
    if !open.is_empty() && zones.iter().any(|zone| matches!(zone.size, Size::Bytes(_))) {
        return Err(Wrong::because(text, "has a zone without a size"));
    }
    // As in fio, zones without a size share the rest.
    let each = u8::try_from((100 - parts) / u32::try_from(open.len().max(1)).unwrap_or(1)).unwrap_or(0);
    for place in open {
        if let Some(zone) = zones.get_mut(place) {
            zone.size = Size::Percent(each);
        }
    }
    Ok(zones)
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
    fn ranges_have_two_sizes() {
        let ends = |text| range(text).map(|range| (range.least.0, range.most.0));
        assert_eq!((ends("4k-16k"), ends("16k:4k")), (Ok((4096, 16384)), Ok((4096, 16384))));
        for text in ["4k", "4k-", "-4k", "0-4k", "4k-8k-16k", "4k-16g"] {
            assert!(range(text).is_err(), "{text}");
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
        let is = |text, wanted: fn(Shape) -> Distribution, parameter, center| {
            assert_eq!(distribution(text), Ok(wanted(Shape { parameter, center })), "{text}");
        };
        is("zipf", Distribution::Zipf, 1.1, None);
        is("zipf:1.2:0.25", Distribution::Zipf, 1.2, Some(0.25));
        is("zipf:1", Distribution::Zipf, 1.0, None);
        is("pareto:0.9", Distribution::Pareto, 0.9, None);
        is("normal:10:1", Distribution::Normal, 10.0, Some(1.0));
        for text in
            ["zipf:0", "zipf:x", "zipf:-1", "zipf:1:2", "pareto:1", "normal:0", "normal:101", "gauss:1", "zipf:"]
        {
            assert!(distribution(text).is_err(), "{text}");
        }
    }

    #[test]
    fn zones_without_a_size_share_the_rest() {
        let sizes = |text| match distribution(text) {
            Ok(Distribution::Zoned(zones)) => {
                zones.all().map(|zones| zones.iter().map(|zone| zone.size).collect::<Vec<_>>())
            }
            _ => Default::default(),
        };
        let [read, write, _] = sizes("zoned:50/5:30/15:20/");
        assert_eq!(read, [5, 15, 80].map(Size::Percent));
        assert_eq!(write, read);
        let [read, ..] = sizes("zoned_abs:50/16k:50/1m");
        assert_eq!(read, [16 << 10, 1 << 20].map(|bytes| Size::Bytes(Bytes(bytes))));
        for text in
            ["zoned", "zoned:50/50", "zoned:60/50:60/50", "zoned:50/60:50/60", "zoned_abs:50/16k:50/", "zoned:50:50"]
        {
            assert!(distribution(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_skip_may_be_negative() {
        assert_eq!((signed("8k"), signed("-4k"), signed("0")), (Ok(8192), Ok(-4096), Ok(0)));
        for text in ["", "-", "--4k", "x", "9223372036854775808"] {
            assert!(signed(text).is_err(), "{text}");
        }
    }
}
