//! Limits of the control groups that a load runs in: what the kernel counts of them, and the caveats about what they did to the load.

use crate::number::separated;
use crate::unit::Nanos;
use crate::warning::{Code, Warning};
use serde::{Deserialize, Serialize};

/// Part of a limit of I/O from which on a window is at the limit. The kernel lets I/Os through in slices of 100 ms (throtl_slice in
/// block/blk-throttle.c), so a short window has somewhat more or less than its share.
const AT_LIMIT: f64 = 0.9;

/// A limit of a control group, with what the kernel has counted so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupLimit {
    /// The group, as /proc/PID/cgroup names it.
    pub group: String,
    /// The file of the group that sets the limit.
    pub file: String,
    /// What is limited.
    pub resource: Resource,
    /// The device whose I/O is limited.
    pub device: Option<String>,
    /// The most that the group may have: CPUs, bytes of memory, or bytes or I/Os per second.
    pub most: f64,
    /// The counters.
    pub counted: Counted,
}

/// What a control group limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// CPU time.
    Cpu,
    /// Memory, with the page cache.
    Memory,
    BytesRead,
    BytesWritten,
    Reads,
    Writes,
}

/// Cumulative counters of a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Of CPU time, periods in which the group was stopped; of memory, how often it wanted more than it may have; of I/O, what it did.
    pub count: u64,
    /// Of CPU time, all periods in which it wanted to run.
    pub periods: Option<u64>,
    /// Of CPU time, how long it was stopped, added up over the CPUs.
    pub throttled_nanos: Option<Nanos>,
}

/// An instant, and the limits as they were then.
pub(crate) type Boundary<'a> = (Nanos, &'a [GroupLimit]);

/// Both ends of a window.
pub(crate) type LimitWindow<'a> = [Boundary<'a>; 2];

/// What a limit did in all windows together.
struct Effect<'a> {
    limit: &'a GroupLimit,
    /// From the first window of each span to its last.
    counted: Counted,
    /// In the windows alone.
    count: u64,
    seconds: f64,
    windows: usize,
    /// Windows in which the load was at the limit.
    limited: usize,
}

/// The caveats about limits that the load reached in some of these windows, which are in spans of time; `called` is what they are called.
pub fn caveats<'a>(spans: impl Iterator<Item = Vec<LimitWindow<'a>>>, called: &str) -> Vec<Warning> {
    let mut effects: Vec<Effect> = Vec::new();
    for span in spans {
        let mut last: &[GroupLimit] = &[];
        for [(begin, before), (end, after)] in span {
            for now in after {
                let Some(then) = before.iter().find(|then| then.is_same(now)) else { continue };
                let place = effects.iter().position(|effect| effect.limit.is_same(now)).unwrap_or_else(|| {
                    effects.push(Effect::of(now));
                    effects.len() - 1
                });
                let Some(effect) = effects.get_mut(place) else { continue };
                effect.add(now.counted.since(then.counted), end.since(begin).seconds());
                let since = last.iter().find(|last| last.is_same(now)).unwrap_or(then);
                effect.counted = effect.counted.plus(now.counted.since(since.counted));
            }
            last = after;
        }
    }
    effects.iter().filter(|effect| effect.limited > 0).map(|effect| effect.caveat(called)).collect()
}

/// Whether one of these caveats says that a limit changed the pace of the load.
pub(crate) fn is_reached(found: &[Warning]) -> bool {
    found.iter().any(|warning| matches!(warning.code, Code::CpuLimited | Code::MemoryLimited | Code::IoLimited))
}

