//! Network namespaces of processes: /proc/net, sysctls, interfaces and the kernel's tables of sockets are those of one namespace only.

use crate::shell::short;
use model::probe::{Place, Probe};
use model::warning::{Code, Warning};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The namespace of a process; `None` if it has ended, or belongs to another user.
pub fn of(process: u32) -> Option<u64> {
    fs::metadata(format!("/proc/{process}/ns/net")).ok().map(|file| file.ino())
}

/// Whether one of these processes is in another namespace than this one.
pub fn any_elsewhere(processes: impl IntoIterator<Item = u32>) -> bool {
    let ours = of(std::process::id());
    processes.into_iter().filter_map(of).any(|theirs| Some(theirs) != ours)
}

/// Does `what` in the namespace of a process. A thread of its own enters it, so that this one stays where it is.
pub fn within<T: Send>(process: u32, what: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    if of(process) == of(std::process::id()) {
        return what();
    }
    let namespace = File::open(format!("/proc/{process}/ns/net"))?;
    std::thread::scope(|scope| {
        let entering = std::thread::Builder::new().spawn_scoped(scope, || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            what()
        })?;
        entering.join().unwrap_or_else(|_| Err(io::Error::other("the thread that entered it has failed")))
    })
}

/// Whether a file shows one network namespace only: that of the process that reads it.
pub fn is_of_one(path: impl AsRef<Path>) -> bool {
    let path = path.as_ref();
    ["/sys/class/net", "/proc/net", "/proc/sys/net"].iter().any(|folder| path.starts_with(folder))
}

/// The probes that read such a file, as the user gave them.
pub fn flags_of_one(probes: &[Probe]) -> impl Iterator<Item = String> + '_ {
    let of_one = |probe: &&Probe| matches!(&probe.place, Place::File { path, .. } if is_of_one(path));
    probes.iter().filter(of_one).map(|probe| format!("--probe {}", probe.descriptor.name))
}

/// The caveat that `what` (counters or settings, in words) is that of iotoll's own namespace, if `command` was seen in another one.
pub fn caveat(what: &[String], command: &[String], seen: bool) -> Option<Warning> {
    if what.is_empty() || !seen {
        return None;
    }
    let verb = if let [_] = what { "reaches" } else { "reach" };
    let message = format!(
        "{} {verb} iotoll's own network namespace only, and `{}` runs in another one; run iotoll in that namespace instead",
        what.join(", "),
        short(&command.join(" "))
    );
    Some(Warning::new(Code::OtherNamespace, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_of_one_namespace_are_told_by_what_they_read() {
        let of_snmp = "drops=counter:file:/proc/net/snmp:Udp: ([0-9]+)";
        let probes = Probe::parse_list(&format!("dirty,net.lo.rx_bytes,wire=net.lo.tx_bytes,{of_snmp}")).unwrap();
        let flags: Vec<String> = flags_of_one(&probes).collect();
        assert_eq!(flags, ["--probe net.lo.rx_bytes", "--probe wire", "--probe drops"]);
    }

    #[test]
    fn what_reaches_another_namespace_has_no_caveat() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let setting = ["sysctl:net.core.rmem_max=1".to_owned()];
        assert_eq!(caveat(&setting, &words("iperf3 -c x"), false), None);
        assert_eq!(caveat(&[], &words("ip netns exec a iperf3"), true), None);
        let message = caveat(&setting, &words("sh x.sh"), true).unwrap().message;
        let parts = ["rmem_max=1 reaches iotoll's own", "`sh x.sh` runs in another one;"];
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        assert!(!any_elsewhere([std::process::id()]) && within(std::process::id(), || Ok(())).is_ok());
    }
}
