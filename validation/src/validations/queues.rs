//! The transmit queues of seed 004 on a UDP socket: packets per second and context switches by number of submitters, with the
//! queue's thread and the receiver on the submitters' CPU or on another.

use crate::bench::evidence::{self, Evidence};
use crate::bench::{Bench, rounds};
use anyhow::{Context, ensure};
use model::blast::finding::PointFinding;
use model::blast::{BlastFinding, Method};

/// Numbers of submitters; the last is what the seed's thread asks for.
const SUBMITTERS: [u32; 6] = [1, 2, 4, 8, 16, 128];
/// The number at which a queue must still do what it can.
const MANY: u32 = 16;
/// Part of its own peak that a queue must keep there.
const KEPT: f64 = 0.95;
/// Part of the switches of a queue with a thread.
const SWITCHES: f64 = 0.1;
/// Part of a lock's packets that one submitter must send.
const ALONE: f64 = 0.95;
/// Rounds in which one submitter is measured, and for how many times as long as the points.
const ALONE_ROUNDS: u32 = 20;
const ALONE_LENGTHS: f64 = 5.0;

/// A placement: its name, and flags.
const PLACES: [(&str, &[&str]); 3] = [
    ("the scheduler decides", &[]),
    ("submitters and task on CPU 0, receiver on CPU 1", &["--submitter-cpus=0", "--task-cpu=0", "--receiver-cpu=1"]),
    ("submitters on CPU 0, task and receiver on CPU 1", &["--submitter-cpus=0", "--task-cpu=1", "--receiver-cpu=1"]),
];

fn blast(bench: &Bench, words: &[String], flags: &[&str]) -> anyhow::Result<BlastFinding> {
    let mut iotoll = bench.iotoll();
    iotoll.args(["blast", "--quiet", "--no-save", "--format=json"]).args(words).args(flags);
    let finding: BlastFinding = serde_json::from_str(&bench.output(&mut iotoll)?)?;
    let lost = finding.points.iter().find(|point| point.packets.unaccounted != 0);
    ensure!(lost.is_none(), "packets are unaccounted for: {lost:?}");
    Ok(finding)
}

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let seconds = bench.options.seconds;
    let words = [
        "--method=shared".to_owned(),
        "--rounds=4".to_owned(),
        format!("--submitters={}", SUBMITTERS.map(|number| number.to_string()).join(",")),
        format!("--duration={seconds}"),
    ];
    let found = bench.in_rounds(
        &PLACES,
        |place| place.1.len(),
        |place| place.0.to_owned(),
        |bench, (_, flags)| blast(bench, &words, flags),
    )?;
    // Few points in many rounds: the first is the lock's, to which the others are compared within each round.
    let alone = [
        "--method=lock,mp-ring,swap-all".to_owned(),
        "--submitters=1".to_owned(),
        format!("--rounds={ALONE_ROUNDS}"),
        format!("--duration={}", ALONE_LENGTHS * seconds),
    ];
    // None of them has a task.
    let submitters = |flags: &[&'static str]| -> Vec<&'static str> {
        flags.iter().copied().filter(|flag| !flag.starts_with("--task-cpu")).collect()
    };
    let alone: Vec<BlastFinding> =
        PLACES.iter().map(|(_, flags)| blast(bench, &alone, &submitters(flags))).collect::<anyhow::Result<_>>()?;
    let mut evidence = Evidence::default();
    evidence.note(
        "Payload 5 bytes, loopback, one socket for all submitters. Each cell: packets that the kernel accepted in thousands per second, \
         and context switches per delivered packet; means of rounds. One submitter is compared with a lock in a measurement of its own, \
         within each of its 20 rounds. Published (FreeBSD, mlx5en and iflib, another machine): 1377+0 kpps \
         with a lock-free path, 1270 to 1279 with a queue task, which made 1 M switches per second, about one per 2 packets, where there \
         were 16 k before.",
    );
    for (((place, _), findings), alone) in PLACES.iter().zip(&found).zip(&alone) {
        let values = |method: Method, submitters: u32, of: fn(&PointFinding) -> f64| -> anyhow::Result<Vec<f64>> {
            let point = |finding: &BlastFinding| {
                let found =
                    finding.points.iter().find(|point| (point.method, point.submitters) == (method, submitters));
                found.map(of)
            };
            findings.iter().map(point).collect::<Option<_>>().context("a point was not measured")
        };
        let sent = |point: &PointFinding| point.sent_per_second;
        let switches = |point: &PointFinding| {
            point.context_switches_per_packet.map_or(f64::NAN, |switches| switches.value.max(0.0))
        };
        let mut rows = Vec::new();
        for method in Method::SHARED {
            let mut row = vec![method.name().to_owned()];
            for submitters in SUBMITTERS {
                let rate = rounds::mean(&values(method, submitters, sent)?).value / 1e3;
                let switched = rounds::mean(&values(method, submitters, switches)?).value;
                row.push(format!("{rate:.0}, {}", evidence::number(Some(switched), 3)));
            }
            rows.push(row);
        }
        let heads: Vec<String> =
            std::iter::once("queue".to_owned()).chain(SUBMITTERS.map(|number| format!("{number}"))).collect();
        evidence.note(format!("**{place}**"));
        evidence.table(&heads.iter().map(String::as_str).collect::<Vec<_>>(), &rows);
        let kept = |method: Method| -> anyhow::Result<f64> {
            let rates = SUBMITTERS.iter().filter(|number| **number <= MANY);
            let rates = rates.map(|number| Ok(rounds::mean(&values(method, *number, sent)?).value));
            let rates: anyhow::Result<Vec<f64>> = rates.collect();
            let last = rounds::mean(&values(method, MANY, sent)?).value;
            Ok(last / rates?.into_iter().fold(0.0, f64::max))
        };
        let of_task = rounds::mean(&values(Method::RingTask, MANY, switches)?).value;
        for method in [Method::MpRing, Method::SwapAll] {
            let (part, switched) = (kept(method)?, rounds::mean(&values(method, MANY, switches)?).value);
            evidence.criterion(
                part >= KEPT,
                format!("{place}: {} keeps {:.0} % of its own peak at {MANY} submitters", method.name(), part * 100.0),
            );
            evidence.criterion(
                switched <= SWITCHES * of_task,
                format!("{place}: {} makes {:.2} × ring-task's switches at {MANY}", method.name(), switched / of_task),
            );
            let alone = alone.points.iter().find(|point| point.method == method).and_then(|point| point.sent_ratio);
            let alone = alone.context("the ratio to a lock with one submitter is unknown")?;
            evidence.criterion(
                alone.low.is_some_and(|low| low >= ALONE),
                format!(
                    "{place}: one submitter sends {} × a lock's packets by {}",
                    evidence::interval(&alone, 2),
                    method.name()
                ),
            );
        }
        let best = Method::SHARED
            .into_iter()
            .map(|method| Ok((rounds::mean(&values(method, MANY, sent)?).value, method.name())));
        let best: anyhow::Result<Vec<(f64, &str)>> = best.collect();
        if let Some((rate, name)) = best?.into_iter().max_by(|one, other| one.0.total_cmp(&other.0)) {
            evidence.note(format!("{place}: at {MANY} submitters {name} sends most, {:.0} kpps.", rate / 1e3));
        }
    }
    Ok(evidence)
}
