//! The study of made-up blasts, whose truth is known.

use super::plan::{BlastPlan, Method};
use super::record::{BlastRecord, Counted, Delivery, End, Header, Receiver, Round};
use super::study;
use crate::blast::record::Line;
use crate::compare::record::{RoundRecord, SliceReading, SliceRecord, SliceWork};
use crate::hostile::Vandal;
use model::account::{Account, AccountKind, Accounts, TaskOwner};
use model::kind::{Envelope, Recorded};
use model::record::{Count, Host, Meter, Mode, Outcome, Snapshot, SystemCounts};
use model::stored::Stored;
use model::unit::{Bytes, Nanos};
use model::warning::Code;
use serde_json::json;

const CLOCK: f64 = 2e9;
const SLICE: u64 = 1_000_000_000;
/// CPU time of the machine without packets, of two CPUs.
const BACKGROUND: f64 = 0.02;

/// The machine's clocks.
#[derive(Default)]
struct Machine {
    now: u64,
    idle: u64,
    switches: u64,
}

impl Machine {
    fn snapshot(&self) -> Box<Snapshot> {
        let at_nanos = Nanos(self.now);
        let counts = [(Meter::TimerList, Count { at_nanos, cpus: 2, total: self.idle })];
        let system = SystemCounts { at_nanos, context_switches: self.switches, ..SystemCounts::default() };
        Box::new(Snapshot { at_nanos, counts: counts.into(), system: Some(system), ..Snapshot::default() })
    }

    /// A slice in which this many packets arrive, each of which costs this much CPU time.
    fn slice(&mut self, case: Option<usize>, delivered: u64, nanos: u64, length: u64) -> SliceRecord {
        let before = self.snapshot();
        self.now += length;
        self.idle += 2 * length - (BACKGROUND * 2.0 * length as f64) as u64 - delivered * nanos;
        self.switches += delivered / 4;
        let work = SliceWork {
            ios: delivered,
            bytes: Bytes(delivered * 5),
            // The receiver was read a little later than the clocks, and so for longer.
            wall_nanos: if case.is_some() { Nanos(length) } else { Nanos(0) },
            ..SliceWork::default()
        };
        SliceRecord { case, reading: SliceReading::Slice { before, after: self.snapshot(), work, tasks: None } }
    }
}

/// A blast of two methods with one submitter: 200,000 packets of 3 µs, and 400,000 of 1 µs; a twentieth is dropped.
fn record() -> BlastRecord {
    let plan = BlastPlan {
        target: None,
        payload: 5,
        methods: vec![Method::Sendto, Method::Gso],
        submitters: vec![1],
        batch: 64,
        slice: Nanos(SLICE),
        warm_up: Nanos(0),
        rounds: 6,
        submitter_cpus: Vec::new(),
        task_cpus: Vec::new(),
        published: Vec::new(),
        receiver_cpu: None,
        receive_buffer: None,
        seed: 1,
    };
    let mut machine = Machine::default();
    let round = |number: u64| {
        // The machine's speed wanders, the same for both.
        let wobble = |count: u64| count + count / 100 * (number * 7 % 5);
        let (first, second) = (wobble(200_000), wobble(400_000));
        let mut slices = vec![machine.slice(Some(1), second, 1000, SLICE), machine.slice(None, 0, 0, SLICE / 2)];
        slices.push(machine.slice(Some(0), first, 3000, SLICE));
        let delivery = |point: usize, delivered: u64| {
            let dropped = delivered / 20;
            let drops = vec![Counted { what: "receive buffer of the socket".to_owned(), count: dropped }];
            let (sent, failed) = (delivered + dropped, Vec::new());
            Delivery { point, slice_sent: sent, sent, failed, delivered, drops, ..Delivery::default() }
        };
        let slices = RoundRecord { slices, ..RoundRecord::default() };
        Round { slices, deliveries: vec![delivery(1, second), delivery(0, first)] }
    };
    let rounds = (0..6).map(round).collect();
    let header = Header {
        envelope: Envelope::new(BlastRecord::KIND, 0.0, Vec::new()),
        plan,
        host: Host { cpus: 2, tsc_hertz: CLOCK, ..Host::default() },
        meters: Vec::new(),
        probes: Vec::new(),
        events: None,
        receiver: Receiver {
            address: "127.0.0.1:5".to_owned(),
            same_machine: true,
            same_network: true,
            receive_buffer: None,
        },
        allowed_cpus: None,
        services: Vec::new(),
    };
    let end = End { outcome: Outcome::Completed, tsc_hertz: CLOCK, nanos: Nanos(6 * SLICE), warnings: Vec::new() };
    BlastRecord { header, rounds, explaining: Vec::new(), end: Some(end) }
}

