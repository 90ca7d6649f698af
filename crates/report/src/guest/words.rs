//! Words and numbers of guests. Instructions are exact, so all their digits are shown, with separators.

use crate::number::MISSING;
use model::guest::GuestFinding;
use model::guest::finding::PointFinding;
use model::guest::plan::{MODULE, OWN_MODULES};
use model::stats::Estimate;
use model::thousands::separated;

/// From here on fractions of an instruction do not matter.
const WHOLE: f64 = 100.0;

/// From here on digits say nothing.
const ABSURD: f64 = 1e15;

/// "5,830" or "17.3".
pub(super) fn instructions(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => MISSING.to_owned(),
        0.0 => "0".to_owned(),
        size if size < WHOLE => format!("{value:.1}"),
        size if size < ABSURD => whole(value.round_ties_even() as i64),
        _ => format!("{value:.2e}"),
    }
}

/// Calls per I/O: "256" or "1.50".
pub(super) fn calls(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        few if few < 0.005 => "<0.01".to_owned(),
        few if few < 10.0 => format!("{few:.2}"),
        many => instructions(many),
    }
}

/// "+1,240" or "−3.1".
pub(super) fn signed(value: f64) -> String {
    let sign = if value < 0.0 { "−" } else { "+" };
    format!("{sign}{}", instructions(value.abs()))
}

/// A whole number with separators.
pub(super) fn whole(value: i64) -> String {
    let sign = if value < 0 { "−" } else { "" };
    format!("{sign}{}", separated(&value.unsigned_abs().to_string()))
}

/// "5,830 ± 12".
pub(super) fn plus_minus(value: &Estimate) -> String {
    match value.half_width() {
        Some(half) => format!("{} ± {}", instructions(value.value), instructions(half)),
        None => instructions(value.value),
    }
}

/// "9.21 % [9.02, 9.40]", without a sign.
pub(super) fn percent_of(change: &Estimate) -> String {
    let size = percent(change.value.abs());
    match change.low.zip(change.high) {
        Some((low, high)) if change.value < 0.0 => format!("{size} % [{}, {}]", percent(-high), percent(-low)),
        Some((low, high)) => format!("{size} % [{}, {}]", percent(low), percent(high)),
        None => format!("{size} %"),
    }
}

/// "+9.21 %".
pub(super) fn change(change: &Estimate) -> String {
    format!("{} %", signed_percent(change.value))
}

/// "[+9.02, +9.40]"; empty without an interval.
pub(super) fn interval(change: &Estimate) -> String {
    let ends = change.low.zip(change.high);
    ends.map_or_else(String::new, |(low, high)| format!("[{}, {}]", signed_percent(low), signed_percent(high)))
}

/// "+9.21 % [+9.02, +9.40]".
pub(super) fn change_in_full(value: &Estimate) -> String {
    format!("{} {}", change(value), interval(value)).trim_end().to_owned()
}

/// "±0.04 %": a fraction rounded up.
pub(super) fn at_most(fraction: f64) -> String {
    format!("±{} %", percent((fraction * 1e4).ceil() / 1e4))
}

fn percent(fraction: f64) -> String {
    let value = fraction * 100.0;
    match value.abs() {
        size if !size.is_finite() => MISSING.to_owned(),
        size if size < ABSURD => format!("{value:.2}").replace('-', "−"),
        _ => format!("{value:.2e}"),
    }
}

fn signed_percent(fraction: f64) -> String {
    let text = percent(fraction);
    if fraction >= 0.0 { format!("+{text}") } else { text }
}

/// The name of a sweep without what precedes it: "rdma_max_inline_write" of "sysctl:sunrpc.rdma_max_inline_write".
pub(super) fn axis(name: &str) -> &str {
    name.rsplit([':', '.']).next().unwrap_or(name)
}

/// The name of an arm: of a path only what distinguishes it from the other arms.
pub(super) fn arm(finding: &GuestFinding, arm: &str) -> String {
    let paths: Vec<Vec<&str>> =
        finding.arms.iter().filter(|arm| arm.contains('/')).map(|arm| arm.split('/').collect()).collect();
    let own: Vec<&str> = arm.split('/').collect();
    let [_, .., last] = own.as_slice() else { return arm.to_owned() };
    let shared = |place: usize, part: fn(&[&str], usize) -> Option<String>| {
        let of = part(&own, place);
        of.is_some() && paths.len() > 1 && paths.iter().all(|path| part(path, place) == of)
    };
    let from_front = |path: &[&str], place: usize| path.get(place).map(|part| (*part).to_owned());
    let from_back = |path: &[&str], place: usize| path.iter().rev().nth(place).map(|part| (*part).to_owned());
    let front = (0..own.len()).take_while(|place| shared(*place, from_front)).count();
    let back = (0..own.len()).take_while(|place| shared(*place, from_back)).count();
    match own.get(front..own.len().saturating_sub(back)) {
        Some(parts) if !parts.is_empty() && paths.len() > 1 => parts.join("/"),
        _ => (*last).to_owned(),
    }
}

