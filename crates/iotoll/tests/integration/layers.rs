//! Busy work added to a layer shows there, and disappears with a short circuit that bypasses the layer.

use super::iotoll::{at_once, number};
use super::serving::Served;

/// More than a round trip takes, however busy the machine is.
const INJECTED: &str = "200000000";

/// Whether I/Os wait this long on average before they are sent, and then for their reply.
fn shows(server: &str, job: &str) -> (bool, bool) {
    let served = Served::new(&format!("--backend memory:8m --listen 127.0.0.1:0 {server}"));
    let words = format!("run --name=f --ioengine=nbd --uri={} --rw=randrw --bs=4k --number_ios=6 {job}", served.uri);
    let stages = served.folder.measured(words.trim())["jobs"][0]["stages_ns"].clone();
    let long = |stage: &str| number(&stages[stage]["mean"]) >= INJECTED.parse::<f64>().unwrap() * 0.95;
    (long("backlog_wait"), long("round_trip"))
}

#[test]
fn busy_work_shows_at_its_layer_and_a_short_circuit_avoids_it() {
    let job = |at: &str| format!("--inject_ns={INJECTED} --inject_at={at}");
    let server = |at: &str| format!("--inject-ns {INJECTED} --inject-at {at}");
    let cases = [
        (String::new(), String::new(), (false, false)),
        (String::new(), job("submit"), (true, false)),
        (String::new(), job("submit") + " --path_null=wire", (true, false)),
        (String::new(), job("wire"), (false, true)),
        (String::new(), job("wire") + " --path_null=wire", (false, false)),
        (server("server"), String::new(), (false, true)),
        (server("server") + " --path-null server", String::new(), (false, true)),
        (server("server"), "--path_null=wire".to_owned(), (false, false)),
        (server("storage"), String::new(), (false, true)),
        (server("storage") + " --path-null server", String::new(), (false, false)),
    ];
    at_once(cases, |(server, job, expected)| assert_eq!(shows(&server, &job), expected, "'{server}' '{job}'"));
}