/// The same, with explaining rounds in which the sender has this part of the CPU time, a softirq the rest.
fn explained(senders: [f64; 2]) -> BlastRecord {
    let mut record = record();
    let alone = record.rounds.iter().map(|round| round.slices.clone()).collect();
    record.explaining = alone;
    for slice in record.explaining.iter_mut().flat_map(|round| &mut round.slices) {
        let (sender, nanos) = match slice.case {
            Some(point) => (senders[point], [3000.0, 1000.0][point]),
            None => (0.0, 0.0),
        };
        let SliceReading::Slice { before, after, work, .. } = &mut slice.reading else { unreachable!() };
        before.mode = Mode::Alone(Meter::Accounts);
        let passed = 2.0 * after.at_nanos.since(before.at_nanos).as_f64();
        let busy = work.ios as f64 * nanos;
        let account = |kind, name: &str, owner, nanos: f64| Account {
            kind,
            name: name.to_owned(),
            owner,
            nanos: Nanos(nanos as u64),
            count: 1,
        };
        let own = account(AccountKind::Task, "submitter 0", Some(TaskOwner::Workload), busy * sender);
        let softirq = account(AccountKind::Softirq, "net_rx", None, busy * (1.0 - sender));
        let daemon = account(AccountKind::Task, "daemon", Some(TaskOwner::Other), BACKGROUND * passed);
        let idle = account(AccountKind::Idle, "", None, passed * (1.0 - BACKGROUND) - busy);
        let accounts = vec![own, softirq, daemon, idle];
        after.accounts = Some(Box::new(Accounts { passed_nanos: Nanos(passed as u64), accounts }));
    }
    record
}

#[test]
fn a_packet_is_divided_into_accounts() {
    let finding = study(&explained([0.6, 0.9]), None);
    let [first, second] = finding.points.as_slice() else { panic!("{finding:?}") };
    let told = |point: &super::finding::PointFinding| -> Vec<(String, f64)> {
        let told = point.cost.accounts.iter().filter(|account| {
            account.per_io.candidate.value.abs() > 0.005 * point.cost.explained.unwrap().candidate.value
        });
        told.map(|account| (account.name.clone(), (account.per_io.candidate.value / 10.0).round() * 10.0)).collect()
    };
    let of = |own: f64, softirq: f64| {
        vec![("the workload's own threads".to_owned(), own), ("softirq net_rx".to_owned(), softirq)]
    };
    assert_eq!((told(first), told(second)), (of(3600.0, 2400.0), of(1800.0, 200.0)));
    assert!(first.cost.accounts.iter().all(|account| account.per_io.change.value == 0.0 && !account.per_io.detected));
    let softirq = second.cost.accounts.iter().find(|account| account.name == "softirq net_rx").unwrap();
    let change = softirq.per_io.change;
    assert!(near(change.value, -2200.0) && softirq.per_io.detected, "{softirq:?}");
    assert!(second.cost.accounts.iter().all(|account| !account.name.contains("daemon")), "{:?}", second.cost.accounts);
    assert!(!second.cost.explained.unwrap().differs, "{:?}", second.cost.explained);
    // Nothing else is from these rounds.
    let mut alone = finding.clone();
    assert!(alone.explanation.account_family.take().is_some());
    for point in &mut alone.points {
        (point.cost.explained, point.cost.accounts) = (None, Vec::new());
    }
    assert_eq!(format!("{alone:?}"), format!("{:?}", study(&record(), None)));
}

