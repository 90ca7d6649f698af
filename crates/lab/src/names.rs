//! Names of addresses: functions of the kernel by its kallsyms, functions of programs by the ELF files that are mapped.

use crate::bounded_file::{self, LONGEST_FILE};
use cpp_demangle::DemangleOptions;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSegment, ObjectSymbol, SymbolKind};
use rustc_demangle::try_demangle;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Addresses below belong to programs.
pub const KERNEL_BEGIN: u64 = 1 << 47;
/// Kernel addresses without a symbol: entry trampolines, generated code.
pub const UNKNOWN: &str = "[kernel code without a symbol]";
/// Ends of the names that mark where a section begins or ends.
const MARKS: [&str; 4] = ["text_start", "text_end", "_stext", "_etext"];
/// No function is longer: what lies farther behind a symbol is none of it.
const LONGEST: u64 = 64 << 10;

/// The functions of a kernel, by address.
#[derive(Clone, Debug, Default)]
pub struct KernelFunctions(BTreeMap<u64, KernelFunction>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelFunction {
    pub name: String,
    /// The kernel module.
    pub module: Option<String>,
}

impl KernelFunctions {
    /// Of the running kernel. Empty where the kernel does not show addresses (kptr_restrict).
    pub(crate) fn of_this_kernel() -> Self {
        let text = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        text.lines().filter_map(kernel_function).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The function at an address, and where it begins.
    pub fn of(&self, address: u64) -> Option<(u64, &KernelFunction)> {
        let (begin, function) = self.0.range(..=address).next_back()?;
        (address - begin < LONGEST).then_some((*begin, function))
    }
}

impl<'a> FromIterator<(u64, &'a str, Option<&'a str>)> for KernelFunctions {
    fn from_iter<I: IntoIterator<Item = (u64, &'a str, Option<&'a str>)>>(lines: I) -> Self {
        let mut functions = BTreeMap::new();
        for (address, name, module) in lines {
            let function = || KernelFunction { name: name.to_owned(), module: module.map(str::to_owned) };
            // Of two names of one address the first in the alphabet, so that it does not depend on the order; last the marks of
            // sections, which are no functions.
            let mark = |name: &str| MARKS.iter().any(|end| name.ends_with(end));
            let entry = functions.entry(address).or_insert_with(function);
            if (mark(name), name) < (mark(&entry.name), entry.name.as_str()) {
                *entry = function();
            }
        }
        Self(functions)
    }
}

/// A line of kallsyms that names a function: `ADDRESS TYPE NAME [MODULE]`.
pub fn kernel_function(line: &str) -> Option<(u64, &str, Option<&str>)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let is_text = matches!(words.next()?, "t" | "T" | "w" | "W") && address >= KERNEL_BEGIN;
    // Room in front of a function that the kernel may patch is none.
    let name = words.next().filter(|name| is_text && !name.starts_with("__pfx_"))?;
    Some((address, name, words.next().map(|module| module.trim_matches(['[', ']']))))
}

/// A part of a process's memory that it may execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub end: u64,
    /// Of its first byte in the file.
    pub offset: u64,
    /// The number of the file in its file system; 0 for memory without a file.
    pub(crate) inode: u64,
    /// Empty for memory without a file.
    pub path: String,
}

/// A line of /proc/PID/maps: `BEGIN-END r-xp OFFSET DEVICE INODE PATH`; `None` if it is not executable.
pub fn mapping(line: &str) -> Option<(u64, Mapping)> {
    let mut rest = line;
    let mut word = || {
        let (word, behind) = rest.trim_start().split_once(' ').unwrap_or((rest.trim_start(), ""));
        rest = behind;
        word
    };
    let (begin, end) = word().split_once('-')?;
    let [begin, end] = [begin, end].map(|address| u64::from_str_radix(address, 16).ok());
    Some(word()).filter(|permissions| permissions.contains('x'))?;
    let offset = u64::from_str_radix(word(), 16).ok()?;
    let _device = word();
    let inode = word().parse().ok()?;
    Some((begin?, Mapping { end: end?, offset, inode, path: rest.trim_start().to_owned() }))
}

/// A program or a library.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its file's name.
    pub name: String,
    segments: Vec<Segment>,
    /// By address in the file.
    functions: BTreeMap<u64, Function>,
}

