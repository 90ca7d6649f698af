//! Experiment files of packets: TOML with `kind = "blast"`, which says what a command line would, and published figures.

use super::plan::{self, BlastPlan, LONGEST_PAYLOAD, MOST_BATCHED, Method, PublishedPackets};
use model::experiment_kind::ExperimentKind;
use serde::Deserialize;

/// The contents of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    payload: Option<u32>,
    batch: Option<u32>,
    method: Option<String>,
    submitters: Option<String>,
    submitter_cpus: Option<String>,
    task_cpu: Option<String>,
    receiver_cpu: Option<u32>,
    #[serde(default)]
    published: Vec<PublishedPackets>,
}

/// A plan with what the file says; the rest is that of `plan`.
///
/// # Errors
/// One line, with the file's name and what is wrong.
pub fn parse(name: &str, text: &str, plan: BlastPlan) -> Result<BlastPlan, String> {
    filled(ExperimentKind::Blast.parse(name, text)?, plan).map_err(|why| format!("{name}: {why}"))
}

fn filled(file: File, mut plan: BlastPlan) -> Result<BlastPlan, String> {
    if let Some(payload) = file.payload {
        plan.payload = within("payload", payload, 0..=LONGEST_PAYLOAD)?;
    }
    if let Some(batch) = file.batch {
        plan.batch = within("batch", batch, 1..=MOST_BATCHED)?;
    }
    read("method", file.method, plan::methods, &mut plan.methods)?;
    read("submitters", file.submitters, plan::submitters, &mut plan.submitters)?;
    read("submitter_cpus", file.submitter_cpus, plan::cpus, &mut plan.submitter_cpus)?;
    read("task_cpu", file.task_cpu, plan::task_cpus, &mut plan.task_cpus)?;
    plan.receiver_cpu = file.receiver_cpu.or(plan.receiver_cpu);
    if let Some(why) = file.batch.and_then(|_| plan.refuses_batch()) {
        return Err(why);
    }
    if !plan.task_cpus.is_empty() && !plan.methods.contains(&Method::RingTask) {
        return Err(
            "task_cpu: only ring-task has a thread that drains a queue; add it to method, or leave task_cpu out"
                .to_owned(),
        );
    }
    let stray = |published: &&PublishedPackets| !plan.points().iter().any(|point| published.is_of(*point));
    if let Some(stray) = file.published.iter().find(stray) {
        let way = super::plan::way(stray.method, stray.task_cpu);
        return Err(format!(
            "[[published]] {way} with {} submitters: is not measured; add it to the points",
            stray.submitters
        ));
    }
    if let Some(wrong) = file.published.iter().find(|published| published.sent_per_second().is_none()) {
        return Err(format!("[[published]] kpps = \"{}\": write sent + refused, as \"1377+0\"", wrong.kpps));
    }
    plan.published = file.published;
    Ok(plan)
}

fn within(key: &str, value: u32, range: std::ops::RangeInclusive<u32>) -> Result<u32, String> {
    let (least, most) = (range.start(), range.end());
    if range.contains(&value) { Ok(value) } else { Err(format!("{key} = {value}: expected {least} to {most}")) }
}

fn read<T>(key: &str, text: Option<String>, parse: fn(&str) -> Result<T, String>, place: &mut T) -> Result<(), String> {
    if let Some(text) = text {
        *place = parse(&text).map_err(|why| format!("{key} = \"{text}\": {why}"))?;
    }
    Ok(())
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use model::unit::Nanos;

    pub fn plan() -> BlastPlan {
        BlastPlan {
            target: None,
            payload: 5,
            methods: vec![Method::Sendto],
            submitters: vec![1],
            batch: 64,
            slice: Nanos(1_000_000_000),
            warm_up: Nanos(0),
            rounds: 10,
            submitter_cpus: Vec::new(),
            task_cpus: Vec::new(),
            receiver_cpu: None,
            receive_buffer: None,
            seed: 1,
            published: Vec::new(),
        }
    }

    #[test]
    fn a_file_says_what_flags_would() {
        let text = "kind = \"blast\"\nmethod = \"lock,ring-task\"\nsubmitters = \"1,4\"\ntask_cpu = \"any,1\"\n\
                    [[published]]\nmethod = \"ring-task\"\nsubmitters = 4\nkpps = \"1279+1\"\nsource = \"a mail\"\n";
        let plan = parse("x.toml", text, plan()).unwrap();
        let ways: Vec<String> =
            plan.points().iter().map(|point| format!("{} {}", point.way(), point.submitters)).collect();
        let expected =
            ["lock 1", "lock 4", "ring-task 1", "ring-task 4", "ring-task on CPU 1 1", "ring-task on CPU 1 4"];
        assert_eq!(ways, expected);
        let [published] = plan.published.as_slice() else { panic!("{plan:?}") };
        assert_eq!(published.sent_per_second(), Some(1_279_000.0));
        assert_eq!(plan.points().iter().filter(|point| published.is_of(**point)).count(), 2);
    }

    #[test]
    fn a_wrong_file_is_one_line() {
        let begin = "kind = \"blast\"\n";
        for (text, why) in [
            ("method = \"none\"", "x.toml: method = \"none\": expected sendto, "),
            ("batch = 65\nmethod = \"gso\"", "x.toml: batch 65: gso sends at most 64 packets of 5 bytes"),
            ("payload = 70000", "x.toml: payload = 70000: expected 0 to 65507"),
            ("rounds = 3", "x.toml:2: unknown field `rounds`, expected one of `payload`, "),
            ("task_cpu = \"0\"", "only ring-task"),
            (
                "[[published]]\nmethod = \"gso\"\nsubmitters = 1\nkpps = \"1+0\"\nsource = \"\"",
                "gso with 1 submitters: is not measured",
            ),
            ("[[published]]\nmethod = \"sendto\"\nsubmitters = 1\nkpps = \"12\"\nsource = \"\"", "as \"1377+0\""),
        ] {
            let message = parse("x.toml", &format!("{begin}{text}"), plan()).unwrap_err();
            assert!(message.contains(why) && !message.contains('\n'), "{message}");
        }
        assert!(parse("x.toml", "payload = 5", plan()).unwrap_err().contains("names no kind"));
    }
}
