//! `xtask prove NAME`: measures what the README says of iotoll, and prints the table that stands in RESULTS.md.
//!
//! Each proof is a file and a row here. What is compared is measured in rounds, in an order drawn anew in each;
//! a proof whose criterion is not met ends with status 1.

mod bench;
mod cold_call;
mod compare;
mod disturbance;
mod elsewhere;
mod evidence;
mod fio;
mod foreign_fio;
mod generator_tax;
mod integrity;
mod iotoll;
mod known_cost;
mod memory;
mod memory_disk;
mod natural;
mod placed;
mod placement;
mod remote;
mod rounds;
pub mod seeded;
mod start;
mod undo;

use anyhow::{Context, bail, ensure};
use bench::Bench;
use evidence::Evidence;
use std::process::ExitCode;

/// One proof.
pub struct Proof {
    /// Its name on the command line.
    pub name: &'static str,
    shows: &'static str,
    /// Length of one measurement, unless told.
    seconds: f64,
    /// Rounds, unless told.
    rounds: usize,
    run: fn(&mut Bench) -> anyhow::Result<Evidence>,
}

/// Every proof. The lengths keep each one, all rounds together, to the minutes named.
const PROOFS: [Proof; 19] = [
    Proof {
        name: "natural",
        shows: "thirty natural commands, cold and warm: two regimes are told, and no verdict rests on both; root (10 min)",
        seconds: 4.0,
        rounds: 1,
        run: natural::prove,
    },
    Proof {
        name: "known-cost",
        shows: "each meter finds a cost that is known, also on a busy machine (15 min)",
        seconds: 2.0,
        rounds: 8,
        run: known_cost::prove,
    },
    Proof {
        name: "elsewhere",
        shows: "work that others do for a load is in the machine's figure, not in its threads' (7 min)",
        seconds: 4.0,
        rounds: 12,
        run: elsewhere::prove,
    },
    Proof {
        name: "foreign-fio",
        shows: "`iotoll cost -- fio` and `iotoll run` find the same cost (28 min)",
        seconds: 2.0,
        rounds: 12,
        run: foreign_fio::prove,
    },
    Proof {
        name: "cold-call",
        shows: "what fio's own code makes a read cost that follows it (3 min)",
        seconds: 2.0,
        rounds: 12,
        run: cold_call::prove,
    },
    Proof {
        name: "placement",
        shows: "where a system call instruction lies moves what the call costs (4 min)",
        seconds: 0.5,
        rounds: 12,
        run: placement::prove,
    },
    Proof {
        name: "generator-tax",
        shows: "iotoll takes less of the machine for itself than fio (10 min)",
        seconds: 1.0,
        rounds: 8,
        run: generator_tax::prove,
    },
    Proof {
        name: "disturbance",
        shows: "what each meter does to the load that it measures (5 min)",
        seconds: 2.0,
        rounds: 5,
        run: disturbance::prove,
    },
    Proof {
        name: "compare-aa",
        shows: "identical arms are called different as seldom as the interval says (11 min)",
        seconds: 15.0,
        rounds: 40,
        run: compare::same,
    },
    Proof {
        name: "compare-aa-hog",
        shows: "the same while a hog comes and goes (11 min)",
        seconds: 15.0,
        rounds: 40,
        run: compare::same_beside_a_hog,
    },
    Proof {
        name: "compare-aa-fio",
        shows: "the same for unmodified fio, an execution a slice (11 min)",
        seconds: 15.0,
        rounds: 40,
        run: compare::same_fio,
    },
    Proof {
        name: "compare-injected",
        shows: "the interval holds a change that is known, of 2, 5 and 10 % (15 min)",
        seconds: 15.0,
        rounds: 20,
        run: compare::injected,
    },
    Proof {
        name: "compare-toggle",
        shows: "the same for unmodified fio under a toggle whose cost is known (12 min)",
        seconds: 20.0,
        rounds: 12,
        run: compare::toggled,
    },
    Proof {
        name: "compare-others",
        shows: "what fio twice, a t-test, hyperfine and iotoll say of identical arms (17 min)",
        seconds: 10.0,
        rounds: 20,
        run: compare::others,
    },
    Proof {
        name: "remote",
        shows: "what a remote I/O costs: our server and client, nbdkit, fio's client (10 min)",
        seconds: 2.0,
        rounds: 6,
        run: remote::prove,
    },
    Proof {
        name: "integrity",
        shows: "ten million remote I/Os come back as they were written (3 min)",
        seconds: 1.0,
        rounds: 1,
        run: integrity::prove,
    },
    Proof {
        name: "memory",
        shows: "memory stays small, however long a run is (11 min)",
        seconds: 10.0,
        rounds: 1,
        run: memory::prove,
    },
    Proof {
        name: "start",
        shows: "the first I/O comes soon (under a minute)",
        seconds: 0.2,
        rounds: 10,
        run: start::prove,
    },
    Proof {
        name: "undo",
        shows: "what a killed iotoll had switched is put back, and nothing of it is left (4 min)",
        seconds: 1.0,
        rounds: 20,
        run: undo::prove,
    },
];

