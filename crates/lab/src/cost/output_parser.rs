//! Programs that report their I/O in their output: one row of the table each. A new one is a file and a row here.

use super::{CommandPlan, Count, Printed, fio, iperf3};
use crate::error::{Error, Result};
use crate::shell::scratch;
use model::record::JobRecord;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::Stdio;

/// Parses a program's I/O from its output.
pub(crate) trait OutputParser {
    /// The command with the options that make the program print its report, and the destination of its standard output.
    fn prepare(&mut self, command: &[String], printed: Printed) -> Result<(Vec<String>, Stdio)>;
    /// The report, once the program has ended.
    fn jobs(&mut self) -> std::result::Result<ProgramReport, String>;
}

/// What a program reported about its own I/O.
#[derive(Debug, Default)]
pub(crate) struct ProgramReport {
    pub jobs: Vec<JobRecord>,
    /// When it did I/O, in Unix time, if the program reports that.
    pub io_unix_nanos: Option<(u64, u64)>,
    /// Why the time of its I/O is unknown although the program reports its duration.
    pub unclear: Option<String>,
    /// The part of the output that is text for the user.
    pub text: String,
    /// Why it failed, from a program that fails with exit status 0.
    pub failure: Option<String>,
}

struct Row {
    program: &'static str,
    /// Source of the I/O count, in words.
    counted_by: &'static str,
    parser: fn() -> Box<dyn OutputParser>,
}

static OUTPUT_PARSERS: [Row; 2] = [
    Row { program: "fio", counted_by: "fio's JSON", parser: || Box::new(fio::Fio::default()) },
    Row {
        program: "iperf3",
        counted_by: "iperf3's JSON: I/Os are blocks (TCP) or packets (UDP)",
        parser: || Box::new(iperf3::Iperf3::default()),
    },
];

/// A program that only starts another one.
struct Starter {
    program: &'static str,
    /// Letters of its options whose value is a separate word, and names of such long options.
    valued: &'static str,
    long_valued: &'static [&'static str],
    /// Its own words before the program: priorities, masks.
    own_words: usize,
}

const fn starter(program: &'static str, valued: &'static str, long: &'static [&'static str], own: usize) -> Starter {
    Starter { program, valued, long_valued: long, own_words: own }
}

/// From their manuals (util-linux 2.38, coreutils 9.1, sudo 1.9, doas 6.8, numactl 2.0).
static STARTERS: [Starter; 19] = [
    // Other names of setarch(8); called by its own name, it may be followed by one of these.
    starter("aarch64", "", &[], 0),
    starter("i386", "", &[], 0),
    starter("linux32", "", &[], 0),
    starter("linux64", "", &[], 0),
    starter("x86_64", "", &[], 0),
    starter("setarch", "", &[], 0),
    starter("chrt", "TPD", &["sched-runtime", "sched-period", "sched-deadline"], 1),
    starter("doas", "uC", &[], 0),
    starter("env", "uCS", &["unset", "chdir", "split-string"], 0),
    starter("ionice", "cn", &["class", "classdata"], 0),
    starter("nice", "n", &["adjustment"], 0),
    starter(
        "numactl",
        "iNmCpPw",
        &["interleave", "cpunodebind", "membind", "physcpubind", "preferred", "weighted-interleave"],
        0,
    ),
    starter("prlimit", "", &[], 0),
    starter("runuser", "ugGswTP", &["user", "group", "supp-group", "shell", "whitelist-environment"], 0),
    starter(
        "setpriv",
        "",
        &[
            "ambient-caps",
            "inh-caps",
            "bounding-set",
            "ruid",
            "euid",
            "rgid",
            "egid",
            "reuid",
            "regid",
            "groups",
            "securebits",
            "pdeathsig",
            "selinux-label",
            "apparmor-profile",
        ],
        0,
    ),
    starter("setsid", "", &[], 0),
    starter("stdbuf", "ioe", &["input", "output", "error"], 0),
    starter(
        "sudo",
        "ughpCDRrtTU",
        &[
            "user",
            "group",
            "host",
            "prompt",
            "close-from",
            "chdir",
            "chroot",
            "role",
            "type",
            "command-timeout",
            "other-user",
        ],
        0,
    ),
    starter("taskset", "", &[], 1),
];

impl Starter {
    /// Number of words before the program, including this one's name; `None` if there is no program.
    fn words_before(&self, command: &[String]) -> Option<usize> {
        let (mut place, mut own) = (1, self.own_words);
        loop {
            let word = command.get(place)?;
            place += 1;
            let (name, long) = match (word.strip_prefix("--"), word.strip_prefix('-')) {
                // No more options after `--`.
                (Some(""), _) => {
                    place += own;
                    break;
                }
                (Some(name), _) => (name, true),
                (None, Some(letters)) => (letters, false),
                // env and sudo: variables of the program.
                (None, None) if word.contains('=') => continue,
                (None, None) if own > 0 => {
                    own -= 1;
                    continue;
                }
                (None, None) => {
                    place -= 1;
                    break;
                }
            };
            let apart = if long {
                self.long_valued.contains(&name)
            } else {
                // In `-n5` the value follows its letter.
                name.chars().last().is_some_and(|last| self.valued.contains(last))
                    && name.chars().filter(|letter| self.valued.contains(*letter)).count() == 1
            };
            place += usize::from(apart);
        }
        command.get(place).map(|_| place)
    }
}

