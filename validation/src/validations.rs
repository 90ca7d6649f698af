//! Every validation: what it shows, how long it measures, and its function. A new one is a file and a row here.
//!
//! What is compared is measured in rounds, in an order drawn anew in each; a validation whose criterion is not met ends with status 1.

mod compare;
mod disturbance;
mod elsewhere;
mod foreign_fio;
mod generator_tax;
mod integrity;
mod known_cost;
mod memory;
mod natural;
mod remote;
mod start;
mod undo;

use crate::bench::evidence::Evidence;
use crate::bench::{Bench, Options};
use anyhow::{Context, bail, ensure};
use std::process::ExitCode;

/// One validation.
pub struct Validation {
    /// Its name on the command line.
    pub name: &'static str,
    shows: &'static str,
    /// Length of one measurement, unless told.
    seconds: f64,
    /// Rounds, unless told.
    rounds: usize,
    run: fn(&mut Bench) -> anyhow::Result<Evidence>,
}

/// Every validation. The lengths keep each one, all rounds together, to the minutes named.
const VALIDATIONS: [Validation; 17] = [
    Validation {
        name: "natural",
        shows: "thirty natural commands, cold and warm: two regimes are told, and no verdict rests on both; root (10 min)",
        seconds: 4.0,
        rounds: 1,
        run: natural::validate,
    },
    Validation {
        name: "known-cost",
        shows: "each meter finds a cost that is known, also on a busy machine (15 min)",
        seconds: 2.0,
        rounds: 8,
        run: known_cost::validate,
    },
    Validation {
        name: "elsewhere",
        shows: "work that others do for a load is in the machine's figure, not in its threads' (7 min)",
        seconds: 4.0,
        rounds: 12,
        run: elsewhere::validate,
    },
    Validation {
        name: "foreign-fio",
        shows: "`iotoll cost -- fio` and `iotoll run` find the same cost (28 min)",
        seconds: 2.0,
        rounds: 12,
        run: foreign_fio::validate,
    },
    Validation {
        name: "generator-tax",
        shows: "iotoll takes less of the machine for itself than fio (10 min)",
        seconds: 1.0,
        rounds: 8,
        run: generator_tax::validate,
    },
    Validation {
        name: "disturbance",
        shows: "what each meter does to the load that it measures (5 min)",
        seconds: 2.0,
        rounds: 5,
        run: disturbance::validate,
    },
    Validation {
        name: "compare-aa",
        shows: "identical arms are called different as seldom as the interval says (11 min)",
        seconds: 15.0,
        rounds: 40,
        run: compare::same,
    },
    Validation {
        name: "compare-aa-hog",
        shows: "the same while a hog comes and goes (11 min)",
        seconds: 15.0,
        rounds: 40,
        run: compare::same_beside_a_hog,
    },
    Validation {
        name: "compare-aa-fio",
        shows: "the same for unmodified fio, an execution a slice (11 min)",
        seconds: 15.0,
        rounds: 40,
        run: compare::same_fio,
    },
    Validation {
        name: "compare-injected",
        shows: "the interval holds a change that is known, of 2, 5 and 10 % (15 min)",
        seconds: 15.0,
        rounds: 20,
        run: compare::injected,
    },
    Validation {
        name: "compare-toggle",
        shows: "the same for unmodified fio under a toggle whose cost is known (12 min)",
        seconds: 20.0,
        rounds: 12,
        run: compare::toggled,
    },
    Validation {
        name: "compare-others",
        shows: "what fio twice, a t-test, hyperfine and iotoll say of identical arms (17 min)",
        seconds: 10.0,
        rounds: 20,
        run: compare::others,
    },
    Validation {
        name: "remote",
        shows: "what a remote I/O costs: our server and client, nbdkit, fio's client (10 min)",
        seconds: 2.0,
        rounds: 6,
        run: remote::validate,
    },
    Validation {
        name: "integrity",
        shows: "ten million remote I/Os come back as they were written (3 min)",
        seconds: 1.0,
        rounds: 1,
        run: integrity::validate,
    },
    Validation {
        name: "memory",
        shows: "memory stays small, however long a run is (11 min)",
        seconds: 10.0,
        rounds: 1,
        run: memory::validate,
    },
    Validation {
        name: "start",
        shows: "the first I/O comes soon (under a minute)",
        seconds: 0.2,
        rounds: 10,
        run: start::validate,
    },
    Validation {
        name: "undo",
        shows: "what a killed iotoll had switched is put back, and nothing of it is left (4 min)",
        seconds: 1.0,
        rounds: 20,
        run: undo::validate,
    },
];

