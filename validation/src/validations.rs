//! The validations: experiments in files, and functions where no file can say what is done. To add one, add a file to
//! `validation/experiments`, or a module and a row here.
//!
//! Cells are measured in rounds, in a new random order in each. A validation whose criterion is not met exits with
//! status 1.

mod coverage;
mod idle_clock;

use crate::bench::evidence::Evidence;
use crate::bench::{Bench, Options, is_release};
use crate::runner::Experiment;
use anyhow::{Context, ensure};
use std::collections::BTreeMap;
use std::process::ExitCode;

type Run<'a> = Box<dyn Fn(&mut Bench) -> anyhow::Result<Evidence> + 'a>;

struct Validation<'a> {
    name: &'a str,
    shows: &'a str,
    /// Default length of one measurement, and default number of rounds.
    seconds: f64,
    rounds: usize,
    /// It measures no speed, so a debug build does as well.
    any_build: bool,
    /// Names that options can set, beside the usual ones.
    set: Vec<&'a str>,
    run: Run<'a>,
}

/// A validation that is a function: its name, what it shows, default length and rounds, whether any build does.
type Function = (&'static str, &'static str, f64, usize, bool, fn(&mut Bench) -> anyhow::Result<Evidence>);

const FUNCTIONS: [Function; 2] = [
    (
        "coverage",
        "how often intervals contain the truth of simulated measurements, --rounds × 10 of each kind (5 min, any machine)",
        1.0,
        100,
        true,
        coverage::validate,
    ),
    (
        "idle-clock",
        "the noise of the idle clock in slices of 10 ms here, and simulated for 2 to 256 CPUs; needs root (15 s)",
        1.0,
        12,
        false,
        idle_clock::validate,
    ),
];

fn of_function((name, shows, seconds, rounds, any_build, run): &Function) -> Validation<'_> {
    let (seconds, rounds, any_build) = (*seconds, *rounds, *any_build);
    Validation { name, shows, seconds, rounds, any_build, set: Vec::new(), run: Box::new(run) }
}

fn of_file<'a>(name: &'a str, file: &'a Experiment) -> Validation<'a> {
    let Experiment { shows, seconds, rounds, any_build, set, .. } = file;
    let (seconds, rounds, any_build) = (*seconds, *rounds, *any_build);
    let set = set.keys().map(String::as_str).collect();
    Validation { name, shows, seconds, rounds, any_build, set, run: Box::new(|bench| file.run(bench)) }
}

fn usage() -> anyhow::Result<String> {
    let mut text =
        "usage: cargo run --release -p validation -- NAME [--seconds S] [--rounds R] [--seed N]\n".to_owned();
    let files = Experiment::names().into_iter().map(|name| Experiment::load(&name).map(|file| (name, file)));
    let files: Vec<(String, Experiment)> = files.collect::<anyhow::Result<_>>()?;
    let all = FUNCTIONS.iter().map(of_function).chain(files.iter().map(|(name, file)| of_file(name, file)));
    for Validation { name, shows, seconds, rounds, set, .. } in all {
        let more: String = set.iter().map(|name| format!(" [--{name} …]")).collect();
        text += &format!("         {name:<17} {shows}; --seconds {seconds} --rounds {rounds}{more}\n");
    }
    Ok(text + &crate::load::usage())
}

/// Runs the validation named by the first argument.
pub fn main(arguments: &[&str]) -> ExitCode {
    let Some((name, rest)) = arguments.split_first().filter(|(name, _)| {
        FUNCTIONS.iter().any(|function| function.0 == **name) || Experiment::names().iter().any(|file| file == *name)
    }) else {
        eprintln!("{}", usage().unwrap_or_else(|error| format!("{error:#}")));
        return ExitCode::from(2);
    };
    let result = match FUNCTIONS.iter().find(|function| function.0 == *name) {
        Some(function) => measure(&of_function(function), rest),
        None => Experiment::load(name).and_then(|file| measure(&of_file(name, &file), rest)),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn options(validation: &Validation, arguments: &[&str]) -> anyhow::Result<Options> {
    let Validation { seconds, rounds, .. } = *validation;
    let mut options = Options { seconds, rounds, seed: u64::from(std::process::id()), set: BTreeMap::new() };
    let (pairs, odd) = arguments.as_chunks::<2>();
    for [name, value] in pairs {
        let wrong = || format!("{name} {value}");
        match *name {
            "--seconds" => options.seconds = value.parse().with_context(wrong)?,
            "--rounds" => options.rounds = value.parse().with_context(wrong)?,
            "--seed" => options.seed = value.parse().with_context(wrong)?,
            other => {
                let known = other.strip_prefix("--").filter(|name| validation.set.contains(name));
                options.set.insert(
                    known.with_context(|| format!("unknown option '{other}'"))?.to_owned(),
                    (*value).to_owned(),
                );
            }
        }
    }
    ensure!(odd.is_empty(), "{} needs a value", odd.join(" "));
    ensure!((0.05..=3600.0).contains(&options.seconds), "--seconds must be between 0.05 and 3600");
    ensure!((1..=1000).contains(&options.rounds), "--rounds must be between 1 and 1000");
    Ok(options)
}

fn measure(validation: &Validation, arguments: &[&str]) -> anyhow::Result<bool> {
    let options = options(validation, arguments)?;
    let mut bench = Bench::new(validation.name, options.clone())?;
    let mut evidence = (validation.run)(&mut bench)?;
    if !validation.any_build {
        evidence.criterion(is_release(), "a release build was measured (cargo run --release -p validation)");
    }
    println!("{}", evidence.heading(validation.name, &options));
    println!("{}", evidence.body());
    Ok(evidence.met())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_refused() {
        let validation = Validation { set: vec!["long"], ..of_function(&FUNCTIONS[0]) };
        let read = |words: &[&str]| options(&validation, words);
        let found = read(&["--rounds", "3", "--seconds", "0.5", "--seed", "9", "--long", "7"]).unwrap();
        let set = BTreeMap::from([("long".to_owned(), "7".to_owned())]);
        assert_eq!(found, Options { seconds: 0.5, rounds: 3, seed: 9, set });
        assert_eq!(read(&[]).unwrap().rounds, FUNCTIONS[0].3);
        for wrong in [["--rounds", "x"], ["--rounds", "0"], ["--seconds", "inf"], ["--fast", "1"]] {
            assert!(read(&wrong).is_err(), "{wrong:?}");
        }
        assert!(read(&["--rounds"]).unwrap_err().to_string().contains("needs a value"));
    }

    #[test]
    fn the_usage_names_every_validation() {
        let usage = usage().unwrap();
        let names = FUNCTIONS.iter().map(|function| function.0.to_owned()).chain(Experiment::names());
        assert!(names.into_iter().all(|name| usage.contains(&name)));
    }
}
