//! The CPUs of the recorder and of the worker: different ones, if there are two.

use crate::error::{Error, Result};
use model::ftq::FtqPlan;
use model::ftq::record::Worker;
use sys::schedule::allowed_cpus;

/// The CPUs of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cpus {
    pub recorder: u32,
    /// Of the worker; `None` if the scheduler or its own job chooses.
    pub worker: Option<u32>,
}

impl Cpus {
    /// What the plan asks for, and otherwise the last CPU that this process may use for the recorder, and the first for a
    /// worker of iotoll.
    ///
    /// # Errors
    /// Refused, when a CPU may not be used, or the plan would move a process that iotoll did not start.
    pub fn choose(plan: &FtqPlan) -> Result<Self> {
        let allowed = allowed_cpus().map_err(|error| Error::instrument("listing CPUs", error))?;
        decide(plan, &allowed).map_err(Error::Refused)
    }

    /// Whether the recorder takes its CPU time from the worker.
    pub fn shared(self) -> bool {
        self.worker == Some(self.recorder)
    }
}

fn decide(plan: &FtqPlan, allowed: &[u32]) -> std::result::Result<Cpus, String> {
    for (flag, cpu) in [("--recorder-cpu", plan.recorder_cpu), ("--worker-cpu", plan.worker_cpu)] {
        if let Some(cpu) = cpu.filter(|cpu| !allowed.contains(cpu)) {
            let list: Vec<String> = allowed.iter().map(ToString::to_string).collect();
            return Err(format!("{flag} {cpu}: this process may not use it; it may use CPUs {}", list.join(",")));
        }
    }
    let own: &[u32] = match &plan.worker {
        Worker::Job(job) => {
            job.phases.first().and_then(|phase| phase.jobs.first()).map_or(&[], |job| &job.cpus_allowed)
        }
        Worker::Cpu | Worker::Command(_) | Worker::Process(_) => &[],
    };
    let starts = matches!(plan.worker, Worker::Job(_) | Worker::Cpu);
    let first_but = |taken: Option<u32>| allowed.iter().copied().find(|cpu| Some(*cpu) != taken);
    let last_but = |taken: &[u32]| allowed.iter().rev().copied().find(|cpu| !taken.contains(cpu));
    let any = allowed.first().copied().unwrap_or(0);
    let said = match (plan.worker_cpu, own) {
        (Some(cpu), _) => vec![cpu],
        (None, own) => own.to_vec(),
    };
    let recorder = plan.recorder_cpu.or_else(|| last_but(&said)).or(allowed.last().copied()).unwrap_or(any);
    let chosen = (starts && own.is_empty()).then(|| first_but(Some(recorder)).unwrap_or(recorder));
    // A job that names one CPU is on it.
    let worker = plan.worker_cpu.or(chosen).or(match own {
        [cpu] => Some(*cpu),
        _ => None,
    });
    Ok(Cpus { recorder, worker })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::{JobPlan, Phase, Plan};
    use model::unit::Nanos;

    fn plan(worker: Worker) -> FtqPlan {
        let (quantum, duration) = (Nanos(440_000), Nanos(1_000_000));
        FtqPlan { worker, quantum, duration, recorder_cpu: None, worker_cpu: None, seed: 1 }
    }

    fn cpus(plan: &FtqPlan, allowed: &[u32]) -> (u32, Option<u32>) {
        let cpus = decide(plan, allowed).unwrap();
        (cpus.recorder, cpus.worker)
    }

    #[test]
    fn recorder_and_worker_are_apart_where_they_can_be() {
        let own = plan(Worker::Cpu);
        assert_eq!(cpus(&own, &[2, 3, 5]), (5, Some(2)));
        assert_eq!(cpus(&own, &[2]), (2, Some(2)));
        assert_eq!(cpus(&FtqPlan { worker_cpu: Some(5), ..own.clone() }, &[2, 3, 5]), (3, Some(5)));
        assert_eq!(cpus(&FtqPlan { recorder_cpu: Some(2), ..own.clone() }, &[2, 3, 5]), (2, Some(3)));
        assert_eq!(cpus(&plan(Worker::Process(1)), &[2, 3]), (3, None));
        let job = JobPlan { cpus_allowed: vec![3], ..JobPlan::default() };
        let job = Plan { phases: vec![Phase { jobs: vec![job] }], warnings: Vec::new() };
        assert_eq!(cpus(&plan(Worker::Job(Box::new(job))), &[2, 3]), (2, Some(3)), "the job says where it is");
    }

    #[test]
    fn a_cpu_that_may_not_be_used_is_refused() {
        let why = decide(&FtqPlan { recorder_cpu: Some(9), ..plan(Worker::Cpu) }, &[0, 1]).unwrap_err();
        assert!(why.contains("--recorder-cpu 9") && why.contains("0,1"), "{why}");
    }
}
