//! Asks a receiver (`iotoll blast --serve`) for its counts, by TCP at the port of its packets. A question is a line, the
//! answer a line of JSON.

use super::Receiving;
use super::drop_counters::DropCounters;
use super::receiver::Counts;
use lab::error::{Error, Result};
use lab::host;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The version of the questions and answers.
const PROTOCOL: &str = "iotoll.blast-receiver/1";
/// Longest time for connecting and for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
const LONGEST_ANSWER: u64 = 1 << 20;

/// The questions. New submitters begin; the counts of packets.
pub(super) const BEGIN: &str = "begin";
/// The counts of packets.
pub(super) const COUNTS: &str = "counts";
/// These and the counters of drops.
pub(super) const DROPS: &str = "drops";

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Reply {
    protocol: String,
    /// Names the machine: the kernel's boot ID.
    machine: String,
    /// Names the network namespace.
    network: String,
    #[serde(flatten)]
    counts: Counts,
    receive_buffer: Option<u32>,
    drops: DropCounters,
}

impl Reply {
    pub fn new(counts: Counts, drops: DropCounters, receive_buffer: Option<u32>) -> Self {
        let (machine, network) = names();
        Self { protocol: PROTOCOL.to_owned(), machine, network, counts, receive_buffer, drops }
    }
}

/// Names of this machine and its network.
fn names() -> (String, String) {
    let network = std::fs::read_link("/proc/thread-self/ns/net").map(|name| name.display().to_string());
    (host::boot_id().unwrap_or_default(), network.unwrap_or_default())
}

/// A receiver that is asked.
pub(super) struct RemoteReceiver {
    address: SocketAddr,
    stream: RefCell<BufReader<TcpStream>>,
    about: (bool, bool, Option<u32>),
}

impl RemoteReceiver {
    pub fn connect(address: SocketAddr) -> Result<Self> {
        let nobody = |error: std::io::Error| {
            Error::Refused(format!(
                "{address}: no receiver answers ({error}); start one there: iotoll blast --serve {}",
                if address.is_ipv4() {
                    format!("0.0.0.0:{}", address.port())
                } else {
                    format!("[::]:{}", address.port())
                }
            ))
        };
        let stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(nobody)?;
        let prepare = || {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))
        };
        prepare().map_err(nobody)?;
        let mut receiver = Self { address, stream: RefCell::new(BufReader::new(stream)), about: (false, false, None) };
        let reply = receiver.ask(COUNTS)?;
        let (machine, network) = names();
        let same_machine = !machine.is_empty() && reply.machine == machine;
        receiver.about = (same_machine, same_machine && reply.network == network, reply.receive_buffer);
        Ok(receiver)
    }

    fn ask(&self, question: &str) -> Result<Reply> {
        let address = self.address;
        let gone = |why: String| {
            Error::Failed(format!("the receiver at {address} {why}; start it again and repeat the measurement"))
        };
        let mut line = String::new();
        let mut exchange = || {
            let stream = &mut *self.stream.borrow_mut();
            stream.get_mut().write_all(format!("{question}\n").as_bytes())?;
            stream.take(LONGEST_ANSWER).read_line(&mut line)
        };
        match exchange() {
            Ok(0) => return Err(gone("closed its connection".to_owned())),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(gone(format!("did not answer for {} s", PATIENCE.as_secs())));
            }
            Err(error) => return Err(gone(format!("cannot be asked any more ({error})"))),
        }
        let reply: Option<Reply> = serde_json::from_str(&line).ok();
        reply.filter(|reply| reply.protocol == PROTOCOL).ok_or_else(|| {
            Error::Refused(format!(
                "{address}: is not an iotoll receiver of this version; start one there: iotoll blast --serve {address}"
            ))
        })
    }
}

impl Receiving for RemoteReceiver {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn begin(&self) -> Result<Counts> {
        Ok(self.ask(BEGIN)?.counts)
    }

    fn counts(&self) -> Result<Counts> {
        Ok(self.ask(COUNTS)?.counts)
    }

    fn about(&self) -> (bool, bool, Option<u32>) {
        self.about
    }

    fn drops(&self) -> Result<DropCounters> {
        let here = DropCounters::read();
        let (same_machine, same_network, _) = self.about;
        if same_network {
            return Ok(here);
        }
        Ok(here.with_those_of_the_receiver(self.ask(DROPS)?.drops, same_machine))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// What connecting to a server that answers like this says.
    fn refusal(answer: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 7]).unwrap();
            stream.write_all(answer).unwrap();
        });
        let refused = RemoteReceiver::connect(address).map(|_| ()).unwrap_err().to_string();
        server.join().unwrap();
        refused
    }

    #[test]
    fn who_is_no_receiver_is_refused_in_one_line() {
        assert!(refusal(b"HTTP/1.1 400 Bad Request\r\n\r\n").contains("is not an iotoll receiver of this version"));
        assert!(refusal(b"{\"protocol\":\"iotoll.blast-receiver/9\"}\n").contains("is not an iotoll receiver"));
        assert!(refusal(b"").contains("closed its connection"));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let nobody = RemoteReceiver::connect(port).map(|_| ()).unwrap_err().to_string();
        assert!(nobody.contains("iotoll blast --serve 0.0.0.0:"), "{nobody}");
    }
}
