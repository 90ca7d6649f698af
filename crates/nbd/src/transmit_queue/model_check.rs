//! Every interleaving of a few threads, within loom's limits: nothing is lost, duplicated or reordered within a submitter, and
//! somebody always sends what was put.
//!
//! Not checked is that the task of a ring is woken: loom 0.7 forgets an unpark of a thread that has just released a lock (a thread
//! that sets a flag and unparks another, which tests the flag and parks, is a deadlock to it). The ring itself is that of
//! `mp-ring`.

use super::{Queueing, Then, TransmitQueue};
use loom::sync::{Arc, Mutex};
use loom::thread;

/// Involuntary switches that are explored. Most errors of such queues need two.
const SWITCHES: usize = 3;

/// Two threads put two entries each, one by one, and drain when it is their turn. Returns when both have ended.
fn submitters(queue: &Arc<TransmitQueue>, sent: &Arc<Mutex<Vec<u32>>>) {
    let submit = |first: u32| {
        let (queue, sent) = (queue.clone(), sent.clone());
        move || {
            for entry in [first, first + 1] {
                match queue.put(&[entry]) {
                    Then::Nothing => {}
                    Then::Send => sent.lock().unwrap().push(entry),
                    Then::Drain => drain(&queue, &sent),
                }
            }
        }
    };
    let other = thread::spawn(submit(2));
    submit(0)();
    other.join().unwrap();
}

fn drain(queue: &TransmitQueue, sent: &Mutex<Vec<u32>>) {
    // Whoever has the turn may still wait for the one before, as for the socket's lock.
    let mut sent = sent.lock().unwrap();
    queue.drain(&mut Vec::new(), |entries| sent.extend_from_slice(entries));
}

fn complete(sent: &Mutex<Vec<u32>>) {
    let sent = sent.lock().unwrap();
    let of = |first: u32| sent.iter().copied().filter(|entry| entry / 2 == first / 2).collect::<Vec<_>>();
    assert_eq!((of(0), of(2), sent.len()), (vec![0, 1], vec![2, 3], 4), "{sent:?}");
}

fn explore(check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(SWITCHES);
    model.check(check);
}

/// When both have ended, everything is sent: whoever put the last entry has sent it, or passed it to one that has.
#[test]
fn nothing_is_lost_by_who_finds_it_idle() {
    for queueing in [Queueing::MpRing, Queueing::SwapAll] {
        explore(move || {
            let (queue, sent) = (Arc::new(TransmitQueue::new(queueing, 4)), Arc::default());
            submitters(&queue, &sent);
            complete(&sent);
        });
    }
}
