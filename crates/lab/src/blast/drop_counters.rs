//! The kernel's counters of packets that were dropped, by place.

use crate::sysroot::Sysroot;
use model::blast::record::Counted;
use std::path::Path;

/// What the kernel had counted at an instant. Counters are those of this network namespace, whoever's packets they count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DropCounters(Vec<Counted>);

/// Column of received packets that were dropped in /proc/net/dev, after the name.
const RECEIVED: usize = 3;
/// Column of sent packets that were dropped.
const SENT: usize = 11;

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
            let column = |place: usize| columns.get(place).and_then(|text| text.parse().ok());
            for (what, place) in [("receiving", RECEIVED), ("sending", SENT)] {
                let count = column(place);
                found.extend(count.map(|count| Counted { what: format!("device {}, {what}", device.trim()), count }));
            }
        }
        let no_ports = [
            of_table(&root.text("proc/thread-self/net/snmp").unwrap_or_default(), "Udp:", "NoPorts"),
            of_list(&root.text("proc/thread-self/net/snmp6").unwrap_or_default(), "Udp6NoPorts"),
        ];
        if no_ports.iter().any(Option::is_some) {
            let count = no_ports.into_iter().flatten().sum();
            found.push(Counted { what: "no socket at the port".to_owned(), count });
        }
        Self(found)
    }

    /// Both ends of a network: the names of the other end's places say so.
    pub fn with_those_of_the_receiver(mut self, there: Vec<Counted>) -> Self {
        self.0.extend(
            there.into_iter().map(|counted| Counted { what: format!("receiver's {}", counted.what), ..counted }),
        );
        self
    }

    /// What was counted since `earlier`, without places of nothing.
    pub fn since(&self, earlier: &Self) -> Vec<Counted> {
        let growth = |now: &Counted| {
            let then = earlier.0.iter().find(|then| then.what == now.what)?;
            let count = now.count.saturating_sub(then.count);
            (count > 0).then(|| Counted { what: now.what.clone(), count })
        };
        self.0.iter().filter_map(growth).collect()
    }

    /// The counters, for another machine.
    pub fn into_counted(self) -> Vec<Counted> {
        self.0
    }
}

/// A number of a table with a line of names and a line of values, both beginning with `prefix`.
fn of_table(text: &str, prefix: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(prefix));
    let place = lines.next()?.split_whitespace().position(|word| word == name)?;
    lines.next()?.split_whitespace().nth(place)?.parse().ok()
}

/// A number of a list of names and values.
fn of_list(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(folder: &Path, dropped: u32) -> DropCounters {
        let net = folder.join("proc/thread-self/net");
        std::fs::create_dir_all(&net).unwrap();
        let dev = format!(
            "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop\n\
             \u{20}   lo: 10 2 0 {dropped} 0 0 0 0 10 2 0 7 0 0 0 0\n  veth0:1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
        );
        std::fs::write(net.join("dev"), dev).unwrap();
        std::fs::write(net.join("snmp"), "Udp: InDatagrams NoPorts\nUdp: 5 9\nUdpLite: InDatagrams\n").unwrap();
        std::fs::write(net.join("snmp6"), "Ip6InReceives 5\nUdp6NoPorts                 \t4\n").unwrap();
        DropCounters::below(&Sysroot::at(folder))
    }

    #[test]
    fn what_grew_is_told_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let before = machine(folder.path(), 3);
        let after = machine(folder.path(), 10);
        assert_eq!(after.since(&before), [Counted { what: "device lo, receiving".to_owned(), count: 7 }]);
        assert_eq!(before.since(&before), []);
        let of = |what: &str| before.0.iter().find(|counted| counted.what == what).unwrap().count;
        assert_eq!((of("device lo, sending"), of("device veth0, sending"), of("no socket at the port")), (7, 12, 13));
        let both = DropCounters::default().with_those_of_the_receiver(before.into_counted());
        assert!(both.0.iter().any(|counted| counted.what == "receiver's device lo, receiving"));
    }

    #[test]
    fn a_machine_without_the_files_has_no_counters() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(DropCounters::below(&Sysroot::at(folder.path())), DropCounters::default());
        assert_ne!(DropCounters::read(), DropCounters::default());
    }
}
