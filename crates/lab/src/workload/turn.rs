//! The file of the next request, where files do not simply take turns: `file_service_type` and `openfiles`. The rules are fio's.

use super::permutation::{below, split_mix};
use model::plan::{JobPlan, Service};

/// fio draws blocks of 1/1024 of a file by Zipf's law.
const ZIPF_BLOCKS: u32 = 1024;

/// The files that are in service, and whose turn it is.
#[derive(Clone, Debug)]
pub struct Turn {
    rule: Service,
    files: usize,
    /// Requests of a turn.
    requests: u64,
    /// Of those, the ones that are still to come.
    left: u64,
    /// Files in service, at most `most`.
    active: Vec<u32>,
    most: usize,
    /// Files that wait for one in service to be done, the next one last.
    waiting: Vec<u32>,
    /// Index in `active` of the file whose turn it is.
    at: usize,
    dice: u64,
    /// Of a law: the index in `active` of each file.
    place: Vec<u32>,
    /// Zipf's law: the probability of this file and those before it, from `first` on.
    up_to: Vec<f64>,
    /// The file that Zipf's and Pareto's law prefer.
    first: usize,
}

impl Turn {
    /// `None` if all files are in service and take turns after each request.
    pub fn new(plan: &JobPlan, files: usize, seed: u64) -> Option<Self> {
        let most = if plan.files.open == 0 { files } else { files.min(plan.files.open as usize) };
        let rule = plan.files.service;
        if files < 2 || (rule == Service::RoundRobin { ios: 1 } && most >= files) {
            return None;
        }
        let requests = match rule {
            Service::RoundRobin { ios } | Service::Random { ios } => ios.into(),
            Service::Sequential => u64::MAX,
            Service::Zipf { .. } | Service::Pareto { .. } | Service::Gauss { .. } => 1,
        };
        let mut dice = seed;
        let first = below(split_mix(&mut dice), files as u64) as usize;
        let up_to = match rule {
            Service::Zipf { theta } => zipf(theta, files),
            _ => Vec::new(),
        };
        let place = if is_law(rule) { vec![NONE; files] } else { Vec::new() };
        let (active, waiting) = (Vec::with_capacity(most), Vec::with_capacity(files));
        let mut turn = Self { rule, files, requests, left: 0, active, most, waiting, at: 0, dice, place, up_to, first };
        turn.begin_pass();
        Some(turn)
    }

    /// All files are to be served again.
    pub fn begin_pass(&mut self) {
        self.left = 0;
        self.at = 0;
        self.active.clear();
        self.waiting.clear();
        self.place.fill(NONE);
        if is_law(self.rule) {
            return;
        }
        self.waiting.extend((0..self.files as u32).rev());
        if matches!(self.rule, Service::Random { .. }) && self.most < self.files {
            for last in (1..self.waiting.len()).rev() {
                let other = below(split_mix(&mut self.dice), last as u64 + 1) as usize;
                self.waiting.swap(last, other);
            }
        }
        self.admit();
    }

    fn admit(&mut self) {
        while self.active.len() < self.most
            && let Some(file) = self.waiting.pop()
        {
            self.active.push(file);
        }
    }

    /// The file of the next request; `None` if all are done.
    pub fn choose(&mut self) -> Option<usize> {
        if self.left == 0 && (is_law(self.rule) || !self.active.is_empty()) {
            self.left = self.requests;
            self.at = self.next();
        }
        self.active.get(self.at).map(|file| *file as usize)
    }

    /// Index in `active` of the next file.
    fn next(&mut self) -> usize {
        let count = self.active.len();
        match self.rule {
            Service::Sequential => 0,
            // The file behind the last one; `at` is not a valid index before the first.
            Service::RoundRobin { .. } => self.at % count,
            Service::Random { .. } => below(split_mix(&mut self.dice), count as u64) as usize,
            Service::Zipf { .. } | Service::Pareto { .. } | Service::Gauss { .. } => self.by_law(),
        }
    }

    /// Draws among all files until one is in service, or can come into service.
    fn by_law(&mut self) -> usize {
        const TRIES: u32 = 32;
        for _ in 0..TRIES {
            let file = self.draw();
            let Some(place) = self.place.get_mut(file) else { continue };
            if *place == NONE && self.active.len() < self.most {
                *place = self.active.len() as u32;
                self.active.push(file as u32);
            }
            if *place != NONE {
                return *place as usize;
            }
        }
        below(split_mix(&mut self.dice), self.active.len() as u64) as usize
    }

