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

/// The name of a sweep without what precedes it: "rdma_max_inline_write" of "sysctl:sunrpc.rdma_max_inline_write".
pub(super) fn axis(name: &str) -> &str {
    name.rsplit([':', '.']).next().unwrap_or(name)
}

/// The name of an arm: of a path only its end, if that distinguishes the arms.
pub(super) fn arm(finding: &GuestFinding, arm: &str) -> String {
    let end = |path: &str| path.trim_end_matches('/').rsplit('/').next().unwrap_or(path).to_owned();
    let alike = finding.arms.iter().filter(|other| end(other) == end(arm)).count();
    if alike > 1 { arm.to_owned() } else { end(arm) }
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
    fn arms_are_named_by_what_distinguishes_them() {
        let mut finding = super::super::fixture::empty();
        finding.compared = Some("kernel".to_owned());
        let mut named = |arms: &[&str]| {
            finding.arms = arms.iter().map(|arm| (*arm).to_owned()).collect();
            arms.iter().map(|name| arm(&finding, name)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(named(&["debian:6.1", "debian:6.12"]), "debian:6.1 debian:6.12");
        assert_eq!(named(&["/k/a/bzImage", "/k/b/bzImage"]), "/k/a/bzImage /k/b/bzImage");
        assert_eq!(named(&["debian:6.1", "/home/me/linux"]), "debian:6.1 linux");
        finding.compared = Some("sysctl:sunrpc.max".to_owned());
        assert_eq!(
            (arm(&finding, "max=1024"), arm_head(&finding, "max=1024")),
            ("max=1024".to_owned(), "1024".to_owned())
        );
    }
}
