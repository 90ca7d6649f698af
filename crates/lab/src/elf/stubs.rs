//! Stubs through which a program calls functions of libraries (the procedure linkage table). No symbol names them, but each jumps to the
//! address in a word of memory, and a relocation says which function's address the word gets.

use super::Function;
use object::elf::EM_X86_64;
use object::read::elf::{ElfFile64, FileHeader, SectionHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, Relocation, RelocationTarget};
use std::collections::HashMap;

/// Ends the names of stubs, as in other tools.
pub(crate) const SUFFIX: &str = "@plt";
/// Sections of stubs, as linkers make them.
const SECTIONS: [&str; 4] = [".plt", ".plt.sec", ".plt.got", ".plt.bnd"];
/// Length of a stub where the section does not say it.
const USUAL: u64 = 16;
/// `jmp *DISTANCE(%rip)`: the distance is from the next instruction.
const JUMP: [u8; 2] = [0xff, 0x25];

/// Those of a file for x86-64, with the names of the functions that they call. `functions` are the file's own, of which it chooses some when
/// it is loaded (ifunc). Their names have no more bytes than are left.
pub(super) fn stubs(file: &ElfFile64<'_, Endianness>, functions: &[Function], left: &mut usize) -> Vec<Function> {
    let endian = file.endian();
    if file.elf_header().e_machine(endian) != EM_X86_64 {
        return Vec::new();
    }
    let names = words(file, functions);
    let mut stubs = Vec::new();
    for section in SECTIONS.iter().filter_map(|name| file.section_by_name(name)) {
        let length = Some(section.elf_section_header().sh_entsize(endian)).filter(|it| (8..=64).contains(it));
        let bytes = section.data().unwrap_or_default();
        stubs.extend(super::within(left, in_section(section.address(), bytes, length.unwrap_or(USUAL), &names)));
    }
    stubs
}

/// The words that get the address of a function when the file is loaded, and its name.
fn words<'a>(file: &ElfFile64<'a, Endianness>, functions: &'a [Function]) -> HashMap<u64, &'a str> {
    let Some((relocations, symbols)) = file.dynamic_relocations().zip(file.dynamic_symbol_table()) else {
        return HashMap::new();
    };
    let chosen: HashMap<u64, &str> = functions.iter().map(|it| (it.address, it.name.as_str())).collect();
    let named = |(word, relocation): (u64, Relocation)| {
        let name = match relocation.target() {
            RelocationTarget::Symbol(symbol) => symbols.symbol_by_index(symbol).ok()?.name().ok()?,
            _ => *chosen.get(&relocation.addend().cast_unsigned())?,
        };
        Some((word, name)).filter(|(_, name)| !name.is_empty())
    };
    relocations.filter_map(named).collect()
}

/// Each stub that jumps to the address in a known word.
fn in_section(begin: u64, bytes: &[u8], length: u64, names: &HashMap<u64, &str>) -> impl Iterator<Item = Function> {
    let step = usize::try_from(length).unwrap_or(usize::MAX).max(1);
    bytes.chunks_exact(step).zip(0..).filter_map(move |(stub, number)| {
        let address = begin.checked_add(length.checked_mul(number)?)?;
        let name = names.get(&word_of(address, stub)?)?;
        Some(Function { address, length, name: format!("{name}{SUFFIX}") })
    })
}

/// The word whose content a stub jumps to.
fn word_of(address: u64, stub: &[u8]) -> Option<u64> {
    let at = stub.windows(JUMP.len()).position(|bytes| bytes == JUMP)?;
    let behind = at + JUMP.len();
    let distance = i32::from_le_bytes(*stub.get(behind..)?.first_chunk()?);
    let next = address.checked_add(u64::try_from(behind + size_of::<i32>()).ok()?)?;
    next.checked_add_signed(distance.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stub_is_named_by_the_word_that_it_jumps_through() {
        let names = [(0x4000, "send"), (0x4008, "free")].into();
        // endbr64; jmp *0x2ff6(%rip); a stub that jumps through another word; jmp *-0x28(%rip) … in front of the word.
        let mut bytes = vec![0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0xf6, 0x2f, 0, 0, 0x66, 0x0f, 0x1f, 0x44, 0, 0];
        bytes.extend([0xff, 0x25, 0, 0, 0, 0, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90]);
        bytes.extend([0xff, 0x25]);
        let in_section = |begin, bytes: &[u8], length| in_section(begin, bytes, length, &names).collect::<Vec<_>>();
        let found = in_section(0x1000, &bytes, 16);
        assert_eq!(found, [Function { address: 0x1000, length: 16, name: "send@plt".to_owned() }]);
        let before = in_section(0x5000, &[0xff, 0x25, 0x02, 0xf0, 0xff, 0xff, 0x66, 0x90], 8);
        assert_eq!(before, [Function { address: 0x5000, length: 8, name: "free@plt".to_owned() }]);
        assert_eq!(in_section(u64::MAX - 3, &bytes, 16), []);
    }

    #[test]
    fn the_c_library_calls_its_own_functions_through_stubs() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let library = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).find(|it| it.contains("/libc.so"));
        // A test that is linked statically has none.
        let Some(library) = library.filter(|_| cfg!(target_arch = "x86_64")) else { return };
        let (_, functions) = super::super::functions(&std::fs::read(library).unwrap()).unwrap();
        assert!(functions.iter().any(|it| it.name.ends_with(SUFFIX) && it.length >= 8), "{library}");
    }
}