    /// Draws a file by the law.
    fn draw(&mut self) -> usize {
        let files = self.files as f64;
        let from_first = |place: f64| (self.first + (place as usize).min(self.files - 1)) % self.files;
        let uniform = |dice: &mut u64| (split_mix(dice) >> 11) as f64 / (1u64 << 53) as f64;
        match self.rule {
            Service::Zipf { .. } => {
                let point = uniform(&mut self.dice);
                from_first(self.up_to.partition_point(|up_to| *up_to < point) as f64)
            }
            Service::Pareto { power } => {
                let exponent = power.ln() / (1.0_f64 - power).ln();
                from_first(uniform(&mut self.dice).powf(exponent) * (files - 1.0))
            }
            Service::Gauss { deviation } => {
                let middle: f64 = (0..12).map(|_| uniform(&mut self.dice)).sum::<f64>() * files / 12.0;
                let spread = (files * deviation / 100.0).ceil() * (uniform(&mut self.dice) - 0.5);
                ((middle + spread).max(0.0) as usize).min(self.files - 1)
            }
            Service::RoundRobin { .. } | Service::Sequential | Service::Random { .. } => 0,
        }
    }

    /// Requests of this turn that are still to come.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// This number of requests is made of the file that was chosen.
    pub fn spend(&mut self, requests: u64) {
        self.left = self.left.saturating_sub(requests);
        if self.left == 0 && matches!(self.rule, Service::RoundRobin { .. }) {
            self.at += 1;
        }
    }

    /// Whether a file begins again when it has no block left: as in fio, a law would hold no longer without it.
    pub fn repeats(&self) -> bool {
        is_law(self.rule)
    }

    /// The file that was chosen has no block left; another one comes into service.
    pub fn finish(&mut self) {
        self.left = 0;
        if self.at < self.active.len() {
            self.active.remove(self.at);
        }
        self.admit();
    }

    /// Whether a file is in service.
    pub fn serves(&self, file: u32) -> bool {
        self.active.contains(&file)
    }
}

/// No index.
const NONE: u32 = u32::MAX;

/// Whether files are drawn by a law that prefers some.
fn is_law(rule: Service) -> bool {
    matches!(rule, Service::Zipf { .. } | Service::Pareto { .. } | Service::Gauss { .. })
}

