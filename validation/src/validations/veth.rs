//! What a packet costs over a veth pair with the queueing disciplines of this kernel, with transmit queues bound to CPUs (XPS), and
//! with NAPI in softirqs and in threads. It explores: its only criterion is that every packet is accounted for.

use crate::bench::evidence::{self, Evidence};
use crate::bench::iotoll::receiver;
use crate::bench::veth_pair::{FAR, VethPair, run};
use crate::bench::{Bench, rounds};
use anyhow::{Context, ensure};
use model::blast::BlastFinding;
use model::blast::finding::PointFinding;

const PAYLOAD: u32 = 18;
/// One submitter, and two that meet at the device.
const SUBMITTERS: [u32; 2] = [1, 2];
/// Transmit queues of the devices.
const QUEUES: u32 = 2;

/// A setting of the pair; the first is the default of a veth device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Setting {
    name: &'static str,
    qdisc: &'static str,
    /// Each transmit queue belongs to one CPU.
    xps: bool,
    /// The receiving end has NAPI, which veth uses for GRO; `true` for a thread of its own.
    napi: Option<bool>,
}

const SETTINGS: [Setting; 7] = [
    Setting { name: "noqueue", qdisc: "noqueue", xps: false, napi: None },
    Setting { name: "pfifo_fast", qdisc: "pfifo_fast", xps: false, napi: None },
    Setting { name: "pfifo", qdisc: "pfifo", xps: false, napi: None },
    Setting { name: "mq of pfifo_fast", qdisc: "mq", xps: false, napi: None },
    Setting { name: "mq of pfifo_fast, XPS", qdisc: "mq", xps: true, napi: None },
    Setting { name: "noqueue, NAPI in softirqs (GRO)", qdisc: "noqueue", xps: false, napi: Some(false) },
    Setting { name: "noqueue, NAPI in threads (GRO)", qdisc: "noqueue", xps: false, napi: Some(true) },
];

impl Setting {
    fn apply(self, pair: &VethPair) -> anyhow::Result<()> {
        let near = &pair.near;
        // A discipline is not replaced by one of another kind with the same handle. That there was none is no error.
        let _ = run("tc", &["qdisc", "delete", "dev", near, "root"]);
        run("tc", &["qdisc", "add", "dev", near, "root", "handle", "1:", self.qdisc])?;
        // The queues of mq have the system's default, which differs between distributions.
        for queue in (1..=QUEUES).filter(|_| self.qdisc == "mq") {
            run("tc", &["qdisc", "replace", "dev", near, "parent", &format!("1:{queue}"), "pfifo_fast"])?;
        }
        for queue in 0..QUEUES {
            let mask = if self.xps { 1 << queue } else { 0 };
            let file = format!("/sys/class/net/{near}/queues/tx-{queue}/xps_cpus");
            std::fs::write(&file, format!("{mask:x}")).with_context(|| format!("writing {file}"))?;
        }
        let far = &pair.far;
        there(pair, &format!("ethtool -K {far} gro {}", if self.napi.is_some() { "on" } else { "off" }))?;
        if let Some(threads) = self.napi {
            there(pair, &format!("echo {} > /sys/class/net/{far}/threaded", u8::from(threads)))?;
        }
        Ok(())
    }
}

/// Runs a shell command in the namespace.
fn there(pair: &VethPair, command: &str) -> anyhow::Result<()> {
    let output = pair.there("sh").args(["-c", command]).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command}: {}; this validation needs root and ethtool", said.trim());
    Ok(())
}

pub fn validate(bench: &mut Bench) -> anyhow::Result<Evidence> {
    let pair = VethPair::make(QUEUES)?;
    let program = bench.iotoll().get_program().to_string_lossy().into_owned();
    let (_receiver, port) = receiver(pair.there(&program), FAR)?;
    let seconds = bench.options.seconds;
    let found = bench.in_rounds(
        &SETTINGS,
        |_| 0,
        |setting| setting.name.to_owned(),
        |bench, setting| {
            setting.apply(&pair)?;
            let mut iotoll = bench.iotoll();
            iotoll.args(["blast", FAR, &port.to_string(), "--quiet", "--no-save", "--format=json", "--rounds=4"]);
            iotoll.args([format!("--payload={PAYLOAD}"), format!("--duration={seconds}")]);
            iotoll.arg(format!("--submitters={}", SUBMITTERS.map(|number| number.to_string()).join(",")));
            Ok(serde_json::from_str::<BlastFinding>(&bench.output(&mut iotoll)?)?)
        },
    )?;
    let mut evidence = Evidence::default();
    let points = || found.iter().flatten().flat_map(|finding| &finding.points);
    let unknown = points().filter(|point| point.packets.unaccounted != 0).count();
    evidence.criterion(
        unknown == 0,
        format!("every packet is accounted for in {} of {} measurements", points().count() - unknown, points().count()),
    );
    evidence.note(format!(
        "Payload {PAYLOAD} bytes, sendto, a veth pair with {QUEUES} queues into a network namespace. Means of rounds; ratios to noqueue \
         in the same round."
    ));
    for submitters in SUBMITTERS {
        let values = |setting: usize, of: fn(&PointFinding) -> Option<f64>| -> anyhow::Result<Vec<f64>> {
            let runs = found.get(setting).context("a setting was not measured")?;
            let point =
                |finding: &BlastFinding| of(finding.points.iter().find(|point| point.submitters == submitters)?);
            runs.iter().map(point).collect::<Option<_>>().context("a point was not measured")
        };
        let delivered = |point: &PointFinding| Some(point.delivered_per_second);
        let cycles = |point: &PointFinding| point.cycles_per_packet.map(|cycles| cycles.value);
        let switches = |point: &PointFinding| Some(point.context_switches_per_packet?.value.max(0.0));
        let mut rows = Vec::new();
        for (place, setting) in SETTINGS.iter().enumerate() {
            let ratio = |of| anyhow::Ok(evidence::interval(&rounds::ratio(&values(place, of)?, &values(0, of)?), 2));
            let mean = |of| anyhow::Ok(rounds::mean(&values(place, of)?).value);
            rows.push(vec![
                setting.name.to_owned(),
                evidence::number(Some(mean(delivered)? / 1e3), 0),
                ratio(delivered)?,
                evidence::number(Some(mean(cycles)? / 1e3), 2),
                ratio(cycles)?,
                evidence::number(Some(mean(switches)?), 3),
            ]);
        }
        let noun = if submitters == 1 { "submitter" } else { "submitters" };
        evidence.note(format!("**{submitters} {noun}**"));
        let header =
            ["setting", "delivered kpps", "÷ noqueue", "kcycles per packet", "÷ noqueue", "switches per packet"];
        evidence.table(&header, &rows);
    }
    Ok(evidence)
}