/// How validations are called.
pub fn usage() -> String {
    let mut text = "usage: cargo run --release -p validation -- NAME [--seconds S] [--rounds R] [--seed N]".to_owned();
    text += " [--long S (memory)]\n";
    for validation in &VALIDATIONS {
        text += &format!(
            "         {:<14} {}; --seconds {} --rounds {}\n",
            validation.name, validation.shows, validation.seconds, validation.rounds
        );
    }
    text.trim_end().to_owned()
}

/// Runs the validation that is named first.
pub fn main(arguments: &[&str]) -> ExitCode {
    let named = arguments.split_first().and_then(|(name, rest)| {
        let validation = VALIDATIONS.iter().find(|validation| validation.name == *name)?;
        Some((validation, rest))
    });
    let Some((validation, rest)) = named else {
        eprintln!("{}\n{}", usage(), crate::load::usage());
        return ExitCode::from(2);
    };
    let options = match options(validation, rest) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{}: {error:#}", validation.name);
            return ExitCode::from(2);
        }
    };
    match measure(validation, options) {
        Ok(evidence) if evidence.met() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{}: {error:#}", validation.name);
            ExitCode::FAILURE
        }
    }
}

fn options(validation: &Validation, arguments: &[&str]) -> anyhow::Result<Options> {
    let mut options = Options {
        seconds: validation.seconds,
        rounds: validation.rounds,
        seed: u64::from(std::process::id()),
        long: 600.0,
    };
    let (pairs, odd) = arguments.as_chunks::<2>();
    for [name, value] in pairs {
        let wrong = || format!("{name} {value}");
        match *name {
            "--seconds" => options.seconds = value.parse().with_context(wrong)?,
            "--long" => options.long = value.parse().with_context(wrong)?,
            "--rounds" => options.rounds = value.parse().with_context(wrong)?,
            "--seed" => options.seed = value.parse().with_context(wrong)?,
            _ => bail!("'{name}' is no option\n{}", usage()),
        }
    }
    ensure!(odd.is_empty(), "{} lacks its value\n{}", odd.join(" "), usage());
    ensure!((0.05..=3600.0).contains(&options.seconds), "--seconds: between 0.05 and 3600");
    ensure!((0.05..=36000.0).contains(&options.long), "--long: between 0.05 and 36000");
    ensure!((1..=1000).contains(&options.rounds), "--rounds: between 1 and 1000");
    Ok(options)
}

fn measure(validation: &Validation, options: Options) -> anyhow::Result<Evidence> {
    let mut bench = Bench::new(validation.name, options)?;
    let evidence = (validation.run)(&mut bench)?;
    println!("{}", evidence.heading(validation.name, &options));
    println!("{}", evidence.body());
    Ok(evidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_refused() {
        let read = |words: &[&str]| options(&VALIDATIONS[0], words);
        let found = read(&["--rounds", "3", "--seconds", "0.5", "--seed", "9"]).unwrap();
        assert_eq!(found, Options { seconds: 0.5, rounds: 3, seed: 9, long: 600.0 });
        assert_eq!(read(&[]).unwrap().rounds, VALIDATIONS[0].rounds);
        for wrong in [["--rounds", "x"], ["--rounds", "0"], ["--seconds", "inf"], ["--fast", "1"]] {
            assert!(read(&wrong).is_err(), "{wrong:?}");
        }
        assert!(read(&["--rounds"]).unwrap_err().to_string().contains("lacks its value"));
    }

    #[test]
    fn the_usage_names_every_proof() {
        assert!(VALIDATIONS.iter().all(|validation| usage().contains(validation.name)));
    }
}