/// The row of a command's program, whatever its path and starters, and the number of words before it.
fn row(command: &[String]) -> Option<(usize, &'static Row)> {
    let mut before = 0;
    loop {
        let rest = command.get(before..)?;
        let file = Path::new(rest.first()?).file_name()?;
        if let Some(row) = OUTPUT_PARSERS.iter().find(|row| file == row.program) {
            return Some((before, row));
        }
        before += STARTERS.iter().find(|starter| file == starter.program)?.words_before(rest)?;
    }
}

/// The words before the program whose output is parsed, and the words from there on.
pub(super) fn started(command: &[String]) -> (&[String], &[String]) {
    command.split_at(row(command).map_or(0, |(place, _)| place))
}

/// The parser of a command's output.
pub(super) fn output_parser(plan: &CommandPlan) -> Box<dyn OutputParser> {
    match plan.count {
        Count::Program => {
            row(&plan.command).map_or_else(|| Box::new(NoParser) as Box<dyn OutputParser>, |(_, row)| (row.parser)())
        }
        Count::Stated { .. } | Count::Kernel(_) => Box::new(NoParser),
    }
}

/// Source of the I/O count, in words.
pub(super) fn counted_by(plan: &CommandPlan) -> String {
    match &plan.count {
        Count::Program => {
            row(&plan.command).map_or("nothing: give --ios, --bytes or --count", |(_, row)| row.counted_by).to_owned()
        }
        Count::Stated { .. } => "stated on the command line".to_owned(),
        Count::Kernel(counter) => format!("the kernel's counters of {counter}, of all processes"),
    }
}

/// A program without a parser.
struct NoParser;

impl OutputParser for NoParser {
    fn prepare(&mut self, command: &[String], printed: Printed) -> Result<(Vec<String>, Stdio)> {
        Ok((command.to_vec(), printed.stdio()))
    }

    fn jobs(&mut self) -> std::result::Result<ProgramReport, String> {
        Ok(ProgramReport::default())
    }
}

/// The standard output of a program, in an unnamed file: the program can write to it as any user, without a limit, and
/// the file disappears however iotoll ends.
#[derive(Default)]
pub(super) struct CapturedOutput {
    file: Option<File>,
}

impl CapturedOutput {
    /// Starts capturing.
    pub fn capture(&mut self) -> Result<Stdio> {
        let made = scratch().and_then(|file| Ok((file.try_clone()?, file)));
        let (kept, stdout) =
            made.map_err(|error| Error::instrument("making a temporary file for the command's output", error))?;
        self.file = Some(kept);
        Ok(stdout.into())
    }

    /// The program's output. It may contain file names, which need not be UTF-8.
    pub fn take(&mut self) -> std::result::Result<String, String> {
        let mut file = self.file.take().ok_or("its output was not captured")?;
        let mut bytes = Vec::new();
        // Both descriptors share one file offset, so rewind first.
        let read = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
        read.map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Isolation;

    fn plan(program: &str, count: Count) -> CommandPlan {
        let command = vec![program.to_owned()];
        CommandPlan {
            command,
            count,
            repeat: 1,
            printed: Printed::Nowhere,
            custody: Isolation::Shared,
            around: Default::default(),
            guardian: crate::guardian::Guardian::default(),
        }
    }

    #[test]
    fn a_program_is_known_by_its_name_in_any_folder() {
        for (program, words) in
            [("fio", "fio's"), ("/usr/bin/iperf3", "iperf3's"), ("fio.sh", "nothing"), ("", "nothing")]
        {
            let plan = plan(program, Count::Program);
            assert!(counted_by(&plan).starts_with(words), "{program}: {}", counted_by(&plan));
            let (command, _) = output_parser(&plan).prepare(&plan.command, plan.printed).unwrap();
            assert_eq!(command.len() > 1, words != "nothing", "a known program gets options: {command:?}");
        }
    }

    #[test]
    fn a_program_is_known_after_its_starters() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (text, place) in [
            ("taskset -c 0 fio job.fio", Some(3)),
            ("/usr/bin/nice -n 5 /opt/fio", Some(3)),
            ("sudo -u fio -E nice -5 fio job.fio", Some(6)),
            ("env -i A=fio B=1 /usr/bin/iperf3 -c x", Some(4)),
            ("chrt -f 10 fio j", Some(3)),
            ("sudo -- numactl --cpunodebind=0 -m 0 fio j", Some(6)),
            ("stdbuf -oL fio j", Some(2)),
            ("ionice -c2 -n 0 setsid fio j", Some(5)),
            ("setarch x86_64 -R fio j", Some(3)),
            ("setarch -R fio j", Some(2)),
            ("runuser -u other -- fio j", Some(4)),
            ("setpriv --reuid other --clear-groups fio j", Some(4)),
            ("sudo cat job", None),
            ("cat fio", None),
            ("nice cat fio", None),
            ("sudo -u fio ./bench", None),
            ("env rsync -a s/ /backup/fio", None),
            ("nice tar cf x.tar /usr/share/fio", None),
            ("taskset -c 0", None),
            ("sudo --user", None),
        ] {
            let command = words(text);
            assert_eq!(row(&command).map(|(place, _)| place), place, "{text}");
            assert_eq!(started(&command).0.len(), place.unwrap_or(0), "{text}");
        }
    }

    #[test]
    fn a_program_with_a_stated_count_gets_no_options() {
        let plan = plan("fio", Count::Stated { ios: Some(1), bytes: None });
        assert!(counted_by(&plan).starts_with("stated"));
        let (command, _) = output_parser(&plan).prepare(&plan.command, plan.printed).unwrap();
        assert_eq!(command, plan.command);
    }
}
