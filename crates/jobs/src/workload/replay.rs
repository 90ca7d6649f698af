//! Reads traces of fio: the requests that a job replays.

use super::request_source::{Kind, Request};
use crate::engine::Sync;
use model::plan::ReplayPlan;
use std::collections::HashMap;

/// Longest read or write that the kernel does in one call.
const LONGEST: u64 = (2 << 30) - 4096;
/// As in fio, shorter waits of version 2 are discarded.
const LEAST_WAIT_MICROS: u64 = 100;

/// A trace, as a job replays it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// The files that have requests, with the end of the last one.
    pub files: Vec<(String, u64)>,
    pub steps: Vec<Step>,
}

/// A request or a sync of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Microseconds since the first step.
    pub at: u64,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Io(Request),
    /// Of a file.
    Sync(u32, Sync),
}

/// The version of a trace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    /// Waits are lines.
    Two,
    /// Each line begins with its time.
    Three,
}

impl Replay {
    /// Reads a text.
    ///
    /// # Errors
    /// The line, and what is wrong with it.
    pub fn parse(text: &[u8], plan: &ReplayPlan) -> Result<Self, String> {
        let text = std::str::from_utf8(text).map_err(|_| format!("1: {NO_TRACE}"))?;
        let mut lines = (1..).zip(text.lines());
        let version = match lines.next().map(|(_, line)| line.trim_end()) {
            Some(VERSION_2) => Version::Two,
            Some(VERSION_3) => Version::Three,
            _ => return Err(format!("1: {NO_TRACE}")),
        };
        let mut reader =
            Reader { version, plan, added: Vec::new(), places: HashMap::new(), waited: 0, steps: Vec::new() };
        for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            reader.line(line).map_err(|why| format!("{number}: {why}"))?;
        }
        let replay = reader.finish();
        if replay.steps.iter().any(|step| matches!(step.what, What::Io(_))) {
            Ok(replay)
        } else {
            Err("1: the trace has no reads, writes or trims".to_owned())
        }
    }
}

const NO_TRACE: &str = "no trace of fio: the first line has to be 'fio version 2 iolog' or 'fio version 3 iolog'; binary traces of \
                        blktrace are not replayed";

struct Reader<'a> {
    version: Version,
    plan: &'a ReplayPlan,
    /// Files, with the end of their last request; 0 for those without any.
    added: Vec<(String, u64)>,
    /// Their places by name.
    places: HashMap<String, u32>,
    /// The sum of the waits.
    waited: u64,
    steps: Vec<Step>,
}

impl Reader<'_> {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.split_whitespace();
        let mut word = || words.next().ok_or("the line ends too early");
        let at = if self.version == Version::Three { number(word()?)? } else { self.waited };
        let (file, action) = (word()?, word()?);
        if ["add", "open", "close"].contains(&action) {
            if action == "add" {
                self.add(file);
            }
            return Ok(());
        }
        let (offset, length) = (number(word()?)?, number(word()?)?);
        let file = self.file(file)?;
        if action == "wait" {
            if self.version == Version::Two && offset >= LEAST_WAIT_MICROS {
                self.waited = self.waited.saturating_add(offset);
            }
            return Ok(());
        }
        if let Some((what, _)) = SYNCS.into_iter().find(|(_, word)| *word == action) {
            self.steps.push(Step { at, what: What::Sync(file, what) });
            return Ok(());
        }
        let kind = Kind::ALL.into_iter().find(|kind| IOS[*kind as usize] == action);
        let kind = kind.ok_or_else(|| format!("'{}' is no action of a trace", shown(action)))?;
        let end = offset.checked_add(length).filter(|_| (1..=LONGEST).contains(&length));
        let end = end.filter(|end| i64::try_from(*end).is_ok());
        let (Some(end), Ok(length)) = (end, u32::try_from(length)) else {
            return Err(format!(
                "{length} bytes at offset {offset} cannot be moved; a request has 1 to {LONGEST} bytes"
            ));
        };
        if let Some((_, last)) = self.added.get_mut(file as usize) {
            *last = end.max(*last);
        }
        self.steps.push(Step { at, what: What::Io(Request { kind, file, offset, length }) });
        Ok(())
    }

    /// A file that all requests are redirected to stands for each.
    fn add(&mut self, file: &str) {
        let only = self.plan.redirect.is_some() && !self.added.is_empty();
        let next = if only { 0 } else { u32::try_from(self.added.len()).unwrap_or(u32::MAX) };
        if self.places.contains_key(file) {
            return;
        }
        self.places.insert(file.to_owned(), next);
        if !only {
            self.added.push((file.to_owned(), 0));
        }
    }

    fn file(&self, name: &str) -> Result<u32, String> {
        let place = self.places.get(name).copied();
        place.ok_or_else(|| format!("file '{}' was not added; add a line with add before it", shown(name)))
    }

    /// Leaves files without requests out, and lets time begin with the first step.
    fn finish(self) -> Replay {
        let mut places = Vec::new();
        let mut files = Vec::new();
        for (name, end) in self.added {
            places.push((end > 0).then_some(u32::try_from(files.len()).unwrap_or(u32::MAX)));
            if end > 0 {
                files.push((self.plan.redirect.clone().unwrap_or(name), end));
            }
        }
        let place = |file: u32| places.get(file as usize).copied().flatten();
        let begin = self.steps.iter().map(|step| step.at).min().unwrap_or(0);
        let moved = |step: Step| {
            let what = match step.what {
                What::Io(request) => What::Io(Request { file: place(request.file)?, ..request }),
                What::Sync(file, what) => What::Sync(place(file)?, what),
            };
            Some(Step { at: step.at - begin, what })
        };
        Replay { steps: self.steps.into_iter().filter_map(moved).collect(), files }
    }
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("'{}' is no number", shown(word)))
}

