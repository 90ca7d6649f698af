//! Experiment files: what `compare --help` says of them, and `iotoll run FILE.toml`, which runs one of any kind by the verb that its kind
//! belongs to.

use crate::failure::BadInput;
use crate::input::{bytes_of, is_toml};
use model::experiment_kind::ExperimentKind;

/// Every key of an experiment file.
pub const EXPERIMENT_HELP: &str = "\
Experiment files (TOML): iotoll compare EXPERIMENT.toml, or iotoll run EXPERIMENT.toml
  kind       \"compare\", also if it is left out; other kinds: \"guest\", \"blast\"
  title      Title of the report
  job        Job of all arms, in fio's language
  command    Command of all arms, instead of a job: text, or a list of words
  setup, prepare, cleanup
             Shell commands, as the flags
  budget, margin, precision, slice, hang_timeout, target, cache, place, aa
             As the flags: budget = \"120s\", target = [\"iops\"], aa = true
  slices, count, ios, bytes, end_signal
             How commands take turns and are counted, as the flags: bytes = \"1g\"
  fail_on    List of limits, as --fail-on
  boots, hook
             Boots of each arm, and the command that boots the next one
  [[arm]]    name, options = [\"bs=8k\"], command, set = [SETTING], setup, cleanup, when,
             fresh (= true: its settings need a fresh process, so a command is not sliced)
  [[sweep]]  name, values = [\"4k\", \"64k\"]; commands and prepare name it in braces: --bs={bs}
  [[published]]
             cell = { bs = \"4k\" }, arm, metric, baseline, candidate, change, source
  [[service]]
             A server that iotoll starts before the measurement and ends after it:
    name     Jobs, options and commands refer to it: {NAME.uri}, {NAME.port}, {NAME.socket},
             {NAME.dir}
    command  Text, or a list of words; iotoll as the first word is this very binary. {port} is a
             free port of 127.0.0.1, {dir} a temporary folder, {socket} a path of a Unix socket
    uri      Where clients reach it [default: nbd://127.0.0.1:{port}, or the NBD URI of {socket}]
    ready    Text in its output that says that it is ready [default: it is ready when {port} or
             {socket} listens]
    timeout  Time that it has to become ready [default: 10s]
    fill     Shell command that runs once when it is ready; it is not measured
    cpus     CPUs that it is pinned to [default: as --place says, if it is given]
    arm      The one arm that uses it [default: all may]
";

/// The words with the verb of the experiment file in `job`, if `run` is given one. A file that cannot be read is left to the
/// verb, which says so.
///
/// # Errors
/// When the file names a kind that there is not.
pub(super) fn of_its_kind(words: &[String], job: &[String]) -> Result<Option<Vec<String>>, BadInput> {
    let [program, verb, rest @ ..] = words else { return Ok(None) };
    // After an option without its value, a word is that value.
    let is_value = |before: &String| before.starts_with('-') && !before.contains('=');
    let before = std::iter::once(None).chain(job.iter().map(Some));
    let words = job.iter().zip(before).filter(|(_, before)| !before.is_some_and(is_value)).map(|(word, _)| word);
    let Some(file) = words.filter(|_| verb == "run").find(|word| is_toml(word)) else { return Ok(None) };
    let read = bytes_of(file.as_ref()).ok();
    let Some(text) = read.and_then(|bytes| String::from_utf8(bytes).ok()) else { return Ok(None) };
    let kind = ExperimentKind::of(file, &text).map_err(BadInput)?;
    let verb = kind.verb().iter().map(|word| (*word).to_owned());
    Ok(Some(std::iter::once(program.clone()).chain(verb).chain(rest.iter().cloned()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parser names the keys that it knows where it meets another one.
    #[test]
    fn every_key_of_an_experiment_file_is_in_the_help() {
        let mut found = 0;
        for table in ["", "[[arm]]", "[[sweep]]", "[[service]]", "[[published]]"] {
            let refusal =
                model::experiment::file::parse("x.toml", &format!("{table}\nnone = 1")).unwrap_err().to_string();
            let keys = refusal.split("expected one of ").nth(1).or(refusal.split("expected ").nth(1)).unwrap();
            for key in keys.split('`').skip(1).step_by(2) {
                let word = |text: &str| {
                    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').any(|word| word == key)
                };
                assert!(word(EXPERIMENT_HELP), "{key} of {refusal}");
                found += 1;
            }
        }
        assert!(found > 40, "{found}");
        assert!(EXPERIMENT_HELP.lines().all(|line| line.len() <= 100));
    }

    #[test]
    fn the_verb_is_that_of_the_file_s_kind() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.toml").display().to_string();
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        for (text, expected) in [
            ("kind = \"guest\"", &["guest", "run"][..]),
            ("kind = \"blast\"", &["blast"]),
            ("kind = \"compare\"", &["compare"]),
            ("title = \"x\"", &["compare"]),
        ] {
            std::fs::write(&file, text).unwrap();
            let verb_of =
                |verb: &str| of_its_kind(&words(&["iotoll", verb, "--quiet", &file]), &words(&[&file])).unwrap();
            let expected = words(&[&["iotoll"], expected, &["--quiet", &file]].concat());
            assert_eq!(verb_of("run"), Some(expected), "{text}");
            assert_eq!(verb_of("compare"), None, "the user chose");
        }
        std::fs::write(&file, "kind = \"ftq\"").unwrap();
        assert!(
            of_its_kind(&words(&["iotoll", "run", &file]), &words(&[&file])).unwrap_err().0.contains("no such kind")
        );
        assert_eq!(of_its_kind(&words(&["iotoll", "run", "absent.toml"]), &words(&["absent.toml"])).unwrap(), None);
    }
}
