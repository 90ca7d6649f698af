//! Phases: jobs that run together share one cost, a job alone has its own.

use super::iotoll::{Folder, number, whole};
use super::machine::skip_without_idle_time;
use serde_json::Value;

fn names(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

#[test]
fn stonewall_begins_a_phase() {
    let folder = Folder::new();
    let finding = folder.measured_job(
        "[global]\nioengine=null\nsize=100g\nruntime=300ms\ntime_based\n\
         [alone]\n[one]\nstonewall\n[two]\nbs=8k\n[last]\nstonewall\n",
    );
    let phases = finding["phases"].as_array().unwrap();
    let jobs: Vec<Vec<&str>> = phases.iter().map(|phase| names(&phase["jobs"])).collect();
    assert_eq!(jobs, [vec!["alone"], vec!["one", "two"], vec!["last"]]);
    let job = |index: usize| &finding["jobs"][index];
    assert_eq!(job(0)["cycles_per_io"], phases[0]["cycles_per_io"]);
    // Two jobs that ran together have one cost, which belongs to neither.
    if !skip_without_idle_time(&finding) {
        assert!(number(&phases[0]["cycles_per_io_gross"]) > 0.0);
        assert!(phases[1]["cycles_per_io"].is_number());
    }
    assert!(job(1)["cycles_per_io"].is_null() && job(2)["cycles_per_io"].is_null());
    assert!(number(&job(1)["thread_cycles_per_io"]) > 0.0, "each thread has its own cycles");
    assert_eq!(job(3)["cycles_per_io"], phases[2]["cycles_per_io"]);
    assert_eq!(whole(&phases[1]["ios"]), whole(&job(1)["ios"]) + whole(&job(2)["ios"]));
    for phase in phases {
        let seconds = number(&phase["wall_seconds"]);
        assert!((0.25..10.0).contains(&seconds), "{seconds}");
    }
}

#[test]
fn a_job_ends_others() {
    let folder = Folder::new();
    let finding = folder.measured_job(
        "[global]\nioengine=null\nsize=100g\ntime_based\n[first]\nruntime=300ms\nexitall\n[endless]\nruntime=1h\n",
    );
    assert!((0.3..30.0).contains(&number(&finding["jobs"][1]["wall_seconds"])), "{}", finding["jobs"]);
    assert_eq!(finding["outcome"], "completed");
    // Nothing follows a job that ends the run.
    let finding = folder.measured_job(
        "[global]\nioengine=null\nsize=100g\n[one]\nnumber_ios=1000\nexitall\nexit_what=all\n[other]\nnew_group\n\
         time_based\nruntime=1h\n[never]\nstonewall\n",
    );
    assert_eq!(names(&finding["phases"][0]["jobs"]), ["one", "other"]);
    assert_eq!((finding["phases"].as_array().unwrap().len(), &finding["outcome"]), (1, &Value::from("completed")));
}

#[test]
fn copies_are_reported_apart_or_together() {
    let folder = Folder::with_file("data", 1 << 20);
    let options = "run --name=c --filename=data --rw=randread --numjobs=3 --number_ios=50";
    let apart = folder.measured(options);
    let jobs = apart["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 3);
    assert!(jobs.iter().all(|job| whole(&job["ios"]) == 50 && job["cycles_per_io"].is_null()), "{jobs:?}");
    assert_eq!(whole(&apart["phases"][0]["ios"]), 150);
    let read = folder.iotoll(&format!("{options} --background 200ms --quiet --no-save --format csv")).run().stdout;
    assert!(read.contains("\nmerged_jobs[0 c],ios,150,"), "people read one row: {read}");
    let together = folder.measured(&format!("{options} --group_reporting"));
    let jobs = together["jobs"].as_array().unwrap();
    assert_eq!((jobs.len(), whole(&jobs[0]["ios"]), whole(&jobs[0]["copies"])), (1, 150, 3));
    let merged = &apart["merged_jobs"];
    assert_eq!((merged.as_array().unwrap().len(), &merged[0]["ios"]), (1, &jobs[0]["ios"]));
    assert_eq!(jobs[0]["cycles_per_io"], together["phases"][0]["cycles_per_io"], "alone in its phase");
}

#[test]
fn copies_without_a_file_name_have_files_of_their_own() {
    let folder = Folder::new();
    folder.measured("run --name=own --rw=write --size=64k --numjobs=3");
    let sizes: Vec<_> = folder.listing().into_iter().collect();
    let expected = [0, 1, 2].map(|copy| (format!("own.{copy}.0"), Some(65_536)));
    assert_eq!(sizes, expected);
}

#[test]
fn a_later_phase_that_cannot_start_keeps_earlier_results() {
    let folder = Folder::with_file("data", 1 << 20);
    // The peer of the second job is asked only when it starts.
    let bad = "stonewall\nioengine=rr\nrr_peer=tcp://127.0.0.1:1\nsize=1m\n";
    folder.write("job.fio", format!("[good]\nfilename=data\nrw=read\n[bad]\n{bad}"));
    let ended = folder.iotoll("run job.fio --background 200ms --quiet --format json --out kept").run();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let finding = ended.json();
    assert!(finding["outcome"]["failed"].as_str().is_some_and(|why| why.contains("'bad'")), "{}", finding["outcome"]);
    assert_eq!(whole(&finding["jobs"][0]["ios"]), 256);
    assert!(folder.exists("kept/record.jsonl"));
}

#[test]
fn a_phase_waits_for_the_one_before() {
    let folder = Folder::new();
    // The reader finds the data of the writer, or reads nothing.
    let finding = folder.measured_job(
        "[writer]\nfilename=f\nrw=write\nsize=256k\nfallocate=none\n[reader]\nstonewall\nfilename=f\nrw=read\nsize=256k\n",
    );
    assert_eq!(whole(&finding["jobs"][1]["read"]["bytes"]), 262_144);
}

/// As in fio, a name does not decide which jobs belong together.
#[test]
fn jobs_of_one_name_are_two_jobs() {
    let folder = Folder::new();
    let options = "run --size=1m --name=a --ioengine=null --bs=4k --name=a --ioengine=null --bs=64k --name=a --ioengine=spin --spin_cycles=100";
    let finding = folder.measured(options);
    let jobs: Vec<_> =
        finding["jobs"].as_array().unwrap().iter().map(|job| (&job["name"], whole(&job["ios"]))).collect();
    assert_eq!(jobs.iter().map(|(_, ios)| *ios).collect::<Vec<_>>(), [256, 16, 256], "{jobs:?}");
    folder.write("job.fio", "[a]\nioengine=null\nrw=read\nsize=1m\n[b]\nioengine=null\nrw=read\nsize=1m\n");
    folder.iotoll("run job.fio --name=z").run().refused(2, &["'--name=z'", "'job.fio'", "leave it out"]);
}
