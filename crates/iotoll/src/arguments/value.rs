//! Parsers for the values of flags: text → value, or a short reason why it is wrong.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap_complete::Shell;
use lab::meter::Selection;
use model::experiment::{Axis, Metric, command_words};
use model::probe::Probe;
use model::record::Meter;
use std::fmt::Display;
use std::time::Duration;
use verbs::Format;

/// Several values in one argument: clap takes a `Vec` for several arguments.
pub type List<T> = Vec<T>;

/// A parser of the model as one of a flag. Its reason loses the value in front, because clap names the value itself.
pub fn by<T, Wrong: Display>(
    parse: impl Fn(&str) -> Result<T, Wrong> + Clone + Send + Sync,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync {
    move |text| {
        parse(text).map_err(|wrong| {
            let wrong = wrong.to_string();
            wrong.strip_prefix(&format!("'{text}': ")).unwrap_or(&wrong).to_owned()
        })
    }
}

/// The words of a command, split as a shell does.
pub fn command(text: &str) -> Result<List<String>, String> {
    some(command_words(text))
}

fn some(split: Result<List<String>, shell_words::ParseError>) -> Result<List<String>, String> {
    match split {
        Ok(words) if words.is_empty() => Err("it is empty".to_owned()),
        Ok(words) => Ok(words),
        Err(error) => Err(format!("{error}; quote it as for a shell")),
    }
}

/// Options of a job, with or without leading dashes, split as a shell does.
pub fn options(text: &str) -> Result<List<String>, String> {
    let words = some(shell_words::split(text))?;
    Ok(words.iter().map(|word| word.trim_start_matches('-').to_owned()).collect())
}

pub fn axis(text: &str) -> Result<Axis, String> {
    let (name, values) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("expected NAME=A,B,…")?;
    let values = values.split(',').map(str::to_owned).collect();
    Ok(Axis { name: name.trim_start_matches('-').to_owned(), values })
}

pub fn metric(text: &str) -> Result<Metric, String> {
    Metric::parse(text).ok_or_else(|| {
        let names: Vec<&str> = Metric::ALL.iter().map(|metric| metric.name()).collect();
        format!("expected a list of {}", names.join(", "))
    })
}

/// The formats by name, which completion scripts offer.
pub fn format() -> impl TypedValueParser<Value = Format> {
    let names = PossibleValuesParser::new(Format::all().map(Format::name));
    names.try_map(|text| Format::all().find(|format| format.name() == text).ok_or_else(formats))
}

/// "table, json, mail…".
pub fn formats() -> String {
    let names = |of_fio: bool| {
        let names = Format::all().filter(|format| format.is_of_fio() == of_fio).map(Format::name);
        names.collect::<Vec<_>>().join(", ")
    };
    format!("{}; of run also {}", names(false), names(true))
}

/// Shells whose completion scripts are made.
pub const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

pub fn shell() -> impl TypedValueParser<Value = Shell> {
    PossibleValuesParser::new(SHELLS.map(|shell| shell.to_string())).try_map(|name| name.parse::<Shell>())
}

pub fn selection(text: &str) -> Result<Selection, String> {
    match text {
        "all" => return Ok(Selection::All),
        "default" => return Ok(Selection::Default),
        _ => {}
    }
    let mut chosen = Vec::new();
    for name in text.split(',') {
        match Meter::named(name) {
            // Reading all idle clocks costs no more than reading one, and each checks the others.
            Some(Meter::Idle) => {
                chosen.extend(Meter::ALL.into_iter().filter(|meter| meter.takes_steal_for_busy() && !meter.disturbs()));
            }
            Some(meter) => chosen.push(meter),
            None => {
                let names: Vec<&str> = Meter::ALL.iter().map(|meter| meter.name()).collect();
                return Err(format!("'{name}' is not a meter; expected all, or a list of {}", names.join(", ")));
            }
        }
    }
    Ok(Selection::Only(chosen))
}

/// The argument of `--probe`.
#[derive(Clone, Debug)]
pub enum Probes {
    /// List the probes of this machine.
    List,
    /// Not those that are read by default.
    None,
    /// These too.
    Of(Vec<Probe>),
}

pub fn probes(text: &str) -> Result<Probes, String> {
    match text {
        "list" => Ok(Probes::List),
        "none" => Ok(Probes::None),
        names => Probe::parse_list(names).map(Probes::Of),
    }
}

/// Whether the user asks for the list of probes instead of a measurement.
pub fn lists_probes(matches: &clap::ArgMatches) -> bool {
    let probes = matches.subcommand().and_then(|(_, verb)| verb.try_get_many::<Probes>("probe").ok()?);
    probes.is_some_and(|mut probes| probes.any(|probes| matches!(probes, Probes::List)))
}

/// A shorter measurement cannot tell a quiet machine from a busy one; a longer one gains nothing.
pub fn background(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(200), Duration::from_secs(3600), "200ms to 1h")
}

/// A time within a range, which `range` names.
pub fn within(text: &str, least: Duration, most: Duration, range: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| format!("{error}; expected {range}"))?;
    if (least..=most).contains(&duration) { Ok(duration) } else { Err(format!("expected {range}")) }
}

pub fn amount(text: &str) -> Result<u64, String> {
    match model::plan::value::integer(text) {
        Ok(0) => Err("expected at least 1".to_owned()),
        Ok(amount) => Ok(amount),
        Err(wrong) => Err(wrong.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meters_are_chosen_by_name() {
        assert_eq!(selection("all"), Ok(Selection::All));
        assert_eq!(selection("soaker,thread"), Ok(Selection::Only(vec![Meter::Soaker, Meter::Thread])));
        assert!(selection("sponge").unwrap_err().contains("'sponge' is not a meter"));
    }
}
