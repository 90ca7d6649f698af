//! What the plugin counted, by function: functions of the guest's kernel by its own kallsyms, functions of its programs by the ELF files
//! that they were started from.

use crate::guest::record::{FunctionCount, InstructionCount};
use lab::error::{Error, Result};
use lab::names::{KERNEL_BEGIN, KernelFunctions, Mapping, Program, UNKNOWN, kernel_function, mapping};
use std::collections::BTreeMap;
use std::path::Path;

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
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let (first, second) =
            (words.first().copied().unwrap_or_default(), words.get(1).and_then(|word| word.parse().ok()));
        if first == "region" {
            return Err(Error::Failed("the guest marked two regions; please report this".to_owned()));
        }
        let Some(number): Option<u64> = second else { continue };
        let Ok(address) = u64::from_str_radix(first, 16) else { continue };
        let flagged = |flag: &str| if words.get(2) == Some(&flag) { number } else { 0 };
        let (string, locked) = (flagged("s"), flagged("l"));
        sum += number;
        count.programs += if address < KERNEL_BEGIN { number } else { 0 };
        count.string += string;
        count.locked += locked;
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
            function.entries += if place.begin == Some(address) && string == 0 { number } else { 0 };
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
    Ok(count)
}

/// What programs execute, if it is not known in which file.
pub(super) const PROGRAMS: &str = "[programs]";
/// Separates the kernel's symbols from the mappings of processes in what the guest sends.
pub(super) const MAPPINGS: &str = "= mappings\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place<'a> {
    pub name: &'a str,
    /// The kernel module.
    pub module: Option<&'a str>,
    /// The file of a program.
    pub program: Option<&'a str>,
    /// Its first address. Two functions of one name and module have one each.
    pub begin: Option<u64>,
}

/// All that is known of a guest's addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Symbols {
    kernel: KernelFunctions,
    /// Executable mappings of processes, by their first address.
    mappings: BTreeMap<u64, Mapping>,
    files: BTreeMap<String, Program>,
}

impl Symbols {
    /// Reads what the agent sends: functions of /proc/kallsyms, and the executable lines of each /proc/PID/maps. `program` is the file of the
    /// guest's /init on the host.
    pub(super) fn parse(text: &str, program: &Path) -> Self {
        let (kernel, mappings) = text.split_once(MAPPINGS).unwrap_or((text, ""));
        let kernel = kernel.lines().filter_map(kernel_function).collect();
        let mut symbols = Self { kernel, ..Self::default() };
        for line in mappings.lines() {
            let Some((begin, mapping)) = mapping(line) else { continue };
            let path = mapping.path.clone();
            symbols.mappings.insert(begin, mapping);
            symbols.files.entry(path).or_insert_with_key(|path| file(path, program));
        }
        symbols
    }

    /// Whether nothing is known.
    pub(super) fn is_empty(&self) -> bool {
        self.kernel.is_empty()
    }

    /// The function at an address.
    pub(super) fn of(&self, address: u64) -> Place<'_> {
        if address < KERNEL_BEGIN {
            return self.of_program(address);
        }
        match self.kernel.of(address) {
            Some((begin, function)) => {
                Place { name: &function.name, module: function.module.as_deref(), program: None, begin: Some(begin) }
            }
            None => Place { name: UNKNOWN, module: None, program: None, begin: None },
        }
    }

    fn of_program(&self, address: u64) -> Place<'_> {
        let unknown = Place { name: PROGRAMS, module: None, program: None, begin: None };
        let Some((begin, mapping)) = self.mappings.range(..=address).next_back() else { return unknown };
        let Some(file) = self.files.get(&mapping.path).filter(|_| address < mapping.end) else { return unknown };
        let at = address - begin + mapping.offset;
        let (name, begin) = file.function(at).map_or((PROGRAMS, None), |(name, begin)| {
            // The function's place in the file, moved to where the process has it.
            (name, file.address(at).map(|in_file| address - in_file.saturating_sub(begin)))
        });
        Place { name, module: None, program: Some(&file.name), begin }
    }
}

/// A file of a guest, as far as the host has it at the same path.
fn file(path: &str, program: &Path) -> Program {
    Program::read(if path == "/init" { program } else { Path::new(path) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &str = "ffffffff81000000 T _text\nffffffff81000100 t alpha\nffffffff81000180 t mappings\nffffffff81000200 D data\n\
                            ffffffffc0001000 t beta\t[brd]\nffffffff81000100 t zeta\n0000000000000000 A nothing\n";

    #[test]
    fn addresses_become_functions_and_sum_to_the_total() {
        let symbols = Symbols::parse(KALLSYMS, Path::new("/none"));
        let text = "region 30\n400000 5\nffffffff81000104 7\nffffffff81000110 3 s\nffffffffc0001004 11 l\n\
                    ffffffff81000100 3\nffffffffc0001000 1 s\n";
        let count = read(text.as_bytes(), &symbols).unwrap();
        assert_eq!((count.total, count.programs, count.string, count.locked), (30, 5, 4, 11));
        let by_name = |name: &str| count.functions.iter().find(|function| function.name == name).unwrap();
        assert_eq!((by_name("alpha").count, by_name("alpha").entries), (13, 3));
        let beta = by_name("beta");
        assert_eq!((beta.count, beta.module.as_deref()), (12, Some("brd")));
        assert_eq!(beta.entries, 0, "its first instruction repeats itself");
        assert_eq!(by_name(PROGRAMS).count, 5);
        assert_eq!(count.functions.iter().map(|function| function.count).sum::<u64>(), count.total);
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

    #[test]
    fn kernel_addresses_have_functions_and_modules() {
        let symbols = Symbols::parse(KALLSYMS, Path::new("/none"));
        let kernel = |address| (symbols.of(address).name, symbols.of(address).module);
        assert_eq!(kernel(0xffff_ffff_8100_0104), ("alpha", None));
        assert_eq!(kernel(0xffff_ffff_c000_1004), ("beta", Some("brd")));
        assert_eq!(kernel(1 << 63), (UNKNOWN, None));
        assert_eq!(kernel(0xffff_ffff_8110_0000), (UNKNOWN, None), "far behind the last function");
        assert_eq!(symbols.of(0x40_0000).name, PROGRAMS);
        assert!(Symbols::default().is_empty() && !symbols.is_empty());
    }

    #[inline(never)]
    fn a_function_to_find() -> u64 {
        std::hint::black_box(17)
    }

    #[test]
    fn addresses_of_programs_have_functions_of_their_files() {
        a_function_to_find();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let own = std::env::current_exe().unwrap();
        let text = format!("{KALLSYMS}{MAPPINGS}{}", maps.replace(own.to_str().unwrap(), "/init"));
        let symbols = Symbols::parse(&text, &own);
        let place = symbols.of(a_function_to_find as *const () as usize as u64);
        assert!(place.name.ends_with("a_function_to_find"), "{place:?}");
        assert_eq!(place.program, own.file_name().unwrap().to_str());
    }
}