fn near(found: f64, truth: f64) -> bool {
    (found / truth - 1.0).abs() < 1e-3
}

#[test]
fn packets_cost_what_they_cost_without_the_background() {
    let finding = study(&record(), None);
    let [first, second] = finding.points.as_slice() else { panic!("{finding:?}") };
    assert!(near(first.cycles_per_packet.unwrap().value, 6000.0), "{first:?}");
    assert!(near(second.cycles_per_packet.unwrap().value, 2000.0), "{second:?}");
    assert!(near(second.cycles_ratio.unwrap().value, 1.0 / 3.0) && first.cycles_ratio.is_none());
    // The wobble is common to both: the ratio has no error, and each rate has one.
    let ratio = second.delivered_ratio.unwrap();
    assert!(near(ratio.value, 2.0) && ratio.high.unwrap() - ratio.low.unwrap() < 1e-3, "{ratio:?}");
    let sent = second.sent_ratio.unwrap();
    assert!(near(sent.value, second.sent_per_second / first.sent_per_second) && first.sent_ratio.is_none());
    assert!(sent.low.unwrap() <= sent.value && sent.high.unwrap() < sent.value * 1.01, "{sent:?}");
    assert!(first.delivered.half_width().unwrap() > 1000.0, "{first:?}");
    assert!(near(first.sent_per_second / first.delivered_per_second, 1.05), "{first:?}");
    assert!(near(first.context_switches_per_packet.unwrap().value, 0.25), "{first:?}");
    assert!(near(finding.background_fraction.unwrap(), BACKGROUND));
    assert!(finding.head.warnings.is_empty(), "{:?}", finding.head.warnings);
    assert_eq!((first.packets.unaccounted, finding.method.as_str()), (0, "sendto,gso"));
}

#[test]
fn a_receiver_that_is_read_late_counts_in_proportion() {
    let mut late = record();
    for slice in late.rounds.iter_mut().flat_map(|round| &mut round.slices.slices) {
        if let (Some(_), SliceReading::Slice { work, .. }) = (slice.case, &mut slice.reading) {
            work.wall_nanos = Nanos(work.wall_nanos.0 / 10 * 11);
            work.ios = work.ios / 10 * 11;
        }
    }
    let (finding, before) = (study(&late, None), study(&record(), None));
    for (point, before) in finding.points.iter().zip(&before.points) {
        assert!(near(point.cycles_per_packet.unwrap().value, before.cycles_per_packet.unwrap().value), "{point:?}");
        assert!(near(point.delivered_per_second, before.delivered_per_second), "{point:?}");
    }
}

#[test]
fn packets_that_nobody_counted_are_told_first() {
    let mut record = record();
    record.rounds[3].deliveries[0].sent += 7;
    record.rounds[3].deliveries[1].delivered += 9;
    record.header.receiver.same_machine = false;
    let finding = study(&record, None);
    let codes: Vec<Code> = finding.head.warnings.iter().map(|warning| warning.code).collect();
    assert_eq!(codes, [Code::PacketsUnaccounted, Code::PacketsUnaccounted, Code::RemoteReceiver]);
    let unaccounted: Vec<i64> = finding.points.iter().map(|point| point.packets.unaccounted).collect();
    assert_eq!(unaccounted, [-9, 7]);
    assert!(finding.head.warnings[0].message.contains("sendto with 1 submitter: 9 of"), "{:?}", finding.head.warnings);
}

