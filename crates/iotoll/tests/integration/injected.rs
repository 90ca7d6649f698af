//! Busy work that is added to an I/O: at which layer it shows, and how much is burnt.

use super::iotoll::{at_once, number};
use super::servers::Server;

/// Busy work added to a layer shows there, and disappears with a short circuit that bypasses the layer: whether I/Os wait this long on
/// average before they are sent, and then for their reply. It is more than a round trip takes, however busy the machine is.
#[test]
fn busy_work_shows_at_its_layer_and_a_short_circuit_avoids_it() {
    const INJECTED: f64 = 100_000_000.0;
    let cases = [
        ("", "", (false, false)),
        ("", "submit", (true, false)),
        ("", "submit --path_null=wire", (true, false)),
        ("", "wire", (false, true)),
        ("", "wire --path_null=wire", (false, false)),
        ("server", "", (false, true)),
        ("server --path-null server", "", (false, true)),
        ("server", "--path_null=wire", (false, false)),
        ("storage", "", (false, true)),
        ("storage --path-null server", "", (false, false)),
    ];
    let with = |at: &str, ns: &str, place: &str| match at {
        "" => String::new(),
        at if at.starts_with("--") => at.to_owned(),
        at => format!("{ns}{INJECTED} {place}{at}"),
    };
    at_once(cases, |(server, job, expected)| {
        let server_at = with(server, "--inject-ns ", "--inject-at ");
        let served = Server::new(&format!("--backend memory:8m --listen 127.0.0.1:0 {server_at}"));
        let words = format!("run --name=f --ioengine=nbd --uri={} --rw=randrw --bs=4k --number_ios=6", served.uri);
        let found = served.folder.measured(&format!("{words} {}", with(job, "--inject_ns=", "--inject_at=")));
        let stages = &found["jobs"][0]["stages_ns"];
        let long = |stage: &str| number(&stages[stage]["mean"]) >= INJECTED * 0.95;
        assert_eq!((long("backlog_wait"), long("round_trip")), expected, "'{server}' '{job}': {stages}");
    });
}

/// Busy work is calibrated, and the time that it really burns is reported.
#[test]
fn burnt_time_is_reported_at_every_layer() {
    let served = Server::new("--backend memory:8m --listen 127.0.0.1:0");
    let nbd = format!("nbd --uri={} --inject_ns=20000 --inject_at=wire", served.uri);
    let without = format!("{nbd} --path_null=wire");
    let cases = [
        ("null --inject_ns=20000", true),
        ("null --iodepth=8 --inject_ns=20000", true),
        ("null", false),
        (&nbd, true),
        (&without, false),
    ];
    at_once(cases, |(engine, burns)| {
        let words = format!("run --name=a --size=1m --bs=4k --number_ios=100 --ioengine={engine}");
        let job = served.folder.measured(&words)["jobs"][0].clone();
        let injected = job.get("injected_ns").filter(|injected| !injected.is_null());
        // Within the accuracy of a thread that shares its CPU.
        let right =
            injected.map(|it| number(&it["asked"]) == 20_000.0 && (18_000.0..40_000.0).contains(&number(&it["burnt"])));
        assert_eq!(right, burns.then_some(true), "{engine}: {job}");
    });
}

#[test]
fn a_server_reports_the_burnt_time_of_each_thread() {
    for (options, lines) in [("--inject-ns 5000", 2), ("", 0)] {
        let served = Server::new(&format!("--backend memory:8m --listen 127.0.0.1:0 --threads 2 {options}"));
        served.folder.measured(&format!("run --name=a --ioengine=nbd --uri={} --bs=4k --number_ios=10", served.uri));
        let (_, ended) = served.terminated();
        let says = |line: &&str| line.contains("a thread burns") && line.contains("per request");
        assert_eq!(ended.stderr.lines().filter(says).count(), lines, "{ended:?}");
    }
}
