//! One thread sends small datagrams to another over 127.0.0.1. The receiver may miss some; the count is of those sent.

use super::argument;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const DATAGRAM: usize = 64;

pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let datagrams = argument::<u64>(arguments, 0)?;
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    sender.connect(receiver.local_addr()?)?;
    let over = AtomicBool::new(false);
    let received = std::thread::scope(|scope| {
        let receive = scope.spawn(|| -> std::io::Result<u64> {
            let mut buffer = [0; DATAGRAM];
            let mut received = 0;
            loop {
                receiver.recv(&mut buffer)?;
                if over.load(Ordering::Acquire) {
                    return Ok(received);
                }
                received += 1;
            }
        });
        let sent = (0..datagrams).try_for_each(|_| sender.send(&[1; DATAGRAM]).map(|_| ()));
        over.store(true, Ordering::Release);
        while !receive.is_finished() {
            // Wakes the receiver; its queue may be full for a while, so more than one may be needed.
            let _ = sender.send(&[0; DATAGRAM]);
            std::thread::sleep(Duration::from_millis(1));
        }
        sent?;
        receive.join().unwrap_or_else(|_| Err(std::io::Error::other("the receiver panicked")))
    })?;
    println!("{received} of {datagrams} datagrams arrived");
    Ok(())
}
