//! The rates of a job: when the next request of each direction is due, and whether the least rate is met.

use crate::workload::permutation::split_mix;
use crate::workload::request_source::{Kind, Request};
use model::plan::{Access, JobPlan, RateProcess};
use model::unit::{Bytes, Hertz};

/// The schedule of each direction. It does not slip: what is late is caught up.
pub(super) struct Rates {
    /// Ticks of a request, and of each of its bytes; both 0 means no limit.
    per_io: [f64; 3],
    per_byte: [f64; 3],
    /// Ticks from the begin to the next request.
    scheduled: [f64; 3],
    begin: u64,
    /// The state of the random times of a Poisson process.
    dice: Option<u64>,
}

impl Rates {
    pub fn new(plan: &JobPlan, clock: Hertz) -> Self {
        let ticks = |rate: u64| if rate == 0 { 0.0 } else { clock.0 / rate as f64 };
        Self {
            per_io: plan.rates.each().map(ticks),
            per_byte: plan.pace.bytes.each().map(ticks),
            scheduled: [0.0; 3],
            begin: 0,
            dice: (plan.pace.process == RateProcess::Poisson).then_some(0x0ca1_15ee),
        }
    }

    pub fn is_in_force(&self) -> bool {
        self.per_io.iter().chain(&self.per_byte).any(|ticks| *ticks > 0.0)
    }

    pub fn begin(&mut self, now: u64) {
        (self.begin, self.scheduled) = (now, [0.0; 3]);
    }

    /// Everything that is not issued yet is due later by this.
    pub fn delay(&mut self, ticks: u64) {
        self.begin = self.begin.saturating_add(ticks);
    }

    /// When the next request of each direction is due.
    pub fn due(&self) -> [u64; 3] {
        self.scheduled.map(|ticks| self.begin.saturating_add(ticks as u64))
    }

    /// A request is issued.
    pub fn note_issued(&mut self, request: &Request) {
        let kind = request.kind as usize;
        let (Some(scheduled), Some(per_io), Some(per_byte)) =
            (self.scheduled.get_mut(kind), self.per_io.get(kind), self.per_byte.get(kind))
        else {
            return;
        };
        let ticks = per_io + per_byte * f64::from(request.length);
        *scheduled += match &mut self.dice {
            None => ticks,
            Some(dice) => ticks * exponential(dice),
        };
    }
}

