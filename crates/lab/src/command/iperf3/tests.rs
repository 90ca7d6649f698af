//! The JSON of iperf3 3.12 and of older versions, shortened to what is read.

use super::*;

/// What it reports: reads and writes as I/Os and bytes, and packets lost of those that came and of those that it sent.
fn counted(text: &str) -> [(u64, u64, u64); 2] {
    let report = parse(text).unwrap();
    let job = &report.jobs[0];
    let lost = job.lost.unwrap_or(Lost::NONE);
    [(&job.read, lost.read), (&job.write, lost.write)]
        .map(|(direction, lost)| (direction.ios, direction.bytes.0, lost.unwrap()))
}

/// One side of a test: its start, and the sums at its end.
fn test(role: &str, reverse: u8, protocol: &str, end: &str) -> String {
    let peer = if role == "client" { "connecting_to" } else { "accepted_connection" };
    format!(
        r#"{{"start": {{"{peer}": {{"host": "127.0.0.1"}}, "test_start": {{"protocol": "{protocol}", "blksize": 1000, "omit": 0,
           "reverse": {reverse}}}}}, "end": {{{end}}}}}"#
    )
}

const NONE: (u64, u64, u64) = (0, 0, 0);

#[test]
fn each_side_of_a_stream_counts_what_it_moved_itself() {
    let sums = |sent: u64, came: u64| {
        format!(
            r#""sum_sent": {{"bytes": {sent}, "seconds": 2.0}}, "sum_received": {{"bytes": {came}, "seconds": 2.5}}"#
        )
    };
    // The receiver has read less than the sender has written.
    assert_eq!(counted(&test("client", 0, "TCP", &sums(9000, 8000))), [NONE, (9, 9000, 0)]);
    assert_eq!(counted(&test("client", 1, "TCP", &sums(9000, 8000))), [(8, 8000, 0), NONE]);
    // A server does not learn what its client did.
    assert_eq!(counted(&test("server", 0, "TCP", &sums(0, 8000))), [(8, 8000, 0), NONE]);
    assert_eq!(counted(&test("server", 1, "TCP", &sums(9000, 0))), [NONE, (9, 9000, 0)]);
    let report = parse(&test("client", 1, "TCP", &sums(9000, 8000))).unwrap();
    assert_eq!(report.jobs[0].wall_nanos, Nanos::from_millis(2500));
}

#[test]
fn both_directions_of_bidir_are_counted_or_refused() {
    let both = |suffix: &str, sums: [u64; 4]| {
        let [sent, came, back_sent, back_came] = sums;
        format!(
            r#""sum_sent": {{"bytes": {sent}}}, "sum_received": {{"bytes": {came}}},
               "sum_sent{suffix}": {{"bytes": {back_sent}}}, "sum_received{suffix}": {{"bytes": {back_came}}}"#
        )
    };
    let client = test("client", 0, "TCP", &both(SECOND, [9000, 8000, 7000, 6000]));
    assert_eq!(counted(&client), [(6, 6000, 0), (9, 9000, 0)]);
    let server = test("server", 0, "TCP", &both(SECOND, [0, 8000, 7000, 0]));
    assert_eq!(counted(&server), [(8, 8000, 0), (7, 7000, 0)]);
    // Versions 3.7 to 3.10 have no suffix.
    let why = parse(&test("client", 0, "TCP", &both("", [9000, 8000, 7000, 6000]))).unwrap_err();
    assert!(why.contains("3.11") && why.contains("--ios"), "{why}");
}