/// The name of an arm below the name of what is compared: "1024" of "rdma_max_inline_write=1024".
pub(super) fn arm_head(finding: &GuestFinding, name: &str) -> String {
    let swept = finding.compared.as_deref().and_then(|compared| name.strip_prefix(axis(compared))?.strip_prefix('='));
    swept.map_or_else(|| arm(finding, name), str::to_owned)
}

/// "1k write, bs=1k": what distinguishes a point from others of its arm; its job if nothing does.
pub(super) fn row(finding: &GuestFinding, point: &PointFinding) -> String {
    let parts = parts(finding, point, false);
    if parts.is_empty() { point.job.clone() } else { parts.join(", ") }
}

/// The same with its job in any case.
pub(super) fn named(finding: &GuestFinding, point: &PointFinding) -> String {
    parts(finding, point, true).join(", ")
}

/// The same with its arm.
pub(super) fn point(finding: &GuestFinding, point: &PointFinding) -> String {
    match finding.compared {
        Some(_) => format!("{}, {}", named(finding, point), arm(finding, &point.arm)),
        None => named(finding, point),
    }
}

fn parts(finding: &GuestFinding, point: &PointFinding, with_job: bool) -> Vec<String> {
    let compared = finding.compared.as_deref();
    let varies = |value: fn(&PointFinding) -> &String| {
        finding.points.first().is_some_and(|first| finding.points.iter().any(|other| value(other) != value(first)))
    };
    let mut parts = Vec::new();
    if with_job || varies(|point| &point.job) {
        parts.push(point.job.clone());
    }
    // A job on one stack is named well enough by its own name.
    let stacks = || finding.points.iter().filter(|other| other.job == point.job).map(|other| &other.stack);
    if compared != Some("stack") && stacks().any(|stack| *stack != point.stack) {
        parts.push(point.stack.clone());
    }
    if compared != Some("kernel") && varies(|point| &point.kernel) {
        parts.push(arm(finding, &point.kernel));
    }
    if compared != Some("parameters") && varies(|point| &point.parameters) && !point.parameters.is_empty() {
        parts.push(point.parameters.clone());
    }
    let swept = point.cell.iter().filter(|(name, _)| compared != Some(name.as_str()));
    // A mount option is named itself.
    let named = |(name, value): (&String, &String)| match name.as_str() {
        "mount" => value.clone(),
        MODULE if value.is_empty() => OWN_MODULES.to_owned(),
        MODULE => arm(finding, value),
        name => format!("{}={value}", axis(name)),
    };
    parts.extend(swept.map(named));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_exact_and_grouped() {
        assert_eq!(instructions(131_312.4), "131,312");
        assert_eq!(instructions(17.34), "17.3");
        assert_eq!(signed(-1240.0), "−1,240");
        assert_eq!(signed(3.04), "+3.0");
        assert_eq!(whole(-1_234_567), "−1,234,567");
        assert_eq!(instructions(f64::NAN), MISSING);
        assert_eq!(instructions(1e300), "1.00e300");
    }

    #[test]
    fn changes_have_their_interval() {
        let estimate = |value, low, high| Estimate { value, low: Some(low), high: Some(high) };
        assert_eq!(change_in_full(&estimate(0.0921, 0.0902, 0.094)), "+9.21 % [+9.02, +9.40]");
        assert_eq!(percent_of(&estimate(-0.05, -0.06, -0.04)), "5.00 % [4.00, 6.00]");
        assert_eq!(percent_of(&estimate(0.05, -0.01, 0.06)), "5.00 % [−1.00, 6.00]");
        assert_eq!(change_in_full(&Estimate::bare(-0.01)), "−1.00 %");
    }

    #[test]
    fn arms_are_named_by_what_distinguishes_them() {
        let mut finding = super::super::fixture::empty();
        finding.compared = Some("kernel".to_owned());
        let mut named = |arms: &[&str]| {
            finding.arms = arms.iter().map(|arm| (*arm).to_owned()).collect();
            arms.iter().map(|name| arm(&finding, name)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(named(&["debian:6.1", "debian:6.12"]), "debian:6.1 debian:6.12");
        assert_eq!(named(&["/k/a/boot/bzImage", "/k/b/boot/bzImage"]), "a b");
        assert_eq!(named(&["debian:6.1", "/home/me/linux"]), "debian:6.1 linux");
        assert_eq!(named(&["/a/b", "/a/b"]), "b b");
        finding.compared = Some("sysctl:sunrpc.max".to_owned());
        assert_eq!(
            (arm(&finding, "max=1024"), arm_head(&finding, "max=1024")),
            ("max=1024".to_owned(), "1024".to_owned())
        );
    }
}
