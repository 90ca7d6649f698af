//! Checks that each published number belongs to something that is measured.

use super::{DraftError, wrong};
use crate::experiment::{ArmPlan, Cell, Published};

/// Each belongs to a point of the sweep, and to an arm that is compared with the baseline.
pub(super) fn check(published: &[Published], cells: &[Cell], arms: &[ArmPlan]) -> Result<(), DraftError> {
    for found in published {
        let source = &found.source;
        if !cells.iter().any(|cell| found.fits(cell)) {
            let place = Cell { values: found.cell.clone() };
            return wrong(format!(
                "published from '{source}': {place} is not a point of the sweep; write its values as the sweep does, or omit cell"
            ));
        }
        let candidates: Vec<&str> = arms.iter().skip(1).map(|arm| arm.name.as_str()).collect();
        if let Some(arm) = found.arm.as_deref().filter(|arm| !candidates.contains(arm)) {
            let candidates = candidates.join(", ");
            return wrong(format!(
                "published from '{source}': arm '{arm}' is not compared with the baseline; use {candidates}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Metric;

    fn says(cell: &[(&str, &str)], arm: Option<&str>) -> Option<String> {
        let values =
            |cell: &[(&str, &str)]| cell.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let cells = [("4k", "1"), ("4k", "8"), ("64k", "1"), ("64k", "8")];
        let cells = cells.map(|(bs, depth)| Cell { values: values(&[("bs", bs), ("iodepth", depth)]) });
        let arms = ["baseline", "candidate"].map(|name| ArmPlan { name: name.to_owned(), ..ArmPlan::default() });
        let published = Published {
            cell: values(cell),
            arm: arm.map(str::to_owned),
            metric: Metric::Iops,
            baseline: None,
            candidate: None,
            change: Some(0.1),
            source: "a mail".to_owned(),
        };
        check(&[published], &cells, &arms).err().map(|error| error.to_string())
    }

    #[test]
    fn a_published_number_belongs_to_a_point_and_an_arm() {
        for lost in [[("bs", "8k")].as_slice(), &[("bs", "4096")], &[("rw", "read")], &[("bs", "4k"), ("iodepth", "2")]]
        {
            let why = says(lost, None).unwrap();
            assert!(why.contains("published from 'a mail'") && why.contains("is not a point of the sweep"), "{why}");
        }
        for found in [[].as_slice(), &[("bs", "64k")], &[("bs", "4k"), ("iodepth", "8")]] {
            assert_eq!(says(found, None), None, "{found:?}");
        }
        assert_eq!(says(&[], Some("candidate")), None);
        let why = says(&[], Some("baseline")).unwrap();
        assert!(why.ends_with("arm 'baseline' is not compared with the baseline; use candidate"), "{why}");
    }
}