#[test]
fn packets_that_did_not_arrive_are_not_read_and_are_said() {
    let sums = |sent: &str, came: &str| {
        format!(
            r#""sum": {{"bytes": {sent}, "packets": 10, "lost_packets": 3}},
               "sum_sent": {{"bytes": {sent}, "packets": 10, "lost_packets": 0}},
               "sum_received": {{"bytes": {came}, "packets": 10, "lost_packets": 3}}"#
        )
    };
    assert_eq!(counted(&test("client", 0, "UDP", &sums("10000", "7000"))), [NONE, (10, 10_000, 3)]);
    assert_eq!(counted(&test("client", 1, "UDP", &sums("10000", "7000"))), [(7, 7000, 3), NONE]);
    assert_eq!(counted(&test("server", 0, "UDP", &sums("0", "7000"))), [(7, 7000, 3), NONE]);
    // Versions before 3.11 have one sum, with the bytes that were sent.
    let one = r#""sum": {"bytes": 10000, "packets": 10, "lost_packets": 3}"#;
    assert_eq!(counted(&test("client", 0, "UDP", one)), [NONE, (10, 10_000, 3)]);
    assert_eq!(counted(&test("client", 1, "UDP", one)), [(7, 7000, 3), NONE]);
    let two = format!("{one}, {}", one.replace("10", "20"));
    assert!(parse(&test("client", 0, "UDP", &two)).unwrap_err().contains("--bidir"));
}

#[test]
fn a_side_that_is_not_told_what_was_lost_does_not_say_0() {
    let sums = r#""sum": {"bytes": 10000, "packets": 10, "lost_packets": 0},
                  "sum_sent": {"bytes": 10000, "packets": 10, "lost_packets": 0},
                  "sum_received": {"bytes": 0, "packets": 0, "lost_packets": 0}"#;
    let lost = |text: &str| parse(text).unwrap().jobs[0].lost;
    // The server sends, and its client counts.
    assert_eq!(lost(&test("server", 1, "UDP", sums)), Some(Lost { read: Some(0), write: None }));
    assert_eq!(lost(&test("client", 0, "UDP", sums)), None);
    assert_eq!(lost(&test("server", 1, "TCP", sums)), None);
    // The client sends, and is ended before the server tells.
    let ended = |text: String| text.replacen('{', r#"{"error": "interrupt - the client has terminated", "#, 1);
    assert_eq!(lost(&ended(test("client", 0, "UDP", sums))), Some(Lost { read: Some(0), write: None }));
    assert_eq!(lost(&ended(test("client", 0, "TCP", sums))), None);
}

#[test]
fn seconds_that_the_client_omits_leave_no_cost() {
    let text = test("server", 0, "TCP", r#""sum_received": {"bytes": 8000}"#).replace(r#""omit": 0"#, r#""omit": 2"#);
    let report = parse(&text).unwrap();
    assert_eq!(report.jobs[0].read.ios, 8);
    assert!(report.uncounted.unwrap().contains("leave out the first 2 s"));
}

#[test]
fn what_was_done_before_an_error_counts() {
    let ended = |why: &str| {
        let text = test("client", 1, "TCP", r#""sum_sent": {"bytes": 0}, "sum_received": {"bytes": 8000}"#);
        parse(&text.replacen('{', &format!("{{\"error\": \"{why}\", "), 1)).unwrap()
    };
    for why in ["interrupt - the client has terminated", "unable to send"] {
        let report = ended(why);
        assert_eq!((report.jobs[0].read.ios, report.failure.as_deref()), (8, Some(why)));
    }
    let failed = parse(r#"{"start": {}, "error": "unable to connect"}"#).unwrap();
    assert_eq!((failed.jobs.len(), failed.failure.as_deref()), (0, Some("unable to connect")));
    for text in ["", "{}", "{", "iperf3: error"] {
        assert!(parse(text).is_err(), "{text}");
    }
}

/// A server prints one text for each client.
#[test]
fn every_test_of_a_server_is_counted() {
    let one = test("server", 0, "TCP", r#""sum_received": {"bytes": 8000}"#);
    let report =
        parse(&format!("{one}\n{one}\n{{\"end\": {{}}, \"error\": \"interrupt - the server has terminated\"}}\n"))
            .unwrap();
    assert_eq!(report.jobs.iter().map(|job| (job.group, job.read.ios)).collect::<Vec<_>>(), [(0, 8), (1, 8)]);
}

#[test]
fn flags_that_spoil_the_count_are_refused() {
    for flag in ["-O", "-O2", "--omit=2", "--logfile", "--json-stream", "-D", "--daemon"] {
        assert!(is_in_the_way(flag), "{flag}");
    }
    for flag in ["-t", "Omit", "--one-off", "-lO", "-P2R", "--json"] {
        assert!(!is_in_the_way(flag), "{flag}");
    }
}
