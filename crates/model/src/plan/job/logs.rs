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
        /// `write_iolog`: the file of the trace.
        trace: Option<String> = None,
        /// `log_avg_msec`: a row stands for this number of milliseconds; 0 for one I/O.
        window: u32 = 0,
        /// `per_job_logs=0`: jobs with the same name of the log share a file.
        shared: bool = false,
    }
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
            ("write_iolog", self.trace.is_some()),
        ];
        given.into_iter().find_map(|(option, given)| given.then_some(option))
    }
}

impl JobPlan {
    /// The log files of a copy of it, by fio's names; `number` is that of the copy among those of all jobs, from 1.
    pub fn log_files(&self, number: usize) -> Vec<(LogKind, String)> {
        let LogPlan { bandwidth, iops, latency, trace, shared, .. } = &self.logs;
        let number = if *shared { String::new() } else { format!(".{number}") };
        // What follows the first part of a name.
        let kinds = [
            (LogKind::Bandwidth, "bw", bandwidth),
            (LogKind::Iops, "iops", iops),
            (LogKind::Latency, "lat", latency),
            (LogKind::Submission, "slat", latency),
            (LogKind::Completion, "clat", latency),
        ];
        let logs = kinds.into_iter().filter_map(|(kind, suffix, name)| {
            let first = name.as_ref().map(|name| if name.is_empty() { &self.name } else { name })?;
            Some((kind, format!("{first}_{suffix}{number}.log")))
        });
        logs.chain(trace.iter().map(|file| (LogKind::Trace, file.clone()))).collect()
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
    use crate::plan::{Settings, parse};

    #[test]
    fn files_have_fios_names_and_numbers() {
        let text = "[global]\nwrite_bw_log=foo\nwrite_iops_log=\n[a]\nname=b\nnumjobs=2\n[c]\nstonewall\nwrite_lat_log=d/l\n[e]\nper_job_logs=0";
        let plan = parse::job_files(&[("x.fio", text)], &Settings::default()).unwrap();
        let names = |(number, job): (usize, &JobPlan)| {
            job.log_files(number).into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            plan.copies().map(names).collect::<Vec<_>>(),
            [
                "foo_bw.1.log b_iops.1.log",
                "foo_bw.2.log b_iops.2.log",
                "foo_bw.3.log c_iops.3.log d/l_lat.3.log d/l_slat.3.log d/l_clat.3.log",
                "foo_bw.log e_iops.log",
            ]
        );
    }
}
