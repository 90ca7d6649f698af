//! The table of validations: name, what it shows, default length, and function. To add one, add a file and a row.
//!
//! Cells are measured in rounds, in a new random order in each. A validation whose criterion is not met exits with
//! status 1.

mod accounts;
mod beside_others;
mod blast;
mod compare;
mod contention;
mod coverage;
mod disturbance;
mod elsewhere;
mod events;
mod foreign_fio;
mod ftq_periods;
mod ftq_resolution;
mod generator_tax;
mod guests;
mod hostile;
mod idle_clock;
mod integrity;
mod known_cost;
mod memory;
mod natural;
mod profiles;
mod queues;
mod remote;
mod start;
mod undo;
mod veth;

use crate::bench::evidence::Evidence;
use crate::bench::{Bench, Options};
use anyhow::{Context, bail, ensure};
use std::process::ExitCode;

pub struct Validation {
    /// Name on the command line.
    pub name: &'static str,
    shows: &'static str,
    /// Default length of one measurement.
    seconds: f64,
    /// Default number of rounds.
    rounds: usize,
    run: fn(&mut Bench) -> anyhow::Result<Evidence>,
}

/// Every validation. With the default lengths, each takes about the minutes named, all rounds together.
const VALIDATIONS: [Validation; 34] = [
    Validation {
        name: "coverage",
        shows: "how often intervals contain the truth of simulated measurements, --rounds × 10 of each kind (5 min, any machine)",
        seconds: 1.0,
        rounds: 100,
        run: coverage::validate,
    },
    Validation {
        name: "natural",
        shows: "thirty typical commands, cold and warm: mixed regimes are reported, and no verdict covers both; needs root (10 min)",
        seconds: 4.0,
        rounds: 1,
        run: natural::validate,
    },
    Validation {
        name: "known-cost",
        shows: "each meter finds a known cost, also on a busy machine (15 min)",
        seconds: 2.0,
        rounds: 8,
        run: known_cost::validate,
    },
    Validation {
        name: "idle-clock",
        shows: "the noise of the idle clock in slices of 10 ms here, and simulated for 2 to 256 CPUs; needs root (15 s)",
        seconds: 1.0,
        rounds: 12,
        run: idle_clock::validate,
    },
    Validation {
        name: "beside-others",
        shows: "beside programs that come and go, the cost is that of the load alone; needs root and fio (9 min)",
        seconds: 5.0,
        rounds: 5,
        run: beside_others::validate,
    },
    Validation {
        name: "accounts",
        shows: "CPU time of planted loads is in its account and in no other, and what keeping accounts costs; needs root, fio and losetup (4 min)",
        seconds: 4.0,
        rounds: 3,
        run: accounts::validate,
    },
    Validation {
        name: "events",
        shows: "counts of events per I/O are what is known of a load; what a count costs, and what perf misses; needs root (4 min)",
        seconds: 3.0,
        rounds: 5,
        run: events::validate,
    },
    Validation {
        name: "profiles",
        shows: "functions have their planted parts, stacks are whole, changes are found in their function; needs root, fio and nbdkit (6 min)",
        seconds: 5.0,
        rounds: 4,
        run: profiles::validate,
    },
    Validation {
        name: "elsewhere",
        shows: "work that other tasks do for a load is in the machine's cost, not in its threads' cost (7 min)",
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
        shows: "iotoll's own overhead is smaller than fio's (10 min)",
        seconds: 1.0,
        rounds: 8,
        run: generator_tax::validate,
    },
    Validation {
        name: "blast",
        shows: "packets delivered per second, and cycles for each, beside a bare loop and iperf3; needs root (8 min)",
        seconds: 2.0,
        rounds: 8,
        run: blast::validate,
    },
    Validation {
        name: "queues",
        shows: "transmit queues between many submitters and one UDP socket: packets per second, switches (9 min)",
        seconds: 2.0,
        rounds: 2,
        run: queues::validate,
    },
    Validation {
        name: "veth",
        shows: "cost of a packet over a veth pair, by queueing discipline, XPS and NAPI in threads: explores; needs root and ethtool (5 min)",
        seconds: 2.0,
        rounds: 5,
        run: veth::validate,
    },
    Validation {
        name: "contention",
        shows: "the fit recovers which part of a turn is inside a lock (3 min)",
        seconds: 1.0,
        rounds: 8,
        run: contention::validate,
    },
    Validation {
        name: "disturbance",
        shows: "how much each meter slows the load that it measures (5 min)",
        seconds: 2.0,
        rounds: 5,
        run: disturbance::validate,
    },
    Validation {
        name: "compare-aa",
        shows: "identical arms are called different no more often than the interval allows (11 min)",
        seconds: 15.0,
        rounds: 40,
        run: compare::same,
    },
    Validation {
        name: "compare-aa-hog",
        shows: "the same while a CPU hog starts and stops (11 min)",
        seconds: 15.0,
        rounds: 40,
        run: compare::same_beside_a_hog,
    },
    Validation {
        name: "compare-aa-fio",
        shows: "the same for unmodified fio, one execution per slice (11 min)",
        seconds: 15.0,
        rounds: 40,
        run: compare::same_fio,
    },
    Validation {
        name: "compare-injected",
        shows: "the interval contains a known change of 2, 5 and 10 % (15 min)",
        seconds: 15.0,
        rounds: 20,
        run: compare::injected,
    },
    Validation {
        name: "compare-toggle",
        shows: "the same for unmodified fio under a toggle with a known cost (12 min)",
        seconds: 20.0,
        rounds: 12,
        run: compare::toggled,
    },
    Validation {
        name: "sliced-bias",
        shows: "unmodified programs cost the same in slices as in whole executions (25 min)",
        seconds: 15.0,
        rounds: 10,
        run: compare::sliced::bias,
    },
    Validation {
        name: "sliced-aa",
        shows: "unmodified programs in slices: identical arms are called different no more often than expected (25 min)",
        seconds: 30.0,
        rounds: 14,
        run: compare::sliced::same,
    },
    Validation {
        name: "sliced-known-cost",
        shows: "the interval contains a cost planted in an unmodified program by a preloaded library (25 min)",
        seconds: 30.0,
        rounds: 20,
        run: compare::sliced::known_cost,
    },
    Validation {
        name: "compare-others",
        shows: "verdicts of fio run twice, a t-test, hyperfine, and iotoll on identical arms (17 min)",
        seconds: 10.0,
        rounds: 20,
        run: compare::others,
    },
    Validation {
        name: "remote",
        shows: "cost of a remote I/O: iotoll's server and client, nbdkit, fio's client (10 min)",
        seconds: 2.0,
        rounds: 6,
        run: remote::validate,
    },
    Validation {
        name: "integrity",
        shows: "ten million remote I/Os read back as written (3 min)",
        seconds: 1.0,
        rounds: 1,
        run: integrity::validate,
    },
    Validation {
        name: "memory",
        shows: "memory stays small however long a run is (11 min)",
        seconds: 10.0,
        rounds: 1,
        run: memory::validate,
    },
    Validation {
        name: "guests",
        shows: "the same guest executes the same instructions, restored and booted afresh, alone and beside a load (10 min)",
        seconds: 1.0,
        rounds: 10,
        run: guests::validate,
    },
    Validation {
        name: "ftq-resolution",
        shows: "late readings, and what a recorder takes from a writer, by quantum and probes (7 min)",
        seconds: 2.0,
        rounds: 5,
        run: ftq_resolution::validate,
    },
    Validation {
        name: "ftq-periods",
        shows: "planted stalls are found at their period, and none in shuffled series; each recording has its own length (60 min)",
        seconds: 30.0,
        rounds: 20,
        run: ftq_periods::validate,
    },
    Validation {
        name: "start",
        shows: "the first I/O starts soon after the program (under a minute)",
        seconds: 0.2,
        rounds: 10,
        run: start::validate,
    },
    Validation {
        name: "undo",
        shows: "a killed iotoll's settings are restored, and nothing is left behind (4 min)",
        seconds: 1.0,
        rounds: 20,
        run: undo::validate,
    },
    Validation {
        name: "hostile",
        shows: "random hostile inputs by area: server, reports, undo, exhausted resources, odd surroundings; --rounds of each (3 min)",
        seconds: 1.0,
        rounds: 40,
        run: hostile::validate,
    },
];

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

/// Runs the validation named by the first argument.
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
            _ => bail!("unknown option '{name}'\n{}", usage()),
        }
    }
    ensure!(odd.is_empty(), "{} needs a value\n{}", odd.join(" "), usage());
    ensure!((0.05..=3600.0).contains(&options.seconds), "--seconds must be between 0.05 and 3600");
    ensure!((0.05..=36000.0).contains(&options.long), "--long must be between 0.05 and 36000");
    ensure!((1..=1000).contains(&options.rounds), "--rounds must be between 1 and 1000");
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
        assert!(read(&["--rounds"]).unwrap_err().to_string().contains("needs a value"));
    }

    #[test]
    fn the_usage_names_every_validation() {
        assert!(VALIDATIONS.iter().all(|validation| usage().contains(validation.name)));
    }
}
