//! The CPUs of a round, which its arms share: for which loads that is right, and which CPUs they are.
//!
//! CPUs differ, for example because a neighbour uses the other half of the core, and the scheduler rarely moves a thread that
//! never sleeps: each arm of a round would have CPUs of its own. Measured in docs/method/commands.md.

use jobs::workload::permutation::Shuffler;
use lab::error::{Error, Result};
use model::plan::{JobPlan, Medium};
use std::collections::BTreeMap;
use std::time::Duration;
use sys::schedule::{allowed_cpus, allowed_cpus_of, pin_to};

/// Parts of the time that a busy thread uses at least (others take the CPU at times), and that an idle one uses at most.
const BUSY: f64 = 0.85;
const NOTICEABLE: f64 = 0.05;

/// CPU time of threads, by process and thread, in nanoseconds.
pub(super) type ThreadTimes = BTreeMap<(u32, u32), u64>;

/// Whether one thread used nearly all of this time on any CPU that iotoll may use, and no other a noticeable part.
pub(super) fn keeps_one_thread_busy(before: &ThreadTimes, after: &ThreadTimes, time: Duration) -> bool {
    let thread = busy_thread(before, after, time);
    // One that was confined says where it wants to run.
    thread.is_some_and(|thread| allowed_cpus_of(thread).ok() == allowed_cpus().ok())
}

fn busy_thread(before: &ThreadTimes, after: &ThreadTimes, time: Duration) -> Option<u32> {
    let used = |(thread, nanos): (&(u32, u32), &u64)| {
        (thread.1, Duration::from_nanos(nanos.saturating_sub(before.get(thread).copied().unwrap_or(0))))
    };
    let mut noticeable = after.iter().map(used).filter(|(_, used)| *used > time.mul_f64(NOTICEABLE));
    let (thread, used) = noticeable.next()?;
    (noticeable.next().is_none() && used > time.mul_f64(BUSY)).then_some(thread)
}

/// Whether iotoll chooses the CPUs of a job's threads: nobody else does, and all that works for it is on them, not on those of a server.
pub(super) fn may_be_placed(job: &JobPlan) -> bool {
    job.thread.cpus_allowed.is_empty() && job.engine.medium() != Medium::Remote
}

/// CPUs to draw from, each first once before any comes first again.
#[derive(Debug, Default)]
pub(super) struct Deck {
    left: Vec<u32>,
}

/// The CPUs of a round's arms, and the others, for iotoll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Drawn {
    pub cpus: Vec<u32>,
    others: Vec<u32>,
}

impl Deck {
    /// The CPUs of the next round: this many, or all.
    ///
    /// # Errors
    /// When the CPUs cannot be listed.
    pub fn draw(&mut self, count: usize, shuffler: &mut Shuffler) -> Result<Drawn> {
        let listing = |error| Error::instrument("listing CPUs", error);
        let allowed = allowed_cpus().map_err(listing)?;
        self.left.retain(|cpu| allowed.contains(cpu));
        if self.left.is_empty() {
            self.left = shuffler.shuffled(allowed.iter().copied());
        }
        let first = self.left.pop().ok_or_else(|| listing(std::io::ErrorKind::NotFound.into()))?;
        let further = shuffler.shuffled(allowed.into_iter().filter(|other| *other != first));
        let mut cpus: Vec<u32> = std::iter::once(first).chain(further).collect();
        let others = cpus.split_off(count.clamp(1, cpus.len()));
        Ok(Drawn { cpus, others })
    }
}

impl Drawn {
    /// Moves this thread to the other CPUs, if there are others, until the guard is dropped: a reader that preempts a command in the
    /// middle of a submission cannot see its ring.
    ///
    /// # Errors
    /// When this thread may not use them.
    pub fn step_aside(&self) -> Result<Aside> {
        let failed = |error| Error::instrument("moving beside the commands", error);
        let before = allowed_cpus().map_err(failed)?;
        if !self.others.is_empty() {
            pin_to(&self.others).map_err(failed)?;
        }
        Ok(Aside { before })
    }
}

/// Lets this thread run where it ran before, on drop.
#[derive(Debug)]
pub(super) struct Aside {
    before: Vec<u32>,
}

impl Drop for Aside {
    fn drop(&mut self) {
        // CPUs that went offline are left out by the kernel.
        let _ = pin_to(&self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_one_busy_thread_is_recognised() {
        let times = |millis: &[u64]| -> ThreadTimes {
            (1..).map(|thread| (1, thread)).zip(millis.iter().map(|millis| millis * 1_000_000)).collect()
        };
        let busy = |used: &[u64]| busy_thread(&times(&[0, 0]), &times(used), Duration::from_secs(1));
        assert_eq!((busy(&[990, 3]), busy(&[3, 990])), (Some(1), Some(2)));
        for several in [&[500, 490][..], &[990, 990], &[300], &[900, 80], &[]] {
            assert_eq!(busy(several), None, "{several:?}");
        }
        assert_eq!(busy_thread(&times(&[700]), &times(&[1000]), Duration::from_secs(1)), None, "what it used before");
    }

    #[test]
    fn each_cpu_comes_once_before_any_comes_again() {
        let (mut deck, mut shuffler) = (Deck::default(), Shuffler::new(1));
        let allowed = allowed_cpus().unwrap();
        for _ in 0..3 {
            let mut drawn: Vec<u32> = allowed.iter().map(|_| deck.draw(1, &mut shuffler).unwrap().cpus[0]).collect();
            drawn.sort_unstable();
            assert_eq!(drawn, allowed);
        }
        let drawn = deck.draw(1, &mut shuffler).unwrap();
        let aside = drawn.step_aside().unwrap();
        let now = allowed_cpus().unwrap();
        assert!(allowed.len() == 1 || !now.contains(&drawn.cpus[0]), "{now:?}");
        drop(aside);
        assert_eq!(allowed_cpus().unwrap(), allowed);
    }
}