/// What a proof was asked for with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Length of one measurement.
    pub seconds: f64,
    /// How many times everything is measured.
    pub rounds: usize,
    /// Seed of the order within the rounds.
    pub seed: u64,
    /// Length of the long run of `memory`.
    pub long: f64,
}

/// How proofs are called.
pub fn usage() -> String {
    let mut text = "       cargo run --release -p xtask -- prove NAME [--seconds S] [--rounds R] [--seed N]".to_owned();
    text += " [--long S (memory)]\n";
    for proof in &PROOFS {
        text += &format!(
            "         {:<14} {}; --seconds {} --rounds {}\n",
            proof.name, proof.shows, proof.seconds, proof.rounds
        );
    }
    text.trim_end().to_owned()
}

/// Runs the proof that is named first.
pub fn main(arguments: &[&str]) -> ExitCode {
    let named = arguments.split_first().and_then(|(name, rest)| {
        let proof = PROOFS.iter().find(|proof| proof.name == *name)?;
        Some((proof, rest))
    });
    let Some((proof, rest)) = named else {
        eprintln!("usage:\n{}", usage());
        return ExitCode::from(2);
    };
    let options = match options(proof, rest) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("prove {}: {error:#}", proof.name);
            return ExitCode::from(2);
        }
    };
    match prove(proof, options) {
        Ok(evidence) if evidence.met() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("prove {}: {error:#}", proof.name);
            ExitCode::FAILURE
        }
    }
}

fn options(proof: &Proof, arguments: &[&str]) -> anyhow::Result<Options> {
    let mut options =
        Options { seconds: proof.seconds, rounds: proof.rounds, seed: u64::from(std::process::id()), long: 600.0 };
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

fn prove(proof: &Proof, options: Options) -> anyhow::Result<Evidence> {
    let mut bench = Bench::new(proof.name, options)?;
    let evidence = (proof.run)(&mut bench)?;
    println!("{}", evidence.heading(proof.name, &options));
    println!("{}", evidence.body());
    Ok(evidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_refused() {
        let read = |words: &[&str]| options(&PROOFS[0], words);
        let found = read(&["--rounds", "3", "--seconds", "0.5", "--seed", "9"]).unwrap();
        assert_eq!(found, Options { seconds: 0.5, rounds: 3, seed: 9, long: 600.0 });
        assert_eq!(read(&[]).unwrap().rounds, PROOFS[0].rounds);
        for wrong in [["--rounds", "x"], ["--rounds", "0"], ["--seconds", "inf"], ["--fast", "1"]] {
            assert!(read(&wrong).is_err(), "{wrong:?}");
        }
        assert!(read(&["--rounds"]).unwrap_err().to_string().contains("lacks its value"));
    }

    #[test]
    fn the_usage_names_every_proof() {
        assert!(PROOFS.iter().all(|proof| usage().contains(proof.name)));
    }
}
