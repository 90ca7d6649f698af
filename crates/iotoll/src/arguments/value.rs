//! Parsers for the values of flags: text → value, or a short reason why it is wrong.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use lab::meter::Selection;
use model::events::Wanted;
use model::experiment::{Axis, Cache, EndSignal, Metric, Rules, Setting, Slices, command_words};
use model::limit::Limit;
use model::placement::Place;
use model::probe::Probe;
use model::record::Meter;
use report::Format;
use std::time::Duration;

/// Several words in one argument, split as a shell does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words(pub Vec<String>);

fn words(text: &str) -> Result<Words, String> {
    some(shell_words::split(text))
}

pub(super) fn command(text: &str) -> Result<Words, String> {
    some(command_words(text))
}

fn some(split: Result<Vec<String>, shell_words::ParseError>) -> Result<Words, String> {
    match split {
        Ok(words) if words.is_empty() => Err("it is empty".to_owned()),
        Ok(words) => Ok(Words(words)),
        Err(error) => Err(format!("{error}; quote it as for a shell")),
    }
}

/// Options of a job, with or without leading dashes.
pub(super) fn options(text: &str) -> Result<Words, String> {
    words(text).map(|Words(words)| Words(words.iter().map(|word| word.trim_start_matches('-').to_owned()).collect()))
}

pub(super) fn setting(text: &str) -> Result<Setting, String> {
    Setting::parse(text).map_err(|wrong| without_value(text, &wrong))
}

/// A reason without the value in front: clap names the value itself.
fn without_value(text: &str, wrong: &impl std::fmt::Display) -> String {
    let wrong = wrong.to_string();
    wrong.strip_prefix(&format!("'{text}': ")).unwrap_or(&wrong).to_owned()
}

pub(super) fn axis(text: &str) -> Result<Axis, String> {
    let (name, values) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("expected NAME=A,B,…")?;
    let values = values.split(',').map(str::to_owned).collect();
    Ok(Axis { name: name.trim_start_matches('-').to_owned(), values })
}

pub(super) fn place(text: &str) -> Result<Place, String> {
    Place::parse(text).map_err(|wrong| wrong.to_string())
}

pub(super) fn cache(text: &str) -> Result<Cache, String> {
    Cache::parse(text).map_err(|wrong| without_value(text, &wrong))
}

pub(super) fn metric(text: &str) -> Result<Metric, String> {
    Metric::parse(text).ok_or_else(|| {
        let names: Vec<&str> = Metric::ALL.iter().map(|metric| metric.name()).collect();
        format!("expected a list of {}", names.join(", "))
    })
}

pub(super) fn limit(text: &str) -> Result<Limit, String> {
    Metric::limit(text).map_err(|wrong| without_value(text, &wrong))
}

/// A fraction, as in an experiment file.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    Rules::parse_percent(text).map_err(|wrong| wrong.to_string())
}

/// Seconds of a slice, as in an experiment file.
pub(super) fn slice(text: &str) -> Result<f64, String> {
    Rules::parse_slice(text).map_err(|wrong| wrong.to_string())
}

/// Whether commands take turns, as in an experiment file.
pub(super) fn slices(text: &str) -> Result<Slices, String> {
    Slices::parse(text).map_err(|wrong| without_value(text, &wrong))
}

/// What counts the I/Os of commands, as in an experiment file.
pub(super) fn work_counter(text: &str) -> Result<String, String> {
    model::experiment::work_counter::parse(text).map_err(|wrong| without_value(text, &wrong))
}

/// What counts the I/Os of a whole command: one of those of [`work_counter`] that count the machine.
pub(super) fn counter(text: &str) -> Result<lab::cost::Counter, String> {
    text.parse().map_err(|wrong: String| without_value(text, &wrong))
}

/// The signal that ends a command, as in an experiment file.
pub(super) fn end_signal(text: &str) -> Result<EndSignal, String> {
    EndSignal::parse(text).map_err(|wrong| without_value(text, &wrong))
}

/// Seconds, as in an experiment file.
pub(super) fn time(text: &str) -> Result<f64, String> {
    Rules::parse_time(text).map_err(|wrong| wrong.to_string())
}

/// The formats by name, which completion scripts offer.
pub(super) fn format() -> impl TypedValueParser<Value = Format> {
    let names = PossibleValuesParser::new(Format::all().map(Format::name));
    names.try_map(|text| Format::all().find(|format| format.name() == text).ok_or_else(formats))
}

/// "table, json, mail…".
pub(super) fn formats() -> String {
    let names = |of_fio: bool| {
        let names = Format::all().filter(|format| format.is_of_fio() == of_fio).map(Format::name);
        names.collect::<Vec<_>>().join(", ")
    };
    format!("{}; of run also {}", names(false), names(true))
}

/// A version of fio's terse format.
pub(super) fn terse_version(text: &str) -> Result<u8, String> {
    match text {
        "3" => Ok(3),
        _ => Err("iotoll knows version 3; --output-format json has all numbers".to_owned()),
    }
}

pub(super) fn selection(text: &str) -> Result<Selection, String> {
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

pub(super) fn probes(text: &str) -> Result<Probes, String> {
    match text {
        "list" => Ok(Probes::List),
        "none" => Ok(Probes::None),
        names => Probe::parse_list(names).map(Probes::Of),
    }
}

/// The argument of `--events`.
#[derive(Clone, Debug)]
pub struct Events(pub Vec<Wanted>);

pub(super) fn events(text: &str) -> Result<Events, String> {
    Wanted::parse_list(text).map(Events)
}

/// A shorter measurement cannot tell a quiet machine from a busy one; a longer one gains nothing.
pub(super) fn background(text: &str) -> Result<Duration, String> {
    let duration =
        humantime::parse_duration(text).map_err(|error| format!("{error}; expected a time such as 1s or 500ms"))?;
    match duration {
        duration if duration < Duration::from_millis(200) => Err("expected at least 200ms".to_owned()),
        duration if duration > Duration::from_secs(3600) => Err("expected at most 1h".to_owned()),
        duration => Ok(duration),
    }
}

pub(super) fn amount(text: &str) -> Result<u64, String> {
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
