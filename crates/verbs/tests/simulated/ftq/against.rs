//! A recording beside an earlier one, and two periods in one recording.

use super::machine::{Noise, Planted, Random, amounts, recorded};
use iotoll_verbs::ftq::{FtqRecord, study};
use model::stored::Stored;

const TENTH: Planted = Planted { period: 0.1, stall: 100e-6, jitter: 0.0 };
const SECOND: Planted = Planted { period: 1.0, stall: 2e-3, jitter: 0.0 };
const THIRD: Planted = Planted { period: 0.3, stall: 1e-3, jitter: 0.0 };

fn with(planted: &[Planted], seed: u64) -> FtqRecord {
    let random = &mut Random::new(seed);
    let amounts = amounts(Noise::Drift, planted, 30.0, random);
    recorded(&amounts, Vec::new(), random)
}

#[test]
fn periods_appear_go_and_stay() {
    let then = with(&[TENTH, SECOND], 1);
    let finding = study(&with(&[TENTH, THIRD], 2), Some(&Stored::new("earlier", then)));
    let against = finding.against.unwrap();
    let near = |found: &[f64], planted: Planted| {
        found.len() == 1 && found.iter().all(|found| (found / planted.period - 1.0).abs() < 0.001)
    };
    assert!(near(&against.appeared, THIRD) && near(&against.went, SECOND), "{against:#?}");
    let [kept] = against.kept.as_slice() else { panic!("{against:#?}") };
    let off = [kept.period_seconds / TENTH.period, kept.stall_seconds / TENTH.stall].map(|it| (it - 1.0).abs());
    assert!(off[0] < 0.001 && off[1] < 0.25, "{kept:#?}");
    assert_eq!(finding.head.stored.unwrap().from, "earlier");
}

#[test]
fn another_quantum_is_told_as_other_work() {
    let mut then = with(&[], 1);
    then.header.plan.quantum.0 *= 2;
    let half = then.chunks[0].at.len() / 2;
    then.chunks[0].at.truncate(half);
    then.chunks[0].amount.truncate(half);
    let finding = study(&with(&[], 2), Some(&Stored::new("earlier", then)));
    let told: Vec<&str> = finding.head.warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert!(told.iter().any(|told| told.contains("quantum 880 µs → 440 µs")), "{told:?}");
    assert!(told.iter().any(|told| told.contains("lasted 15.0 s and this one 30.0 s")), "{told:?}");
}
