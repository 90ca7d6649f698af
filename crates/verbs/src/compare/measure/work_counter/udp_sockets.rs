//! Datagrams of the network namespaces in which a command has UDP sockets.
//!
//! The kernel counts datagrams neither by socket nor by process, so these are those of all processes of the namespace, while the
//! command is awake. On loopback each is counted twice, sent and received.

use lab::network_namespace;
use lab::proc_files::{of_list, of_table, sockets_of};
use std::collections::BTreeMap;
use std::fs;

/// A network namespace in which the command has UDP sockets.
#[derive(Debug)]
struct Network {
    process: u32,
    last: Option<u64>,
}

/// The datagrams while the command was awake.
#[derive(Debug, Default)]
pub(super) struct UdpSockets {
    networks: BTreeMap<u64, Network>,
    total: u64,
    asleep: bool,
}

impl UdpSockets {
    /// Looks for UDP sockets of these processes.
    pub fn find(&mut self, processes: &[u32]) {
        for process in processes {
            let Some(network) = network_namespace::of(*process).filter(|network| !self.networks.contains_key(network))
            else {
                continue;
            };
            // Every time, because the table contains a socket only once it has a port: with the first datagram.
            let sockets = sockets_of(*process);
            if !sockets.is_empty() && has_one_of(*process, &sockets) {
                self.networks.insert(network, Network { process: *process, last: read(*process) });
            }
        }
    }

    /// What the namespaces count from now on is the command's.
    pub fn wake(&mut self) {
        self.networks.values_mut().for_each(|network| network.last = read(network.process));
        self.asleep = false;
    }

    /// What they count from now on is not.
    pub fn sleep(&mut self) {
        self.count();
        self.asleep = true;
    }

    /// Adds what they have counted since the last reading.
    pub fn count(&mut self) {
        if self.asleep {
            return;
        }
        for network in self.networks.values_mut() {
            let now = read(network.process);
            if let (Some(now), Some(last)) = (now, network.last) {
                self.total += now.saturating_sub(last);
            }
            network.last = now.or(network.last);
        }
    }

    /// Datagrams; `None` without UDP sockets.
    pub fn datagrams(&self) -> Option<u64> {
        (!self.networks.is_empty()).then_some(self.total)
    }
}

/// Whether one of these sockets of a process is one of UDP.
fn has_one_of(process: u32, sockets: &[u64]) -> bool {
    let table = |name: &str| fs::read_to_string(format!("/proc/{process}/net/{name}")).unwrap_or_default();
    // sl local_address rem_address st queues timer retransmits uid timeout inode
    let inode = |line: &str| line.split_whitespace().nth(9)?.parse::<u64>().ok();
    ["udp", "udp6"].into_iter().any(|name| table(name).lines().filter_map(inode).any(|inode| sockets.contains(&inode)))
}

/// The datagrams of the namespace of a process.
fn read(process: u32) -> Option<u64> {
    let file = |name: &str| fs::read_to_string(format!("/proc/{process}/net/{name}"));
    let (snmp, v6) = (file("snmp").ok()?, file("snmp6").unwrap_or_default());
    let counts = ["InDatagrams", "OutDatagrams"].map(|name| {
        Some(of_table(&snmp, "Udp:", name)?.saturating_add(of_list(&v6, &format!("Udp6{name}")).unwrap_or(0)))
    });
    counts.into_iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn datagrams_are_counted_while_awake() {
        let own = [std::process::id()];
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let send = || (0..50).for_each(|_| _ = socket.send_to(&[7; 1000], socket.local_addr().unwrap()).unwrap());
        let mut sockets = UdpSockets::default();
        assert_eq!(sockets.datagrams(), None, "no sockets are known");
        sockets.find(&[u32::MAX]);
        sockets.find(&own);
        // A kernel without the table.
        if read(own[0]).is_none() {
            return;
        }
        sockets.wake();
        send();
        sockets.sleep();
        let awake = sockets.datagrams().unwrap();
        // Other tests send too.
        assert!(awake >= 50, "{awake}");
        send();
        sockets.count();
        assert_eq!(sockets.datagrams(), Some(awake));
    }

    #[test]
    fn tables_are_read_as_the_kernel_writes_them() {
        let snmp = "Udp: InDatagrams NoPorts OutDatagrams\nUdp: 5 1 7\nUdpLite: InDatagrams\nUdpLite: 9\n";
        assert_eq!((of_table(snmp, "Udp:", "InDatagrams"), of_table(snmp, "Udp:", "OutDatagrams")), (Some(5), Some(7)));
        assert_eq!(of_table(snmp, "Udp:", "InErrors"), None);
        assert_eq!(of_list("Udp6InDatagrams                 \t8\n", "Udp6InDatagrams"), Some(8));
    }
}
