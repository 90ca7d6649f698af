//! Names of a guest's instructions: functions of its kernel by its own kallsyms, functions of its programs by the ELF files
//! that they were started from.

use super::elf;
use rustc_demangle::demangle;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Addresses below belong to programs.
pub(super) const KERNEL_BEGIN: u64 = 1 << 47;
/// Kernel addresses without a symbol: entry trampolines, generated code.
const UNKNOWN: &str = "[kernel code without a symbol]";
/// What programs execute, if it is not known in which file.
pub(super) const PROGRAMS: &str = "[programs]";
/// Separates the kernel's symbols from the mappings of processes in what the guest sends.
pub(super) const MAPPINGS: &str = "= mappings\n";
/// The begin of the kernel's image, whose place differs from boot to boot.
const IMAGE: &str = "_text";

/// Ends of the names that mark where a section begins or ends.
const MARKS: [&str; 4] = ["text_start", "text_end", "_stext", "_etext"];
/// No function is longer: what lies farther behind a symbol is none of it.
const LONGEST: u64 = 64 << 10;

/// Whether a line of kallsyms names a function.
pub(super) fn is_function(line: &str) -> bool {
    kernel_function(line).is_some()
}

/// Whether a line of kallsyms may differ between two guests of one kernel by more than the image's place.
pub(super) fn is_of_guest(line: &str) -> bool {
    kernel_function(line).is_some_and(|(_, name, module)| module.is_some() || name == IMAGE)
}

/// What a guest sent, as two texts: what it shares with other guests of its kernel, and what is its own.
pub(super) fn split(text: &str) -> (String, String) {
    let (kernel, mappings) = text.split_once(MAPPINGS).unwrap_or((text, ""));
    let (own, shared): (Vec<_>, Vec<_>) = kernel.split_inclusive('\n').partition(|line| is_of_guest(line));
    let place = own.iter().find(|line| line.trim_end().ends_with(IMAGE)).copied().unwrap_or_default();
    (place.to_owned() + &shared.concat(), own.concat() + MAPPINGS + mappings)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place<'a> {
    pub name: &'a str,
    /// The kernel module.
    pub module: Option<&'a str>,
    /// The file of a program.
    pub program: Option<&'a str>,
}

/// All that is known of a guest's addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Symbols {
    /// By address.
    kernel: BTreeMap<u64, (String, Option<String>)>,
    /// Executable mappings of processes, by their first address.
    mappings: BTreeMap<u64, Mapping>,
    files: BTreeMap<String, File>,
}

#[derive(Clone, Debug)]
struct Mapping {
    end: u64,
    /// Of its first byte in the file.
    offset: u64,
    path: String,
}

#[derive(Clone, Debug, Default)]
struct File {
    /// Its last name.
    name: String,
    segments: Vec<elf::Segment>,
    /// By address in the file.
    functions: BTreeMap<u64, elf::Function>,
}

impl Symbols {
    /// Reads the two parts of what the agent sends ([`split`]): functions of /proc/kallsyms, and the executable lines of each
    /// /proc/PID/maps. `program` is the file of the guest's /init on the host.
    pub(super) fn parse((shared, own): (&str, &str), program: &Path) -> Self {
        let (kernel, mappings) = own.split_once(MAPPINGS).unwrap_or((own, ""));
        let mut symbols = Self { kernel: kernel_functions(shared, kernel), ..Self::default() };
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
        let (name, module) = match self.kernel.range(..=address).next_back() {
            Some((begin, (name, module))) if address - begin < LONGEST => (name.as_str(), module.as_deref()),
            _ => (UNKNOWN, None),
        };
        Place { name, module, program: None }
    }

    fn of_program(&self, address: u64) -> Place<'_> {
        let unknown = Place { name: PROGRAMS, module: None, program: None };
        let Some((begin, mapping)) = self.mappings.range(..=address).next_back() else { return unknown };
        let Some(file) = self.files.get(&mapping.path).filter(|_| address < mapping.end) else { return unknown };
        let at = address - begin + mapping.offset;
        let name = file.function(at).unwrap_or(PROGRAMS);
        Place { name, module: None, program: Some(&file.name) }
    }
}

impl File {
    fn function(&self, offset: u64) -> Option<&str> {
        let segment = self.segments.iter().find(|segment| segment.holds(offset))?;
        let address = offset - segment.offset + segment.address;
        let (begin, function) = self.functions.range(..=address).next_back()?;
        // A library without its symbol table exports few functions; what lies between is none of them.
        let within = function.length == 0 || address - begin < function.length;
        within.then_some(function.name.as_str())
    }
}

