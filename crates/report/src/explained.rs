//! Changes of cycles and counts, with their signs: what explaining rounds found.

use crate::number::{COUNT, CYCLES, MISSING, Scale, Units};
use crate::phrase::tied;
use model::explained::AccountChange;
use model::stats::Estimate;

/// The unit of changes: that in which the largest of them has three digits.
pub(crate) fn scale(changes: impl Iterator<Item = f64>) -> Scale {
    scale_of(CYCLES, changes)
}

/// The same of any quantity.
pub(crate) fn scale_of(units: Units, changes: impl Iterator<Item = f64>) -> Scale {
    Scale::of(units, changes.map(f64::abs).filter(|change| change.is_finite()).fold(0.0, f64::max))
}

/// The unit of a count per I/O or packet. Three digits, but no more than three decimals: smaller counts are noise beside a system call for each.
pub(crate) fn scale_of_count(count: &Estimate) -> Scale {
    const SMALL: f64 = 0.1;
    scale_of(COUNT, [SMALL, count.value].into_iter())
}

/// "1.34 k".
pub(crate) fn with_its_unit(scale: Scale, text: impl FnOnce(Scale) -> String) -> String {
    let text = text(scale);
    if scale.unit.is_empty() || text == MISSING { text } else { format!("{text} {}", scale.unit) }
}

/// "+160".
pub(crate) fn signed(scale: Scale, value: f64) -> String {
    let text = scale.cell(value);
    if value > 0.0 && !text.starts_with(['<', '>']) && text != MISSING { format!("+{text}") } else { text }
}

/// "[150, 170]", or that there is none.
pub(crate) fn interval(scale: Scale, change: &Estimate) -> String {
    change.low.zip(change.high).map_or_else(|| MISSING.to_owned(), |(low, high)| scale.interval(low, high))
}

/// "+160 [150, 170]".
pub(crate) fn whole(scale: Scale, change: &Estimate) -> String {
    tied(&format!("{} {}", signed(scale, change.value), interval(scale, change)))
}

/// "+182 [170, 194] cycles per I/O: +160 [150, 170] the workload's own threads, +9 [5, 13] softirq net_rx, and 3 more."
pub(crate) fn divided(change: &Estimate, per: &str, accounts: &[&AccountChange]) -> String {
    /// Accounts named in a sentence.
    const NAMED: usize = 4;
    let changes = accounts.iter().map(|account| account.change_cycles_per_io.value);
    let scale = scale(changes.chain([change.value]));
    let named = accounts.iter().take(NAMED);
    let named = named.map(|account| format!("{} {}", whole(scale, &account.change_cycles_per_io), account.name));
    let more = accounts.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("{} {} {per}: {}{more}.", whole(scale, change), scale.unit, named.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_a_sign_and_its_interval() {
        let change = |value: f64| Estimate { value, low: Some(value - 10.0), high: Some(value + 10.0) };
        let scale = scale([182.0, -9.0, f64::NAN].into_iter());
        let text = |value| whole(scale, &change(value)).replace('\u{a0}', " ");
        assert_eq!(text(160.0), "+160 [150, 170]");
        assert_eq!(text(-9.0), "-9 [-19, 1]");
        assert_eq!(text(0.0), "0 [-10, 10]");
        assert_eq!(whole(scale, &Estimate::bare(f64::NAN)), format!("{MISSING}\u{a0}{MISSING}"));
    }
}
