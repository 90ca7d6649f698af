//! A run in the format of fio's JSON.

use crate::json;
use model::finding::RunFinding;
use model::fio_report::{Bins, FioReport};

/// fio's JSON.
pub fn json(run: &RunFinding, bins: Bins) -> String {
    json::json(&FioReport::of(run, bins, time))
}

/// "Fri Nov 27 10:59:54 2026", in UTC; empty for a time that is none.
fn time(seconds: f64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = crate::phrase::time(seconds).unwrap_or_default();
    let parts: Vec<&str> = text.split(['-', ' ']).collect();
    let [year, month, day, clock, ..] = parts.as_slice() else { return String::new() };
    let month = month.parse::<usize>().ok().and_then(|month| MONTHS.get(month.checked_sub(1)?));
    let since = DAYS.get((seconds / 86_400.0) as usize % DAYS.len());
    let (Some(month), Some(weekday)) = (month, since) else { return String::new() };
    format!("{weekday} {month} {:>2} {clock} {year}", day.trim_start_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::fixture;

    #[test]
    fn a_time_as_ctime_writes_it() {
        assert_eq!(time(1_795_777_194.8), "Fri Nov 27 10:59:54 2026");
        assert_eq!(time(0.0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(time(f64::NAN), "");
    }

    #[test]
    fn a_sum_stands_in_the_place_of_both_directions() {
        let mut run = fixture::named("psync_4k");
        let [job] = run.jobs.as_mut_slice() else { panic!("one job") };
        (job.mixed, job.read) = (Some(job.read.clone()), Default::default());
        let value: serde_json::Value = serde_json::from_str(&json(&run, Bins::Without)).unwrap();
        assert_eq!(value["jobs"][0]["mixed"]["total_ios"], 2_843_112);
        assert!(value["jobs"][0].get("read").is_none());
    }

    #[test]
    fn the_cost_stands_beside_the_job() {
        let text = json(&fixture::named("psync_4k"), Bins::Without);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let job = &value["jobs"][0];
        assert_eq!(job["cost"]["cycles_per_io"], fixture::named("psync_4k").phases[0].cycles_per_io().unwrap());
        assert_eq!(job["read"]["total_ios"], 2_843_112);
        assert_eq!((&job["usr_cpu"], &job["ctx"]), (&18.7.into(), &311.into()));
        assert_eq!(job["read"]["slat_ns"]["N"], 0, "not measured");
    }
}
