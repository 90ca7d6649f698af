//! Busy work that is added to an I/O: where it shows, and how much is burnt.

use super::iotoll::{at_once, number};
use super::servers::Server;

/// Busy work is calibrated, the time that it really burns is reported, and I/Os wait that long before they are sent.
#[test]
fn burnt_time_is_reported_and_precedes_the_wire() {
    let served = Server::new("--backend memory:8m --listen 127.0.0.1:0");
    let nbd = format!("nbd --uri={} --inject_ns=20000", served.uri);
    let without = format!("{nbd} --path_null=wire");
    let cases = ["null --inject_ns=20000", "null --iodepth=8 --inject_ns=20000", "null", &nbd, &without];
    at_once(cases, |engine| {
        let words = format!("run --name=a --size=1m --bs=4k --number_ios=100 --ioengine={engine}");
        let job = served.folder.measured(&words)["jobs"][0].clone();
        let injected = job.get("injected_ns").filter(|injected| !injected.is_null());
        // Within the accuracy of a thread that shares its CPU.
        let right =
            injected.map(|it| number(&it["asked"]) == 20_000.0 && (18_000.0..40_000.0).contains(&number(&it["burnt"])));
        assert_eq!(right, (engine != "null").then_some(true), "{engine}: {job}");
        let waits = job["stages_ns"].get("backlog_wait").map(|stage| number(&stage["mean"]) >= 19_000.0);
        assert!(waits != Some(false), "{engine}: {job}");
    });
}
