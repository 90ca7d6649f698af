//! Words and numbers of guests. Instructions are exact, so all their digits are shown, with separators.

use crate::guest::GuestFinding;
use crate::guest::finding::{PointFinding, axis};
use model::stats::Estimate;
use report::number::{MISSING, separated};

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

/// The name of an arm below the name of what is compared: "1024" of "rdma_max_inline_write=1024".
pub(super) fn arm_head(finding: &GuestFinding, name: &str) -> String {
    let swept = finding.compared.as_deref().and_then(|compared| name.strip_prefix(axis(compared))?.strip_prefix('='));
    swept.map_or_else(|| finding.arm_name(name), str::to_owned)
}

/// "1k write, bs=1k": what distinguishes a point from others of its arm; its job if nothing does.
pub(super) fn row(finding: &GuestFinding, point: &PointFinding) -> String {
    let parts = finding.parts(point, false);
    if parts.is_empty() { point.place.job.clone() } else { parts.join(", ") }
}

/// The same with its job in any case.
pub(super) fn named(finding: &GuestFinding, point: &PointFinding) -> String {
    finding.parts(point, true).join(", ")
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
            arms.iter().map(|name| finding.arm_name(name)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(named(&["debian:6.1", "debian:6.12"]), "debian:6.1 debian:6.12");
        assert_eq!(named(&["/k/a/bzImage", "/k/b/bzImage"]), "/k/a/bzImage /k/b/bzImage");
        assert_eq!(named(&["debian:6.1", "/home/me/linux"]), "debian:6.1 linux");
        finding.compared = Some("sysctl:sunrpc.max".to_owned());
        assert_eq!(
            (finding.arm_name("max=1024"), arm_head(&finding, "max=1024")),
            ("max=1024".to_owned(), "1024".to_owned())
        );
    }
}
