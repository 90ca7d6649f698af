//! A veth pair into a network namespace of its own, whose devices let the kernel cut packets. Removed at the end.

use anyhow::{Context, ensure};
use std::process::Command;

/// Address of the end in the namespace.
pub const FAR: &str = "10.213.77.2";
const NEAR: &str = "10.213.77.1";

pub struct VethPair {
    namespace: String,
    /// The device on this side.
    pub near: String,
    /// The device in the namespace.
    pub far: String,
}

impl VethPair {
    /// With this number of transmit and receive queues.
    pub fn make(queues: u32) -> anyhow::Result<Self> {
        let id = std::process::id();
        let pair = Self { namespace: format!("iotoll-v{id}"), near: format!("v{id}a"), far: format!("v{id}b") };
        let Self { namespace, near, far } = &pair;
        run("ip", &["netns", "add", namespace])?;
        let queues = queues.to_string();
        let link = ["link", "add", "name", near, "gso_max_segs", "1", "numtxqueues", &queues, "numrxqueues", &queues];
        let peer =
            ["type", "veth", "peer", "name", far, "numtxqueues", &queues, "numrxqueues", &queues, "netns", namespace];
        run("ip", &[link.as_slice(), peer.as_slice()].concat())?;
        run("ip", &["addr", "add", &format!("{NEAR}/30"), "dev", near])?;
        run("ip", &["link", "set", near, "up"])?;
        run("ip", &["-n", namespace, "addr", "add", &format!("{FAR}/30"), "dev", far])?;
        run("ip", &["-n", namespace, "link", "set", far, "up"])?;
        Ok(pair)
    }

    /// A command in the namespace.
    pub fn there(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace, program]);
        command
    }
}

impl Drop for VethPair {
    fn drop(&mut self) {
        // Its end of the pair goes with it, and so does the other.
        let _ = Command::new("ip").args(["netns", "delete", &self.namespace]).status();
    }
}

/// Runs a program that sets something up.
pub fn run(program: &str, words: &[&str]) -> anyhow::Result<()> {
    let output =
        Command::new(program).args(words).output().with_context(|| format!("cannot run {program}; install it"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {}: {}", words.join(" "), said.trim());
    Ok(())
}
