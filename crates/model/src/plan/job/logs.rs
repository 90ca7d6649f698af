//! The logs of a job: files in fio's format, with a row for each I/O or for each window of time.

use super::{JobPlan, Plan};

part! {
    /// Which logs a job writes, and what their rows hold.
    LogPlan {
        /// `write_bw_log`: the first part of the names of its files, empty for the name of the job.
        bandwidth: Option<String> = None,
        /// `write_iops_log`.
        iops: Option<String> = None,
        /// `write_lat_log`.
        latency: Option<String> = None,
        /// `write_hist_log`.
        histogram: Option<String> = None,
        /// `write_iolog`: the file of the trace.
        trace: Option<String> = None,
        /// `log_avg_msec`: a row stands for this number of milliseconds; 0 for one I/O.
        window: u32 = 0,
        /// `log_hist_msec`: milliseconds of a row of the histograms; 0 for no rows.
        histogram_window: u32 = 0,
        /// `per_job_logs=0`: jobs with the same name of the log share a file.
        shared: bool = false,
        /// `disable_lat`, `disable_slat` and `disable_clat`: the logs of latency that are left out.
        without: WithoutLogs = WithoutLogs::default(),
    }
}

part! {
    /// Logs that `write_lat_log` does not write.
    #[derive(Copy)]
    WithoutLogs {
        /// Those of the whole latency.
        latency: bool = false,
        /// Those until the request is handed over.
        submission: bool = false,
        /// Those from then on.
        completion: bool = false,
    }
}

impl WithoutLogs {
    /// All of them.
    pub(crate) const ALL: Self = Self { latency: true, submission: true, completion: true };
}

/// What a log holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// KiB per second.
    Bandwidth,
    /// I/Os per second.
    Iops,
    /// Nanoseconds from the start of a request to its completion.
    Latency,
    /// Nanoseconds until it is handed over.
    Submission,
    /// Nanoseconds from then on.
    Completion,
    /// Numbers of completion latencies by bin.
    Histogram,
    /// Requests in the order in which they are issued, to be replayed.
    Trace,
}

impl LogPlan {
    /// Whether anything is logged with a row for each I/O, or for each window.
    pub fn has_rows(&self) -> bool {
        self.bandwidth.is_some() || self.iops.is_some() || self.latency.is_some()
    }

    /// The option by which a job writes a log, if it does.
    pub fn first_option(&self) -> Option<&'static str> {
        let given = [
            ("write_bw_log", self.bandwidth.is_some()),
            ("write_iops_log", self.iops.is_some()),
            ("write_lat_log", self.latency.is_some()),
            ("write_hist_log", self.histogram.is_some()),
            ("write_iolog", self.trace.is_some()),
        ];
        given.into_iter().find_map(|(option, given)| given.then_some(option))
    }

    /// The logs, each with the first part of its name.
    fn kinds(&self) -> impl Iterator<Item = (LogKind, &String)> {
        let latency = |kind, without: bool| (kind, self.latency.as_ref().filter(|_| !without));
        let without = self.without;
        [
            (LogKind::Bandwidth, self.bandwidth.as_ref()),
            (LogKind::Iops, self.iops.as_ref()),
            latency(LogKind::Latency, without.latency),
            latency(LogKind::Submission, without.submission),
            latency(LogKind::Completion, without.completion),
            (LogKind::Histogram, self.histogram.as_ref()),
        ]
        .into_iter()
        .filter_map(|(kind, name)| Some((kind, name?)))
    }
}

impl LogKind {
    /// What follows the first part of a name.
    fn suffix(self) -> &'static str {
        match self {
            Self::Bandwidth => "bw",
            Self::Iops => "iops",
            Self::Latency => "lat",
            Self::Submission => "slat",
            Self::Completion => "clat",
            Self::Histogram => "clat_hist",
            Self::Trace => "trace",
        }
    }
}

impl JobPlan {
    /// The log files of a copy of it, by fio's names; `number` is that of the copy among those of all jobs, from 1.
    pub fn log_files(&self, number: usize) -> Vec<(LogKind, String)> {
        let file = |(kind, name): (LogKind, &String)| {
            let first = if name.is_empty() { &self.name } else { name };
            let number = if self.logs.shared { String::new() } else { format!(".{number}") };
            (kind, format!("{first}_{}{number}.log", kind.suffix()))
        };
        let trace = self.logs.trace.iter().map(|file| (LogKind::Trace, file.clone()));
        self.logs.kinds().map(file).chain(trace).collect()
    }
}

impl Plan {
    /// The copies of all jobs in order, each with its number among them, from 1.
    pub fn copies(&self) -> impl Iterator<Item = (usize, &JobPlan)> {
        let jobs = self.phases.iter().flat_map(|phase| &phase.jobs);
        let copies = jobs.flat_map(|job| std::iter::repeat_n(job, job.copies.max(1) as usize));
        (1..).zip(copies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Phase, Settings, parse};

    #[test]
    fn files_have_fios_names_and_numbers() {
        let text = "[global]\nwrite_bw_log=foo\nwrite_iops_log=\n[a]\nname=b\nnumjobs=2\n[c]\nstonewall\nwrite_lat_log\nwrite_hist_log=d/h";
        let plan = parse::job_files(&[("x.fio", text)], &Settings::default()).unwrap();
        let names = |(number, job): (usize, &JobPlan)| {
            job.log_files(number).into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            plan.copies().map(names).collect::<Vec<_>>(),
            [
                "foo_bw.1.log b_iops.1.log",
                "foo_bw.2.log b_iops.2.log",
                "foo_bw.3.log c_iops.3.log c_lat.3.log c_slat.3.log c_clat.3.log d/h_clat_hist.3.log",
            ]
        );
    }

    #[test]
    fn jobs_may_share_files_and_leave_latencies_out() {
        let job = JobPlan {
            logs: LogPlan {
                latency: Some("x".to_owned()),
                shared: true,
                without: WithoutLogs { submission: true, ..WithoutLogs::default() },
                ..LogPlan::default()
            },
            ..JobPlan::default()
        };
        let plan = Plan { phases: vec![Phase { jobs: vec![job] }], ..Plan::default() };
        let names: Vec<_> = plan.copies().flat_map(|(number, job)| job.log_files(number)).collect();
        assert_eq!(names, [(LogKind::Latency, "x_lat.log".to_owned()), (LogKind::Completion, "x_clat.log".to_owned())]);
    }
}
