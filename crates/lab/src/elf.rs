//! What is read of an ELF file: the libraries of a program, its functions, and the description of a kernel module.

mod unwind_tables;

use gimli::{BaseAddresses, DebugFrame, EhFrame, LittleEndian};
use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, EM_X86_64, FileHeader64};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};
use std::ops::Range;
use std::sync::Arc;

/// How a program or a library is linked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linking {
    /// The program that loads its libraries; none if it is linked statically, or a library.
    pub interpreter: Option<String>,
    /// File names of the libraries that it needs.
    pub needed: Vec<String>,
    /// Folders in which it looks for them first; may contain `$ORIGIN`.
    pub folders: Vec<String>,
}

/// How an ELF file for x86-64 is linked; `None` if it is something else.
pub fn linking(bytes: &[u8]) -> Option<Linking> {
    let file = parse(bytes)?;
    let endian = file.endian();
    let interpreter = file.elf_program_headers().iter().find_map(|header| header.interpreter(endian, bytes).ok()?);
    let mut linking = Linking { interpreter: interpreter.map(text), ..Linking::default() };
    let sections = file.elf_section_table();
    if let Some((entries, strings)) = sections.dynamic(endian, bytes).ok()? {
        let strings = sections.strings(endian, bytes, strings).ok()?;
        for entry in entries {
            use object::read::elf::Dyn;
            let value = || entry.string(endian, strings).ok().map(text);
            match entry.tag(endian) {
                DT_NEEDED => linking.needed.push(value()?),
                DT_RUNPATH | DT_RPATH => {
                    linking.folders.extend(value()?.split(':').filter(|folder| !folder.is_empty()).map(str::to_owned));
                }
                _ => {}
            }
        }
    }
    Some(linking)
}

