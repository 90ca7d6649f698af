//! Files and flags mean what they mean for fio, and errors name their place.

use super::*;
use crate::plan::{Access, Depth, EngineKind, JobPlan, Order, Size};
use crate::unit::{Bytes, Nanos};

fn file(text: &str) -> Result<Plan, String> {
    job_file("f", text, &Settings::default()).map_err(|error| error.to_string())
}

/// The job of a file with a single job.
fn job(text: &str) -> JobPlan {
    match file(text).expect(text).phases.as_slice() {
        [Phase { jobs }] if jobs.len() == 1 => jobs[0].clone(),
        phases => panic!("{phases:?}"),
    }
}

fn names(plan: &Plan) -> Vec<Vec<&str>> {
    plan.phases.iter().map(|phase| phase.jobs.iter().map(|job| job.name.as_str()).collect()).collect()
}

fn with_flags(arguments: &str) -> Result<Plan, String> {
    let arguments: Vec<_> = arguments.split_whitespace().map(str::to_owned).collect();
    flags(&arguments, &Settings::default()).map_err(|error| error.to_string())
}

/// All that is wrong with a job file or flags, or the caveats.
fn said(input: &str) -> String {
    match if input.starts_with("--") { with_flags(input) } else { file(&input.replace("\\n", "\n")) } {
        Ok(plan) if plan.warnings.is_empty() => "nothing".to_owned(),
        Ok(plan) => plan.warnings.iter().map(|warning| warning.message.as_str()).collect::<Vec<_>>().join(" | "),
        Err(error) => error.replace('\n', " | "),
    }
}

#[test]
fn what_is_wrong_or_differs_from_fio_is_said() {
    for line in include_str!("said.txt").lines().filter(|line| !line.starts_with('#')) {
        let (input, expected) = line.split_once(" => ").expect(line);
        assert_eq!(said(input), expected, "{input}");
    }
    assert_eq!(said(""), "f:1: section 'job1': missing; no file has a job, so nothing runs");
}

#[test]
fn a_job_has_the_defaults_of_fio() {
    assert_eq!(job("[a]\n"), JobPlan { name: "a".to_owned(), ..JobPlan::default() });
}

#[test]
fn the_layout_of_a_file_is_free() {
    let text = "\u{feff}; comment\r\n\r\n  [ big job ]  # one\r\n\tbs = 8k ; two\r\n  rw=randwrite#three\r\ntime_based\r\nruntime=2";
    let job = job(text);
    assert_eq!(job.name, " big job ", "as in fio");
    assert_eq!(job.block_sizes.write, Bytes(8192));
    assert_eq!((job.access, job.order), (Access::Write, Order::Random));
    assert_eq!((job.duration.time_based, job.duration.runtime), (true, Nanos::from_secs(2)));
}

#[test]
fn global_sections_apply_to_later_jobs() {
    let plan = file("[global]\nbs=8k\nname=x\n[a]\n[global]\nbs=,16k\n[b]\n[c]\nbs=4k\n").unwrap();
    let sizes: Vec<_> =
        plan.phases[0].jobs.iter().map(|job| (job.block_sizes.read.0, job.block_sizes.write.0)).collect();
    assert_eq!(names(&plan), [["a", "b", "c"]]);
    assert_eq!(sizes, [(8192, 8192), (8192, 16384), (4096, 4096)]);
}

#[test]
fn stonewall_begins_a_phase() {
    let plan = file("[a]\nstonewall\n[b]\n[c]\nstonewall\n[d]\nwait_for_previous=0\n[d]\nstonewall=1").unwrap();
    assert_eq!(names(&plan), [vec!["a", "b"], vec!["c", "d"], vec!["d"]]);
    assert_eq!(names(&file("[global]\nstonewall\n[a]\n[b]").unwrap()), [["a"], ["b"]]);
}

#[test]
fn later_options_win() {
    assert_eq!(job("[a]\nbs=8k\nblocksize=16k\n").block_sizes.trim, Bytes(16384));
    assert_eq!(job("[a]\nrwmixread=70\nrwmixwrite=60\n").requests.read_percent, 40);
    assert_eq!(job("[a]\nrwmixwrite=60\nrwmixread=70\n").requests.read_percent, 70);
    assert!(job("[global]\nbuffered=1\n[a]\ndirect=1\n").direct);
}

