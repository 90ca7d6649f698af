//! A profile for other programs: flame graphs and pprof.

use model::finding::RunFinding;
use model::profile::StackFinding;
use std::collections::HashMap;

/// Both formats have whole numbers.
const PER: f64 = 1000.0;
const UNIT: &str = "per 1000 I/Os";

/// A file.
pub struct ProfileFile {
    pub name: &'static str,
    pub contents: Vec<u8>,
}

/// Nothing without a profile. Of several phases, the stacks of each begin with its jobs.
pub fn profile_files(finding: &RunFinding) -> Vec<ProfileFile> {
    let several = finding.phases.len() > 1;
    let mut stacks: Vec<StackFinding> = Vec::new();
    for phase in &finding.phases {
        let begin = if several { format!("{};", phase.jobs.join("+").replace(';', ":")) } else { String::new() };
        let of_phase = phase.stacks.iter().map(|stack| StackFinding { calls: begin.clone() + &stack.calls, ..*stack });
        stacks.extend(of_phase);
    }
    if stacks.is_empty() {
        return Vec::new();
    }
    vec![
        ProfileFile { name: "profile.folded", contents: folded(&stacks).into_bytes() },
        ProfileFile { name: "profile.pb", contents: pprof(&stacks) },
    ]
}

fn whole(stack: &StackFinding) -> u64 {
    let value = (stack.cycles_per_io * PER).round();
    // Neither negative nor beyond what fits, which a number of a damaged record may be.
    if value.is_finite() && value > 0.0 { value.min(1e18) as u64 } else { 0 }
}

/// A line for each stack: its calls, separated by semicolons, and its cycles in 1000 I/Os.
fn folded(stacks: &[StackFinding]) -> String {
    let lines = stacks.iter().map(|stack| format!("{} {}\n", stack.calls.replace(['\n', '\r'], " "), whole(stack)));
    lines.collect()
}

/// Google's profile.proto (github.com/google/pprof, proto/profile.proto), without compression, which its readers accept.
fn pprof(stacks: &[StackFinding]) -> Vec<u8> {
    // Fields of the message Profile.
    const SAMPLE_TYPE: u64 = 1;
    const SAMPLE: u64 = 2;
    const LOCATION: u64 = 4;
    const FUNCTION: u64 = 5;
    const STRING: u64 = 6;
    let mut strings = Strings::default();
    let mut names: Vec<u64> = Vec::new();
    let mut locations: HashMap<&str, u64> = HashMap::new();
    strings.place("");
    let mut message = Message::default();
    message.nested(SAMPLE_TYPE, |kind| {
        kind.number(1, strings.place("cycles"));
        kind.number(2, strings.place(UNIT));
    });
    for stack in stacks {
        let mut calls = Vec::new();
        // The innermost first.
        for call in stack.calls.rsplit(';') {
            let next = locations.len() as u64 + 1;
            let location = *locations.entry(call).or_insert_with(|| {
                names.push(strings.place(call));
                next
            });
            calls.push(location);
        }
        message.nested(SAMPLE, |sample| {
            calls.iter().for_each(|location| sample.number(1, *location));
            sample.number(2, whole(stack));
        });
    }
    for (id, name) in (1..).zip(names) {
        message.nested(LOCATION, |location| {
            location.number(1, id);
            location.nested(4, |line| line.number(1, id));
        });
        message.nested(FUNCTION, |function| {
            function.number(1, id);
            function.number(2, name);
        });
    }
    strings.0.iter().for_each(|text| message.bytes(STRING, text.as_bytes()));
    message.0
}

/// The table of strings, to which all others refer by place.
#[derive(Default)]
struct Strings(Vec<String>);

impl Strings {
    fn place(&mut self, text: &str) -> u64 {
        let known = self.0.iter().position(|known| known == text);
        known.unwrap_or_else(|| {
            self.0.push(text.to_owned());
            self.0.len() - 1
        }) as u64
    }
}

/// A message of protocol buffers: fields with their numbers, each a number or bytes.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push((value & 0x7f) as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn nested(&mut self, field: u64, fill: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        fill(&mut inner);
        self.bytes(field, &inner.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::fixture;

    fn stack(calls: &str, cycles_per_io: f64) -> StackFinding {
        StackFinding { calls: calls.to_owned(), cycles_per_io }
    }

    #[test]
    fn a_folded_line_has_its_calls_and_cycles() {
        assert_eq!(folded(&[stack("a;b", 2.5), stack("a\nc", f64::NAN)]), "a;b 2500\na c 0\n");
    }

    #[test]
    fn pprof_has_each_function_once_and_calls_the_innermost_first() {
        let bytes = pprof(&[stack("a;b", 0.3), stack("a;a", 1.0)]);
        let expected: &[&[u8]] = &[
            // The type of the samples: strings 1 and 2.
            &[0x0a, 4, 8, 1, 16, 2],
            // Locations 1 and 2, 300.
            &[0x12, 7, 8, 1, 8, 2, 16, 0xac, 2],
            &[0x12, 7, 8, 2, 8, 2, 16, 0xe8, 7],
            &[0x22, 6, 8, 1, 0x22, 2, 8, 1, 0x2a, 4, 8, 1, 16, 3],
            &[0x22, 6, 8, 2, 0x22, 2, 8, 2, 0x2a, 4, 8, 2, 16, 4],
            &[0x32, 0, 0x32, 6],
            b"cycles",
            &[0x32, 13],
            b"per 1000 I/Os",
            &[0x32, 1],
            b"b",
            &[0x32, 1],
            b"a",
        ];
        assert_eq!(bytes, expected.concat());
    }

    #[test]
    fn several_phases_are_told_apart() {
        let mut finding = fixture::named("udp_like");
        assert!(profile_files(&finding).is_empty());
        finding.phases.iter_mut().for_each(|phase| phase.stacks = vec![stack("a", 1.0)]);
        let second = finding.phases[0].clone();
        finding.phases.push(second);
        finding.phases[1].jobs = vec!["x;y".to_owned(), "z".to_owned()];
        let files = profile_files(&finding);
        assert!(String::from_utf8(files[0].contents.clone()).unwrap().ends_with("\nx:y+z;a 1000\n"));
    }
}
