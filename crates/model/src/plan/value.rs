//! Parses values in fio's syntax: from a text to a typed value, or the reason why it is invalid.
//!
//! Values mean what fio 3.33 with its default `kb_base=1024` makes of them. fio reads the leading digits of a value and
//! ignores the rest, so that `bs=4.5k` means 4 bytes; here such a value is an error.

#[cfg(test)]
mod tests;
pub mod typed;

use crate::plan::job::{Distribution, Size, SizeRange, SizeShare};
use crate::unit::{Bytes, Nanos};
use std::fmt::{self, Display, Write};
use std::ops::RangeInclusive;

const POWERS_OF_1024: [(&str, u64); 5] =
    [("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30), ("t", 1 << 40), ("p", 1 << 50)];

/// The factor of a suffix. fio 3.33 treats `kib` and similar suffixes as powers of 1000, for compatibility with old job
/// files, and `ki` as `k`, although its manual says otherwise.
fn factor(suffix: &str) -> Option<u64> {
    let suffix = suffix.to_ascii_lowercase();
    if suffix.is_empty() || suffix == "b" {
        return Some(1);
    }
    (1..).zip(POWERS_OF_1024).find_map(|(power, (letter, binary))| match suffix.strip_prefix(letter)? {
        "" | "b" | "i" => Some(binary),
        "ib" => Some(1000_u64.pow(power)),
        _ => None,
    })
}

/// The leading decimal digits and the rest.
fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len()))
}

fn digits(text: &str, whole: &str, radix: u32) -> Result<u64, Wrong> {
    if text.is_empty() || !text.chars().all(|character| character.is_digit(radix)) {
        return Err(Wrong::because(whole, "is not a whole number"));
    }
    u64::from_str_radix(text, radix).map_err(|_| Wrong::because(whole, "is too large"))
}

/// A whole number: decimal with an optional suffix, or hexadecimal after `0x`.
pub fn integer(text: &str) -> Result<u64, Wrong> {
    if let Some(hexadecimal) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return digits(hexadecimal, text, 16);
    }
    let (number, suffix) = split_digits(text);
    let number = digits(number, text, 10)?;
    let factor = factor(suffix)
        .ok_or_else(|| Wrong::because(text, format_args!("has the unknown suffix {}", Quoted(suffix))))?;
    number.checked_mul(factor).ok_or_else(|| Wrong::because(text, "is too large"))
}

/// A whole number within `range`.
pub fn integer_in(text: &str, range: &RangeInclusive<u64>) -> Result<u64, Wrong> {
    within(integer(text)?, range, text)
}

/// A whole number within `range`.
pub fn count_in(text: &str, range: &RangeInclusive<u32>) -> Result<u32, Wrong> {
    let count = u32::try_from(integer(text)?).map_err(|_| Wrong::because(text, "is out of range"))?;
    within(count, range, text)
}

fn within<T: PartialOrd>(value: T, range: &RangeInclusive<T>, text: &str) -> Result<T, Wrong> {
    if range.contains(&value) { Ok(value) } else { Err(Wrong::because(text, "is out of range")) }
}

/// `1` or `0`.
pub fn boolean(text: &str) -> Result<bool, Wrong> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(Wrong::because(text, "is neither 0 nor 1")),
    }
}

/// A whole number of percent, without a percent sign.
pub fn percent(text: &str) -> Result<u8, Wrong> {
    percent_in(text, text, &(0..=100))
}

fn percent_in(number: &str, text: &str, range: &RangeInclusive<u8>) -> Result<u8, Wrong> {
    let percent = u8::try_from(digits(number, text, 10)?).map_err(|_| Wrong::because(text, "is out of range"))?;
    within(percent, range, text)
}

/// The largest file size and offset of Linux (`loff_t`).
pub const LARGEST_FILE: u64 = i64::MAX as u64;

/// A number of bytes, or a percentage.
pub fn size(text: &str, bytes: &RangeInclusive<u64>, percent: &RangeInclusive<u8>) -> Result<Size, Wrong> {
    match text.strip_suffix('%') {
        Some(share) => percent_in(share, text, percent).map(Size::Percent),
        None => integer_in(text, bytes).map(|bytes| Size::Bytes(Bytes(bytes))),
    }
}

