//! How the jobs of a run depend on each other, and when one of them is steady.

use super::*;

pub(super) static OPTIONS: &[JobOption] = &[
    work("wait_for", text(parsed!(together.wait_for, any)), Words("none"), "writers", "")
        .form("a name")
        .help("Start when the job of this name, which must come before this one, has ended"),
    other("new_group", switch(unshown(|draft, on| draft.new_group = on)), Is("0"), "1", "2")
        .help("Begin a new group, for exitall. Each job is reported by itself anyway"),
    work("exitall", switch(field!(together.exit_all)), Is("0"), "1", "2")
        .help("When this job ends, end the others of its group, or what exit_what says"),
    work("exit_what", word_of!(together.exit_what), Is("group"), "all", "none").help(
        "What ends with a job that has exitall: the jobs of its group, those that run until the next \
         stonewall, or the whole run",
    ),
    nothing("exitall_on_error", switch(nowhere!()), Is("1"), "1", "2")
        .help("Accepted without effect: an error of one job always ends the others"),
    work("steadystate", text(STEADYSTATE), Words("iops_slope:0.01%"), "bw_slope:0.1%", "iops")
        .form("iops, iops_slope, bw or bw_slope, ':', and a number or a percentage")
        .also(&["ss"])
        .help(
            "What has to be steady for the job to end: each second's value within this much of the mean, or the \
         slope of their regression line. Needs steadystate_duration",
        ),
    work("steadystate_duration", time(Seconds, STEADYSTATE_DURATION), Words("0"), "30s", "30x").also(&["ss_dur"]).help(
        "The time over which steadystate is judged, and for which the job has to be steady. 0 means that it \
         does not end so",
    ),
    work("steadystate_ramp_time", time(Seconds, STEADYSTATE_RAMP_TIME), Words("0"), "10s", "-1")
        .also(&["ss_ramp"])
        .help("The time before steadystate is judged"),
];

// Places that are no fields.
const STEADYSTATE: Place<SetText> = place(|job| job.together.steady.as_ref().and_then(show_criterion), criterion);
const STEADYSTATE_DURATION: Place<Set<Nanos>> = place(
    |job| job.together.steady.filter(|steady| steady.duration.0 > 0).and_then(|steady| shown(&steady.duration)),
    |draft, time| steady(draft).duration = time,
);
const STEADYSTATE_RAMP_TIME: Place<Set<Nanos>> = place(
    |job| job.together.steady.filter(|steady| steady.ramp.0 > 0).and_then(|steady| shown(&steady.ramp)),
    |draft, time| steady(draft).ramp = time,
);

const CRITERIA: [(&str, SteadyMetric, bool); 4] = [
    ("iops", SteadyMetric::Iops, false),
    ("iops_slope", SteadyMetric::Iops, true),
    ("bw", SteadyMetric::Bytes, false),
    ("bw_slope", SteadyMetric::Bytes, true),
];

fn steady(draft: &mut Draft) -> &mut SteadyState {
    draft.job.together.steady.get_or_insert(SteadyState::USUAL)
}

fn show_criterion(steady: &SteadyState) -> Option<String> {
    let same = |(_, of, by_slope): &&(&str, SteadyMetric, bool)| (*of, *by_slope) == (steady.of, steady.by_slope);
    let (word, ..) = CRITERIA.iter().find(same).filter(|_| !steady.has_usual_criterion())?;
    Some(format!("{word}:{}{}", steady.limit, if steady.in_percent { "%" } else { "" }))
}

fn criterion(draft: &mut Draft, text: &str) -> Result<(), Wrong> {
    let (what, limit) = text.split_once(':').ok_or_else(|| Wrong::because(text, "has no limit behind a ':'"))?;
    let found = CRITERIA.iter().find(|(word, ..)| *word == what);
    let (_, of, by_slope) = *found.ok_or_else(|| Wrong::because(what, "is no criterion"))?;
    let number = limit.strip_suffix('%').unwrap_or(limit);
    let value = value::plain_number(number)
        .filter(|value| value.is_finite())
        .ok_or_else(|| Wrong::because(limit, "is no limit"))?;
    let steady = steady(draft);
    *steady = SteadyState { of, by_slope, limit: value, in_percent: limit.ends_with('%'), ..*steady };
    Ok(())
}
