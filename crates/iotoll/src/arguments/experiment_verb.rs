//! `iotoll run FILE.toml` runs an experiment of any kind: the command line of the verb that its kind belongs to.

use crate::failure::BadInput;
use model::experiment_kind::ExperimentKind;

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
    let read = crate::input::bytes_of(file.as_ref()).ok();
    let Some(text) = read.and_then(|bytes| String::from_utf8(bytes).ok()) else { return Ok(None) };
    let kind = ExperimentKind::of(file, &text).map_err(BadInput)?;
    let verb = kind.verb().iter().map(|word| (*word).to_owned());
    Ok(Some(std::iter::once(program.clone()).chain(verb).chain(rest.iter().cloned()).collect()))
}

fn is_toml(file: &str) -> bool {
    std::path::Path::new(file).extension().is_some_and(|extension| extension == "toml")
}

#[cfg(test)]
mod tests {
    use super::*;

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
