//! What is read of an ELF file for guests: the libraries of a program, and the description of a kernel module.

use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, EM_X86_64, FileHeader64};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection};

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