/// The unit of a time without a suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds, as in `runtime`.
    Seconds,
    /// Microseconds, as in `thinktime`.
    Microseconds,
}

/// The longest time that an option accepts: longer than anyone needs, and within the range of any clock.
pub const LONGEST_TIME: Nanos = Nanos(365 * 86_400 * 1_000_000_000);

/// A time with an optional suffix. fio 3.33 reads `10sec` as 10 microseconds; its manual and this function read it as
/// 10 seconds.
pub fn time(text: &str, unit: TimeUnit) -> Result<Nanos, Wrong> {
    let (number, suffix) = split_digits(text);
    let number = digits(number, text, 10)?;
    let nanos = match (suffix.to_ascii_lowercase().as_str(), unit) {
        ("us" | "usec", _) | ("", TimeUnit::Microseconds) => 1_000,
        ("ms" | "msec", _) => 1_000_000,
        ("s" | "sec", _) | ("", TimeUnit::Seconds) => 1_000_000_000,
        ("m", _) => 60 * 1_000_000_000,
        ("h", _) => 3_600 * 1_000_000_000,
        ("d", _) => 86_400 * 1_000_000_000,
        _ => return Err(Wrong::because(text, format_args!("has the unknown suffix {}", Quoted(suffix)))),
    };
    let time = number.checked_mul(nanos).ok_or_else(|| Wrong::because(text, "is too large"))?;
    within(Nanos(time), &(Nanos(0)..=LONGEST_TIME), text)
}

/// Why a text is not a valid value. The caller adds what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Wrong {
    /// What is wrong with the text, in one line.
    pub reason: String,
    /// The word that was probably meant.
    pub suggestion: Option<String>,
    /// For an option of fio that is not supported: what it changes.
    pub unsupported: Option<Effect>,
}

/// What an option changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Which I/O is done, or how.
    Work,
    /// Only reports, logs, or the surroundings of the job.
    None,
}

impl Wrong {
    /// An error without a suggestion.
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), suggestion: None, unsupported: None }
    }

    /// An error of the form "'TEXT' IS".
    pub(crate) fn because(text: &str, is: impl Display) -> Self {
        Self::new(format!("{} {is}", Quoted(text)))
    }
}

/// A text of the user in quotes, shortened and on one line.
pub(crate) struct Quoted<'a>(pub &'a str);

/// Long enough to recognize a text.
const QUOTED_CHARACTERS: usize = 60;

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut characters = self.0.chars();
        f.write_char('\'')?;
        for character in characters.by_ref().take(QUOTED_CHARACTERS) {
            match character {
                '\'' | '"' | '\\' => f.write_char(character)?,
                _ => character.escape_debug().try_for_each(|escaped| f.write_char(escaped))?,
            }
        }
        f.write_str(if characters.next().is_some() { "…'" } else { "'" })
    }
}

/// A number in its shortest form: `1g` for 1073741824.
pub(crate) struct Short(pub u64);

impl Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |(_, factor): &&(&str, u64)| self.0 >= *factor && self.0.is_multiple_of(*factor);
        match POWERS_OF_1024.iter().rfind(whole) {
            Some((suffix, factor)) => write!(f, "{}{suffix}", self.0 / factor),
            None => write!(f, "{}", self.0),
        }
    }
}

/// Below this Jaro-Winkler similarity, a suggestion is more confusing than helpful. The misspellings in this module's
/// tests score above it, unrelated options below.
const SIMILAR: f64 = 0.8;

/// Longer texts are not misspelled words, and the comparison takes quadratic time.
const LONGEST_WORD: usize = 64;

/// The candidate most similar to `word`, if any is similar enough.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST_WORD {
        return None;
    }
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))
        .map(|(_, candidate)| candidate)
}

/// Numbers for reads, writes and trims, by the rules of [`each_direction`].
pub fn per_direction(text: &str, range: &RangeInclusive<u64>) -> Result<[Option<u64>; 3], Wrong> {
    each_direction(text, |item| integer_in(item, range))
}

