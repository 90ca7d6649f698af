//! Renders a [`Diagnosis`] of `iotoll doctor` as a document.
//!
//! First what can be measured, then the problems, then everything else. A problem is shown with its reason and fix; a
//! passed check takes one line. All texts come from the diagnosis; this file only adds marks and the order.

use crate::pages::provenance;
use model::doctor::{Check, Diagnosis, State};
use model::reading::Reading;
use model::record::Host;
use report::document::{Audience, Block, Body, Document, Fact, Note, Section, Sentence, Tone, units_tied};
use report::number::{self, BYTES};

impl crate::Finding for Diagnosis {
    fn document(&self) -> Document {
        let checks = |state| self.checks_in(state).flat_map(check).collect::<Vec<Fact>>();
        let machine = Block::new("", Body::Notes).with(vec![Note::new(Tone::Plain, machine(&self.host))]);
        let block = |title: &str, facts| Block::new(title, Body::Facts(facts));
        let rest = [("Notes", State::Note), ("Unknown", State::Unknown), ("Passed", State::Good)];
        // Nothing of these needs a mend here, so one screen only names them.
        let names = |(title, state): (&str, State)| {
            let names: Vec<&str> = self.checks_in(state).map(|check| check.topic.title()).collect();
            (!names.is_empty()).then(|| Fact::new(title, names.join(", ")))
        };
        let named = block("", rest.into_iter().filter_map(names).collect()).of(Audience::GLANCE);
        let mut blocks = vec![machine, block("Problems", checks(State::Poor)), block("Meters", meters(self))];
        blocks.extend(rest.map(|(title, state)| block(title, checks(state)).in_full()));
        blocks.push(block("Canaries: speeds that show whether the machine changed", speeds(self)).in_full());
        blocks.push(named);
        Document {
            kind: "iotoll doctor".to_owned(),
            headline: vec![Sentence::plain(units_tied(&self.summary))],
            sections: blocks.into_iter().map(|block| Section::new("", vec![block])).collect(),
            ..Document::default()
        }
    }
}

fn tone(state: State) -> Tone {
    match state {
        State::Good => Tone::Own,
        State::Note => Tone::Notice,
        State::Poor => Tone::Bad,
        State::Unknown => Tone::Faint,
    }
}

fn machine(host: &Host) -> String {
    let (memory, clock) = (number::with_unit(BYTES, host.memory.as_f64()), number::gigahertz(host.tsc_hertz));
    units_tied(&format!("{}, {memory} of memory, clock {clock}", provenance::machine(host)))
}

fn check(check: &Check) -> Vec<Fact> {
    let mut facts = vec![Fact::marked(tone(check.state), check.topic.title(), units_tied(&check.found))];
    if matches!(check.state, State::Poor | State::Note) {
        facts.push(Fact::new("why it matters", units_tied(&check.why_it_matters)));
    }
    facts.extend(check.mend.iter().map(|mend| Fact::new("fix", units_tied(mend))));
    facts
}

fn meters(diagnosis: &Diagnosis) -> Vec<Fact> {
    let fact = |name: &str, status: &Reading<String>| match status {
        Reading::Taken(text) => Fact::marked(Tone::Own, name, units_tied(text)),
        Reading::Unavailable(reason) => Fact::marked(Tone::Faint, name, units_tied(&format!("unavailable: {reason}"))),
    };
    diagnosis.meters.iter().map(|meter| fact(meter.meter.name(), &meter.status)).collect()
}

fn speeds(diagnosis: &Diagnosis) -> Vec<Fact> {
    let told = provenance::canaries(std::slice::from_ref(&diagnosis.canaries)).into_iter();
    told.map(|(label, text)| Fact::new(label, units_tied(&text))).collect()
}

#[cfg(test)]
pub use tests::diagnosis as fixture;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use model::doctor::{Background, Resolution, Topic};
    use model::record::{Canaries, Meter, MeterStatus};
    use model::unit::{Bytes, Nanos};
    use report::Ink;

    fn json(diagnosis: &Diagnosis) -> String {
        Format::Json.render(diagnosis, Ink::Plain, 80)
    }

    pub fn diagnosis() -> Diagnosis {
        let host = Host {
            kernel: "6.8.0".to_owned(),
            cpu_model: "Intel(R) Xeon(R)".to_owned(),
            cpus: 8,
            tsc_hertz: 3.1e9,
            memory: Bytes(64 << 30),
            ..Host::default()
        };
        let meters = vec![
            MeterStatus { meter: Meter::Pmu, status: Reading::unavailable("this machine offers no hardware counter") },
            MeterStatus {
                meter: Meter::Idle,
                status: Reading::Taken("±1.6 % in 10 s, ±2.2 % with wake-ups".to_owned()),
            },
        ];
        let checks = vec![
            Check::new(Topic::Clocksource, State::Good, "tsc, 25 ns a reading"),
            Check::new(Topic::PciePower, State::Note, "2 nodes").mend("numactl --cpunodebind=0 --membind=0 iotoll …"),
            Check::new(Topic::Governor, State::Unknown, "not visible to a guest").mend("only the host can: set it"),
            Check::new(Topic::Turbo, State::Poor, "on").mend("echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo"),
        ];
        let background = Background {
            watched_nanos: Nanos::from_millis(300),
            busy_fraction: Reading::Taken(0.01),
            steal_fraction: Reading::Taken(0.0),
            steal_since_boot_fraction: Reading::Taken(0.0),
        };
        let canaries = Canaries {
            null_system_call_nanos: 95.0,
            context_switch_nanos: Reading::Taken(1_234.0),
            wake_up_nanos: Reading::unavailable("needs two CPUs"),
            clock_read_nanos: 25.0,
            memcpy_gigabytes_per_second: 41.0,
        };
        let resolution = Some(Resolution { meter: Meter::Idle, half_width_fraction: 0.022 });
        Diagnosis::new(host, meters, checks, background, resolution, canaries, Vec::new())
    }

    #[test]
    fn json_holds_the_diagnosis_and_reads_back() {
        let text = json(&diagnosis());
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["schema"], "iotoll.doctor/1");
        assert_eq!(value["checks"][3]["state"], "poor");
        assert_eq!(value["checks"][3]["mend"], "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo");
        let back: Diagnosis = serde_json::from_value(value).unwrap();
        assert_eq!(back.summary, diagnosis().summary);
    }
}
