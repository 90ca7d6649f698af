//! What an experiment file measures, by its own word (`kind = "guest"`), and the command that runs it.

use crate::toml_file;
use serde::de::DeserializeOwned;

/// A kind of experiment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExperimentKind {
    /// A comparison of options, commands or settings. A file that names no kind is one.
    Compare,
    /// Instructions of I/Os in guests.
    Guest,
    /// Small packets.
    Blast,
}

impl ExperimentKind {
    pub const ALL: [Self; 3] = [Self::Compare, Self::Guest, Self::Blast];

    /// Its name in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compare => "compare",
            Self::Guest => "guest",
            Self::Blast => "blast",
        }
    }

    /// The words of the command line that run it, before the file's name.
    pub fn verb(self) -> &'static [&'static str] {
        match self {
            Self::Compare => &["compare"],
            Self::Guest => &["guest", "run"],
            Self::Blast => &["blast"],
        }
    }

    /// The kind of the file `name` with this text.
    ///
    /// # Errors
    /// One line, when it names a kind that there is not.
    pub fn of(name: &str, text: &str) -> Result<Self, String> {
        let Some(said) = toml_file::kind(text) else { return Ok(Self::Compare) };
        if let Some(kind) = Self::ALL.into_iter().find(|kind| kind.name() == said) {
            return Ok(kind);
        }
        toml_file::check_syntax(name, text)?;
        Err(format!("{name}: kind = \"{said}\": there is no such kind of experiment; expected compare, guest or blast"))
    }

    /// Parses a file of this kind.
    ///
    /// # Errors
    /// One line: what is wrong and where, or of another kind the command that runs the file.
    pub fn parse<T: DeserializeOwned>(self, name: &str, text: &str) -> Result<T, String> {
        let kind = Self::of(name, text)?;
        if kind == self {
            return toml_file::parse(name, text);
        }
        toml_file::check_syntax(name, text)?;
        let what = match toml_file::kind(text) {
            Some(_) => format!("is an experiment of kind \"{}\"", kind.name()),
            None => format!("names no kind, so it is a comparison (of kind \"{}\" it says kind = …)", self.name()),
        };
        Err(format!("{name}: {what}; run it with: iotoll {} {name}", kind.verb().join(" ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_kind_is_refused_with_the_command_that_runs_it() {
        let [compare, guest, blast] = ExperimentKind::ALL;
        for (text, kind, commands) in [
            ("title = \"x\"", compare, ["", "iotoll compare x.toml", "iotoll compare x.toml"]),
            ("kind = \"compare\"", compare, ["", "iotoll compare x.toml", "iotoll compare x.toml"]),
            ("kind = \"guest\"", guest, ["iotoll guest run x.toml", "", "iotoll guest run x.toml"]),
            ("kind = 'blast' # packets", blast, ["iotoll blast x.toml", "iotoll blast x.toml", ""]),
        ] {
            assert_eq!(ExperimentKind::of("x.toml", text), Ok(kind), "{text}");
            for (asked, command) in ExperimentKind::ALL.into_iter().zip(commands) {
                let refusal = asked.parse::<toml::Table>("x.toml", text).err().unwrap_or_default();
                assert!(refusal.ends_with(command) && refusal.is_empty() == command.is_empty(), "{text}: {refusal}");
            }
        }
        let unknown = compare.parse::<toml::Table>("x.toml", "kind = \"ftq\"").unwrap_err();
        assert_eq!(
            unknown,
            "x.toml: kind = \"ftq\": there is no such kind of experiment; expected compare, guest or blast"
        );
    }
}
