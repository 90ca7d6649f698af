//! Priorities of single requests: which ones the kernel gets, and the latencies of each.

use super::iotoll::{Folder, PROGRAM, whole};
use super::like_fio::{joined, under_strace};
use super::machine::{has, is_root, skip};
use serde_json::Value;
use std::collections::BTreeMap;

/// How many requests of a direction, a length and a priority the kernel gets: "PREAD 4096 BE 3".
fn submitted(command: &[&str], job: &str) -> BTreeMap<String, u64> {
    let folder = Folder::with_file("x", 4 << 20);
    folder.write("job.fio", format!("[a]\nioengine=libaio\niodepth=8\nfilename=x\n{job}\n"));
    let (trace, _) = under_strace(&folder, &["-e", "trace=io_submit"], command);
    let mut found = BTreeMap::new();
    for block in joined(&trace).iter().flat_map(|line| line.split("aio_data=").skip(1)) {
        let after = |key: &str, end: char| {
            let (_, rest) = block.split_once(key)?;
            rest.split([end, '}']).next()
        };
        let priority = after("IOPRIO_PRIO_VALUE(IOPRIO_CLASS_", ')').map(|text| text.replace(',', ""));
        assert_eq!(priority.is_some(), block.contains("IOCB_FLAG_IOPRIO"), "{block}");
        let (way, length) = (after("IOCB_CMD_", ','), after("aio_nbytes=", ','));
        let key = format!("{} {} {}", way.unwrap(), length.unwrap(), priority.as_deref().unwrap_or("none"));
        *found.entry(key).or_insert(0) += 1;
    }
    found
}

const OURS: [&str; 6] = [PROGRAM, "run", "--no-save", "--background", "200ms", "job.fio"];

#[test]
fn the_kernel_gets_the_priorities_that_fio_gives_it() {
    const NAME: &str = "the_kernel_gets_the_priorities_that_fio_gives_it";
    if !has("fio") || !has("strace") {
        return skip(NAME, "no fio or no strace here");
    }
    // Each size has one priority: nothing is left to chance but the number of requests of a size.
    let job = "rw=randrw\nsize=2m\nbssplit=4k/50:8k/50\ncmdprio_class=2\ncmdprio=3\n\
               cmdprio_bssplit=4k/100:8k/0,4k/0:8k/100/3/7";
    let kinds = |command: &[&str]| submitted(command, job).into_keys().collect::<Vec<_>>();
    let expected = ["PREAD 4096 BE 3", "PREAD 8192 none", "PWRITE 4096 none", "PWRITE 8192 IDLE 7"];
    assert_eq!(kinds(&["fio", "job.fio"]), expected);
    assert_eq!(kinds(&OURS), expected);
    // The shares of 1024 requests are within six standard deviations of those that are asked for.
    let job = "rw=randread\nsize=4m\ncmdprio_percentage=30\ncmdprio_class=2\ncmdprio=1";
    for command in [&["fio", "job.fio"][..], &OURS] {
        let found = submitted(command, job);
        let of = |key: &str| found.get(key).copied().unwrap_or(0);
        let (with, without) = (of("PREAD 4096 BE 1"), of("PREAD 4096 none"));
        assert_eq!(with + without, 1024, "{found:?}");
        assert!(with.abs_diff(307) <= 88, "{command:?}: {found:?}");
    }
}

#[test]
fn latencies_are_told_by_priority_and_logs_have_it() {
    let folder = Folder::with_file("x", 4 << 20);
    for engine in ["libaio", "io_uring"] {
        let job = format!(
            "--name=a --ioengine={engine} --iodepth=8 --filename=x --size=4m --rw=randrw --prioclass=3 --prio=7 \
             --cmdprio_class=2 --cmdprio=1 --cmdprio_percentage=40,0 --write_lat_log={engine} --log_prio=1"
        );
        let finding = folder.measured(&format!("run {job}"));
        let (read, write) = (&finding["jobs"][0]["read"], &finding["jobs"][0]["write"]);
        let parts: Vec<(u64, u64, u64)> = read["by_priority"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| {
                assert!(part["latency_ns"]["mean"].as_f64().unwrap() > 0.0, "{part}");
                (whole(&part["priority"]["class"]), whole(&part["priority"]["level"]), whole(&part["ios"]))
            })
            .collect();
        let [(3, 7, rest), (2, 1, own)] = parts[..] else { panic!("{engine}: {parts:?}") };
        assert_eq!(rest + own, whole(&read["ios"]), "{engine}");
        assert_eq!(whole(&write["by_priority"][0]["ios"]), whole(&write["ios"]), "{engine}: one priority");
        let log = String::from_utf8(folder.read(&format!("{engine}_clat.1.log"))).unwrap();
        let rows = |priority: &str| log.lines().filter(|row| row.ends_with(priority)).count() as u64;
        assert_eq!((rows(", 0x4001"), rows(", 0x6007")), (own, rest + whole(&write["ios"])), "{engine}");
        let ended = folder.iotoll(&format!("run --background 200ms --no-save --quiet --format fio-json {job}")).run();
        let prios = &ended.json()["jobs"][0];
        assert_eq!(whole(&prios["read"]["prios"][1]["clat_ns"]["N"]), own, "{engine}: the same again");
        assert_eq!(prios["write"]["prios"], Value::Null, "{engine}: fio has no list of one");
        let sheet = folder.iotoll(&format!("run --full --background 200ms --no-save --quiet {job}")).run();
        assert!(sheet.stdout.contains("read, priority best effort 1"), "{}", sheet.stdout);
    }
}

#[test]
fn a_priority_that_is_not_allowed_is_refused_in_one_line() {
    const NAME: &str = "a_priority_that_is_not_allowed_is_refused_in_one_line";
    if !is_root() || !has("setpriv") {
        return skip(NAME, "it takes root and setpriv");
    }
    let folder = Folder::with_file("x", 64 << 10);
    let drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];
    for engine in ["libaio", "io_uring"] {
        let words = format!(
            "run --background 200ms --no-save --quiet --name=a --ioengine={engine} --filename=x --cmdprio_percentage=9"
        );
        folder.iotoll(&words).under(&drop).run().refused(2, &["I/O priority class 1", "cmdprio_class=2"]);
    }
}
