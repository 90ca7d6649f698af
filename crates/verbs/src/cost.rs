//! Runs of jobs and of commands. All other kinds stand on the parts of this record, so it and its study are in `model`.

pub mod measure;
pub mod page;

#[cfg(test)]
mod tests {
    use crate::hostile::{Vandal, changes};
    use model::record::Record;
    use model::study::study;

    /// A record with every meter, two probes, an event and a profile, of several executions of two jobs.
    const EVERYTHING: &str = include_str!("cost/everything.json");

    #[test]
    fn changed_records_are_studied_or_refused() {
        let record: Record = serde_json::from_value(serde_json::from_str(EVERYTHING).unwrap()).unwrap();
        let vandal = Vandal::new(&record);
        let mut studied = 0;
        for seed in 0..changes() {
            if let Ok(changed) = serde_json::from_value::<Record>(vandal.changed(seed)) {
                study(&changed);
                studied += 1;
            }
        }
        assert!((changes() / 4..changes()).contains(&studied), "{studied}");
    }
}