impl Program {
    /// What is known of the file at `path`; nothing but its name if it cannot be read.
    pub fn read(path: &Path) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Self::of(name, &bounded_file::read(path, LONGEST_FILE).unwrap_or_default())
    }

    pub(crate) fn of(name: String, bytes: &[u8]) -> Self {
        let (segments, functions) = functions(bytes).unwrap_or_default();
        // These mark sections: what follows without a symbol, such as stubs of calls to libraries, is none of them.
        let is_mark = |function: &Function| function.length == 0 && matches!(&*function.name, "_init" | "_fini");
        let mut by_address: BTreeMap<u64, Function> = BTreeMap::new();
        for function in functions.into_iter().filter(|function| !is_mark(function)) {
            // Of several names the shortest: others are versions and aliases of it.
            let key = |function: &Function| (function.name.len(), function.name.clone());
            let known = by_address.get(&function.address).is_some_and(|known| key(known) <= key(&function));
            if !known {
                by_address.insert(function.address, function);
            }
        }
        for function in by_address.values_mut() {
            function.name = demangled(&function.name);
        }
        Self { name, segments, functions: by_address }
    }

    /// The function at a byte of the file, and its address in the file.
    pub fn function(&self, offset: u64) -> Option<(&str, u64)> {
        let address = self.address(offset)?;
        let (begin, function) = self.functions.range(..=address).next_back()?;
        // A library without its symbol table exports few functions; what lies between is none of them.
        let within = function.length == 0 || address - begin < function.length;
        within.then_some((function.name.as_str(), *begin))
    }

    /// The address in the file at a byte of it.
    pub fn address(&self, offset: u64) -> Option<u64> {
        let segment = self.segments.iter().find(|segment| segment.holds(offset))?;
        (offset - segment.offset).checked_add(segment.address)
    }
}

/// A part of a file that is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Its place in the file, and its length there.
    pub offset: u64,
    pub length: u64,
    pub address: u64,
}

impl Segment {
    /// Whether it contains this byte of the file.
    pub(crate) fn holds(&self, offset: u64) -> bool {
        offset.checked_sub(self.offset).is_some_and(|within| within < self.length)
    }

    /// Whether a mapping from this byte of the file on belongs to it: mappings begin with a page.
    pub(crate) fn holds_page(&self, offset: u64) -> bool {
        const PAGE: u64 = 4096;
        offset >= self.offset & !(PAGE - 1) && offset < self.offset.saturating_add(self.length)
    }
}

/// A function of a program or library.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Function {
    address: u64,
    /// 0 if it is not known.
    length: u64,
    name: String,
}

/// The loaded segments of a program or library, and its functions; `None` if it is something else.
fn functions(bytes: &[u8]) -> Option<(Vec<Segment>, Vec<Function>)> {
    let file = ElfFile64::<Endianness>::parse(bytes).ok()?;
    let symbols = file.symbols().chain(file.dynamic_symbols()).filter(|symbol| symbol.kind() == SymbolKind::Text);
    let named = symbols.filter(|symbol| symbol.address() > 0);
    let functions = named.filter_map(|symbol| {
        let (address, length) = (symbol.address(), symbol.size());
        let name = symbol.name().ok().filter(|name| !name.is_empty())?.to_owned();
        Some(Function { address, length, name })
    });
    Some((segments(&file), within(MOST_NAMES, functions)))
}

/// Bytes of all names of a file: many symbols may refer to one long name.
const MOST_NAMES: usize = 256 << 20;

/// The first functions, which have no more bytes than are left.
fn within(mut left: usize, functions: impl IntoIterator<Item = Function>) -> Vec<Function> {
    let fits = |function: &Function| {
        let rest = left.checked_sub(size_of::<Function>() + function.name.len());
        rest.map(|rest| left = rest).is_some()
    };
    functions.into_iter().take_while(fits).collect()
}

pub(crate) fn segments(file: &ElfFile64<'_, Endianness>) -> Vec<Segment> {
    let segments = file.segments().map(|segment| {
        let (offset, length) = segment.file_range();
        Segment { offset, length, address: segment.address() }
    });
    segments.collect()
}