/// The probability of each file and those before it.
fn zipf(theta: f64, files: usize) -> Vec<f64> {
    let blocks = f64::from(ZIPF_BLOCKS);
    let first: f64 = (1..=ZIPF_BLOCKS).map(|rank| f64::from(rank).powf(-theta)).sum();
    // Sums over blocks far from the first are close to integrals.
    let integral = |rank: f64| (rank + 0.5).powf(1.0 - theta) / (1.0 - theta);
    let mut sum = 0.0;
    let mut up_to: Vec<f64> = (0..files)
        .map(|file| {
            let begin = file as f64 * blocks;
            sum += if file == 0 { first } else { integral(begin + blocks) - integral(begin) };
            sum
        })
        .collect();
    up_to.iter_mut().for_each(|up_to| *up_to /= sum);
    up_to
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::request_source::RequestSource;
    use crate::workload::target::Span;
    use model::plan::FilePlan;
    use model::unit::Bytes;

    fn turn(service: Service, open: u32, files: usize) -> Option<Turn> {
        let plan = JobPlan { files: FilePlan { service, open, ..FilePlan::default() }, ..JobPlan::default() };
        Turn::new(&plan, files, 7)
    }

    /// The order of files of this number of blocks each.
    fn order(service: Service, open: u32, files: usize, blocks: u64) -> Vec<usize> {
        let mut turn = turn(service, open, files).unwrap();
        let (mut left, mut order) = (vec![blocks; files], Vec::new());
        while let Some(file) = turn.choose() {
            if left[file] == 0 {
                turn.finish();
                continue;
            }
            left[file] -= 1;
            order.push(file);
            turn.spend(1);
        }
        order
    }

    #[test]
    fn the_order_of_files_is_that_of_fio() {
        assert!(turn(Service::RoundRobin { ios: 1 }, 0, 9).is_none());
        assert_eq!(order(Service::RoundRobin { ios: 2 }, 0, 2, 3), [0, 0, 1, 1, 0, 1]);
        assert_eq!(order(Service::Sequential, 0, 3, 2), [0, 0, 1, 1, 2, 2]);
        assert_eq!(order(Service::RoundRobin { ios: 1 }, 2, 4, 2), [0, 1, 0, 1, 2, 3, 2, 3]);
    }

    #[test]
    fn a_random_order_serves_each_block_once_and_at_most_the_open_files() {
        let order = order(Service::Random { ios: 3 }, 3, 10, 4);
        let served = |file| order.iter().filter(|served| **served == file).count();
        assert!((0..10).all(|file| served(file) == 4), "{order:?}");
        for at in 0..order.len() {
            let under_way = |file: &usize| order[..=at].contains(file) && order[at..].contains(file);
            assert!((0..10).filter(under_way).count() <= 3, "{order:?}");
        }
    }

    #[test]
    fn a_law_uses_only_the_files_that_may_be_open() {
        let mut turn = turn(Service::Zipf { theta: 1.2 }, 2, 10).unwrap();
        let mut used = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            used.insert(turn.choose().unwrap());
            turn.spend(1);
        }
        assert!(turn.repeats() && used.len() == 2, "{used:?}");
    }

    /// Shares of 20 files that fio 3.33 shows for the file that it serves most often: 81.6 %, 88.3 %, 64.6 %.
    #[test]
    fn laws_prefer_files_as_fio_does() {
        for (service, share) in [
            (Service::Zipf { theta: 1.1 }, 0.816),
            (Service::Zipf { theta: 1.2 }, 0.883),
            (Service::Pareto { power: 0.2 }, 0.646),
        ] {
            let mut turn = turn(service, 0, 20).unwrap();
            let mut counts = [0u32; 20];
            (0..40_000).for_each(|_| counts[turn.draw()] += 1);
            let most = f64::from(counts.into_iter().max().unwrap()) / 40_000.0;
            assert!((most - share).abs() < 0.025, "{service:?}: {most}");
        }
        let mut turn = turn(Service::Gauss { deviation: 40.0 }, 0, 20).unwrap();
        let draws: Vec<f64> = (0..40_000).map(|_| turn.draw() as f64).collect();
        let mean = draws.iter().sum::<f64>() / 40_000.0;
        let deviation = (draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / 40_000.0).sqrt();
        assert!((mean - 9.5).abs() < 0.1 && (deviation - 2.87).abs() < 0.1, "{mean} {deviation}");
    }

    /// All requests of a job of sequential writes: file, offset in blocks of 4 KiB.
    fn all(plan: &JobPlan, spans: &[Span]) -> Vec<(u32, u64)> {
        let mut source = RequestSource::new(plan, spans, 0).unwrap();
        let mut requests = Vec::new();
        loop {
            let sure = source.following().min(1000);
            if sure == 0 {
                return requests;
            }
            requests.extend((0..sure).map(|_| source.draw()).map(|request| (request.file, request.offset / 4096)));
        }
    }

    fn span(kib: u64) -> Span {
        Span { begin: 0, length: kib << 10, beyond: 0 }
    }

    #[test]
    fn files_follow_the_order_of_the_job_and_a_law_repeats_them() {
        let mut job = JobPlan::default();
        job.files.service = Service::RoundRobin { ios: 2 };
        assert_eq!(all(&job, &[span(8), span(16)]), [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (1, 3)]);
        job.files.service = Service::Sequential;
        job.duration.loops = 2;
        let pass = [(0, 0), (0, 1), (1, 0), (1, 1)];
        assert_eq!(all(&job, &[span(8), span(8)]), [pass, pass].concat());
        job.duration.loops = 1;
        job.files.service = Service::Pareto { power: 0.1 };
        let requests = all(&job, &[span(8), span(8), span(8), span(8)]);
        assert_eq!(requests.len(), 8);
        assert!((0..4).any(|file| requests.iter().filter(|(of, _)| *of == file).count() > 2), "{requests:?}");
    }

    #[test]
    fn the_size_limits_a_pass_over_files_of_their_own_size() {
        let mut job = JobPlan::default();
        job.files.each = Some(model::plan::FileSize { least: Bytes(8192), most: Bytes(8192) });
        job.target.size = Some(model::plan::Size::Bytes(Bytes(12_288)));
        job.duration.loops = 2;
        let files = [span(8), span(8)];
        assert_eq!(all(&job, &files), [(0, 0), (1, 0), (0, 1), (1, 1), (0, 0), (1, 0)]);
        job.target.size = Some(model::plan::Size::Bytes(Bytes(1 << 20)));
        assert_eq!(all(&job, &files).len(), 8);
    }

    #[test]
    fn time_repeats_what_a_pass_does() {
        let mut job = JobPlan::default();
        job.duration.time_based = true;
        let mut source = RequestSource::new(&job, &[span(8), span(16)], 0).unwrap();
        let mut files = Vec::new();
        while files.len() < 12 {
            assert!(source.following() > 0);
            files.push(source.draw().file);
        }
        assert_eq!(files, [0, 1, 0, 1, 1, 1, 0, 1, 0, 1, 1, 1]);
    }
}
