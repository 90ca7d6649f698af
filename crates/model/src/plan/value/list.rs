//! Values that are lists: per direction, of CPUs, of percentiles, of file names.

use super::{Quoted, Wrong, digits, integer_in, within};
use std::ops::RangeInclusive;

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
