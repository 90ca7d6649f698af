//! Finds servers: processes that listen on a socket. The kernel's socket tables show which sockets listen, a process's
//! descriptors which sockets it has.

use crate::proc_files::sockets_of;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// `st` of a listening TCP socket (include/net/tcp_states.h).
const TCP_LISTEN: &str = "0A";
/// `Flags` of a listening Unix socket: __SO_ACCEPTCON.
const ACCEPTS: u32 = 1 << 16;

/// Where a socket listens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    /// A TCP port.
    Port(u16),
    /// The path of a Unix socket.
    Path(String),
}

/// Whether any process listens at an address, in the network namespace of this process.
pub(crate) fn listening(process: u32, address: &Address) -> bool {
    let of = Path::new("/proc").join(process.to_string());
    // Those of a process that has ended cannot be read.
    let proc = if of.join("net/unix").exists() { &of } else { Path::new("/proc/self") };
    table(proc, matches!(address, Address::Port(_))).iter().any(|(one, _)| one == address)
}

/// The sockets that listen, by the network namespace that they are in: the kernel takes milliseconds to list them.
#[derive(Default)]
pub(crate) struct Listening(BTreeMap<PathBuf, Vec<(Address, u64)>>);

impl Listening {
    /// Where a process listens; empty if its descriptors cannot be read.
    pub fn of(&mut self, process: u32) -> Vec<Address> {
        let (proc, own) = (Path::new("/proc").join(process.to_string()), sockets_of(process));
        let Ok(namespace) = fs::read_link(proc.join("ns/net")) else { return Vec::new() };
        let all = || [true, false].into_iter().flat_map(|ports| table(&proc, ports)).collect();
        let table = if own.is_empty() { &Vec::new() } else { self.0.entry(namespace).or_insert_with(all) };
        table.iter().filter(|(_, inode)| own.contains(inode)).map(|(address, _)| address.clone()).collect()
    }
}

/// Each TCP port or Unix socket that listens in a process's network, with the number of the socket.
fn table(proc: &Path, ports: bool) -> Vec<(Address, u64)> {
    let lines = |name| {
        let file = File::open(proc.join("net").join(name)).into_iter();
        file.flat_map(|file| BufReader::new(file).lines().map_while(Result::ok))
    };
    if !ports {
        return lines("unix").filter_map(|line| listening_path(&line)).collect();
    }
    // Those that listen come first: the rest is not read.
    let listening = |name| lines(name).skip(1).map_while(|line| listening_port(&line));
    listening("tcp").chain(listening("tcp6")).collect()
}

/// A line of /proc/net/tcp: sl local_address rem_address st queues timer retransmits uid timeout inode.
fn listening_port(line: &str) -> Option<(Address, u64)> {
    let mut fields = line.split_whitespace();
    let (_, port) = fields.nth(1)?.rsplit_once(':')?;
    let listens = fields.nth(1)? == TCP_LISTEN;
    let inode = fields.nth(5)?.parse().ok()?;
    listens.then_some((Address::Port(u16::from_str_radix(port, 16).ok()?), inode))
}

/// A line of /proc/net/unix: Num RefCount Protocol Flags Type St Inode Path. The path is the rest of the line: it may
/// contain spaces.
fn listening_path(line: &str) -> Option<(Address, u64)> {
    let mut rest = line;
    let mut field = || {
        let (field, after) = rest.trim_start().split_once(' ')?;
        rest = after;
        Some(field)
    };
    let [_, _, _, flags, _, _, inode] = [field()?, field()?, field()?, field()?, field()?, field()?, field()?];
    let (flags, inode) = (u32::from_str_radix(flags, 16).ok()?, inode.parse().ok()?);
    (flags & ACCEPTS != 0 && !rest.is_empty()).then(|| (Address::Path(rest.to_owned()), inode))
}

/// The variable that holds the process that started a service, and the service's name: `42:server`.
pub(crate) const SERVICE: &str = "IOTOLL_SERVICE";

/// The value of the variable for a service that this process starts.
pub(crate) fn service_value(name: &str) -> String {
    format!("{}:{name}", std::process::id())
}

/// The name of the service of this process that a process belongs to, if any.
pub(crate) fn service_of(process: u32) -> Option<String> {
    let environment = fs::read(format!("/proc/{process}/environ")).ok()?;
    let ours = format!("{SERVICE}={}", service_value(""));
    let mut variables = environment.split(|byte| *byte == 0);
    let name = variables.find_map(|variable| variable.strip_prefix(ours.as_bytes()))?;
    Some(String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn our_own_listening_sockets_are_found() {
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a socket");
        let _unix = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let found = Listening::default().of(std::process::id());
        assert!(found.contains(&Address::Port(port)), "{found:?}");
        assert!(found.contains(&Address::Path(path.to_str().unwrap().to_owned())), "{found:?}");
        let of_client = Address::Port(client.local_addr().unwrap().port());
        assert!(!found.contains(&of_client), "a client's socket does not listen");
    }

    #[test]
    fn tables_are_read_as_the_kernel_writes_them() {
        let line = "   0: 0100007F:2A39 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 40123 1 0000 100 0 0 10 0";
        assert_eq!(listening_port(line), Some((Address::Port(10809), 40123)));
        assert_eq!(listening_port(&line.replace(" 0A ", " 01 ")), None);
        assert_eq!(listening_port("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt"), None);
        let line = "ffff0000: 00000002 00000000 00010000 0001 01 5021 /run/nbd.sock";
        assert_eq!(listening_path(line), Some((Address::Path("/run/nbd.sock".to_owned()), 5021)));
        assert_eq!(listening_path("ffff0000: 00000003 00000000 00000000 0001 03 5022 /run/nbd.sock"), None);
    }

    #[test]
    fn only_services_of_this_process_have_a_name() {
        let name = |value: &str| {
            let mut command = Command::new("sleep");
            let mut child = command.arg("1000").env(SERVICE, value).stdout(Stdio::null()).spawn().unwrap();
            // The kernel shows the environment a moment after exec.
            while fs::read(format!("/proc/{}/environ", child.id())).unwrap().is_empty() {}
            let name = service_of(child.id());
            child.kill().unwrap();
            child.wait().unwrap();
            name
        };
        assert_eq!(name(&service_value("a-server")), Some("a-server".to_owned()));
        assert_eq!(name("1:server"), None);
        assert_eq!(service_of(std::process::id()), None);
    }
}
