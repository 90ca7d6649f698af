//! The study of arbitrary records ends without a panic, with numbers that JSON can hold.

use super::machine::{Noise, Random, amounts, probe, recorded};
use iotoll_verbs::ftq::record::Chunk;
use iotoll_verbs::ftq::{FtqFinding, FtqRecord, study};
use model::probe::Kind;
use model::stored::Stored;
use model::unit::Nanos;
use proptest::prelude::*;

/// A record with two probes and these readings.
fn record_of(quantum: u64, at: Vec<u64>, amount: Vec<u64>, values: Vec<Option<f64>>) -> FtqRecord {
    let probes = vec![probe("a", "pages", Kind::Gauge, vec![0.0; 1]), probe("b", "ns", Kind::Counter, vec![0.0; 1])];
    let mut record = recorded(&[], probes, &mut Random::new(1));
    record.header.plan.quantum = Nanos(quantum);
    record.chunks =
        vec![Chunk { at: at.into_iter().map(Nanos).collect(), amount, probes: vec![values.clone(), values] }];
    record
}

/// Studies it, alone and against itself.
fn survives(record: &FtqRecord) -> FtqFinding {
    let finding = study(record, Some(&Stored::new("itself", record.clone())));
    let json = serde_json::to_value(&finding).unwrap();
    let back: FtqFinding = serde_json::from_value(json).unwrap();
    assert_eq!(back.periodic.len(), finding.periodic.len());
    assert!(finding.noise.available_fraction.is_none_or(|available| (0.0..=1.0).contains(&available)));
    let pictures = &finding.pictures;
    let readings = pictures.seconds.len();
    assert_eq!([pictures.spans.len(), pictures.amount_per_quantum.len()], [readings; 2]);
    assert!(pictures.probes.iter().all(|probe| probe.len() == readings));
    finding
}

#[test]
fn degenerate_records_are_studied() {
    let rows = |count: u64| (0..count).map(|row| row * 440_000).collect::<Vec<_>>();
    for quantum in [0, 440_000, 1, u64::MAX].into_iter().take(if crate::ALL { 4 } else { 2 }) {
        survives(&record_of(quantum, vec![], vec![], vec![]));
        survives(&record_of(quantum, vec![5], vec![7], vec![None]));
        survives(&record_of(quantum, vec![5, 5, 5], vec![7, 7, 7], vec![None; 3]));
        survives(&record_of(quantum, vec![0, u64::MAX], vec![0, u64::MAX], vec![Some(f64::MAX), Some(-f64::MAX)]));
        survives(&record_of(quantum, rows(5000), vec![3; 5000], vec![Some(1.0); 5000]));
        survives(&record_of(quantum, rows(5000), rows(5000), vec![]));
        survives(&record_of(quantum, rows(100), rows(7), vec![Some(f64::NAN); 3]));
        // A comb without any noise.
        let lumps = (0..5000).map(|row| row / 8 * 1_000_000).collect();
        survives(&record_of(quantum, rows(5000), lumps, vec![Some(1.0); 5000]));
    }
    let mut unfinished = record_of(440_000, rows(5000), rows(5000), vec![]);
    unfinished.end = None;
    unfinished.header.probes.clear();
    assert_eq!(survives(&unfinished).head.warnings.len(), 3, "cut off, one step a quantum, and too short");
}

#[test]
fn lumps_are_a_period_even_without_noise() {
    let at = (0..40_000).map(|row| row * 440_000).collect();
    let lumps = (0..40_000).map(|row| row / 8 * 1_000_000).collect();
    let finding = survives(&record_of(440_000, at, lumps, vec![None; 40_000]));
    let period = finding.periodic.first().map(|period| period.period_seconds);
    assert!(period.is_some_and(|period| (period / (8.0 * 440e-6) - 1.0).abs() < 0.01), "{:#?}", finding.periodic);
}

#[test]
fn late_readings_a_lost_probe_and_an_amount_that_goes_back_are_caveats() {
    let random = &mut Random::new(3);
    let amounts = amounts(Noise::Grain, &[], 5.0, random);
    let quanta = amounts.len();
    let mut record = recorded(&amounts, vec![probe("dirty", "pages", Kind::Gauge, vec![1.0; quanta])], random);
    let chunk = &mut record.chunks[0];
    let rows = chunk.at.len();
    for row in chunk.probes[0].iter_mut().skip(rows / 2) {
        *row = None;
    }
    let lost = chunk.amount[rows / 2] / 2;
    for amount in chunk.amount.iter_mut().skip(rows / 2) {
        *amount -= lost;
    }
    // Every tenth reading is missing.
    let mut kept = Chunk { probes: vec![Vec::new()], ..Chunk::default() };
    for row in (0..rows).filter(|row| row % 10 != 9) {
        kept.at.push(chunk.at[row]);
        kept.amount.push(chunk.amount[row]);
        kept.probes[0].push(chunk.probes[0][row]);
    }
    *chunk = kept;
    let finding = survives(&record);
    let warnings = &finding.head.warnings;
    let codes: Vec<_> = warnings.iter().map(|warning| warning.code).collect();
    let expected = ["amount_went_back", "late_readings", "probe_lost", "short_recording"];
    assert_eq!(serde_json::to_value(codes).unwrap(), serde_json::json!(expected), "{warnings:#?}");
    assert!((finding.probes[0].lost_at_seconds.unwrap() - 2.5).abs() < 0.1);
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..1000_u64, 0..u64::MAX, Just(u64::MAX), (0..64_u32).prop_map(|power| 1 << power)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_record_is_a_surprise(
        quantum in number(),
        rows in proptest::collection::vec((number(), number(), proptest::option::of(any::<f64>())), 0..300),
        ascending in any::<bool>(),
    ) {
        let mut at: Vec<u64> = rows.iter().map(|row| row.0).collect();
        if ascending {
            at.sort_unstable();
        }
        let amount = rows.iter().map(|row| row.1).collect();
        survives(&record_of(quantum, at, amount, rows.iter().map(|row| row.2).collect()));
    }
}
