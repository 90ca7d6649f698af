//! Blasts of packets for the tests of every format, made up.

use crate::cost::fixture::host;
use model::blast::finding::*;
use model::blast::plan::{Method, PublishedPackets};
use model::blast::record::{Counted, Receiver};
use model::explained::{AccountChange, EventChange, ExplainedFinding};
use model::record::{Host, Outcome};
use model::scaling::ScalabilityFinding;
use model::stats::Estimate;
use model::stored::{StoredFinding, UnpairedChange};
use model::warning::{Code, Warning};
use std::collections::BTreeMap;

/// All findings with their names.
pub fn all() -> Vec<(&'static str, BlastFinding)> {
    vec![
        ("one", one()),
        ("methods", methods()),
        ("curve", curve()),
        ("queues", queues()),
        ("lossy", lossy()),
        ("explained", explained()),
        ("empty", empty()),
        ("hostile", hostile(f64::NAN, "\u{1b}[31mパケ|ット</script><b>\n\u{7}")),
        ("hostile_numbers", hostile(-1e300, "名")),
    ]
}

fn estimate(value: f64, part: f64) -> Estimate {
    Estimate { value, low: Some(value * (1.0 - part)), high: Some(value * (1.0 + part)) }
}

fn counted(what: &str, count: u64) -> Counted {
    Counted { what: what.to_owned(), count }
}

fn point(method: Method, submitters: u32, (sent, delivered, cycles): (f64, f64, f64)) -> PointFinding {
    let total = (delivered * 10.0) as u64;
    let dropped = ((sent - delivered) * 10.0) as u64;
    let drops = if dropped > 0 { vec![counted("receive buffer of the socket", dropped)] } else { Vec::new() };
    let probes = [("softirqs.net_rx", 0.98), ("softirqs.net_tx", 0.0)];
    PointFinding {
        method,
        submitters,
        task_cpu: None,
        batch: if method == Method::Sendto { 1 } else { 64 },
        oversubscribed: submitters > 8,
        sent_per_second: sent,
        sent_ratio: None,
        errors_per_second: 0.0,
        delivered_per_second: delivered,
        delivered: estimate(delivered, 0.012),
        delivered_ratio: None,
        cycles_per_packet: Some(estimate(cycles, 0.009)),
        cycles_ratio: None,
        context_switches_per_packet: Some(estimate(0.31, 0.2)),
        probes_per_packet: probes.map(|(name, value)| (name.to_owned(), Some(estimate(value, 0.01)))).into(),
        since_stored: None,
        explained: None,
        accounts: Vec::new(),
        events: Vec::new(),
        packets: Packets { sent: total + dropped, delivered: total, drops, reordered: Some(0), ..Packets::default() },
    }
}

/// One method, one submitter, a public figure's form: 245+0.
pub fn one() -> BlastFinding {
    BlastFinding {
        schema: SCHEMA.to_owned(),
        method_version: 1,
        started_unix_seconds: 1.79e9,
        command_line: ["iotoll", "blast", "--duration", "10"].map(str::to_owned).to_vec(),
        host: Host { storage: Vec::new(), ..host() },
        origin: crate::cost::fixture::origin(),
        receiver: Receiver {
            address: "127.0.0.1:46737".to_owned(),
            same_machine: true,
            same_network: true,
            receive_buffer: Some(212_992),
        },
        method: "sendto".to_owned(),
        payload_bytes: 5,
        slice_seconds: 1.0,
        rounds: 10,
        seconds: 22.1,
        meter: Some("timer_list".to_owned()),
        background_fraction: Some(0.008),
        points: vec![point(Method::Sendto, 1, (245_000.0, 243_000.0, 16_700.0))],
        unexplained: None,
        counted_rounds: 0,
        events_reason: None,
        published: Vec::new(),
        services: Vec::new(),
        usl: BTreeMap::new(),
        stored: None,
        limits: Vec::new(),
        outcome: Outcome::Completed,
        warnings: Vec::new(),
    }
}