/// The functions of a guest whose image may lie elsewhere than that of the guest that the shared part is from.
fn kernel_functions(shared: &str, own: &str) -> BTreeMap<u64, (String, Option<String>)> {
    let place = |text: &str| {
        let mut functions = text.lines().filter_map(kernel_function);
        let (address, ..) = functions.find(|(_, name, module)| *name == IMAGE && module.is_none())?;
        Some(address)
    };
    // If the place of one of the images is not known, its functions are not known.
    let moved = place(own).zip(place(shared)).map(|(own, shared)| own.wrapping_sub(shared));
    let shared = moved.into_iter().flat_map(|moved| {
        let shared = shared.lines().filter_map(kernel_function);
        shared.map(move |(address, name, module)| (address.wrapping_add(moved), name, module))
    });
    let mut functions: BTreeMap<u64, (String, Option<String>)> = BTreeMap::new();
    for (address, name, module) in shared.chain(own.lines().filter_map(kernel_function)) {
        let module = || module.map(str::to_owned);
        // Of two names of one address the first in the alphabet, so that it does not depend on the order; last the marks of
        // sections, which are no functions.
        let mark = |name: &str| MARKS.iter().any(|end| name.ends_with(end));
        let entry = functions.entry(address).or_insert_with(|| (name.to_owned(), module()));
        if (mark(name), name) < (mark(&entry.0), entry.0.as_str()) {
            *entry = (name.to_owned(), module());
        }
    }
    functions
}

/// A line of kallsyms that names a function: `ADDRESS TYPE NAME [MODULE]`.
fn kernel_function(line: &str) -> Option<(u64, &str, Option<&str>)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let is_text = matches!(words.next()?, "t" | "T" | "w" | "W") && address >= KERNEL_BEGIN;
    let name = words.next().filter(|_| is_text)?;
    Some((address, name, words.next().map(|module| module.trim_matches(['[', ']']))))
}

/// A line of /proc/PID/maps: `BEGIN-END r-xp OFFSET DEVICE INODE PATH`.
fn mapping(line: &str) -> Option<(u64, Mapping)> {
    let mut words = line.split_whitespace();
    let (begin, end) = words.next()?.split_once('-')?;
    let [begin, end] = [begin, end].map(|address| u64::from_str_radix(address, 16).ok());
    words.next().filter(|permissions| permissions.contains('x'))?;
    let offset = u64::from_str_radix(words.next()?, 16).ok()?;
    let path = words.nth(2).unwrap_or_default().to_owned();
    Some((begin?, Mapping { end: end?, offset, path }))
}

/// A file of a guest, as far as the host has it at the same path.
fn file(path: &str, program: &Path) -> File {
    let own = path == "/init";
    let on_host = if own { program } else { Path::new(path) };
    let name = on_host.file_name().map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned());
    let image = fs::read(on_host).ok().and_then(|bytes| elf::functions(&bytes));
    let (segments, functions) = image.unwrap_or_default();
    let named = |function: elf::Function| {
        let name = format!("{:#}", demangle(&function.name));
        (function.address, elf::Function { name, ..function })
    };
    let functions = functions.into_iter().map(named).collect();
    File { name, segments, functions }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &str = "ffffffff81000000 T _text\nffffffff81000100 t alpha\nffffffff81000180 t mappings\nffffffff81000200 D data\n\
                            ffffffffc0001000 t beta\t[brd]\nffffffff81000100 t zeta\n0000000000000000 A nothing\n";

    #[test]
    fn kernel_addresses_have_functions_and_modules() {
        let symbols = Symbols::parse(("", KALLSYMS), Path::new("/none"));
        let kernel = |address| (symbols.of(address).name, symbols.of(address).module);
        assert_eq!(kernel(0xffff_ffff_8100_0104), ("alpha", None));
        assert_eq!(kernel(0xffff_ffff_c000_1004), ("beta", Some("brd")));
        assert_eq!(kernel(1 << 63), (UNKNOWN, None));
        assert_eq!(kernel(0xffff_ffff_8110_0000), (UNKNOWN, None), "far behind the last function");
        assert_eq!(symbols.of(0x40_0000).name, PROGRAMS);
        assert!(Symbols::default().is_empty() && !symbols.is_empty());
    }

    #[test]
    fn a_kernel_that_lies_elsewhere_has_the_same_functions() {
        let (shared, own) = split(&format!("{KALLSYMS}{MAPPINGS}of one\n"));
        assert_eq!(own, format!("ffffffff81000000 T _text\nffffffffc0001000 t beta\t[brd]\n{MAPPINGS}of one\n"));
        let other = format!("ffffffff92000000 T _text\nffffffffc0000000 t beta\t[brd]\n{MAPPINGS}");
        assert!(other.split(MAPPINGS).next().unwrap().lines().all(is_of_guest));
        let symbols = Symbols::parse((&shared, &other), Path::new("/none"));
        assert_eq!(symbols.of(0xffff_ffff_9200_0104).name, "alpha");
        assert_eq!(symbols.of(0xffff_ffff_c000_0004).module, Some("brd"));
    }

    #[inline(never)]
    fn a_function_to_find() -> u64 {
        std::hint::black_box(17)
    }

    #[test]
    fn addresses_of_programs_have_functions_of_their_files() {
        a_function_to_find();
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let own = std::env::current_exe().unwrap();
        let text = format!("{KALLSYMS}{MAPPINGS}{}", maps.replace(own.to_str().unwrap(), "/init"));
        let symbols = Symbols::parse(("", &text), &own);
        let place = symbols.of(a_function_to_find as *const () as usize as u64);
        assert!(place.name.ends_with("a_function_to_find"), "{place:?}");
        assert_eq!(place.program, own.file_name().unwrap().to_str());
    }
}
