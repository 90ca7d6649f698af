//! Samples of planted threads: their calls, owners and windows.

use super::*;
use crate::skipping::note_skipped;
use std::sync::atomic::{AtomicBool, Ordering};

/// `None`, with a printed reason, where stacks may not be sampled.
fn sampling() -> Option<Sampling> {
    let cpus = Cpus::online().unwrap();
    match open(&cpus) {
        Ok(Opened::Sampler(sampling)) => Some(*sampling),
        Ok(_) => unreachable!("the sampler opens as another meter"),
        Err(reason) => {
            note_skipped("sampling", &reason);
            None
        }
    }
}

#[inline(never)]
fn innermost_planted(stop: &AtomicBool) -> u64 {
    let mut turns = 0;
    while !stop.load(Ordering::Relaxed) {
        turns += 1;
        std::hint::black_box(&mut turns);
    }
    turns
}

#[inline(never)]
fn middle_planted(stop: &AtomicBool) -> u64 {
    innermost_planted(stop) + std::hint::black_box(1)
}

#[inline(never)]
fn outermost_planted(stop: &AtomicBool) -> u64 {
    middle_planted(stop) + std::hint::black_box(1)
}

#[test]
fn the_calls_of_a_thread_are_known_from_its_first_function() {
    let Some(mut sampling) = sampling() else { return };
    let stop = Arc::new(AtomicBool::new(false));
    let (send, receive) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().name("planted".to_owned()).spawn({
        let stop = stop.clone();
        move || {
            send.send(sys::schedule::thread_id().unsigned_abs()).unwrap();
            outermost_planted(&stop)
        }
    });
    let owners = Owners { workers: [receive.recv().unwrap()].into(), ..Owners::default() };
    let none = Relations::default();
    let begun = sampling.read(SAMPLED, &owners, &none);
    assert!(begun.profile.is_none());
    std::thread::sleep(Duration::from_millis(500));
    let profile = sampling.read(Mode::Gap, &owners, &none).profile.unwrap();
    stop.store(true, Ordering::Relaxed);
    thread.unwrap().join().unwrap();
    let own: Vec<&Stack> = profile.stacks.iter().filter(|it| it.owner == Some(TaskOwner::Workload)).collect();
    let samples = |stacks: &[&Stack]| stacks.iter().map(|stack| stack.samples).sum::<u64>();
    let names = |stack: &Stack| -> Vec<&str> {
        stack.functions.iter().filter_map(|place| Some(profile.function(*place)?.name.as_str())).collect()
    };
    let planted = |stack: &&&Stack| {
        let planted: Vec<&str> = names(stack).into_iter().filter(|name| name.ends_with("_planted")).collect();
        let called = ["outermost_planted", "middle_planted", "innermost_planted"];
        planted.len() == 3 && planted.iter().zip(called).all(|(name, called)| name.ends_with(called))
    };
    let whole: Vec<&Stack> = own.iter().filter(planted).copied().collect();
    assert!(samples(&own) > 10, "{profile:?}");
    assert!(
        samples(&whole) * 10 > samples(&own) * 9,
        "{:?}",
        own.iter().map(|it| (names(it), it.samples)).collect::<Vec<_>>()
    );
    // The thread begins in the C library.
    assert!(whole.iter().all(|stack| stack.whole && names(stack).len() > 5), "{:?}", whole.first().map(|it| names(it)));
    assert!(own.iter().all(|stack| stack.name == "planted" && stack.kind == AccountKind::Task));
    // A window after which nothing is sampled has none.
    assert!(sampling.read(Mode::Gap, &owners, &none).profile.is_none());
}

#[test]
fn softirqs_are_known_by_their_handlers() {
    assert!(is_softirq_loop("handle_softirqs") && !is_softirq_loop("handle_softirq"));
    assert_eq!(softirq("tasklet_action.isra.0"), Some("tasklet"));
    assert_eq!(softirq("net_rx_action"), Some("net_rx"));
    assert_eq!(softirq("vfs_read"), None);
}
