//! The search for the highest queue depth at which latencies stay within a target (`latency_target`). The steps are fio's: the depth doubles
//! until a window fails, then the range between the last good and the first bad depth is halved.

use crate::io_log::Judge;
use model::plan::JobPlan;
use model::record::DepthSearched;
use model::unit::Hertz;

/// What the job does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Search {
    /// Goes on.
    Nothing,
    /// The depth has changed: nothing is issued until all I/Os of the old one are done, which are not judged.
    Settle,
    /// The depth is found: what was counted until now is discarded, and a last window gives the results.
    CountAnew,
    /// The last window is over.
    Done,
    /// An I/O took longer at depth 1.
    Fail,
}

/// The state of the search. Times are in ticks.
pub(in super::super) struct DepthSearch {
    judge: Judge,
    window: u64,
    percentile: f64,
    goes_on: bool,
    most: u32,
    depth: u32,
    low: u32,
    high: u32,
    /// Good windows in a row at a depth just below one that failed.
    stable: u32,
    /// The I/Os of this window are those of the results.
    last: bool,
    /// What follows when all I/Os are done.
    settling: Option<Search>,
    /// When this window began, and the I/Os before it: all, and late ones.
    begin: u64,
    ios_before: u64,
    late_before: u64,
    /// The last window that was judged at this depth: I/Os, and late ones.
    judged: Option<(u64, u64)>,
    /// I/Os that were issued.
    pub issued: u64,
}

impl DepthSearch {
    /// `None` if the depth of the job stays.
    pub fn new(plan: &JobPlan, clock: Hertz) -> Option<Self> {
        let latency = &plan.latency;
        latency.has_target().then(|| Self {
            judge: Judge::new(clock.ticks(latency.target).0),
            window: clock.ticks(latency.window).0,
            percentile: latency.percentile,
            goes_on: latency.goes_on,
            most: plan.depth.in_flight,
            depth: 1,
            low: 1,
            high: plan.depth.in_flight,
            stable: 0,
            last: false,
            settling: None,
            begin: 0,
            ios_before: 0,
            late_before: 0,
            judged: None,
            issued: 0,
        })
    }

    /// Counts late I/Os for the search.
    pub fn judge(&self) -> Judge {
        self.judge.clone()
    }

    /// A window begins; `ios` are done.
    pub fn begin(&mut self, now: u64, ios: u64) {
        (self.begin, self.ios_before, self.late_before) = (now, ios, self.judge.late());
    }

    /// Whether no more may be issued until some of the I/Os in flight are done.
    pub fn is_full(&self, done: u64) -> bool {
        self.issued.saturating_sub(done) >= self.depth.into()
    }

    /// I/Os of this window, and the late ones.
    fn counted(&self, done: u64) -> (u64, u64) {
        (done.saturating_sub(self.ios_before), self.judge.late().saturating_sub(self.late_before))
    }

    /// Judges the window, if it is over or has failed already. `done`: I/Os that are done.
    pub fn step(&mut self, now: u64, done: u64) -> Search {
        if let Some(then) = self.settling {
            if self.issued > done {
                return Search::Settle;
            }
            self.settling = None;
            self.begin(now, done);
            return then;
        }
        let (ios, late) = self.counted(done);
        let all = self.percentile >= 100.0;
        if all && late > 0 {
            return self.failed(true);
        }
        // A window without an I/O says nothing.
        if now.saturating_sub(self.begin) < self.window || ios == 0 {
            return Search::Nothing;
        }
        if within(ios, late) >= self.percentile { self.succeeded(now, done) } else { self.failed(false) }
    }

    fn succeeded(&mut self, now: u64, done: u64) -> Search {
        let before = self.depth;
        self.low = before;
        self.judged = Some(self.counted(done));
        if before + 1 == self.high {
            // After three good windows in a row at the depth below a bad one, the bad one is tried again.
            self.stable += 1;
            if self.stable >= 3 {
                (self.high, self.stable) = (self.high + 1, 0);
            }
        }
        let next = if self.high == self.most { before.saturating_mul(2) } else { before.midpoint(self.high) };
        self.depth = next.clamp(1, self.most.max(1));
        if self.depth != before {
            self.judged = None;
        } else if !self.goes_on {
            if self.last {
                return Search::Done;
            }
            self.last = true;
            self.settling = Some(Search::CountAnew);
            return Search::Settle;
        }
        self.begin(now, done);
        Search::Nothing
    }