/// Every method with one submitter, beside an earlier measurement.
pub fn methods() -> BlastFinding {
    let figures = [
        (Method::Sendto, (245_000.0, 243_000.0, 16_700.0)),
        (Method::Sendmmsg, (301_000.0, 300_000.0, 14_500.0)),
        (Method::Gso, (1_130_000.0, 1_070_000.0, 4_400.0)),
        (Method::IoUring, (300_000.0, 300_000.0, 14_400.0)),
    ];
    let mut points: Vec<PointFinding> = figures.map(|(method, figures)| point(method, 1, figures)).into();
    let (first, others) = points.split_at_mut(1);
    let first = &first[0];
    for other in others {
        other.sent_ratio = Some(estimate(other.sent_per_second / first.sent_per_second, 0.03));
        other.delivered_ratio = Some(estimate(other.delivered.value / first.delivered.value, 0.02));
        let cycles = other.cycles_per_packet.zip(first.cycles_per_packet);
        other.cycles_ratio = cycles.map(|(other, first)| estimate(other.value / first.value, 0.02));
    }
    let change = |change: f64| Some(UnpairedChange { change, low: Some(change - 0.02), high: Some(change + 0.02) });
    points[0].since_stored = Some(SinceStored { delivered: change(0.034), cycles_per_packet: change(-0.05) });
    let stored = StoredFinding {
        from: "runs/before".to_owned(),
        started_unix_seconds: 1.78e9,
        differs: vec!["kernel 6.12.1 → 6.18.44".to_owned()],
    };
    BlastFinding { method: "sendto,sendmmsg,gso,io_uring".to_owned(), points, stored: Some(stored), ..one() }
}

/// A sweep of submitters with a fit.
pub fn curve() -> BlastFinding {
    let rate = |submitters: u32| 240_000.0 * f64::from(submitters) / (1.0 + 0.1 * f64::from(submitters - 1));
    let points = [1, 2, 4, 6, 8, 16].map(|submitters| {
        let delivered = rate(submitters);
        point(Method::Sendto, submitters, (delivered, delivered, 17_000.0 + 900.0 * f64::from(submitters)))
    });
    let law = ScalabilityFinding {
        arm: "sendto".to_owned(),
        axis: "submitters".to_owned(),
        at: BTreeMap::new(),
        alone: Some(estimate(240_000.0, 0.01)),
        contention: Some(estimate(0.1, 0.05)),
        coherency: Some(estimate(0.0, 0.0)),
        peak: None,
        misfit: Some(0.01),
        oversubscribed: vec![16.0],
        words: "one CPU's worth of serial work per 10.0 submitters".to_owned(),
    };
    BlastFinding { points: points.into(), usl: [("sendto".to_owned(), law)].into(), ..one() }
}

/// Transmit queues, with the thread of one on two CPUs, beside published figures.
pub fn queues() -> BlastFinding {
    let at = |method, submitters, rate: f64| point(method, submitters, (rate, rate, 17_000.0));
    let tasks = [(0, 156_000.0), (1, 217_000.0)];
    let tasks = tasks.map(|(cpu, rate)| PointFinding { task_cpu: Some(cpu), ..at(Method::RingTask, 1, rate) });
    let mut points: Vec<PointFinding> = [at(Method::Lock, 1, 263_000.0)].into_iter().chain(tasks).collect();
    points.iter_mut().skip(1).for_each(|task| task.sent_ratio = Some(estimate(task.sent_per_second / 263_000.0, 0.05)));
    let published = |method, submitters, kpps: &str, source: &str| PublishedPackets {
        method,
        submitters,
        task_cpu: None,
        kpps: kpps.to_owned(),
        source: source.to_owned(),
    };
    let published = vec![
        published(Method::Lock, 1, "1386+0", "FreeBSD 12, no queue"),
        published(Method::RingTask, 1, "1270+0", "FreeBSD 12, iflib"),
    ];
    BlastFinding { method: "lock,ring-task".to_owned(), points, published, ..one() }
}

/// A full queue on the way, packets out of order, and packets that nobody counted; interrupted.
pub fn lossy() -> BlastFinding {
    let mut finding = one();
    let point = &mut finding.points[0];
    point.errors_per_second = 31_200.0;
    point.packets.failed = vec![counted("No buffer space available (os error 105)", 312_000)];
    point.packets.drops.push(counted("device veth0, sending", 1_200));
    (point.packets.reordered, point.packets.unaccounted) = (Some(17), 4_711);
    let message = "sendto with 1 submitter: 4,711 of 2,450,000 sent packets are unaccounted for";
    finding.warnings = vec![Warning::new(Code::PacketsUnaccounted, message)];
    finding.receiver.same_machine = false;
    finding.outcome = Outcome::Interrupted;
    finding
}