/// The keys and values that describe a kernel module; `None` if the file is not one for x86-64.
pub fn module_information(bytes: &[u8]) -> Option<Vec<(String, String)>> {
    let file = parse(bytes)?;
    let information = file.section_by_name(".modinfo")?.data().ok()?;
    let pairs = information.split(|byte| *byte == 0).filter_map(|pair| {
        let pair = text(pair);
        let (key, value) = pair.split_once('=')?;
        Some((key.to_owned(), value.to_owned()))
    });
    Some(pairs.collect())
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
pub(crate) struct Function {
    pub address: u64,
    /// 0 if it is not known.
    pub length: u64,
    pub name: String,
}

/// The loaded segments of a program or library, and its functions; `None` if it is something else.
pub(crate) fn functions(bytes: &[u8]) -> Option<(Vec<Segment>, Vec<Function>)> {
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

/// What unwinding the stacks of a file's functions takes.
pub(crate) struct Unwinding {
    pub(crate) segments: Vec<Segment>,
    pub(crate) text: Option<Section>,
    pub(crate) eh_frame: Option<Section>,
    pub(crate) eh_frame_hdr: Option<Section>,
    pub(crate) debug_frame: Option<Section>,
    /// Whether it has tables that are not followed.
    pub(crate) refused: bool,
}

/// A section, and where its file wants it.
pub(crate) struct Section {
    pub(crate) addresses: Range<u64>,
    pub(crate) bytes: Arc<[u8]>,
}

impl Unwinding {
    /// Its bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        let sections = [&self.text, &self.eh_frame, &self.eh_frame_hdr, &self.debug_frame];
        sections.into_iter().flatten().map(|section| section.bytes.len()).sum()
    }
}

/// Of a program or library; `None` if it is something else.
pub(crate) fn unwinding(bytes: &[u8]) -> Option<Unwinding> {
    let file = ElfFile64::<Endianness>::parse(bytes).ok()?;
    let section = |name: &str| {
        let section = file.section_by_name(name)?;
        let bytes = section.data().ok()?.into();
        Some(Section { addresses: section.address()..section.address().checked_add(section.size())?, bytes })
    };
    let [text, eh_frame, eh_frame_hdr, debug_frame] =
        [".text", ".eh_frame", ".eh_frame_hdr", ".debug_frame"].map(section);
    let begin = |section: &Option<Section>| section.as_ref().map_or(0, |section| section.addresses.start);
    let bases = BaseAddresses::default().set_eh_frame(begin(&eh_frame)).set_eh_frame_hdr(begin(&eh_frame_hdr));
    let bases = bases.set_text(begin(&text)).set_got(0);
    let offsets = eh_frame.as_ref().and_then(|it| {
        let mut section = EhFrame::new(&it.bytes, LittleEndian);
        section.set_address_size(8);
        unwind_tables::checked(&section, &bases)
    });
    let checked_debug_frame = debug_frame.as_ref().is_some_and(|it| {
        let mut section = DebugFrame::new(&it.bytes, LittleEndian);
        section.set_address_size(8);
        unwind_tables::checked(&section, &bases).is_some()
    });
    let refused = eh_frame.is_some() && offsets.is_none() || debug_frame.is_some() && !checked_debug_frame;
    // Without the table framehop makes one of the descriptions that the section lists.
    let leads =
        |it: &Section| offsets.as_ref().is_some_and(|offsets| unwind_tables::leads_to(&it.bytes, offsets, &bases));
    Some(Unwinding {
        segments: segments(&file),
        text,
        eh_frame_hdr: eh_frame_hdr.filter(leads),
        eh_frame: eh_frame.filter(|_| offsets.is_some()),
        debug_frame: debug_frame.filter(|_| checked_debug_frame),
        refused,
    })
}

fn segments(file: &ElfFile64<'_, Endianness>) -> Vec<Segment> {
    let segments = file.segments().map(|segment| {
        let (offset, length) = segment.file_range();
        Segment { offset, length, address: segment.address() }
    });
    segments.collect()
}

/// Whether the file contains debug information.
pub fn has_debug_information(bytes: &[u8]) -> bool {
    let names = |file: ElfFile64<'_>| file.sections().any(|section| section.name() == Ok(".debug_info"));
    parse(bytes).is_some_and(names)
}

fn parse(bytes: &[u8]) -> Option<ElfFile64<'_, Endianness>> {
    let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
    (header.e_machine(header.endian().ok()?) == EM_X86_64).then_some(())?;
    ElfFile64::parse(bytes).ok()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_linked_with_the_c_library() {
        let this = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let linking = linking(&this).unwrap();
        assert!(linking.interpreter.unwrap().contains("ld-"));
        assert!(linking.needed.iter().any(|name| name.starts_with("libc.so")));
        assert_eq!(module_information(&this), None);
    }

    #[test]
    fn only_descriptions_that_were_checked_are_followed() {
        let this = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let found = unwinding(&this).unwrap();
        assert!(!found.refused && found.eh_frame.is_some() && found.eh_frame_hdr.is_some());
        let at = |name: &str| {
            let file = ElfFile64::<Endianness>::parse(&*this).unwrap();
            usize::try_from(file.section_by_name(name).unwrap().file_range().unwrap().0).unwrap()
        };
        // The first row of the table refers to what no entry of the section lists.
        let mut changed = this.clone();
        changed[at(".eh_frame_hdr") + 16] ^= 1;
        let found = unwinding(&changed).unwrap();
        assert!(!found.refused && found.eh_frame.is_some() && found.eh_frame_hdr.is_none());
        // The descriptions would lie in front of the section.
        let mut changed = this.clone();
        changed[at(".eh_frame_hdr") + 7] = 0x7f;
        let found = unwinding(&changed).unwrap();
        assert!(!found.refused && found.eh_frame.is_some() && found.eh_frame_hdr.is_none());
        // An entry that is longer than its section.
        let mut changed = this.clone();
        changed[at(".eh_frame") + 2] = 0xff;
        let found = unwinding(&changed).unwrap();
        assert!(found.refused && found.eh_frame.is_none() && found.eh_frame_hdr.is_none());
    }

    #[test]
    fn a_function_whose_name_is_empty_is_none() {
        let mut this = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let file = ElfFile64::<Endianness>::parse(&*this).unwrap();
        let (begin, length) = file.section_by_name(".strtab").unwrap().file_range().unwrap();
        let [begin, length] = [begin, length].map(|it| usize::try_from(it).unwrap());
        this[begin..begin + length].fill(0);
        assert!(functions(&this).unwrap().1.iter().all(|function| !function.name.is_empty()));
    }

    #[test]
    fn names_of_a_file_have_a_bound() {
        let function = |name: &str| Function { address: 1, length: 1, name: name.to_owned() };
        assert_eq!(within(2 * size_of::<Function>() + 3, ["ab", "c", "d"].map(function)).len(), 2);
    }

    #[test]
    fn damaged_files_are_refused() {
        let this = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(linking(&[]), None);
        assert_eq!(linking(&this[..100]), None);
        assert_eq!(linking(b"#!/bin/sh\n"), None);
        let mut other = this;
        // e_machine: ARM.
        other[18] = 40;
        assert_eq!(linking(&other), None);
    }
}
