//! Where the kernel's structures have their members, and its variables of each CPU: by its description of its own types (BTF, the format
//! in the kernel's Documentation/bpf/btf.rst).

use std::collections::HashMap;
use std::ffi::CStr;

/// Where a member of a structure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Bytes before it.
    pub(super) byte: u32,
    /// Its lowest bit in the byte.
    pub(super) bit: u32,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct KernelTypes {
    /// By structure and member.
    members: HashMap<(String, String), Place>,
    /// Places in the memory of a CPU.
    of_each_cpu: HashMap<String, u32>,
}

const VARIABLES_OF_EACH_CPU: &str = ".data..percpu";
const STRUCTURE: u32 = 4;
const VARIABLE: u32 = 14;
const SECTION: u32 = 15;

impl KernelTypes {
    /// Finds the members of these structures of the running kernel, and these variables.
    ///
    /// # Errors
    /// When the kernel does not describe its types.
    pub(super) fn of_this_kernel(structures: &[&str], variables: &[&str]) -> Result<Self, String> {
        const TYPES: &str = "/sys/kernel/btf/vmlinux";
        let description = std::fs::read(TYPES).map_err(|error| format!("{TYPES}: {error}"))?;
        Self::find(&description, structures, variables).ok_or_else(|| format!("{TYPES} is damaged"))
    }

    /// The same of a description; `None` if it is damaged.
    fn find(description: &[u8], structures: &[&str], variables: &[&str]) -> Option<Self> {
        const HEADER: usize = 24;
        let head: Vec<u32> = words(description.get(..HEADER)?).collect();
        let &[_, header, types_at, types_length, strings_at, strings_length] = head.as_slice() else { return None };
        let part = |at: u32, length: u32| {
            let begin = usize::try_from(header.checked_add(at)?).ok()?;
            description.get(begin..begin.checked_add(usize::try_from(length).ok()?)?)
        };
        let (types, strings) = (part(types_at, types_length)?, part(strings_at, strings_length)?);
        let name = |at: u32| {
            let text = CStr::from_bytes_until_nul(strings.get(usize::try_from(at).ok()?..)?);
            text.ok()?.to_str().ok()
        };
        let (mut found, mut numbers) = (Self::default(), HashMap::new());
        let (mut rest, mut number) = (types, 0);
        // A description has a million words, and every measurement reads it: only those of the wanted types are taken apart.
        while let Some((&[a, b, c, d, e, f, g, h, ..], behind)) = rest.split_first_chunk::<12>() {
            let (named, info) = (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]));
            number += 1;
            let (count, kind) = (info & 0xffff, info >> 24 & 0x1f);
            let (own, next) = behind.split_at_checked(usize::try_from(4 * words_behind(kind, count)?).ok()?)?;
            rest = next;
            let own = || words(own).collect::<Vec<u32>>();
            match kind {
                STRUCTURE if name(named).is_some_and(|name| structures.contains(&name)) => {
                    // With the flag, the upper 8 bits have the width of a field of bits.
                    let mask = if info >> 31 == 1 { 0xff_ffff } else { u32::MAX };
                    for member in own().chunks_exact(3) {
                        let &[member, _, bits] = member else { continue };
                        let place = Place { byte: (bits & mask) / 8, bit: (bits & mask) % 8 };
                        found.members.entry((name(named)?.to_owned(), name(member)?.to_owned())).or_insert(place);
                    }
                }
                VARIABLE if name(named).is_some_and(|name| variables.contains(&name)) => {
                    numbers.insert(number, name(named)?.to_owned());
                }
                SECTION if name(named) == Some(VARIABLES_OF_EACH_CPU) => {
                    for variable in own().chunks_exact(3) {
                        let &[variable, at, _] = variable else { continue };
                        found.of_each_cpu.extend(numbers.get(&variable).map(|name| (name.clone(), at)));
                    }
                }
                _ => {}
            }
        }
        Some(found)
    }

    /// # Errors
    /// When the kernel has no such member.
    pub(super) fn member(&self, structure: &str, member: &str) -> Result<Place, String> {
        let found = self.members.get(&(structure.to_owned(), member.to_owned())).copied();
        found.ok_or_else(|| format!("the kernel's {structure} has no {member}"))
    }

    /// # Errors
    /// When the kernel has no such variable.
    pub(super) fn of_each_cpu(&self, variable: &str) -> Result<u32, String> {
        self.of_each_cpu.get(variable).copied().ok_or_else(|| format!("the kernel does not describe its {variable}"))
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks_exact(4).filter_map(|word| word.try_into().ok().map(u32::from_ne_bytes))
}

/// How many words follow the three of a type. `None` if the kind is unknown.
fn words_behind(kind: u32, count: u32) -> Option<u32> {
    Some(match kind {
        // Pointers, forward declarations, type definitions, qualifiers, functions, floats, tags of types.
        2 | 7..=12 | 16 | 18 => 0,
        // Integers, variables, tags of declarations.
        1 | VARIABLE | 17 => 1,
        // Arrays.
        3 => 3,
        // Enumerations, prototypes.
        6 | 13 => 2 * count,
        // Structures, unions, sections, enumerations of 64 bits.
        STRUCTURE | 5 | SECTION | 19 => 3 * count,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_variables_are_found_and_damage_is_noticed() {
        let strings = b"\0clock\0slept\0asleep\0this_clock\0.data..percpu\0";
        let at = |text: &str| {
            u32::try_from(strings.windows(text.len()).position(|window| window == text.as_bytes()).unwrap()).unwrap()
        };
        let types: Vec<u32> = [
            // An integer, a structure with a field of one bit, a variable, a section.
            vec![0, 1 << 24, 8, 64],
            vec![at("clock"), 1 << 31 | STRUCTURE << 24 | 2, 16, at("slept"), 1, 64, at("asleep"), 1, 1 << 24 | 130],
            vec![at("this_clock"), VARIABLE << 24, 2, 1],
            vec![at(".data..percpu"), SECTION << 24 | 1, 4096, 3, 320, 16],
        ]
        .concat();
        let bytes = u32::try_from(types.len() * 4).unwrap();
        let header = [0x0001_eb9f, 24, 0, bytes, bytes, u32::try_from(strings.len()).unwrap()];
        let mut description: Vec<u8> = header.iter().chain(&types).flat_map(|word| word.to_ne_bytes()).collect();
        description.extend(strings);
        let found = KernelTypes::find(&description, &["clock"], &["this_clock"]).unwrap();
        assert_eq!(found.member("clock", "slept"), Ok(Place { byte: 8, bit: 0 }));
        assert_eq!(found.member("clock", "asleep"), Ok(Place { byte: 16, bit: 2 }));
        assert_eq!(found.of_each_cpu("this_clock"), Ok(320));
        assert_eq!(found.member("clock", "name").unwrap_err(), "the kernel's clock has no name");
        assert!(found.of_each_cpu("clock").is_err());
        for length in 0..description.len() {
            let _ = KernelTypes::find(&description[..length], &["clock"], &["this_clock"]);
        }
        description[24 + 7] = 31;
        assert!(KernelTypes::find(&description, &["clock"], &["this_clock"]).is_none(), "an unknown kind");
    }
}
