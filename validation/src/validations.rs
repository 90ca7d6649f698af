//! The validations: a file in `validation/experiments` for each; only the simulations behind `coverage` are functions.
//!
//! Cells are measured in rounds, in a new random order in each. A validation whose criterion is not met exits with
//! status 1.

mod coverage;

use crate::bench::{Bench, Options, is_release};
use crate::runner::Experiment;
use anyhow::{Context, ensure};
use std::collections::BTreeMap;
use std::process::ExitCode;

fn usage() -> anyhow::Result<String> {
    let mut text =
        "usage: cargo run --release -p validation -- NAME [--seconds S] [--rounds R] [--seed N]\n".to_owned();
    for name in Experiment::names() {
        let Experiment { shows, seconds, rounds, set, .. } = Experiment::load(&name)?;
        let more: String = set.keys().map(|name| format!(" [--{name} …]")).collect();
        text += &format!("         {name:<17} {shows}; --seconds {seconds} --rounds {rounds}{more}\n");
    }
    Ok(text + &crate::load::usage())
}

/// Runs the validation named by the first argument.
pub fn main(arguments: &[&str]) -> anyhow::Result<ExitCode> {
    let named = arguments.split_first().filter(|(name, _)| Experiment::names().iter().any(|file| file == *name));
    let Some((name, rest)) = named else {
        eprintln!("{}", usage()?);
        return Ok(ExitCode::from(2));
    };
    let met = Experiment::load(name).and_then(|file| measure(name, &file, rest)).with_context(|| (*name).to_owned())?;
    Ok(if met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn options(file: &Experiment, arguments: &[&str]) -> anyhow::Result<Options> {
    let Experiment { seconds, rounds, .. } = *file;
    let mut options = Options { seconds, rounds, seed: u64::from(std::process::id()), set: BTreeMap::new() };
    let (pairs, odd) = arguments.as_chunks::<2>();
    for [name, value] in pairs {
        let wrong = || format!("{name} {value}");
        match *name {
            "--seconds" => options.seconds = value.parse().with_context(wrong)?,
            "--rounds" => options.rounds = value.parse().with_context(wrong)?,
            "--seed" => options.seed = value.parse().with_context(wrong)?,
            other => {
                let known = other.strip_prefix("--").filter(|name| file.set.contains_key(*name));
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

fn measure(name: &str, file: &Experiment, arguments: &[&str]) -> anyhow::Result<bool> {
    let options = options(file, arguments)?;
    let mut bench = Bench::new(name, options.clone())?;
    let mut evidence = if file.simulated { coverage::validate(&bench) } else { file.run(&mut bench)? };
    if !file.any_build {
        evidence.criterion(is_release(), "a release build was measured (cargo run --release -p validation)");
    }
    println!("{}", evidence.heading(name, &options));
    println!("{}", evidence.body());
    Ok(evidence.met())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_refused() {
        let memory = Experiment::load("memory").unwrap();
        let read = |words: &[&str]| options(&memory, words);
        let found = read(&["--rounds", "3", "--seconds", "0.5", "--seed", "9", "--long", "7"]).unwrap();
        let set = BTreeMap::from([("long".to_owned(), "7".to_owned())]);
        assert_eq!(found, Options { seconds: 0.5, rounds: 3, seed: 9, set });
        assert_eq!(read(&[]).unwrap().rounds, memory.rounds);
        for wrong in [["--rounds", "x"], ["--rounds", "0"], ["--seconds", "inf"], ["--fast", "1"]] {
            assert!(read(&wrong).is_err(), "{wrong:?}");
        }
        assert!(read(&["--rounds"]).unwrap_err().to_string().contains("needs a value"));
    }

    #[test]
    fn the_usage_names_every_validation() {
        let usage = usage().unwrap();
        assert!(Experiment::names().iter().all(|name| usage.contains(name)));
    }
}