impl GroupLimit {
    /// Whether both are readings of one limit.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.group, &self.file, self.resource, &self.device)
            == (&other.group, &other.file, other.resource, &other.device)
    }

    /// The limit in words: "a CPU quota of 0.30 CPUs (cgroup /x, cpu.max)".
    pub fn words(&self) -> String {
        let (device, most) = (self.device.as_deref().unwrap_or("a device"), self.most);
        let count = || separated(&format!("{most:.0}"));
        let limit = match self.resource {
            Resource::Cpu => format!("CPU quota of {most:.2} CPUs"),
            Resource::Memory => format!("memory limit of {} MiB", separated(&format!("{:.0}", most / 1_048_576.0))),
            Resource::BytesRead => format!("I/O limit of {} bytes per second read from {device}", count()),
            Resource::BytesWritten => format!("I/O limit of {} bytes per second written to {device}", count()),
            Resource::Reads => format!("I/O limit of {} reads per second from {device}", count()),
            Resource::Writes => format!("I/O limit of {} writes per second to {device}", count()),
        };
        let article = if limit.starts_with('I') { "an" } else { "a" };
        format!("{article} {limit} (cgroup {}, {})", self.group, self.file)
    }
}

impl Counted {
    fn since(self, before: Self) -> Self {
        let between = |(now, before): (u64, u64)| now.saturating_sub(before);
        Self {
            count: self.count.saturating_sub(before.count),
            periods: self.periods.zip(before.periods).map(between),
            throttled_nanos: self.throttled_nanos.zip(before.throttled_nanos).map(|(now, then)| now.since(then)),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            periods: other.periods.map(|more| self.periods.unwrap_or(0).saturating_add(more)),
            throttled_nanos: other.throttled_nanos.map(|more| self.throttled_nanos.unwrap_or_default() + more),
        }
    }
}

impl<'a> Effect<'a> {
    fn of(limit: &'a GroupLimit) -> Self {
        Self { limit, counted: Counted::default(), count: 0, seconds: 0.0, windows: 0, limited: 0 }
    }

    /// Adds a window.
    fn add(&mut self, counted: Counted, seconds: f64) {
        let is_limited = match self.limit.resource {
            Resource::Cpu => counted.count > 0 || counted.throttled_nanos.is_some_and(|nanos| nanos > Nanos(0)),
            Resource::Memory => counted.count > 0,
            _ => self.part(counted.count, seconds) >= AT_LIMIT,
        };
        self.limited += usize::from(is_limited);
        self.windows += 1;
        self.seconds += seconds;
        self.count = self.count.saturating_add(counted.count);
    }

    /// The rate of I/O, as a part of the limit.
    fn part(&self, count: u64, seconds: f64) -> f64 {
        if seconds > 0.0 { count as f64 / (seconds * self.limit.most) } else { 0.0 }
    }

