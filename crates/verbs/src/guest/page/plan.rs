//! The page of guests that are only read, not measured.

use crate::guest::GuestPlan;
use crate::pages::plan::read_only;
use crate::pages::workload::options;
use model::plan::Phase;
use report::document::{Document, Fact};

impl crate::Finding for GuestPlan {
    fn document(&self) -> Document {
        let work = |phase: &Phase| phase.jobs.iter().map(options).collect::<Vec<_>>().join("; ");
        let mut facts = Vec::new();
        if let Some(compared) = &self.compared {
            facts.push(Fact::new("Compared", format!("{compared}: {}", self.arms.join(", "))));
        }
        let mut seen = Vec::new();
        for point in &self.points {
            let (work, ios) = (work(&point.phase), point.ios.to_string());
            let line = format!("{} on {}: {work}", point.place.job, point.place.stack);
            if !seen.contains(&line) {
                facts.push(Fact::new("Job", format!("{line}, {ios} I/Os")));
                seen.push(line);
            }
        }
        let (points, boots) = (self.points.len(), self.points.len() * self.replicates as usize);
        facts.push(Fact::new("Guests", format!("{points} points × {} replicates = {boots}", self.replicates)));
        facts.extend(self.published.iter().map(|it| Fact::new("Published", format!("{} ({})", it.what, it.source))));
        read_only("guest run", self.title.clone(), facts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use crate::guest::plan::{Place, Point};
    use model::plan::{Settings, parse};
    use report::Ink;

    #[test]
    fn guests_name_what_is_compared_and_how_many_boot() {
        let phase =
            parse::flags(&["--name=a", "--ioengine=null", "--size=1m"].map(str::to_owned), &Settings::default());
        let phase = phase.unwrap().phases.remove(0);
        let point = |arm: usize, kernel: &str| Point {
            place: Place {
                job: "a".to_owned(),
                kernel: kernel.to_owned(),
                stack: "ext4".to_owned(),
                cell: [("depth".to_owned(), "4".to_owned())].into(),
                ..Place::default()
            },
            arm,
            phase: phase.clone(),
            sysctls: Vec::new(),
            mount_options: None,
            module: String::new(),
            warm_up_ios: 0,
            ios: 400,
        };
        let plan = GuestPlan {
            compared: Some("kernel".to_owned()),
            arms: vec!["5.10".to_owned(), "6.12".to_owned()],
            replicates: 5,
            points: vec![point(0, "5.10"), point(1, "6.12")],
            ..GuestPlan::default()
        };
        let table = Format::Table.render(&plan, Ink::Plain, 200).replace('\u{a0}', " ");
        for part in ["kernel: 5.10, 6.12", "a on ext4: ioengine=null", "400 I/Os", "2 points × 5 replicates = 10"] {
            assert!(table.contains(part), "'{part}' is not in\n{table}");
        }
        assert_eq!(table.matches("a on ext4").count(), 1, "{table}");
    }
}