#[test]
fn the_environment_is_expanded_once() {
    let environment = |name: &str| match name {
        "LINE" => Some("bs=8k".to_owned()),
        "NEST" => Some("${LINE}".to_owned()),
        _ => None,
    };
    let settings = Settings { environment: &environment, ..Settings::default() };
    let read = |text| job_file("f", text, &settings).map_err(|error| error.to_string());
    assert_eq!(read("[a]\n${LINE}\n").unwrap().phases[0].jobs[0].block_sizes.read, Bytes(8192));
    assert_eq!(read("[a]\nfilename=x${NEST}y${LINE}\n").unwrap().phases[0].jobs[0].target.files, ["x${LINE}ybs=8k"]);
    assert_eq!(read("[a]\nbs=${NONE}\n").unwrap_err(), "f:2: option 'bs': 'NONE' is not set in the environment");
    assert_eq!(read("[a]\nbs=${LINE\n").unwrap_err(), "f:2: option 'bs': '${' has no '}'");
}

#[test]
fn a_section_may_have_any_name() {
    let name = |text: &str| job(text).name;
    assert_eq!(name("[a/b]\n"), "a/b");
    assert_eq!(name("[a]b]\n"), "a]b");
    assert_eq!(name("[a] # note\n"), "a");
    assert_eq!(name("[a] ; see [b]\n"), "a");
    assert_eq!(name("[a #1]\n"), "a #1");
}

#[test]
fn a_job_s_own_name_does_not_name_its_files() {
    let named = job("[a]\nname=b\n");
    assert_eq!((named.name.as_str(), named.file_stem()), ("b", "a"));
    assert_eq!(job("[a]\n").file_stem(), "a");
}

#[test]
fn a_filename_that_is_given_again_adds_files_but_an_override_replaces_them() {
    let plan = file("[global]\nfilename=x\n[a]\nfilename=y:z\n[b]\n").unwrap();
    let files: Vec<_> = plan.phases[0].jobs.iter().map(|job| job.target.files.join(" ")).collect();
    assert_eq!(files, ["x y z", "x"]);
    let codes: Vec<_> = plan.warnings.iter().map(|warning| (warning.code, warning.message.as_str())).collect();
    let caveat = "job 'a': filename is given more than once; as in fio, the job uses all of 'x:y:z'";
    assert_eq!(codes, [(Code::FilesAdded, caveat)]);
    let overrides = ["filename=n".to_owned()];
    let plan = job_file("f", "[a]\nfilename=x\n", &Settings { overrides: &overrides, ..Settings::default() }).unwrap();
    assert_eq!((plan.phases[0].jobs[0].target.files.as_slice(), plan.warnings.len()), (&["n".to_owned()][..], 0));
}

#[test]
fn an_error_stays_on_one_line() {
    let error = job_file("dir\n/f", "[a]\nbs=\u{b}1\u{2028}2\n", &Settings::default()).unwrap_err().to_string();
    assert!(error.starts_with(r"dir\n/f:2: option 'bs': '1\u{2028}2' has the unknown suffix"), "{error}");
}

#[test]
fn an_engine_without_files_derives_its_size_from_other_limits() {
    let size = |text: &str| job(&format!("[a]\nioengine=null\n{text}\n")).target.size;
    assert_eq!(size("size=1m\nnumber_ios=3"), Some(Size::Bytes(Bytes(1 << 20))));
    assert_eq!(size("io_size=2m"), Some(Size::Bytes(Bytes(2 << 20))));
    assert_eq!(size("number_ios=10\nbs=4k,8k\nrw=rw"), Some(Size::Bytes(Bytes(81920))));
    assert_eq!(size("number_ios=1p\nbs=1g"), Some(Size::Bytes(Bytes(i64::MAX as u64))));
    assert_eq!(job("[a]\nsize=5%\n").target.size, Some(Size::Percent(5)));
}

