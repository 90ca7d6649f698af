//! The kernel's counters of packets that were dropped, by place.

use crate::blast::record::Counted;
use lab::proc_files::{of_list, of_table};
use lab::sysroot::Sysroot;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What the kernel had counted at an instant. Counters are those of this network namespace, whoever's packets they count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DropCounters(Vec<Place>);

/// A place where packets may be dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    what: String,
    /// Packets that were dropped.
    count: u64,
    /// Packets that passed, in both directions; `None` if that is not known.
    passed: Option<u64>,
}

/// Columns of /proc/net/dev, after the name: packets, and those that were dropped.
const RECEIVED: (usize, usize) = (1, 3);
const SENT: (usize, usize) = (9, 11);
/// A device that passed fewer than one packet for this many that were sent was not on the way. A device counts 64 segments of one
/// send as one packet.
const ON_THE_WAY: u64 = 128;

impl DropCounters {
    /// Reads them. A counter that cannot be read is left out: its packets stay unaccounted for.
    pub fn read() -> Self {
        Self::below(&Sysroot::at(Path::new("/")))
    }

    fn below(root: &Sysroot) -> Self {
        let mut found = Vec::new();
        // A full backlog of a CPU counts as a received packet that the device dropped.
        for line in root.text("proc/thread-self/net/dev").unwrap_or_default().lines() {
            let Some((device, columns)) = line.split_once(':') else { continue };
            let columns: Vec<&str> = columns.split_whitespace().collect();
            let column = |place: usize| columns.get(place).and_then(|text| text.parse::<u64>().ok());
            let passed = column(RECEIVED.0).zip(column(SENT.0)).map(|(received, sent)| received.saturating_add(sent));
            for (what, place) in [("receiving", RECEIVED.1), ("sending", SENT.1)] {
                let place = column(place).map(|count| Place {
                    what: format!("device {}, {what}", device.trim()),
                    count,
                    passed,
                });
                found.extend(place);
            }
        }
        let no_ports = [
            of_table(&root.text("proc/thread-self/net/snmp").unwrap_or_default(), "Udp:", "NoPorts"),
            of_list(&root.text("proc/thread-self/net/snmp6").unwrap_or_default(), "Udp6NoPorts"),
        ];
        if no_ports.iter().any(Option::is_some) {
            let count = no_ports.into_iter().flatten().fold(0, u64::saturating_add);
            found.push(Place { what: "no socket at the port".to_owned(), count, passed: None });
        }
        Self(found)
    }

    /// Adds those of the receiver's network. On the same machine a packet that a pair of devices drops is counted by both; then
    /// only the receiver's end counts.
    pub fn with_those_of_the_receiver(mut self, there: Self, same_machine: bool) -> Self {
        if same_machine {
            self.0.clear();
        }
        self.0.extend(there.0.into_iter().map(|place| Place { what: format!("receiver's {}", place.what), ..place }));
        self
    }

    /// What was counted since `earlier` at places that these packets passed, without places of nothing.
    pub fn since(&self, earlier: &Self, sent: u64) -> Vec<Counted> {
        let growth = |now: &Place| {
            let then = earlier.0.iter().find(|then| then.what == now.what)?;
            let count = now.count.saturating_sub(then.count);
            let passed = now.passed.zip(then.passed).map(|(now, then)| now.saturating_sub(then));
            let on_the_way = passed.is_none_or(|passed| passed.saturating_add(count) >= sent / ON_THE_WAY);
            (count > 0 && on_the_way).then(|| Counted { what: now.what.clone(), count })
        };
        self.0.iter().filter_map(growth).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(folder: &Path, passed: u32, dropped: u32) -> DropCounters {
        let net = folder.join("proc/thread-self/net");
        std::fs::create_dir_all(&net).unwrap();
        let dev = format!(
            "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop\n\
             \u{20}   lo: 10 {passed} 0 {dropped} 0 0 0 0 10 2 0 7 0 0 0 0\n  veth0:1 2 3 {dropped} 5 6 7 8 9 10 11 12 13 14 15 16\n"
        );
        std::fs::write(net.join("dev"), dev).unwrap();
        std::fs::write(net.join("snmp"), "Udp: InDatagrams NoPorts\nUdp: 5 9\nUdpLite: InDatagrams\n").unwrap();
        std::fs::write(net.join("snmp6"), "Ip6InReceives 5\nUdp6NoPorts                 \t4\n").unwrap();
        DropCounters::below(&Sysroot::at(folder))
    }

    #[test]
    fn what_grew_on_the_way_is_told_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let before = machine(folder.path(), 100, 3);
        let after = machine(folder.path(), 20_100, 10);
        // Nothing passed veth0: what it dropped was another's.
        assert_eq!(after.since(&before, 20_000), [Counted { what: "device lo, receiving".to_owned(), count: 7 }]);
        assert_eq!(after.since(&before, 500).len(), 2);
        assert_eq!(before.since(&before, 5), []);
        let of = |what: &str| before.0.iter().find(|place| place.what == what).unwrap().count;
        assert_eq!((of("device lo, sending"), of("device veth0, sending"), of("no socket at the port")), (7, 12, 13));
        let names = |same_machine| {
            let both = before.clone().with_those_of_the_receiver(before.clone(), same_machine).0;
            both.iter().filter(|place| place.what.contains("device lo, receiving")).count()
        };
        assert_eq!((names(false), names(true)), (2, 1));
    }

    #[test]
    fn a_machine_without_the_files_has_no_counters() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(DropCounters::below(&Sysroot::at(folder.path())), DropCounters::default());
        assert_ne!(DropCounters::read(), DropCounters::default());
    }
}