/// Parses `R,W,T`. The last item also applies to the directions after it, and an empty item changes nothing: `4k,8k`
/// sets reads to 4k, and writes and trims to 8k; `4k,,8k` leaves writes unchanged, `4k,` writes and trims.
pub fn each_direction<T: Clone>(
    text: &str,
    mut parse: impl FnMut(&str) -> Result<T, Wrong>,
) -> Result<[Option<T>; 3], Wrong> {
    let one = |item: &str| if item.is_empty() { Ok(None) } else { parse(item).map(Some) };
    let mut values = text.split(',').map(one).collect::<Result<Vec<_>, _>>()?.into_iter();
    let given = match [values.next(), values.next(), values.next(), values.next()] {
        [Some(all), None, ..] => [all.clone(), all.clone(), all],
        [Some(read), Some(rest), None, _] => [read, rest.clone(), rest],
        [Some(read), Some(write), Some(trim), None] => [read, write, trim],
        _ => return Err(Wrong::because(text, "has more than three items")),
    };
    if given.iter().all(Option::is_none) {
        return Err(Wrong::because(text, "gives no value"));
    }
    Ok(given)
}

/// The largest CPU number of the C library's `cpu_set_t`, which has CPU_SETSIZE = 1024 CPUs.
pub const LARGEST_CPU: u32 = 1023;

/// CPU numbers and ranges, as in `0-3,5`; ascending, without duplicates.
pub fn cpus(text: &str) -> Result<Vec<u32>, Wrong> {
    let number = |item: &str| -> Result<u32, Wrong> {
        let number = u32::try_from(digits(item, text, 10)?).map_err(|_| Wrong::because(text, "is too large"))?;
        within(number, &(0..=LARGEST_CPU), text)
    };
    let mut cpus = Vec::new();
    for item in text.split(',').map(str::trim) {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(Wrong::because(text, format_args!("has the descending range {}", Quoted(item))));
        }
        cpus.extend(first..=last);
        cpus.sort_unstable();
        cpus.dedup();
    }
    Ok(cpus)
}

/// The maximum number of percentiles in one list, as in fio.
pub const MOST_PERCENTILES: usize = 20;

/// Percentiles above 0 and up to 100, separated by colons; ascending, without duplicates.
pub fn percentiles(text: &str) -> Result<Vec<f64>, Wrong> {
    let mut percentiles = text.split(':').map(percentile).collect::<Result<Vec<_>, _>>()?;
    if percentiles.len() > MOST_PERCENTILES {
        return Err(Wrong::because(text, format_args!("has more than {MOST_PERCENTILES} items")));
    }
    percentiles.sort_by(f64::total_cmp);
    percentiles.dedup();
    Ok(percentiles)
}

/// A number of digits and a point, without a sign or an exponent.
pub fn plain_number(text: &str) -> Option<f64> {
    let plain = text.chars().all(|character| character.is_ascii_digit() || character == '.');
    text.parse().ok().filter(|_| plain)
}

/// A percentile, in percent.
pub fn percentile(text: &str) -> Result<f64, Wrong> {
    let percentile = plain_number(text).filter(|percentile| *percentile > 0.0 && *percentile <= 100.0);
    percentile.ok_or_else(|| Wrong::because(text, "is not a percentile"))
}

/// File names separated by colons; `\:` is a colon within a name.
pub fn file_names(text: &str) -> Result<Vec<String>, Wrong> {
    let (mut names, mut name) = (Vec::new(), String::new());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.next_if_eq(&':').is_some() => name.push(':'),
            ':' => names.push(std::mem::take(&mut name)),
            other => name.push(other),
        }
    }
    names.push(name);
    let usable = |name: &String| !name.is_empty() && !name.contains('\0');
    match names.iter().find(|name| !usable(name)) {
        None => Ok(names),
        Some(name) => Err(Wrong::because(text, format_args!("has {}, which is not a file name", Quoted(name)))),
    }
}

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

/// The words that a format of file names may contain, and what they stand for.
const NAME_WORDS: [&str; 4] = ["jobname", "jobnum", "filenum", "clientuid"];

/// A format of file names. fio leaves a word that it does not know in the name.
pub fn name_format(text: &str) -> Result<String, Wrong> {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('$') {
        if !NAME_WORDS.iter().any(|word| after.starts_with(word)) {
            return Err(Wrong::because(text, "has a '$' with another word"));
        }
        rest = after;
    }
    if text.chars().any(char::is_control) {
        return Err(Wrong::new(format!("{} has a control character", Quoted(text))));
    }
    Ok(text.to_owned())
}
