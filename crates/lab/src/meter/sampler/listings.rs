//! The instructions of functions in which much was sampled.

use super::processes::{Place, Processes};
use crate::names::KernelFunctions;
use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter, Instruction};
use model::profile::{Function, Listing, Profile};
use std::collections::{BTreeMap, HashSet};

/// Fewer samples in a window say too little of single instructions.
const FEWEST_SAMPLES: u64 = 5;
/// Functions in a measurement: some 5 KB of the record each.
const MOST: usize = 48;
/// Longer functions are left out.
const MOST_LINES: usize = 3000;

/// What was listed already.
#[derive(Default)]
pub(super) struct Listings(HashSet<Function>);

impl Listings {
    /// The listings of functions that have none yet.
    pub(super) fn of(&mut self, profile: &Profile, lines: impl Fn(u32) -> Option<Vec<(u32, String)>>) -> Vec<Listing> {
        let mut samples: BTreeMap<u32, u64> = BTreeMap::new();
        for instruction in &profile.instructions {
            *samples.entry(instruction.function).or_default() += instruction.samples;
        }
        let mut often: Vec<(u64, u32)> = samples.into_iter().map(|(function, samples)| (samples, function)).collect();
        often.sort_unstable_by(|one, other| other.cmp(one));
        let mut listings = Vec::new();
        for (_, place) in often.into_iter().take_while(|(samples, _)| *samples >= FEWEST_SAMPLES) {
            // What has no name has no begin.
            let Some(function) = profile.function(place).filter(|function| function.begin > 0) else { continue };
            if self.0.len() < MOST && self.0.insert(function.clone()) {
                listings.extend(lines(place).map(|lines| Listing { function: place, lines }));
            }
        }
        listings
    }
}

pub fn of_program(place: Place, processes: &Processes) -> Option<Vec<(u32, String)>> {
    let (code, begin, program) = processes.code(place)?;
    lines(&code, begin, |target| program.at(target).map(str::to_owned)).filter(|lines| !lines.is_empty())
}

pub(super) fn of_kernel(code: &[u8], begin: u64, functions: &KernelFunctions) -> Option<Vec<(u32, String)>> {
    let name = |target| functions.of(target).filter(|(begin, _)| *begin == target).map(|(_, it)| it.name.clone());
    lines(code, begin, name).filter(|lines| !lines.is_empty())
}

/// The instructions, in the notation of the GNU assembler; where they jump within the function is told as they are. Padding at the end is
/// left out.
#[cfg(target_arch = "x86_64")]
fn lines(code: &[u8], begin: u64, name: impl Fn(u64) -> Option<String>) -> Option<Vec<(u32, String)>> {
    let mut decoder = Decoder::with_ip(64, code, begin, DecoderOptions::NONE);
    let mut formatter = GasFormatter::new();
    formatter.options_mut().set_uppercase_hex(false);
    formatter.options_mut().set_rip_relative_addresses(true);
    let (mut lines, mut instruction) = (Vec::new(), Instruction::default());
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let mut text = String::new();
        let target = instruction.near_branch_target();
        let within = target.checked_sub(begin).filter(|offset| target != 0 && *offset < code.len() as u64);
        let target = within.map(|offset| format!("+{offset:#x}")).or_else(|| name(target).filter(|_| target != 0));
        match target {
            Some(target) => {
                formatter.format_mnemonic(&instruction, &mut text);
                text = format!("{text} {target}");
            }
            None => formatter.format(&instruction, &mut text),
        }
        lines.push((u32::try_from(instruction.ip() - begin).ok()?, text));
        if lines.len() > MOST_LINES {
            return None;
        }
    }
    let is_padding =
        |text: &str| ["int3", "nop", "(bad)", "cs nop", "data16"].iter().any(|word| text.starts_with(word));
    while lines.last().is_some_and(|(_, text)| is_padding(text)) {
        lines.pop();
    }
    Some(lines)
}

#[cfg(not(target_arch = "x86_64"))]
fn lines(_: &[u8], _: u64, _: impl Fn(u64) -> Option<String>) -> Option<Vec<(u32, String)>> {
    None
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn instructions_have_their_places_and_padding_is_none() {
        // mov 8(%rdi),%rax; lock incl (%rax); ret; and padding.
        let code = [0x48, 0x8b, 0x47, 0x08, 0xf0, 0xff, 0x00, 0xc3, 0xcc, 0xcc, 0x90];
        let told = |code: &[u8]| {
            let name = |target| (target == 0xffff_ffff_8100_1005).then(|| "fdget".to_owned());
            lines(code, 0xffff_ffff_8100_0000, name).unwrap()
        };
        let expected = |lines: &[(u32, &str)]| {
            lines.iter().map(|(offset, text)| (*offset, (*text).to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(told(&code), expected(&[(0, "mov 8(%rdi),%rax"), (4, "lock incl (%rax)"), (7, "ret")]));
        // call 0x1005; jne to the begin; ret.
        let jumps = [0xe8, 0x00, 0x10, 0x00, 0x00, 0x75, 0xf9, 0xc3];
        assert_eq!(told(&jumps), expected(&[(0, "call fdget"), (5, "jne +0x0"), (7, "ret")]));
    }

    #[test]
    fn each_function_is_listed_once() {
        use model::profile::Instruction;
        let function = |name: &str| Function { name: name.to_owned(), kernel: true, begin: 64, ..Function::default() };
        let profile = Profile {
            functions: vec![function("seldom"), function("often")],
            instructions: vec![
                Instruction { function: 0, offset: 0, samples: 4 },
                Instruction { function: 1, offset: 0, samples: 3 },
                Instruction { function: 1, offset: 8, samples: 2 },
            ],
            ..Profile::default()
        };
        let mut listings = Listings::default();
        let lines = |place: u32| Some(vec![(place, "ret".to_owned())]);
        assert_eq!(listings.of(&profile, lines), [Listing { function: 1, lines: vec![(1, "ret".to_owned())] }]);
        assert_eq!(listings.of(&profile, lines), []);
    }
}
