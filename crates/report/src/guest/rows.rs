//! The points as rows: one for each job and cell, with a place for each arm.

use super::words;
use model::guest::GuestFinding;
use model::guest::finding::{ChangeFinding, PointFinding};

/// What was measured with several arms and is otherwise the same.
#[derive(Debug)]
pub(super) struct Row<'a> {
    /// What distinguishes it from other rows.
    pub name: String,
    /// Its points, by number of the arm.
    pub points: Vec<Option<&'a PointFinding>>,
}

/// All of them, in the order of the points.
pub(super) fn rows(finding: &GuestFinding) -> Vec<Row<'_>> {
    let arms = finding.arms.len().max(1);
    let mut rows: Vec<(Key, Row)> = Vec::new();
    for point in &finding.points {
        let arm = finding.arms.iter().position(|arm| *arm == point.arm).unwrap_or(0);
        let key = key(finding, point);
        let free = |(of, row): &&mut (Key, Row)| *of == key && matches!(row.points.get(arm), Some(None));
        if let Some(place) = rows.iter_mut().find(free).and_then(|(_, row)| row.points.get_mut(arm)) {
            *place = Some(point);
            continue;
        }
        let points = (0..arms).map(|place| (place == arm).then_some(point)).collect();
        rows.push((key, Row { name: words::row(finding, point), points }));
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

/// The points that are compared with their baseline, each with its change.
pub(super) fn changes(finding: &GuestFinding) -> Vec<(&PointFinding, &ChangeFinding)> {
    finding.points.iter().filter_map(|point| Some((point, point.change.as_ref()?))).collect()
}

/// What is the same for all points of a row: everything but what is compared.
type Key<'a> = Vec<(&'a str, &'a str)>;

fn key<'a>(finding: &GuestFinding, point: &'a PointFinding) -> Key<'a> {
    let fixed: [(&str, &str); 4] =
        [("job", &point.job), ("kernel", &point.kernel), ("stack", &point.stack), ("parameters", &point.parameters)];
    let cell = point.cell.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let compared = finding.compared.as_deref();
    fixed.into_iter().chain(cell).filter(|(name, _)| compared != Some(name)).collect()
}