/// Two methods whose packets are divided into accounts.
pub fn explained() -> BlastFinding {
    use model::account::{AccountKind, TaskOwner};
    let mut finding = methods();
    finding.points.truncate(2);
    let account = |name: &str, kind: Option<AccountKind>, owner: Option<TaskOwner>, cycles: f64| AccountChange {
        name: name.to_owned(),
        kind,
        owner,
        baseline: estimate(cycles, 0.02),
        candidate: estimate(cycles, 0.02),
        change_cycles_per_io: Estimate::exact(0.0),
        detected: false,
        large: false,
    };
    let (own, peer) = (Some(TaskOwner::Workload), Some(TaskOwner::Peer));
    let accounts = [
        account("the workload's own threads", Some(AccountKind::Task), own, 9800.0),
        account("softirq net_rx", Some(AccountKind::Softirq), None, 4100.0),
        account("receiver (woken by the workload)", Some(AccountKind::Task), peer, 2700.0),
        account("others, each below 1 %", None, None, 100.0),
    ];
    for (point, share) in finding.points.iter_mut().zip([1.0, 0.87]) {
        let times =
            |all: Estimate, factor: f64| Estimate { value: all.value * factor, ..estimate(all.value * factor, 0.02) };
        let whole = estimate(16_700.0, 0.01);
        let change = estimate(16_700.0 * (share - 1.0), 0.1);
        point.explained = Some(ExplainedFinding {
            rounds: 5,
            baseline: whole,
            candidate: times(whole, share),
            change_cycles_per_io: change,
            undisturbed_change_cycles_per_io: Some(change),
            differs: false,
            known_by_name: false,
        });
        point.accounts = accounts.to_vec();
        for account in point.accounts.iter_mut().filter(|_| share < 1.0) {
            let change = account.candidate.value * (share - 1.0);
            account.candidate = times(account.candidate, share);
            account.change_cycles_per_io =
                Estimate { value: change, low: Some(change - 90.0), high: Some(change + 90.0) };
            account.detected = change.abs() > 90.0;
        }
    }
    let event = |name: &str, count: f64, change: f64| EventChange {
        name: name.to_owned(),
        named: false,
        baseline: estimate(count - change, 0.02),
        candidate: estimate(count, 0.02),
        change_per_io: estimate(change, 0.02),
        detected: change != 0.0,
    };
    let noise = EventChange {
        candidate: Estimate { value: 0.002, low: Some(-0.001), high: Some(0.005) },
        ..event("timer:timer_start", 0.002, 0.0)
    };
    let events = [
        vec![
            event("net:net_dev_xmit", 1.0, 0.0),
            event("syscalls:sendto", 1.0, 0.0),
            event("syscalls:sendmmsg", 0.0, 0.0),
            noise.clone(),
        ],
        vec![
            event("net:net_dev_xmit", 1.0, 0.0),
            event("syscalls:sendmmsg", 1.0 / 64.0, 1.0 / 64.0),
            event("syscalls:sendto", 0.0, -1.0),
            noise,
        ],
    ];
    finding.points.iter_mut().zip(events).for_each(|(point, events)| point.events = events);
    finding.counted_rounds = 5;
    finding
}

/// Interrupted before the end of the first round.
pub fn empty() -> BlastFinding {
    BlastFinding { rounds: 0, points: Vec::new(), meter: None, background_fraction: None, ..one() }
}

/// A number and a text in all places that may hold anything.
pub fn hostile(number: f64, text: &str) -> BlastFinding {
    let mut finding = explained();
    let wrong = Estimate { value: number, low: Some(-number), high: None };
    finding.limits = crate::limits::hostile(number, text);
    for point in &mut finding.points {
        (point.sent_per_second, point.errors_per_second, point.delivered) = (number, -number, wrong);
        (point.delivered_ratio, point.cycles_per_packet, point.cycles_ratio) = (Some(wrong), Some(wrong), Some(wrong));
        point.sent_ratio = Some(wrong);
        for account in &mut point.accounts {
            account.name = text.to_owned();
            (account.candidate, account.change_cycles_per_io, account.detected) = (wrong, wrong, true);
        }
        for event in &mut point.events {
            event.name = text.to_owned();
            (event.candidate, event.change_per_io, event.detected) = (wrong, wrong, true);
        }
        point.probes_per_packet = [(text.to_owned(), Some(wrong))].into();
        point.packets.drops = vec![counted(text, u64::MAX)];
        point.packets.unaccounted = i64::MIN;
    }
    finding.published = vec![PublishedPackets {
        method: Method::Gso,
        submitters: 1,
        task_cpu: None,
        kpps: text.to_owned(),
        source: text.to_owned(),
    }];
    finding.unexplained = Some(text.to_owned());
    finding.receiver.address = text.to_owned();
    finding.command_line = vec![text.to_owned()];
    finding.warnings = vec![Warning::new(Code::PacketsUnaccounted, text)];
    finding
}
