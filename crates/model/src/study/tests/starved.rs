//! Windows that are missing because real-time tasks left iotoll no CPU.

use super::*;
use crate::record::{Holder, Starved};

fn message(starved: Option<Starved>) -> Option<String> {
    let load = Happening { busy: 100_000_000, thread: 80_000_000, ios: 1000, steal: 0 };
    let whole = Stretch { starved: starved.map(Box::new), ..quiet(6, load) };
    let found = study(&record(vec![quiet(6, NOTHING)], vec![execution(whole, 6000)]));
    let mut told = found.head.warnings.into_iter().filter(|warning| warning.code == Code::Starved);
    told.next().map(|warning| warning.message)
}

#[test]
fn a_wait_for_a_cpu_is_told_with_who_held_it() {
    assert_eq!(message(None), None);
    let holder = |name: &str, priority, cpu| Holder { name: name.to_owned(), priority, cpu };
    let waited_nanos = Nanos::from_millis(2900);
    let held =
        Starved { waited_nanos, priority: Some(98), holders: vec![holder("spin", 99, 0), holder("spin", 99, 1)] };
    let told = message(Some(held.clone())).unwrap();
    assert!(
        told.starts_with("iotoll got no CPU for 2.9 s while windows were to end: real-time tasks held them: "),
        "{told}"
    );
    assert!(told.contains("spin (priority 99, CPU 0), spin (priority 99, CPU 1); iotoll has priority 98"), "{told}");
    let gone = message(Some(Starved { holders: Vec::new(), ..held.clone() })).unwrap();
    assert!(gone.contains("its real-time priority is 98; tasks with a higher one held all CPUs, or"), "{gone}");
    let ordinary = message(Some(Starved { holders: Vec::new(), priority: None, ..held })).unwrap();
    assert!(ordinary.contains("no right to a real-time priority; run as root"), "{ordinary}");
}