#[test]
fn batches_stay_within_the_depth() {
    let depth = |text: &str| job(&format!("[a]\nioengine=libaio\n{text}\n")).depth;
    let of = |in_flight, submit, complete_min, complete_max| Depth {
        low: None,
        in_flight,
        submit,
        complete_min,
        complete_max,
    };
    assert_eq!(depth("iodepth=4"), of(4, 1, 1, 1));
    assert_eq!(depth("iodepth=4\niodepth_batch=0\niodepth_batch_complete_min=0"), of(4, 4, 0, 1));
    assert_eq!(depth("iodepth=4\niodepth_batch=9\niodepth_batch_complete=9"), of(4, 4, 4, 4));
    assert_eq!(depth("iodepth=8\niodepth_batch_complete_min=4\niodepth_batch_complete_max=2"), of(8, 1, 4, 4));
    assert_eq!(depth("iodepth=8\niodepth_batch_complete_max=99"), of(8, 1, 1, 8));
}

#[test]
fn unknown_options_can_be_ignored_but_not_bad_values() {
    let settings = Settings { ignore_unknown: true, ..Settings::default() };
    let plan = job_file("f", "[global]\ncgroup=x\n[a]\n[b]\niodepht=4\n", &settings).unwrap();
    let begins =
        ["f:2: option 'cgroup': known to fio, not supported; start", "f:5: option 'iodepht': unknown; did you mean"];
    assert!(
        plan.warnings.iter().zip(begins).all(|(said, begin)| said.message.starts_with(begin)),
        "{:?}",
        plan.warnings
    );
    assert!(plan.warnings.len() == 2 && plan.warnings.iter().all(|warning| warning.code == Code::OptionIgnored));
    assert!(job_file("f", "[a]\nbs=x\n", &settings).is_err());
    let overrides = ["iodepht=4".to_owned()];
    let plan = job_file("f", "[a]\n[b]\n", &Settings { overrides: &overrides, ..settings }).unwrap();
    assert_eq!(plan.warnings.len(), 1, "reported once, although it applies to both jobs");
}