#[test]
fn an_earlier_blast_is_compared_point_by_point() {
    let mut then = record();
    then.header.plan.methods = vec![Method::Gso, Method::Sendmmsg];
    then.header.plan.payload = 18;
    assert!(then.fits(&record().header.plan).is_ok());
    let finding = study(&record(), Some(&Stored::new("earlier", then.clone())));
    let [sendto, gso] = finding.points.as_slice() else { panic!("{finding:?}") };
    assert!(sendto.since_stored.is_none());
    // What was the first point then is the second now.
    assert!(near(gso.since_stored.unwrap().delivered.unwrap().value, 1.0), "{gso:?}");
    assert!(finding.head.warnings.iter().any(|warning| warning.message.contains("payload 18 → 5")));
    then.header.plan.submitters = vec![3];
    assert!(then.fits(&record().header.plan).is_err());
}

fn lines(record: &BlastRecord) -> Vec<serde_json::Value> {
    let mut lines = vec![json!({"header": record.header})];
    lines.extend(record.rounds.iter().map(|round| json!({"round": round})));
    lines.extend(record.explaining.iter().map(|round| json!({"explaining": round})));
    lines.extend(record.end.iter().map(|end| json!({"end": end})));
    lines
}

#[test]
fn no_damaged_record_breaks_the_study() {
    let envelope = || Envelope::new(BlastRecord::KIND, 0.0, Vec::new());
    let lines = lines(&explained([0.6, 0.9]));
    let assembled = |lines: &[serde_json::Value]| {
        let lines: Result<Vec<Line>, _> = lines.iter().cloned().map(serde_json::from_value).collect();
        lines.ok().and_then(|lines| BlastRecord::assemble(envelope(), lines).ok())
    };
    let same = assembled(&lines).unwrap();
    assert_eq!(format!("{:?}", study(&same, None)), format!("{:?}", study(&explained([0.6, 0.9]), None)));
    assert!(assembled(&lines[1..]).is_none(), "the header is missing");
    let vandal = Vandal::new(&lines);
    let mut studied = 0;
    for seed in 0..300 {
        let changed = vandal.changed(seed);
        if let Some(record) = changed.as_array().and_then(|lines| assembled(lines)) {
            study(&record, Some(&Stored::new("earlier", same.clone())));
            studied += 1;
        }
    }
    assert!(studied > 50, "{studied}");
}

#[test]
fn limits_are_judged_at_every_point() {
    use model::limit::LimitState::{Exceeded, Kept, Undecided};
    use model::limit::judge;
    let found = |stored: Option<BlastRecord>, text: &str| {
        let record = record();
        let limits = model::kind::limits::<BlastRecord>(&[text.to_owned()], record.plan(), stored.is_some()).unwrap();
        let stored = stored.map(|stored| Stored::new("then", stored));
        let limits = judge(&limits, |metric| record.at_places(&record.study(stored.as_ref()), stored.as_ref(), metric));
        limits.into_iter().map(|limit| (limit.cell, limit.state)).collect::<Vec<_>>()
    };
    let points =
        |first: (&str, _), second: (&str, _)| vec![(first.0.to_owned(), first.1), (second.0.to_owned(), second.1)];
    let (one, other) = ("sendto × 1", "gso × 1");
    // 200,000 and 400,000 packets, a twentieth more sent.
    assert_eq!(found(None, "packets_per_second < 300k"), points((one, Exceeded), (other, Kept)));
    assert_eq!(found(None, "cycles_per_packet > 3k"), points((one, Exceeded), (other, Kept)));
    assert_eq!(found(None, "loss_share > 4%"), points((one, Exceeded), (other, Exceeded)));
    assert_eq!(found(None, "loss_share > 5%"), points((one, Kept), (other, Kept)));
    assert_eq!(found(Some(record()), "packets_per_second < -10%"), points((one, Kept), (other, Kept)));
    let mut less = record();
    less.header.plan.methods.pop();
    assert_eq!(found(Some(less), "packets_per_second < -10%"), points((other, Undecided), (one, Kept)));
}
