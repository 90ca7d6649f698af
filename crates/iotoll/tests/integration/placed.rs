//! The record shows where threads run, and `--place` pins them.

use super::iotoll::Folder;
use super::machine::skip;
use super::servers::Server;
use serde_json::Value;
use std::collections::BTreeSet;

/// The CPUs of this process; `None`, with a note, if there is only one.
pub fn cpus() -> Option<Vec<u32>> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    let parts = list.split(',').flat_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        first.parse::<u32>().unwrap()..=last.parse::<u32>().unwrap()
    });
    let cpus: Vec<u32> = parts.collect();
    if cpus.len() < 2 {
        skip("one CPU");
        return None;
    }
    Some(cpus)
}

/// The CPUs that the workload ran on.
fn ran_on(finding: &Value) -> BTreeSet<u32> {
    let cpus = finding["phases"][0]["placement"]["cpus"].as_object();
    cpus.unwrap_or_else(|| panic!("{finding}")).keys().map(|cpu| cpu.parse().unwrap()).collect()
}

const COMPARE: &str = "compare --meters thread --budget 1s --quiet";
const NULL: &str = "--name=a --ioengine=null --size=1t --rw=randread --bs=4k --time_based --runtime=600ms";

/// `./check` runs them one at a time.
mod alone {
    use super::*;

    #[test]
    fn jobs_run_on_the_requested_cpus() {
        let Some(cpus) = cpus() else { return };
        let folder = Folder::with_file("data", 1 << 20);
        let placed = |place: &str, job: &str| ran_on(&folder.costed(&format!("run --place {place} {job}")));
        let last = *cpus.last().unwrap();
        assert_eq!(placed(&last.to_string(), NULL), [last].into());
        let psync = "--name=a --ioengine=psync --filename=data --rw=randread --bs=4k --time_based --runtime=600ms";
        assert_eq!(placed(&last.to_string(), psync), [last].into());
        assert_eq!(placed("same", &format!("{NULL} --numjobs=2")), [cpus[0]].into());
        assert_eq!(placed("apart", &format!("{NULL} --numjobs=2")), [cpus[0], cpus[1]].into());
    }

    #[test]
    fn commands_run_on_the_requested_cpus() {
        let Some(cpus) = cpus() else { return };
        let folder = Folder::new();
        let last = *cpus.last().unwrap();
        for (place, cpu) in [(last.to_string(), last), ("same".to_owned(), cpus[0])] {
            let words = format!("cost --background 200ms --no-save --quiet --format json --place {place} -- sh -c");
            // Also for a child of the shell.
            let spin = "sh -c 'i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done' & i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; wait";
            let finding = folder.iotoll(&words).word(spin).run().done().json();
            assert_eq!(ran_on(&finding), [cpu].into(), "{place}");
            let peers = finding["phases"][0]["placement"]["peers"].as_array().unwrap();
            let is_child = |peer: &Value| peer["name"] == "sh" && peer["process"].is_null();
            assert!(!peers.iter().any(is_child), "its children are not beside it: {peers:?}");
        }
    }
}

/// The CPUs of the workload in each slice, or each window, of a comparison's record.
fn rounds_ran_on(folder: &Folder, record: &str) -> BTreeSet<Vec<u64>> {
    fn gather(value: &Value, found: &mut BTreeSet<Vec<u64>>) {
        if let Some(ran) = value["whereabouts"]["ran"].as_array() {
            let own = ran.iter().filter(|ran| ran["side"] == "workload").filter_map(|ran| ran["cpu"].as_u64());
            let own: BTreeSet<u64> = own.collect();
            found.extend((!own.is_empty()).then(|| own.into_iter().collect()));
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| gather(item, found)),
            Value::Object(fields) => fields.values().for_each(|field| gather(field, found)),
            _ => {}
        }
    }
    let text = folder.text(&format!("{record}/record.jsonl"));
    let mut found = BTreeSet::new();
    text.lines().for_each(|line| gather(&serde_json::from_str(line).unwrap(), &mut found));
    found
}

#[test]
fn arms_run_on_the_requested_cpus() {
    let Some(cpus) = cpus() else { return };
    let (first, second, last) = (cpus[0].into(), cpus[1].into(), u64::from(*cpus.last().unwrap()));
    let folder = Folder::new();
    let compared = |place: &str, words: &str| {
        let ended =
            folder.iotoll(&format!("{COMPARE} --format json --out {place} --place {place} {words}")).run().done();
        (rounds_ran_on(&folder, place), ended.json()["placement"].clone())
    };
    let two = "--ioengine=null --size=1t --numjobs=2 --candidate inject_ns=100";
    let (same, placement) = compared("same", two);
    assert_eq!(same, [vec![first]].into());
    let arms: Vec<_> = placement.as_array().unwrap().iter().map(|case| case["arm"].as_str().unwrap()).collect();
    assert_eq!(arms, ["baseline", "candidate"], "{placement}");
    assert!(compared("apart", two).0.contains(&vec![first, second]));
    let spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let words = format!("{COMPARE} --out commands --place {last} --baseline-cmd");
    let of_commands = folder.iotoll(&words).word(format!("sh -c '{spin}'")).word("--candidate-cmd");
    of_commands.word(format!("sh -c '{spin}; :'")).run().done();
    assert_eq!(rounds_ran_on(&folder, "commands"), [vec![last]].into());
}

/// `./check` runs them with `--long` only.
mod long {
    use super::*;

    #[test]
    fn a_server_shares_the_worker_s_cpu_or_does_not() {
        let Some(cpus) = cpus() else { return };
        let (first, last) = (cpus[0], *cpus.last().unwrap());
        let served = Server::on_cpu("--backend memory:64m --listen 127.0.0.1:0", last);
        let job = format!(
            "--name=a --ioengine=nbd --uri={} --rw=randread --bs=4k --iodepth=1 --time_based --runtime=700ms",
            served.uri
        );
        let measured =
            |options: &str| served.folder.costed(&format!("run {job} {options}"))["phases"][0]["placement"].clone();
        // Pinned explicitly, and by --place beside a server that is confined to a CPU.
        let cases = [
            (format!("--cpus_allowed={last}"), last, "same"),
            (format!("--cpus_allowed={first}"), first, "apart"),
            ("--place=same".to_owned(), last, "same"),
            ("--place=apart".to_owned(), first, "apart"),
        ];
        for (options, cpu, mode) in cases {
            // Servers of other tests may be busier for a while.
            let found = (0..10).map(|_| measured(&options)).find(|placement| {
                // On a busy machine a short run may have too little CPU time to be placed.
                if placement.is_null() {
                    return false;
                }
                let server = placement["peers"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .find(|peer| peer["process"].as_u64() == Some(served.process().into()));
                assert_eq!(placement["cpus"], serde_json::json!({ cpu.to_string(): 1.0 }), "{options}: {placement}");
                // It is visible where it had CPU time, which it may not have had beside them.
                let Some(server) = server else { return false };
                assert_eq!(server["cpus"], serde_json::json!({ last.to_string(): 1.0 }), "{options}");
                assert_eq!((server["name"].as_str(), server["server"].as_bool()), (Some("iotoll serve"), Some(true)));
                placement["mode"] == mode
            });
            assert!(found.is_some(), "{options}: the server was never seen, or never {mode}");
        }
    }
}
