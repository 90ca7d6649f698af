//! Functions have the parts of the cost that were planted, stacks are whole, and a change is found in its function and in no other.

use crate::bench::evidence::{self, Evidence};
use crate::bench::iotoll::{self, Measuring};
use crate::bench::{Bench, fio, rounds};
use anyhow::Context;
use model::comparison::CompareFinding;
use model::finding::{PhaseFinding, RunFinding};
use model::profile::LineFinding;
use std::path::Path;

const MEASURING: Measuring = Measuring { meters: "default", background_millis: 1000, out: None };
/// Furthest that a planted part may be from its truth.
const MOST: f64 = 0.02;
/// Least part of the stacks that must be whole.
const LEAST_WHOLE: f64 = 0.95;
/// A change that is planted in each I/O.
const PLANTED_NANOS: f64 = 60.0;
/// Length of a comparison, as a multiple of that of a run.
const COMPARED: f64 = 6.0;
/// Likewise of the planted functions: 2 % of 70 % are twice the error of some 2000 samples.
const LONG: f64 = 3.0;
/// An I/O of the planted load takes about this long, that of the contended one about the other.
const PLANTED_SECONDS: f64 = 1e-6;
const CONTENDED_SECONDS: f64 = 3e-8;

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let file = bench.file("cached", 64)?;
    let mut evidence = Evidence::default();
    planted(bench, &mut evidence)?;
    contended(bench, &mut evidence)?;
    whole(bench, &file, &mut evidence)?;
    compared(bench, &file, &mut evidence)?;
    Ok(evidence)
}

fn profiled(bench: &Bench, load: &str, times: f64, io_seconds: f64) -> anyhow::Result<PhaseFinding> {
    let ios = (bench.options.seconds * times / io_seconds).round().to_string();
    let flags = ["--profile".to_owned(), format!("--ios={ios}")];
    let found = iotoll::cost(bench, &MEASURING, &flags, &bench.load(&[load, &ios]))?;
    Ok(iotoll::phase(&found)?.clone())
}

/// Cycles per I/O of the functions whose name contains this.
fn cycles(phase: &PhaseFinding, name: &str) -> f64 {
    let named = phase.symbols.iter().filter(|symbol| symbol.symbol.contains(name));
    named.map(|symbol| symbol.cycles_per_io.value).sum()
}

fn planted(bench: &mut Bench, evidence: &mut Evidence) -> anyhow::Result<()> {
    let one = [()];
    let found = bench.in_rounds(
        &one,
        |()| 0,
        |()| "planted functions".to_owned(),
        |bench, ()| {
            let phase = profiled(bench, "planted", LONG, PLANTED_SECONDS)?;
            let [most, rest] = ["planted_seventy", "planted_thirty"].map(|name| cycles(&phase, name));
            let own = phase.accounts.iter().find(|it| it.kind.is_some() && it.cycles_per_io > 0.0);
            let own = own.context("no exact account")?;
            let of_it = phase.symbols.iter().filter(|symbol| symbol.account == own.name);
            let sum: f64 = of_it.map(|symbol| symbol.cycles_per_io.value).sum();
            Ok((most / (most + rest), sum / own.cycles_per_io - 1.0, (most + rest) / own.cycles_per_io))
        },
    )?;
    let found = found.into_iter().next().unwrap_or_default();
    let near = found.iter().filter(|(part, ..)| (part - 0.7).abs() <= MOST).count();
    let sums = found.iter().filter(|(_, off, _)| off.abs() <= MOST).count();
    let rows = found.iter().map(|(part, off, of_account)| {
        let percent = |value: f64| format!("{:.1}", value * 100.0);
        vec![percent(*part), format!("{:.3}", off * 100.0), percent(*of_account)]
    });
    evidence.note("A function that takes 70 % of each I/O, and one that takes 30 %.");
    let heads = ["the larger, % of both", "rows less the account, %", "both, % of the account"];
    evidence.table(&heads, &rows.collect::<Vec<_>>());
    evidence.criterion(near == found.len(), format!("70 ± 2 % of both: {near} of {}", found.len()));
    evidence.criterion(sums == found.len(), format!("rows sum to the account within 2 %: {sums} of {}", found.len()));
    Ok(())
}

