//! The page of a recording that is only read, not measured.

use crate::ftq::FtqPlan;
use crate::ftq::record::Worker;
use crate::pages::plan::{jobs, read_only};
use crate::pages::workload::options;
use report::document::{Document, Fact, units_tied};
use report::number;
use report::shell::command;

impl crate::Finding for FtqPlan {
    fn document(&self) -> Document {
        let worker = match &self.worker {
            Worker::Job(job) => jobs(job).map(|(_, job)| format!("{}: {}", job.name, options(job))).collect(),
            Worker::Cpu => "computes without pause".to_owned(),
            Worker::Command(words) => command(words),
            Worker::Process(process) => format!("process {process}"),
        };
        let quanta = self.duration.0 / self.quantum.0.max(1);
        let length = number::seconds(self.duration.seconds());
        let mut facts = vec![
            Fact::new("Worker", &worker),
            Fact::new("Quantum", units_tied(&number::with_unit(number::NANOS, self.quantum.as_f64()))),
            Fact::new("Duration", units_tied(&format!("{length}, {quanta} quanta"))),
        ];
        let cpu = |name: &str, cpu: Option<u32>| cpu.map(|cpu| Fact::new(name, format!("on CPU {cpu}")));
        facts
            .extend([cpu("Recorder", self.recorder_cpu), cpu("Worker's place", self.worker_cpu)].into_iter().flatten());
        read_only("ftq", worker, facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use model::unit::Nanos;
    use report::Ink;

    #[test]
    fn a_recording_names_its_worker_and_the_number_of_quanta() {
        let worker = Worker::Command(["dd", "if=a b"].map(str::to_owned).to_vec());
        let (quantum, duration) = (Nanos(440_000), Nanos::from_millis(27_000));
        let plan = FtqPlan { worker, quantum, duration, recorder_cpu: Some(1), worker_cpu: None, seed: 1 };
        let table = Format::Table.render(&plan, Ink::Plain, 200).replace('\u{a0}', " ");
        for part in ["dd 'if=a b'", "440 µs", "27.0 s, 61363 quanta", "on CPU 1"] {
            assert!(table.contains(part), "'{part}' is not in\n{table}");
        }
    }
}
