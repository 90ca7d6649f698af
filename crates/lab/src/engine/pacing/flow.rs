//! Jobs that share a flow do I/Os in proportion to their weights: fio's `flow`.

use model::plan::Together;
use model::unit::Hertz;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the jobs of one flow have in common.
#[derive(Debug, Default)]
struct Shared {
    /// I/Os of the workers that take part.
    ios: AtomicU64,
    /// The sum of their weights.
    weights: AtomicU64,
}

/// The flows of jobs that run at the same time, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Flows(BTreeMap<u32, Arc<Shared>>);

impl Flows {
    /// The share of one more worker; `None` if its job takes no part in a flow.
    pub fn join(&mut self, job: &Together) -> Option<FlowShare> {
        if job.flow == 0 {
            return None;
        }
        let shared = self.0.entry(job.flow_id).or_default().clone();
        shared.weights.fetch_add(job.flow.into(), Ordering::Relaxed);
        Some(FlowShare { shared, weight: job.flow.into(), own: 0, sleep: job.flow_sleep })
    }
}

/// The part of a worker in its flow. It leaves the flow when it is dropped, so that the others do not wait for it.
#[derive(Debug)]
pub(crate) struct FlowShare {
    shared: Arc<Shared>,
    weight: u64,
    /// I/Os of this worker.
    own: u64,
    sleep: model::unit::Nanos,
}

impl FlowShare {
    /// How long to wait before the next I/O, in ticks; `None` if it may be issued.
    pub fn wait(&self, clock: Hertz) -> Option<u64> {
        /// Without `flow_sleep`, the time in which another thread can do an I/O.
        const LOOK_AGAIN: model::unit::Nanos = model::unit::Nanos(1_000);
        let ios = u128::from(self.shared.ios.load(Ordering::Relaxed));
        let weights = u128::from(self.shared.weights.load(Ordering::Relaxed));
        let ahead = u128::from(self.own) * weights > ios * u128::from(self.weight);
        ahead.then(|| clock.ticks(self.sleep.max(LOOK_AGAIN)).0)
    }

    pub fn note_issued(&mut self) {
        self.own += 1;
        self.shared.ios.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for FlowShare {
    fn drop(&mut self) {
        self.shared.ios.fetch_sub(self.own, Ordering::Relaxed);
        self.shared.weights.fetch_sub(self.weight, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ios_are_in_proportion_to_the_weights_until_a_job_ends() {
        let mut flows = Flows::default();
        let job = |flow, flow_id| Together { flow, flow_id, ..Together::default() };
        assert!(flows.join(&job(0, 1)).is_none());
        let mut other = flows.join(&job(5, 2)).unwrap();
        let [mut light, mut heavy] = [1, 8].map(|weight| flows.join(&job(weight, 1)).unwrap());
        let (mut light_ios, mut heavy_ios) = (0, 0);
        for _ in 0..9_000 {
            for (share, ios) in [(&mut light, &mut light_ios), (&mut heavy, &mut heavy_ios)] {
                if share.wait(Hertz(1e9)).is_none() {
                    share.note_issued();
                    *ios += 1;
                }
            }
            // Another flow never waits for this one.
            assert_eq!(other.wait(Hertz(1e9)), None);
            other.note_issued();
        }
        let ratio = f64::from(heavy_ios) / f64::from(light_ios);
        assert!(light_ios > 900 && (7.9..8.1).contains(&ratio), "{light_ios} and {heavy_ios}");
        light.note_issued();
        assert!(light.wait(Hertz(1e9)).is_some());
        drop(heavy);
        assert!(light.wait(Hertz(1e9)).is_none(), "it is alone now");
    }
}
