//! A run in the formats of fio.

use crate::cost::page::fixture;
use model::fio_report::Bins;
use report::fio::{json, terse};

#[test]
fn a_line_has_the_fields_of_version_3_without_devices() {
    let mut run = fixture::named("psync_4k");
    run.jobs.iter_mut().for_each(|job| job.name = "a;b".to_owned());
    let text = terse(&run);
    let fields: Vec<&str> = text.trim_end().split(';').collect();
    assert_eq!(fields.len(), 121);
    assert_eq!(fields.get(..5), Some(&["3", "fio-3.33", "a_b", "0", "0"][..]));
    assert_eq!((fields[6], fields[7]), ("1137244", "284311"), "KiB per second, I/Os per second");
    let [job] = run.jobs.as_mut_slice() else { panic!("one job") };
    (job.mixed, job.read) = (Some(job.read.clone()), Default::default());
    assert_eq!(terse(&run), text, "a sum stands in the place of reads");
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