    fn caveat(&self, called: &str) -> Warning {
        let count = |count: u64| separated(&count.to_string());
        let seen = match self.windows {
            1 => String::new(),
            all => format!(", in {} of {} {called}", count(self.limited as u64), count(all as u64)),
        };
        let (code, did) = match self.limit.resource {
            Resource::Cpu => {
                let stopped = self.counted.throttled_nanos.unwrap_or_default().seconds();
                let (stops, periods) = (count(self.counted.count), count(self.counted.periods.unwrap_or(0)));
                let did = format!(
                    "stopped the load in {stops} of {periods} periods, for {stopped:.1} s added up over the CPUs{seen}: rates and latencies \
                     there are the quota's, not the machine's; raise the quota, or run outside the cgroup"
                );
                (Code::CpuLimited, did)
            }
            Resource::Memory => {
                let did = format!(
                    "was reached {} times{seen}: the kernel then takes pages of files out of the page cache, so cached reads come from \
                     storage; raise the limit, use smaller files, or run outside the cgroup",
                    count(self.counted.count)
                );
                (Code::MemoryLimited, did)
            }
            _ => {
                let percent = self.part(self.count, self.seconds) * 100.0;
                let did = format!(
                    "was reached{seen} (on average the rate was {percent:.0} % of it): rates and latencies there are the limit's, not the \
                     device's; raise the limit, or run outside the cgroup"
                );
                (Code::IoLimited, did)
            }
        };
        Warning::new(code, format!("{} {did}", self.limit.words()))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A reading of a quota of 0.3 CPUs.
    pub(crate) fn quota(throttled: u64, periods: u64, millis: u64) -> GroupLimit {
        let (throttled_nanos, periods) = (Some(Nanos::from_millis(millis)), Some(periods));
        GroupLimit {
            group: "/x".to_owned(),
            file: "cpu.max".to_owned(),
            resource: Resource::Cpu,
            device: None,
            most: 0.3,
            counted: Counted { count: throttled, periods, throttled_nanos },
        }
    }

    fn other(resource: Resource, most: f64, count: u64) -> GroupLimit {
        let device = (resource != Resource::Memory).then(|| "vda".to_owned());
        let counted = Counted { count, ..Counted::default() };
        GroupLimit { file: "f".to_owned(), resource, device, most, counted, ..quota(0, 0, 0) }
    }

    /// The caveats of readings at whole seconds.
    fn told(readings: &[&[GroupLimit]]) -> Vec<Warning> {
        let at = |second: usize| Some((Nanos::from_secs(second as u64), *readings.get(second)?));
        let windows = (1..readings.len()).filter_map(|second| Some([at(second - 1)?, at(second)?])).collect();
        caveats(std::iter::once(windows), "windows")
    }

    #[test]
    fn between_the_slices_of_a_round_the_kernel_counts_on() {
        let readings = [quota(5, 9, 100), quota(6, 10, 170), quota(8, 12, 310), quota(8, 12, 310)];
        let at = |place: usize| (Nanos::from_secs(place as u64), std::slice::from_ref(&readings[place]));
        let found = caveats([vec![[at(0), at(1)], [at(2), at(3)]], vec![[at(0), at(1)]]].into_iter(), "slices");
        let expected = "in 4 of 4 periods, for 0.3 s added up over the CPUs, in 2 of 3 slices: ";
        assert!(found.len() == 1 && found[0].message.contains(expected), "{found:?}");
    }

    #[test]
    fn a_quota_is_told_with_what_it_stopped() {
        let readings = [quota(5, 9, 100), quota(25, 39, 1600), quota(25, 40, 1600), quota(46, 67, 2500)];
        let found = told(&readings.each_ref().map(std::slice::from_ref));
        assert_eq!(found[0].code, Code::CpuLimited);
        let expected = "a CPU quota of 0.30 CPUs (cgroup /x, cpu.max) stopped the load in 41 of 58 periods, for 2.4 s added up over the CPUs, in 2 of 3 \
                        windows: ";
        assert!(found.len() == 1 && found[0].message.starts_with(expected), "{found:?}");
        assert!(told(&[&[quota(5, 9, 100)], &[quota(5, 12, 100)]]).is_empty(), "a quota that stops nothing");
    }

    #[test]
    fn limits_of_memory_and_io_are_told_if_they_are_reached() {
        let of = |resource, most, counts: [u64; 3]| {
            let readings = counts.map(|count| vec![other(resource, most, count)]);
            told(&readings.each_ref().map(Vec::as_slice))
        };
        let found = of(Resource::Memory, 64.0 * 1_048_576.0, [7, 1241, 1241]);
        let expected = "a memory limit of 64 MiB (cgroup /x, f) was reached 1,234 times, in 1 of 2 windows: ";
        assert!(found[0].code == Code::MemoryLimited && found[0].message.starts_with(expected), "{found:?}");
        let found = of(Resource::Reads, 1000.0, [0, 950, 1050]);
        let expected = "an I/O limit of 1,000 reads per second from vda (cgroup /x, f) was reached, in 1 of 2 windows (on average the \
                        rate was 52 % of it): ";
        assert!(found[0].code == Code::IoLimited && found[0].message.starts_with(expected), "{found:?}");
        assert!(is_reached(&found));
        assert!(of(Resource::Reads, 1000.0, [0, 850, 1700]).is_empty(), "below the limit");
        assert!(of(Resource::Memory, 1e9, [7, 7, 7]).is_empty(), "before the load only");
    }

    #[test]
    fn a_limit_that_appears_later_counts_from_its_first_reading() {
        let memory = other(Resource::Memory, 1e9, 0);
        let later: [&[GroupLimit]; 4] =
            [&[], &[memory.clone(), quota(3, 3, 1)], &[quota(5, 6, 2), memory.clone()], &[memory]];
        let found = told(&later);
        assert!(found.len() == 1 && found[0].message.contains("in 2 of 3 periods"), "{found:?}");
        assert!(!found[0].message.contains("windows"), "there is one: {found:?}");
    }
}