/// A number of an exponential distribution with mean 1.
fn exponential(dice: &mut u64) -> f64 {
    // 53 bits, and never 0.
    let uniform = ((split_mix(dice) >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
    -uniform.ln()
}

/// `rate_min` and `rate_iops_min`.
pub(super) struct Least {
    ios: [u64; 3],
    bytes: [u64; 3],
    cycle_ticks: u64,
    cycle_seconds: f64,
    cycle_end: u64,
    /// I/Os and bytes that were issued in this cycle.
    issued: [(u64, u64); 3],
}

impl Least {
    /// `None` if the job has no least rate.
    pub fn new(plan: &JobPlan, clock: Hertz) -> Option<Self> {
        let reads = matches!(plan.access, Access::Read | Access::ReadWrite);
        let trims = matches!(plan.access, Access::Trim | Access::TrimWrite);
        let used = [reads, plan.access.writes(), trims].map(u64::from);
        let of_used = |rates: [u64; 3]| std::array::from_fn(|kind| rates[kind] * used[kind]);
        let (ios, bytes): ([u64; 3], [u64; 3]) =
            (of_used(plan.pace.least_ios.each()), of_used(plan.pace.least_bytes.each()));
        let least = ios.iter().chain(&bytes).any(|rate| *rate > 0);
        least.then(|| Self {
            ios,
            bytes,
            cycle_ticks: clock.ticks(plan.pace.cycle).0.max(1),
            cycle_seconds: plan.pace.cycle.duration().as_secs_f64(),
            cycle_end: u64::MAX,
            issued: [(0, 0); 3],
        })
    }

    pub fn begin(&mut self, now: u64) {
        (self.cycle_end, self.issued) = (now.saturating_add(self.cycle_ticks), [(0, 0); 3]);
    }

    pub fn note_issued(&mut self, request: &Request) {
        if let Some((ios, bytes)) = self.issued.get_mut(request.kind as usize) {
            *ios += 1;
            *bytes += u64::from(request.length);
        }
    }

    /// Why the job has to end, if a cycle is over in which it was too slow.
    pub fn missed(&mut self, now: u64) -> Option<String> {
        if now < self.cycle_end {
            return None;
        }
        let passed = self.cycle_ticks + (now - self.cycle_end);
        let seconds = self.cycle_seconds * passed as f64 / self.cycle_ticks as f64;
        let mut missed = None;
        for kind in Kind::ALL {
            let place = kind as usize;
            let (Some((ios, bytes)), Some(least_ios), Some(least_bytes)) =
                (self.issued.get(place), self.ios.get(place), self.bytes.get(place))
            else {
                continue;
            };
            let word = ["reads", "writes", "trims"][place];
            let (ios, bytes) = (*ios as f64 / seconds, *bytes as f64 / seconds);
            if ios < *least_ios as f64 {
                missed = Some(format!("{word} run at {ios:.0} I/Os per second, less than rate_iops_min={least_ios}"));
            }
            if bytes < *least_bytes as f64 {
                let found = Bytes(bytes as u64).0;
                missed = Some(format!("{word} run at {found} bytes per second, less than rate_min={least_bytes}"));
            }
        }
        self.begin(now);
        missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::{Pace, Rates as Limits};
    use model::unit::Nanos;

    const CLOCK: Hertz = Hertz(1e9);

    fn request(kind: Kind, length: u32) -> Request {
        Request { kind, file: 0, offset: 0, length }
    }

    #[test]
    fn bytes_and_ios_are_due_at_their_rates_without_drift() {
        let bytes = Limits { read: 3_000_000, write: 0, trim: 0 };
        let plan = JobPlan { pace: Pace { bytes, ..Pace::default() }, ..JobPlan::default() };
        let mut rates = Rates::new(&plan, CLOCK);
        rates.begin(100);
        assert_eq!(rates.due(), [100; 3]);
        (0..3000).for_each(|_| rates.note_issued(&request(Kind::Read, 1000)));
        // A third of a millisecond each, a million of them: one second.
        assert_eq!(rates.due(), [1_000_000_100, 100, 100]);
        rates.delay(50);
        assert_eq!(rates.due()[0], 1_000_000_150);
        let plan = JobPlan { rates: Limits { read: 3, write: 0, trim: 0 }, ..JobPlan::default() };
        let mut rates = Rates::new(&plan, CLOCK);
        (0..3).for_each(|_| rates.note_issued(&request(Kind::Read, 1000)));
        assert_eq!(rates.due()[0], 1_000_000_000);
    }

    #[test]
    fn a_poisson_process_has_the_rate_as_its_mean_and_as_its_deviation() {
        let pace = Pace { process: RateProcess::Poisson, ..Pace::default() };
        let plan = JobPlan { rates: Limits { read: 1000, write: 0, trim: 0 }, pace, ..JobPlan::default() };
        let mut rates = Rates::new(&plan, CLOCK);
        let mut times = Vec::new();
        for _ in 0..100_000 {
            let before = rates.due()[0];
            rates.note_issued(&request(Kind::Read, 512));
            times.push((rates.due()[0] - before) as f64 / 1e6);
        }
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / times.len() as f64;
        assert!((mean - 1.0).abs() < 0.02 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }

    #[test]
    fn a_job_below_its_least_rate_is_found_at_the_end_of_a_cycle() {
        let least_bytes = Limits { read: 1_000_000, write: 1_000_000, trim: 1_000_000 };
        let pace = Pace { least_bytes, cycle: Nanos(500_000_000), ..Pace::default() };
        let plan = JobPlan { access: Access::Write, pace, ..JobPlan::default() };
        assert!(Least::new(&JobPlan::default(), CLOCK).is_none());
        let mut least = Least::new(&plan, CLOCK).unwrap();
        least.begin(0);
        (0..123).for_each(|_| least.note_issued(&request(Kind::Write, 4096)));
        assert_eq!((least.missed(499_999_999), least.missed(500_000_000)), (None, None), "1.008 MB a second");
        (0..100).for_each(|_| least.note_issued(&request(Kind::Write, 4096)));
        assert_eq!(least.missed(999_999_999), None);
        let why = least.missed(1_000_000_000).unwrap();
        assert_eq!(why, "writes run at 819200 bytes per second, less than rate_min=1000000");
    }
}