/// A word of an unknown file, short and without control characters.
fn shown(word: &str) -> String {
    word.chars().take(60).map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

// The words of traces: the log of a job writes them, too.

/// The first line of a version whose waits are lines.
pub(crate) const VERSION_2: &str = "fio version 2 iolog";
/// The first line of a version whose lines begin with their time.
pub(crate) const VERSION_3: &str = "fio version 3 iolog";

/// Actions with an offset and a length, by direction.
const IOS: [&str; 3] = ["read", "write", "trim"];
/// The others.
const SYNCS: [(Sync, &str); 2] = [(Sync::All, "sync"), (Sync::Data, "datasync")];

impl What {
    /// The file, the action, the offset and the length of a line.
    pub fn fields(self) -> (u32, &'static str, u64, u32) {
        match self {
            Self::Io(Request { kind, file, offset, length }) => (file, IOS[kind as usize], offset, length),
            Self::Sync(file, what) => (file, SYNCS[what as usize].1, 0, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn io(kind: Kind, file: u32, offset: u64, length: u32) -> What {
        What::Io(Request { kind, file, offset, length })
    }

    fn steps(replay: &Replay) -> Vec<(u64, What)> {
        replay.steps.iter().map(|step| (step.at, step.what)).collect()
    }

    const READ: What = io(Kind::Read, 0, 0, 4096);
    const TRIM: What = io(Kind::Trim, 0, 8192, 4096);
    const THREE: &str = "fio version 3 iolog\n90 a add\n91 b add\n91 c add\n95 a open\n100 a read 0 4096\n1100 c write 5000 512\n\
                         1200 b sync 0 0\n1300 c datasync 0 0\n2100 a trim 8192 4096\n2200 a close\n";

    #[test]
    fn times_begin_with_the_first_step_and_files_without_requests_are_left_out() {
        let replay = Replay::parse(THREE.as_bytes(), &ReplayPlan::default()).unwrap();
        assert_eq!(replay.files, [("a".to_owned(), 12288), ("c".to_owned(), 5512)]);
        let (write, sync) = (io(Kind::Write, 1, 5000, 512), What::Sync(1, Sync::Data));
        assert_eq!(steps(&replay), [(0, READ), (1000, write), (1200, sync), (2000, TRIM)]);
    }

    #[test]
    fn waits_of_version_2_add_up() {
        let text = "fio version 2 iolog\na add\na open\na read 0 1\na wait 500 0\na wait 99 0\na read 1 1\na wait 100 0\na sync 0 0\n";
        let replay = Replay::parse(text.as_bytes(), &ReplayPlan::default()).unwrap();
        assert_eq!(replay.steps.iter().map(|step| step.at).collect::<Vec<_>>(), [0, 500, 600]);
    }

    #[test]
    fn requests_are_redirected() {
        let plan = ReplayPlan { redirect: Some("d".to_owned()), ..ReplayPlan::default() };
        let replay = Replay::parse(THREE.as_bytes(), &plan).unwrap();
        assert_eq!(replay.files, [("d".to_owned(), 12288)]);
        let write = io(Kind::Write, 0, 5000, 512);
        let [all, data] = [Sync::All, Sync::Data].map(|sync| What::Sync(0, sync));
        assert_eq!(steps(&replay), [(0, READ), (1000, write), (1100, all), (1200, data), (2000, TRIM)]);
    }

    #[test]
    fn a_damaged_trace_is_read_or_refused() {
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % below
        };
        let (mut read, plan) = (0, ReplayPlan::default());
        for _ in 0..5000 {
            let mut text = THREE.as_bytes().to_vec();
            for _ in 0..=random(3) {
                let place = 20 + random(text.len() - 20);
                text[place] = b"0129 awx\n-\xff"[random(11)];
            }
            read += usize::from(Replay::parse(&text, &plan).is_ok());
        }
        assert!((100..4900).contains(&read), "{read}");
    }

    #[test]
    fn what_is_no_trace_is_refused_with_its_line() {
        for (text, expected) in [
            ("", "1: no trace of fio"),
            ("\0\u{1}", "1: no trace of fio"),
            ("fio version 3 iolog\n", "1: the trace has no reads"),
            ("fio version 3 iolog\n0 a add\n0 a read 0\n", "3: the line ends too early"),
            ("fio version 3 iolog\n0 a read 0 1\n", "2: file 'a' was not added"),
            ("fio version 3 iolog\n0 a add\n\n0 a erase 0 1\n", "4: 'erase' is no action"),
            ("fio version 3 iolog\n0 a add\n0 a read x 1\n", "3: 'x' is no number"),
            ("fio version 3 iolog\n0 a add\n0 a read 0 0\n", "3: 0 bytes at offset 0"),
            (
                "fio version 3 iolog\n0 a add\n0 a read 18446744073709551615 4\n",
                "3: 4 bytes at offset 18446744073709551615",
            ),
        ] {
            let error = Replay::parse(text.as_bytes(), &ReplayPlan::default()).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn each_action_is_read_as_it_is_written() {
        let ios = Kind::ALL.map(|kind| What::Io(Request { kind, file: 0, offset: 512, length: 4096 }));
        for what in ios.into_iter().chain([Sync::All, Sync::Data].map(|what| What::Sync(0, what))) {
            let (_, action, offset, length) = what.fields();
            let text = format!("{VERSION_3}\n0 a add\n0 a {action} {offset} {length}\n9 a read 0 1\n");
            let replay = Replay::parse(text.as_bytes(), &ReplayPlan::default()).unwrap();
            assert_eq!(replay.steps[0].what, what);
        }
    }
}