#[test]
fn overrides_come_last_and_are_checked() {
    let read = |overrides: &[&str]| {
        let overrides: Vec<_> = overrides.iter().map(|text| (*text).to_owned()).collect();
        let settings = Settings { overrides: &overrides, ..Settings::default() };
        job_file("f", "[a]\nbuffered=1\nbs=8k\n[b]\n", &settings).map_err(|error| error.to_string())
    };
    let plan = read(&["bs=16k", "direct=1", "norandommap"]).unwrap();
    assert!(
        plan.phases[0]
            .jobs
            .iter()
            .all(|job| job.direct && job.requests.no_random_map && job.block_sizes.read.0 == 16384)
    );
    assert_eq!(read(&["iodepht=4"]).unwrap_err(), "option '--iodepht': unknown; did you mean 'iodepth'?");
    let plan = read(&["time_based"]).unwrap();
    assert!(!plan.phases[0].jobs[0].duration.time_based, "as in fio, it has no effect without runtime");
    assert!(plan.warnings[0].message.starts_with("job 'a': time_based has no effect"), "{:?}", plan.warnings);
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let text = "[global]\ncgroup=x\nbs=x\n[a]\nstats=0\nsize=1m\n[b]\nioengine=rados\n[c]\nsize=1k\nbs=4k\n";
    let refused = job_file("f", text, &Settings::default()).unwrap_err();
    let places: Vec<_> =
        refused.errors().map(|error| error.to_string().split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(places, ["f:2:", "f:3:", "f:5:", "f:8:", "f:11:"]);
    let advice =
        "no I/O depends on 1 of these 5 lines, which say so; to measure fio itself with this job: iotoll cost -- fio …";
    assert_eq!(refused.advice().as_deref(), Some(advice));
    let harmless = job_file("f", "[a]\nstats=0\n", &Settings::default()).unwrap_err();
    assert!(harmless.advice().is_some_and(|advice| advice.contains("--ignore-unknown runs the job without")));
    let misspelled = job_file("f", "[a]\niodepht=4\n[b]\niodepht=4\n", &Settings::default()).unwrap_err();
    assert_eq!((misspelled.errors().count(), misspelled.advice()), (2, None));
}

#[test]
fn files_follow_each_other_and_do_not_share_their_globals() {
    let files = [("f", "[global]\nbs=8k\n[a]\n[b]\n"), ("g", "[a]\n[c]\n[d]\nstonewall\n")];
    let plan = job_files(&files, &Settings::default()).unwrap();
    let phases = |plan: &Plan| -> Vec<Vec<(String, u64)>> {
        let job = |job: &JobPlan| (job.name.clone(), job.block_sizes.read.0 / 1024);
        plan.phases.iter().map(|phase| phase.jobs.iter().map(job).collect()).collect()
    };
    let named = |jobs: &[(&str, u64)]| jobs.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect::<Vec<_>>();
    assert_eq!(phases(&plan), [named(&[("a", 8), ("b", 8)]), named(&[("a", 4), ("c", 4)]), named(&[("d", 4)])]);
    let read = |sections: &[String]| job_files(&files, &Settings { sections, ..Settings::default() });
    let plan = read(&["c".to_owned(), "b".to_owned()]).unwrap();
    assert_eq!(phases(&plan), [named(&[("b", 8)]), named(&[("c", 4)])]);
    let wrong = read(&["x".to_owned()]).unwrap_err().to_string();
    assert_eq!(wrong, "option '--section': no job has the section 'x'; give a name as it stands in the brackets");
}

#[test]
fn flags_say_the_same_as_a_file() {
    let plan = with_flags("--bs 8k --thread --name=a --rw=randread --stonewall --name b -size=1m --stonewall").unwrap();
    assert_eq!(Ok(plan), file("[global]\nbs=8k\nthread\n[a]\nrw=randread\nstonewall\n[b]\nsize=1m\nstonewall"));
    assert_eq!(with_flags("--name=global --bs=8k --name=a"), file("[a]\nbs=8k"));
}

#[test]
fn a_flag_is_not_expanded() {
    let plan = with_flags("--name=a;b --description=#1 --filename=${X}#y").unwrap();
    assert_eq!(plan.phases[0].jobs[0].name, "a;b");
    assert_eq!(plan.phases[0].jobs[0].target.files, ["${X}#y"]);
    let caveat = "option '--filename': its value contains '#', at which fio would cut it, as at a comment";
    assert_eq!(plan.warnings, [Warning::new(Code::OptionDiffers, caveat)]);
}

#[test]
fn device_writes_are_a_decision_of_the_caller() {
    let settings = Settings { device_writes: true, ..Settings::default() };
    assert!(job_file("f", "[a]", &settings).unwrap().phases[0].jobs[0].target.allow_device_write);
    assert_eq!(job("[a]\nioengine=work\nwork_steps=0\nsize=1m").engine, EngineKind::Work);
    assert!(!job("[a]").target.allow_device_write);
}

#[test]
fn a_file_of_options_alone_does_not_run_but_parses_as_in_fio() {
    let settings = Settings { without_jobs: true, ..Settings::default() };
    let parsed = |texts: &[(&str, &str)], settings: &Settings| job_files(texts, settings).map(|plan| plan.phases.len());
    let options = ("g", "[global]\nbs=4k\n");
    assert_eq!(parsed(&[options], &settings), Ok(0));
    assert!(parsed(&[("g", "[global]\nbs=4x\n")], &settings).is_err(), "its options are checked");
    let job = ("j", "[a]\nsize=1m\nfilename=f\n");
    assert_eq!(parsed(&[options, job], &Settings::default()), Ok(1), "another file has a job");
    assert!(
        parsed(&[options, options], &Settings::default()).unwrap_err().to_string().starts_with("g:2: section 'job1'")
    );
}

#[test]
fn a_job_file_may_be_anywhere_but_after_an_option_without_its_value() {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    for text in ["j.fio --bs=4k --thread", "--bs=4k --thread j.fio", "--bs 4k j.fio --thread"] {
        let expected = (vec!["j.fio"], vec!["bs=4k".to_owned(), "thread".to_owned()]);
        assert_eq!(files_and_options(&words(text)), expected, "{text}");
    }
}