fn contended(bench: &mut Bench, evidence: &mut Evidence) -> anyhow::Result<()> {
    let one = [()];
    let found = bench.in_rounds(
        &one,
        |()| 0,
        |()| "a contended counter".to_owned(),
        |bench, ()| {
            let phase = profiled(bench, "contended", 1.0, CONTENDED_SECONDS)?;
            let first = phase.symbols.first().context("no functions")?.symbol.clone();
            let annotated = phase.annotated.iter().find(|it| it.symbol.contains("planted_count"));
            let larger = |one: &&LineFinding, other: &&LineFinding| one.cycles_per_io.total_cmp(&other.cycles_per_io);
            let line = annotated.and_then(|it| it.lines.iter().max_by(larger));
            Ok((first, line.map(|line| line.instruction.clone()).unwrap_or_default()))
        },
    )?;
    let found = found.into_iter().next().unwrap_or_default();
    let held = found.iter().filter(|(symbol, line)| symbol.contains("planted_count") && line.starts_with("lock"));
    let held = held.count();
    let first = found.first().map(|(symbol, line)| format!("{symbol}: {line}")).unwrap_or_default();
    evidence.note(format!("A counter that two threads increment: {first}."));
    let text = format!("the largest function and its line are the locked instruction: {held} of {}", found.len());
    evidence.criterion(held == found.len(), text);
    Ok(())
}