/// The name as its programmer wrote it, in Rust or C++, and cut.
fn demangled(name: &str) -> String {
    let mut written = Name::default();
    let whole = if let Ok(rust) = try_demangle(name) {
        write!(written, "{rust:#}").is_ok()
    } else {
        let of_cpp =
            cpp_demangle::Symbol::new(name).ok().filter(|_| name.starts_with("_Z") && name.len() < LONGEST_NAME);
        of_cpp.is_some_and(|symbol| symbol.structured_demangle(&mut written, &DemangleOptions::new()).is_ok())
    };
    if whole { written.0 } else { name.chars().take(LONGEST_NAME).collect() }
}

/// Bytes of a name: a few that are mangled may stand for more than fit in memory.
const LONGEST_NAME: usize = 16 << 10;

/// A name while it is written.
#[derive(Default)]
struct Name(String);

impl Write for Name {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len() + text.len() > LONGEST_NAME {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_they_were_written() {
        assert_eq!(demangled("_ZN2OplsEi"), "Op::operator<<(int)");
        assert_eq!(demangled("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(demangled("vfs_read"), "vfs_read");
        assert_eq!(demangled("_Z"), "_Z");
        // Each of its types stands for two of the one before: 2^40 letters in all.
        let mut bomb = "_Z1fSt4pairIiiE".to_owned();
        bomb.extend((0..40).map(|number| match number {
            0 => "S_IS0_S0_E".to_owned(),
            _ => format!("S_IS{}_S{0}_E", char::from_digit(number, 36).unwrap_or('z').to_ascii_uppercase()),
        }));
        assert!(demangled(&bomb).len() <= LONGEST_NAME);
        assert_eq!(demangled(&"x".repeat(1 << 20)).len(), LONGEST_NAME);
    }

    const KALLSYMS: &str = "ffffffff81000100 t alpha\nffffffff810000f0 t __pfx_alpha\nffffffff81000200 D data\n\
                            ffffffffc0001000 t beta\t[brd]\nffffffff81000100 t zeta\n0000000000000000 A nothing\n";

    #[test]
    fn kernel_addresses_have_functions_and_modules() {
        let functions: KernelFunctions = KALLSYMS.lines().filter_map(kernel_function).collect();
        let of = |address| {
            functions.of(address).map(|(begin, it)| (address - begin, it.name.as_str(), it.module.as_deref()))
        };
        assert_eq!(of(0xffff_ffff_8100_0104), Some((4, "alpha", None)));
        assert_eq!(of(0xffff_ffff_c000_1004), Some((4, "beta", Some("brd"))));
        assert_eq!(of(0xffff_ffff_8100_00f8), None, "room in front of alpha");
        assert_eq!(of(0xffff_ffff_8110_0000), None, "far behind the last function");
        assert!(KernelFunctions::default().is_empty() && !functions.is_empty());
    }

    #[test]
    fn paths_of_mappings_may_contain_spaces() {
        let line = "7f0000001000-7f0000003000 r-xp 00000500 fe:00 12   /opt/a b/c.so (deleted)";
        let path = "/opt/a b/c.so (deleted)".to_owned();
        let expected = Mapping { end: 0x7f00_0000_3000, offset: 0x500, inode: 12, path };
        assert_eq!(mapping(line), Some((0x7f00_0000_1000, expected)));
        assert_eq!(mapping("7f0000001000-7f0000003000 rw-p 00000500 fe:00 12 /a"), None);
        let anonymous = mapping("7f0000001000-7f0000003000 r-xp 00000000 00:00 0").unwrap();
        assert_eq!(anonymous.1.path, "");
    }

    #[test]
    fn a_function_whose_name_is_empty_is_none() {
        let mut this = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let file = ElfFile64::<Endianness>::parse(&*this).unwrap();
        let (begin, length) = object::ObjectSection::file_range(&file.section_by_name(".strtab").unwrap()).unwrap();
        let [begin, length] = [begin, length].map(|it| usize::try_from(it).unwrap());
        this[begin..begin + length].fill(0);
        assert!(functions(&this).unwrap().1.iter().all(|function| !function.name.is_empty()));
    }

    #[test]
    fn names_of_a_file_have_a_bound() {
        let function = |name: &str| Function { address: 1, length: 1, name: name.to_owned() };
        assert_eq!(within(2 * size_of::<Function>() + 3, ["ab", "c", "d"].map(function)).len(), 2);
    }
}