    /// `at_once`: a single I/O fails a window.
    fn failed(&mut self, at_once: bool) -> Search {
        if self.depth == 1 {
            // As in fio, the window goes on until it is good, or the job ends.
            return if at_once { Search::Fail } else { Search::Nothing };
        }
        self.high = self.depth;
        if self.depth == self.low {
            self.low -= 1;
        }
        self.depth = self.depth.midpoint(self.low).max(1);
        (self.stable, self.judged, self.last) = (0, None, false);
        self.settling = Some(Search::Nothing);
        Search::Settle
    }

    /// Where the search is. `done`: I/Os that are done.
    pub fn searched(&self, done: u64) -> DepthSearched {
        let settled = if self.settling.is_none() { self.counted(done) } else { (0, 0) };
        let (ios, late) = self.judged.filter(|_| settled.0 == 0 || self.last).unwrap_or(settled);
        DepthSearched { depth: self.depth, found: self.last && self.judged.is_some(), ios, late }
    }
}

/// Percent of the I/Os that were within the target.
fn within(ios: u64, late: u64) -> f64 {
    100.0 * ios.saturating_sub(late) as f64 / ios as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::{Depth, LatencyPlan};
    use model::unit::Nanos;

    fn search(most: u32, percentile: f64, goes_on: bool) -> DepthSearch {
        let latency =
            LatencyPlan { target: Nanos(100), window: Nanos(1000), percentile, goes_on, ..LatencyPlan::default() };
        let depth = Depth { in_flight: most, ..Depth::default() };
        let mut search = DepthSearch::new(&JobPlan { latency, depth, ..JobPlan::default() }, Hertz(1e9)).unwrap();
        search.begin(0, 0);
        search
    }

    /// Runs windows of 100 I/Os in which a tenth is late from depth `bad` on. Returns the depths that were tried.
    fn depths(search: &mut DepthSearch, bad: u32, windows: usize) -> (Vec<u32>, Search) {
        let (mut now, mut done, mut tried) = (0, 0, Vec::new());
        for _ in 0..windows {
            tried.push(search.depth);
            for number in 0..100 {
                let late = search.depth >= bad && number % 10 == 9;
                search.judge().note(if late { 101 } else { 100 });
                (done, now) = (done + 1, now + 10);
                search.issued = done;
                let mut step = search.step(now, done);
                while step == Search::Settle {
                    step = search.step(now, done);
                }
                if step != Search::Nothing && step != Search::CountAnew {
                    return (tried, step);
                }
                if search.begin == now {
                    break;
                }
            }
        }
        (tried, Search::Nothing)
    }

    #[test]
    fn the_depth_doubles_until_a_window_fails_and_is_then_halved_in() {
        let mut found = search(64, 95.0, false);
        assert_eq!(depths(&mut found, 11, 99), (vec![1, 2, 4, 8, 16, 12, 10, 11, 10, 10], Search::Done));
        assert_eq!(found.searched(0), DepthSearched { depth: 10, found: true, ios: 100, late: 0 });
        let mut found = search(8, 95.0, false);
        assert_eq!(depths(&mut found, 99, 99), (vec![1, 2, 4, 8, 8], Search::Done), "the most is good");
    }

    #[test]
    fn one_late_io_fails_a_window_of_all_and_the_job_at_depth_1() {
        let mut found = search(64, 100.0, false);
        let (tried, end) = depths(&mut found, 5, 99);
        assert_eq!((tried.last(), end, found.searched(0).depth), (Some(&4), Search::Done, 4), "{tried:?}");
        assert_eq!(depths(&mut search(64, 100.0, false), 1, 99), (vec![1], Search::Fail));
    }

    #[test]
    fn a_search_that_goes_on_tries_the_next_depth_again() {
        let mut found = search(64, 95.0, true);
        let (tried, end) = depths(&mut found, 11, 40);
        assert_eq!(end, Search::Nothing);
        assert!(tried.iter().skip(6).all(|depth| (8..=12).contains(depth)), "{tried:?}");
        assert!(tried.iter().filter(|depth| **depth == 11).count() >= 3, "{tried:?}");
        assert!(!found.searched(0).found);
    }

    #[test]
    fn a_percentage_that_depth_1_does_not_reach_is_told() {
        let mut found = search(64, 95.0, false);
        assert_eq!(depths(&mut found, 1, 3), (vec![1, 1, 1], Search::Nothing));
        let DepthSearched { depth, found, ios, late } = found.searched(300);
        assert_eq!((depth, found, ios, late), (1, false, 300, 30));
    }

    #[test]
    fn nothing_is_issued_beyond_the_depth() {
        let mut found = search(64, 95.0, false);
        assert!(!found.is_full(0));
        found.issued = 1;
        assert!(found.is_full(0) && !found.is_full(1));
    }
}
