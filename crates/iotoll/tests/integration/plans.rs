//! Arguments: flags and job files give the same plan, and overrides apply.

use super::iotoll::{Folder, warns, whole};
use serde_json::Value;

/// The plan that `--parse-only` prints for these options.
#[track_caller]
fn plan(folder: &Folder, options: &str) -> Value {
    let ended = folder.iotoll(&format!("run --parse-only --format json {options}")).run();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{options}");
    ended.json()
}

#[test]
fn a_plan_is_shown_to_people_and_to_scripts() {
    let folder = Folder::new();
    folder.write("j.fio", "[one]\nsize=1m\n[two]\nsize=2m\nbs=8k\n");
    let shown = folder.iotoll("run j.fio --parse-only").run().done();
    for part in ["one, two\n", "one: ioengine=psync rw=read bs=4k size=1m", "two: ioengine=psync rw=read bs=8k size=2m"]
    {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    assert_eq!(plan(&folder, "j.fio")["phases"][0]["jobs"][1]["name"], "two");
    let nameless = folder.iotoll("run --rw=randread --size=1m --parse-only").run().done();
    assert!(nameless.stdout.contains("job: ioengine=psync rw=randread"), "{nameless:?}");
}

#[test]
fn flags_and_a_job_file_give_the_same_plan() {
    let folder = Folder::new();
    let options = "rw=randrw rwmixread=70 ioengine=io_uring bs=4k,8k,16k size=1g io_size=2g offset=1m filename=f\\:x:g \
                   directory=d numjobs=4 thread group_reporting stonewall iodepth=32 iodepth_batch_submit=8 \
                   iodepth_batch_complete_min=4 iodepth_batch_complete_max=16 direct=1 runtime=10 time_based \
                   ramp_time=2 number_ios=1000 fsync=32 fdatasync=16 end_fsync=1 norandommap randrepeat=0 randseed=7 \
                   invalidate=0 fallocate=none fixedbufs=1 registerfiles=1 rate_iops=1000 cpus_allowed=0-1 startdelay=1 \
                   thinktime=5 loops=2 percentile_list=50:99";
    let options: Vec<&str> = options.split(' ').collect();
    folder.write("j.fio", format!("[job]\n{}\n", options.join("\n")));
    let flags: Vec<String> = options.iter().map(|option| format!("--{option}")).collect();
    assert_eq!(plan(&folder, "j.fio"), plan(&folder, &format!("--name=job {}", flags.join(" "))));
    // A switch takes a value only after an equals sign, as in fio.
    let switches = ["fixedbufs", "registerfiles"];
    let apart = |option: &&str| {
        let switch = switches.iter().any(|switch| option.starts_with(switch));
        format!("--{}", if switch { (*option).to_owned() } else { option.replacen('=', " ", 1) })
    };
    let apart: Vec<String> = options.iter().map(apart).collect();
    assert_eq!(
        plan(&folder, "j.fio"),
        plan(&folder, &format!("--name job {}", apart.join(" "))),
        "values as separate words"
    );
    assert_eq!(plan(&folder, "j.fio")["phases"][0]["jobs"][0]["depth"]["in_flight"], 32);
    assert_eq!(folder.listing().len(), 1, "--parse-only does nothing");
}

#[test]
fn options_beside_a_job_file_apply_to_all_its_jobs() {
    let folder = Folder::new();
    folder.write("j.fio", "[global]\nbs=4k\n[one]\nsize=1m\n[two]\nsize=2m\nbs=8k\n");
    let sizes = |options: &str| -> Vec<u64> {
        let plan = plan(&folder, options);
        let jobs = plan["phases"][0]["jobs"].as_array().unwrap().clone();
        jobs.iter().map(|job| whole(&job["block_sizes"]["read"])).collect()
    };
    assert_eq!(sizes("j.fio"), [4096, 8192]);
    for options in ["j.fio --bs=16k", "j.fio --bs 16k", "--bs=16k j.fio", "--bs 16k j.fio", "--thread j.fio --bs=16k"] {
        assert_eq!(sizes(options), [16_384, 16_384], "{options}");
    }
    assert_eq!(plan(&folder, "j.fio --seed 9"), plan(&folder, "j.fio --randseed=9"));
}

#[test]
fn the_environment_is_read_in_job_files() {
    let folder = Folder::new();
    folder.write("j.fio", "[a]\nfilename=${HOME}/x\nsize=1m\n");
    let home = std::env::var("HOME").unwrap_or_default();
    let expected = format!("{home}/x");
    assert_eq!(plan(&folder, "j.fio")["phases"][0]["jobs"][0]["target"]["files"][0], expected.as_str());
}

#[test]
fn ignored_options_are_listed_in_the_result() {
    let folder = Folder::new();
    folder.write("j.fio", "[a]\nioengine=null\nsize=1m\ncgroup=x\n");
    folder.iotoll("run j.fio").run().refused(2, &["j.fio:4", "'cgroup'"]);
    let finding = folder.measured("run --ignore-unknown j.fio");
    assert!(warns(&finding, "option_ignored", &["j.fio:4", "'cgroup'"]), "{}", finding["warnings"]);
    assert_eq!(whole(&finding["jobs"][0]["ios"]), 256);
}

#[test]
fn a_seed_makes_the_same_run_again() {
    let folder = Folder::with_file("data", 1 << 20);
    let reads = |seed: u64| {
        let options = format!("run --name=a --filename=data --rw=randrw --seed {seed}");
        whole(&folder.measured(&options)["jobs"][0]["read"]["ios"])
    };
    let same = reads(1);
    assert_eq!(reads(1), same);
    assert!((2..6).any(|seed| reads(seed) != same), "four other seeds, and always {same} reads of 256");
}