/// A load whose stacks must be whole.
type Load = (&'static str, fn(&Bench, &Path) -> anyhow::Result<RunFinding>);

const LOADS: [Load; 4] = [
    ("fio, psync", |bench, file| of_fio(bench, file, "psync")),
    ("fio, io_uring", |bench, file| of_fio(bench, file, "io_uring")),
    ("iotoll's client, nbdkit", |bench, _| {
        remote(bench, "nbdkit -f -p {port} -i 127.0.0.1 memory 64M", "nbd://127.0.0.1:{server.port}")
    }),
    ("iotoll's client and server", |bench, _| {
        let server = format!(
            "{} serve --threads 1 --backend memory:64m --listen 127.0.0.1:{{port}}",
            bench.iotoll().get_program().display()
        );
        remote(bench, &server, "nbd://127.0.0.1:{server.port}")
    }),
];

fn of_fio(bench: &Bench, file: &Path, engine: &str) -> anyhow::Result<RunFinding> {
    let name = format!("--filename={}", file.display());
    let options = [name.as_str(), "--rw=randread", "--bs=4k", "--size=64m", "--invalidate=0", "--iodepth=4"];
    let command = [&["fio".to_owned()][..], &fio::job(engine, bench.options.seconds, &options)].concat();
    iotoll::cost(bench, &MEASURING, &["--profile".to_owned()], &command)
}

fn remote(bench: &Bench, server: &str, uri: &str) -> anyhow::Result<RunFinding> {
    let service = format!("--service=server={server}");
    let uri = format!("--uri={uri}");
    let options = ["--profile", &service, &uri, "--rw=randread", "--bs=4k", "--size=64m", "--iodepth=8"];
    iotoll::run(bench, &MEASURING, &fio::job("nbd", bench.options.seconds, &options))
}

fn whole(bench: &mut Bench, file: &Path, evidence: &mut Evidence) -> anyhow::Result<()> {
    let found = bench.in_rounds(
        &LOADS,
        |_| 0,
        |(name, _)| (*name).to_owned(),
        |bench, (_, measure)| {
            let found = measure(bench, file)?;
            let profile = iotoll::phase(&found)?.profile.as_ref().context("no profile")?;
            Ok((profile.whole_stacks_fraction.context("no samples of programs")?, profile.samples, profile.lost))
        },
    )?;
    let (mut held, mut all) = (0, 0);
    let mut rows = Vec::new();
    for ((name, _), runs) in LOADS.iter().zip(&found) {
        all += runs.len();
        held += runs.iter().filter(|(whole, ..)| *whole >= LEAST_WHOLE).count();
        let least = runs.iter().map(|(whole, ..)| *whole).reduce(f64::min);
        let sum = |of: fn(&(f64, u64, u64)) -> u64| runs.iter().map(of).sum::<u64>().to_string();
        let least = evidence::number(least.map(|least| least * 100.0), 1);
        rows.push(vec![(*name).to_owned(), least, sum(|run| run.1), sum(|run| run.2)]);
    }
    evidence.table(&["load", "whole stacks, least of a run, %", "samples", "lost"], &rows);
    evidence.criterion(held == all, format!("at least 95 % of the programs' stacks are whole: {held} of {all} runs"));
    Ok(())
}

fn compare(bench: &Bench, file: &Path, arms: &[&str]) -> anyhow::Result<CompareFinding> {
    let mut iotoll = bench.iotoll();
    iotoll.args([
        "compare",
        "--quiet",
        "--no-save",
        "--format=json",
        "--profile",
        "--rw=randread",
        "--bs=4k",
        "--size=64m",
    ]);
    iotoll.arg("--invalidate=0").arg(format!("--filename={}", file.display())).args(arms);
    iotoll.arg(format!("--budget={}s", bench.options.seconds * COMPARED)).arg("--precision=0.1%");
    Ok(serde_json::from_str(&bench.output(&mut iotoll)?)?)
}

fn compared(bench: &mut Bench, file: &Path, evidence: &mut Evidence) -> anyhow::Result<()> {
    let candidate = format!("inject_ns={PLANTED_NANOS}");
    let arms = [vec!["--baseline", "inject_ns=0", "--candidate", &candidate], vec!["--aa"]];
    let found = bench.in_rounds(
        &arms,
        |_| 0,
        |arms| format!("compare {}", arms.join(" ")),
        |bench, arms| {
            let found = compare(bench, file, arms)?;
            let hertz = found.environment.host.clock().0;
            let cell = found.cells.into_iter().next().context("no comparison")?;
            let changed = cell.symbols.into_iter().filter(|symbol| symbol.detected);
            Ok((changed.collect::<Vec<_>>(), hertz))
        },
    )?;
    let [planted, same] = found.as_slice() else { return Ok(()) };
    // The loop that burns is a part of the worker's function or one of its own, as the compiler chose.
    let nanos = |(changed, hertz): &(Vec<model::explained::SymbolChange>, f64)| {
        let own = changed.iter().filter(|symbol| symbol.module == "iotoll");
        own.map(|symbol| symbol.change_cycles_per_io.value).sum::<f64>() / hertz * 1e9
    };
    let nanos: Vec<f64> = planted.iter().map(nanos).collect();
    let detected = nanos.iter().filter(|nanos| **nanos > PLANTED_NANOS / 2.0 && **nanos < PLANTED_NANOS * 1.5).count();
    let elsewhere = |(changed, _): &&(Vec<model::explained::SymbolChange>, f64)| {
        changed.iter().any(|symbol| symbol.module != "iotoll")
    };
    let elsewhere = planted.iter().filter(elsewhere).count();
    let quiet = same.iter().filter(|(changed, _)| changed.is_empty()).count();
    evidence.note(format!(
        "{PLANTED_NANOS} ns in each cached read, in {} s: the functions of iotoll that changed sum to {:.1} ns (mean). In {elsewhere} of {} comparisons \
         another function changed as well.",
        bench.options.seconds * COMPARED,
        rounds::mean(&nanos).value,
        nanos.len()
    ));
    evidence.criterion(
        detected == nanos.len(),
        format!("the planted change is found in its function: {detected} of {}", nanos.len()),
    );
    evidence.criterion(
        same.len() - quiet <= same.len().div_ceil(20),
        format!("identical arms show no function: {quiet} of {}", same.len()),
    );
    Ok(())
}
