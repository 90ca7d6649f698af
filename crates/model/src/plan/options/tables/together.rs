//! How the jobs of a run depend on each other, and when one of them is steady.

use crate::plan::job::{Ends, SteadyMetric, SteadyState};
use crate::plan::options::{Default, JobOption, PLAIN, Role, Value::*};
use crate::plan::value::TimeUnit::Seconds;
use crate::plan::value::{Wrong, choice, list_words, typed, word};

pub(super) static OPTIONS: &[JobOption] = &[
    JobOption {
        name: "wait_for",
        help: "Start when the job of this name, which must come before this one, has ended",
        default: Default::Words("none"),
        role: Role::Work,
        example: "writers",
        bad_example: "",
        get: |job| job.together.wait_for.clone(),
        set: Text("a name", |draft, text| {
            draft.job.together.wait_for = Some(text.to_owned());
            Ok(())
        }),
        ..PLAIN
    },
    JobOption {
        name: "new_group",
        help: "Begin a new group, for exitall. Each job is reported by itself anyway",
        default: Default::Value("0"),
        role: Role::Other,
        example: "1",
        bad_example: "2",
        get: |_| None,
        set: Switch(|draft, on| draft.new_group = on),
        ..PLAIN
    },
    JobOption {
        name: "exitall",
        help: "When this job ends, end the others of its group, or what exit_what says",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.together.exit_all)),
        set: Switch(|draft, on| draft.job.together.exit_all = on),
        ..PLAIN
    },
    JobOption {
        name: "exit_what",
        help: "What ends with a job that has exitall: the jobs of its group, those that run until the next stonewall, or the whole run",
        default: Default::Value("group"),
        role: Role::Work,
        example: "all",
        bad_example: "none",
        get: |job| Some(word(job.together.exit_what).to_owned()),
        set: Choice(list_words::<Ends>, |draft, text| choice(text).map(|what| draft.job.together.exit_what = what)),
        ..PLAIN
    },
    JobOption {
        name: "exitall_on_error",
        help: "Accepted without effect: an error of one job always ends the others",
        default: Default::Value("1"),
        role: Role::Nothing,
        example: "1",
        bad_example: "2",
        get: |_| None,
        set: Switch(|_, _| {}),
        ..PLAIN
    },
    JobOption {
        name: "steadystate",
        aliases: &["ss"],
        help: "What has to be steady for the job to end: each second's value within this much of the mean, or the slope of their regression \
               line. Needs steadystate_duration",
        default: Default::Words("iops_slope:0.01%"),
        role: Role::Work,
        example: "bw_slope:0.1%",
        bad_example: "iops",
        get: |job| {
            let steady = job.together.steady.filter(|steady| !steady.has_usual_criterion())?;
            let what = CRITERIA.iter().find(|(_, of, by_slope)| (*of, *by_slope) == (steady.of, steady.by_slope));
            let percent = if steady.in_percent { "%" } else { "" };
            what.map(|(word, ..)| format!("{word}:{}{percent}", steady.limit))
        },
        set: Text("iops, iops_slope, bw or bw_slope, ':', and a number or a percentage", |draft, text| {
            let (of, by_slope, limit, in_percent) = criterion(text)?;
            let steady = draft.job.together.steady.get_or_insert(SteadyState::USUAL);
            *steady = SteadyState { of, by_slope, limit, in_percent, ..*steady };
            Ok(())
        }),
        ..PLAIN
    },
    JobOption {
        name: "steadystate_duration",
        aliases: &["ss_dur"],
        help: "The time over which steadystate is judged, and for which the job has to be steady. 0 means that it does not end so",
        default: Default::Words("0"),
        role: Role::Work,
        example: "30s",
        bad_example: "30x",
        get: |job| job.together.steady.map(|steady| steady.duration).filter(|time| time.0 > 0).map(typed::time),
        set: Time(Seconds, |draft, time| {
            draft.job.together.steady.get_or_insert(SteadyState::USUAL).duration = time;
        }),
        ..PLAIN
    },
    JobOption {
        name: "steadystate_ramp_time",
        aliases: &["ss_ramp"],
        help: "The time before steadystate is judged",
        default: Default::Words("0"),
        role: Role::Work,
        example: "10s",
        bad_example: "-1",
        get: |job| job.together.steady.map(|steady| steady.ramp).filter(|time| time.0 > 0).map(typed::time),
        set: Time(Seconds, |draft, time| {
            draft.job.together.steady.get_or_insert(SteadyState::USUAL).ramp = time;
        }),
        ..PLAIN
    },
];

const CRITERIA: [(&str, SteadyMetric, bool); 4] = [
    ("iops", SteadyMetric::Iops, false),
    ("iops_slope", SteadyMetric::Iops, true),
    ("bw", SteadyMetric::Bytes, false),
    ("bw_slope", SteadyMetric::Bytes, true),
];

fn criterion(text: &str) -> Result<(SteadyMetric, bool, f64, bool), Wrong> {
    let (what, limit) = text.split_once(':').ok_or_else(|| Wrong::because(text, "has no limit behind a ':'"))?;
    let found = CRITERIA.iter().find(|(word, ..)| *word == what);
    let (_, of, by_slope) = found.ok_or_else(|| Wrong::because(what, "is no criterion"))?;
    let number = limit.strip_suffix('%').unwrap_or(limit);
    let plain = number.chars().all(|character| character.is_ascii_digit() || character == '.');
    match number.parse::<f64>() {
        Ok(value) if plain && value.is_finite() => Ok((*of, *by_slope, value, limit.ends_with('%'))),
        _ => Err(Wrong::because(limit, "is no limit")),
    }
}
