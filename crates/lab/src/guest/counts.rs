//! What the plugin counted, by function.

use super::symbols::{PROGRAMS, Symbols};
use crate::error::{Error, Result};
use crate::names::KERNEL_BEGIN;
use model::guest::record::{ChainCount, FunctionCount, InstructionCount};
use std::collections::BTreeMap;

/// Reads the plugin's file, which must hold one region. Without symbols there are no functions.
///
/// # Errors
/// When the guest never marked a region.
pub(super) fn read(text: &[u8], symbols: &Symbols) -> Result<InstructionCount> {
    let text = String::from_utf8_lossy(text);
    let broken = || Error::Failed("the guest counted no instructions; please report this".to_owned());
    let mut lines = text.lines();
    let total = lines.next().and_then(|line| line.strip_prefix("region ")?.parse().ok()).ok_or_else(broken)?;
    let mut count = InstructionCount { total, ..InstructionCount::default() };
    let mut sum = 0;
    let mut functions: BTreeMap<_, FunctionCount> = BTreeMap::new();
    let mut chains: BTreeMap<String, u64> = BTreeMap::new();
    for line in lines {
        let mut words = line.split(' ');
        let first = words.next().unwrap_or_default();
        if first == "region" {
            return Err(Error::Failed("the guest marked two regions; please report this".to_owned()));
        }
        if first == "chain" {
            if let (Some(number), Some(path)) =
                (words.next().and_then(|number| number.parse::<u64>().ok()), words.next())
            {
                *chains.entry(chain(path, symbols)).or_default() += number;
            }
            continue;
        }
        let (Ok(address), Some(number)) =
            (u64::from_str_radix(first, 16), words.next().and_then(|number| number.parse::<u64>().ok()))
        else {
            continue;
        };
        sum += number;
        let flag = words.next();
        let (string, locked) = (flag == Some("s"), flag == Some("l"));
        if address < KERNEL_BEGIN {
            count.programs += number;
        }
        count.string += if string { number } else { 0 };
        count.locked += if locked { number } else { 0 };
        if !symbols.is_empty() {
            let place = symbols.of(address);
            let key = (place.name, place.module, place.program);
            let function = functions.entry(key).or_insert_with(|| FunctionCount {
                name: place.name.to_owned(),
                module: place.module.map(str::to_owned),
                program: place.program.map(str::to_owned),
                ..FunctionCount::default()
            });
            function.count += number;
            function.string += if string { number } else { 0 };
            function.locked += if locked { number } else { 0 };
            function.entries += if place.begin == Some(address) && !string { number } else { 0 };
        }
    }
    if sum != total {
        return Err(Error::Failed(format!(
            "the counts of a guest are incomplete: {sum} of {total} instructions; check that {} has space, or set TMPDIR to \
             another folder",
            std::env::temp_dir().display()
        )));
    }
    count.functions = functions.into_values().collect();
    count.chains = chains.into_iter().map(|(calls, count)| ChainCount { calls, count }).collect();
    Ok(count)
}

fn chain(path: &str, symbols: &Symbols) -> String {
    let addresses = path.split(';').filter_map(|address| u64::from_str_radix(address, 16).ok());
    // Calls among programs are one frame: their code cannot be followed through libraries without frame pointers.
    let name = |address| if address < KERNEL_BEGIN { PROGRAMS } else { symbols.of(address).name };
    let mut names: Vec<&str> = addresses.map(name).collect();
    names.dedup_by(|next, before| *next == PROGRAMS && *before == PROGRAMS);
    if names.is_empty() { "[no call seen]".to_owned() } else { names.join(";") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &str = "ffffffff81000000 T _text\nffffffff81000100 t alpha\nffffffffc0001000 t beta\t[brd]\n";

    #[test]
    fn addresses_become_functions_and_sum_to_the_total() {
        let symbols = Symbols::parse(("", KALLSYMS), std::path::Path::new("/none"));
        let text = "region 26\n400000 5\nffffffff81000104 7\nffffffff81000110 3 s\nffffffffc0001004 11 l\n\
                    chain 20 400000;400100;ffffffff81000100\n";
        let text = text.replace("region 26", "region 30") + "ffffffff81000100 3\nffffffffc0001000 1 s\n";
        let count = read(text.as_bytes(), &symbols).unwrap();
        assert_eq!((count.total, count.programs, count.string, count.locked), (30, 5, 4, 11));
        let by_name = |name: &str| count.functions.iter().find(|function| function.name == name).unwrap();
        assert_eq!((by_name("alpha").count, by_name("alpha").string, by_name("alpha").entries), (13, 3, 3));
        let beta = by_name("beta");
        assert_eq!((beta.count, beta.locked, beta.module.as_deref()), (12, 11, Some("brd")));
        assert_eq!(beta.entries, 0, "its first instruction repeats itself");
        assert_eq!(by_name(PROGRAMS).count, 5);
        assert_eq!(count.functions.iter().map(|function| function.count).sum::<u64>(), count.total);
        assert_eq!(count.chains, [ChainCount { calls: "[programs];alpha".to_owned(), count: 20 }]);
    }

    #[test]
    fn without_symbols_there_are_sums_only() {
        let count = read(b"region 5\n400000 5\n", &Symbols::default()).unwrap();
        assert_eq!((count.total, count.programs, count.functions.len()), (5, 5, 0));
    }

    #[test]
    fn no_region_two_or_half_a_one_are_failures() {
        for text in ["", "region", "region 1\n400000 1\nregion 1\n400000 1\n", "region 26\n400000 2"] {
            assert!(read(text.as_bytes(), &Symbols::default()).is_err(), "{text}");
        }
    }
}
