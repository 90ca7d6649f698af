//! The priorities of single requests: which one a request has, and the latencies of each.

use super::ledger::PriorityLedger;
use crate::error::{Error, Result};
use crate::workload::permutation::{below, split_mix};
use crate::workload::request_source::{Kind, Request, seed};
use model::histogram::Histogram;
use model::plan::{JobPlan, Priority};

/// What one copy of a job draws.
pub(super) struct Priorities {
    dice: u64,
    /// Of reads and writes: what requests have.
    parts: [Vec<Part>; 2],
    /// Per slot, the index of its priority in the ledger; none of a trim.
    slots: Vec<Option<u16>>,
}

/// A part of the requests.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Of this length; of any, if `None`.
    length: Option<u32>,
    /// A number from 0 to 99 below this is of this part, unless it is of one before.
    below: u64,
    priority: u16,
    /// Its index in the ledger.
    index: u16,
}

/// Whether the kernel lets this thread give its requests the priorities of a job.
///
/// # Errors
/// A class that is not allowed, with the fix. Without this each request would fail.
pub(super) fn allowed(plan: &JobPlan) -> Result<()> {
    let wanted = [0, 1].map(|direction| plan.priorities.parts(direction)).concat();
    for (_, _, Priority { class, level, .. }) in wanted {
        // In a thread of its own, because a thread cannot get the priority back that it has by default.
        let tried = std::thread::scope(|scope| scope.spawn(|| sys::schedule::set_io_priority(class, level)).join());
        tried.unwrap_or(Ok(())).map_err(|error| {
            let job = &plan.name;
            let mend = "start iotoll as root, or use cmdprio_class=2 (best effort)";
            Error::Refused(format!(
                "job '{job}': the kernel refuses I/O priority class {class}, level {level}: {error}; {mend}"
            ))
        })?;
    }
    Ok(())
}

impl Priorities {
    /// The priorities of a copy of a job, and their empty ledgers; `None` if all requests have that of the thread.
    pub(super) fn new(plan: &JobPlan, copy: u32) -> Option<(Self, Vec<PriorityLedger>)> {
        if !plan.priorities.is_in_force() {
            return None;
        }
        let mut ledgers: Vec<PriorityLedger> = Vec::new();
        let mut parts = [Vec::new(), Vec::new()];
        for (direction, kind) in [Kind::Read, Kind::Write].into_iter().enumerate() {
            let mut place_of = |priority: Priority| {
                let known = ledgers.iter().position(|ledger| ledger.kind == kind && ledger.priority == priority);
                let place = known.unwrap_or_else(|| {
                    ledgers.push(PriorityLedger { kind, priority, latency: Histogram::new() });
                    ledgers.len() - 1
                });
                u16::try_from(place).unwrap_or(u16::MAX)
            };
            // The rest of a direction has the priority of the thread, which is its first ledger.
            place_of(plan.thread_priority());
            let mut before: Option<(Option<u32>, u64)> = None;
            for (size, percent, priority) in plan.priorities.parts(direction) {
                let length = size.map(|size| u32::try_from(size.0).unwrap_or(u32::MAX));
                let below = before.filter(|(of, _)| *of == length).map_or(0, |(_, below)| below) + u64::from(percent);
                before = Some((length, below));
                let part = Part { length, below, priority: priority.number(), index: place_of(priority) };
                parts.get_mut(direction).into_iter().for_each(|parts| parts.push(part));
            }
        }
        let slots = vec![None; plan.depth.in_flight as usize];
        // Another sequence than that of the requests.
        let dice = split_mix(&mut (seed(plan, copy) ^ 0x0010_0910_u64));
        Some((Self { dice, parts, slots }, ledgers))
    }

    /// The priority of a request; 0 means that of the thread.
    #[inline]
    pub(super) fn draw(&mut self, slot: u32, request: &Request) -> u16 {
        let Self { dice, parts, slots } = self;
        let parts = parts.get(request.kind as usize);
        let mut matching =
            parts.into_iter().flatten().filter(|part| part.length.is_none_or(|length| length == request.length));
        let point = below(split_mix(dice), 100);
        let part = matching.find(|part| point < part.below);
        let index = part.map(|part| part.index);
        if let Some(place) = slots.get_mut(slot as usize) {
            *place = index;
        }
        part.map_or(0, |part| part.priority)
    }

    /// Counts the latency of the request of a slot.
    #[inline]
    pub(super) fn count(&self, slot: u32, kind: Kind, latency: u64, ledgers: &mut [PriorityLedger]) {
        let index = self.slots.get(slot as usize).copied().flatten();
        let ledger = match index {
            Some(index) => ledgers.get_mut(usize::from(index)),
            None => ledgers.iter_mut().find(|ledger| ledger.kind == kind),
        };
        if let Some(ledger) = ledger {
            ledger.latency.record(latency, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::{PriorityPlan, PriorityShare};
    use model::unit::Bytes;

    fn request(kind: Kind, length: u32) -> Request {
        Request { kind, file: 0, offset: 0, length }
    }

    #[test]
    fn requests_of_a_size_have_its_priorities_in_their_shares() {
        let share = |size, percent, class, level| PriorityShare {
            size: Bytes(size),
            percent,
            priority: Some(Priority::from((class, level))),
        };
        let splits = [vec![share(4096, 25, 1, 1), share(4096, 50, 3, 2)], vec![share(512, 100, 2, 7)]];
        let mut plan = JobPlan { priorities: PriorityPlan { splits, ..PriorityPlan::default() }, ..JobPlan::default() };
        plan.thread.io_priority = Some((2, 7));
        let (mut priorities, mut ledgers) = Priorities::new(&plan, 0).unwrap();
        for number in 0..100_000 {
            let drawn = priorities.draw(0, &request(Kind::Read, 4096));
            assert!([0, 0x2001, 0x6002].contains(&drawn));
            priorities.count(0, Kind::Read, number, &mut ledgers);
            assert_eq!(priorities.draw(0, &request(Kind::Read, 8192)), 0, "of another size");
            assert_eq!(priorities.draw(0, &request(Kind::Trim, 4096)), 0, "trims have none");
            priorities.count(0, Kind::Trim, 1, &mut ledgers);
            assert_eq!(priorities.draw(0, &request(Kind::Write, 512)), 0x4007);
            priorities.count(0, Kind::Write, 1, &mut ledgers);
        }
        let shown: Vec<_> =
            ledgers.iter().map(|ledger| (ledger.kind, ledger.priority.number(), ledger.latency.total())).collect();
        let [(_, 0x4007, rest), (_, 0x2001, quarter), (_, 0x6002, half), (Kind::Write, 0x4007, writes)] = shown[..]
        else {
            panic!("{shown:?}")
        };
        // Six standard deviations of these shares.
        assert!(
            quarter.abs_diff(25_000) < 822 && half.abs_diff(50_000) < 949 && rest.abs_diff(25_000) < 822,
            "{shown:?}"
        );
        assert_eq!(writes, 100_000);
        assert!(Priorities::new(&JobPlan::default(), 0).is_none());
    }
}
