//! Starts the servers that are measured: iotoll's and those that people run.

use crate::bench::{Bench, Beside};
use anyhow::{Context, bail, ensure};
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Size of the memory that is served.
pub const MEBIBYTES: usize = 256;
/// Busy-poll time of the polling servers and clients in microseconds: longer than a round trip.
pub const POLL: &str = "100";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    Nbdkit,
    QemuNbd,
    Iotoll,
    /// With a bounded busy poll.
    Polling,
    /// No NBD server: only the same bytes (`validation load bare-server`).
    Bare,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Socket {
    Tcp,
    Unix,
}

/// Where client and server run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Wherever the scheduler places them: usually on one CPU each.
    Anywhere,
    /// Both on the first CPU: a wake-up is a context switch, and no CPU wakes from idle.
    OneCpu,
    /// The client on the first CPU, the server on the second.
    Apart,
}

/// The storage of the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    Memory,
    /// In the page cache.
    File,
}

/// A server to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub server: Server,
    pub socket: Socket,
    pub place: Place,
    pub storage: Storage,
}

/// A running server that is killed when this is dropped.
pub struct Served {
    pub uri: String,
    _process: Beside,
}

impl Served {
    /// Starts a server: of memory with room for the data, or of the file that contains it (qemu-nbd serves it
    /// read-only).
    pub fn start(bench: &Bench, wanted: &Wanted, data: &Path) -> anyhow::Result<Self> {
        let Wanted { server, socket, place, storage } = *wanted;
        let path = bench.path(&format!("{server:?}-{place:?}-{storage:?}.socket"));
        let path = path.display().to_string();
        let (process, uri) = match server {
            Server::Nbdkit => {
                let mut command = placed(bench, place, "nbdkit")?;
                command.args(["-f"]).stdout(Stdio::null());
                let uri = match socket {
                    Socket::Unix => {
                        command.args(["-U", &path]);
                        format!("nbd+unix:///?socket={path}")
                    }
                    Socket::Tcp => {
                        let port = free_port()?;
                        command.args(["-i", "127.0.0.1", "-p", &port]);
                        format!("nbd://127.0.0.1:{port}")
                    }
                };
                command.args(["memory", &format!("{MEBIBYTES}m")]);
                (Beside { child: command.spawn().context("cannot run nbdkit; install it")? }, uri)
            }
            Server::QemuNbd => {
                let port = free_port()?;
                let mut command = placed(bench, place, "qemu-nbd")?;
                command.args(["--read-only", "--persistent", "--shared=0", "--format=raw", "--bind=127.0.0.1"]);
                let child = command.arg(format!("--port={port}")).arg(data).spawn();
                (Beside { child: child.context("cannot run qemu-nbd; install it")? }, format!("nbd://127.0.0.1:{port}"))
            }
            Server::Bare => bail!("a bare server has no storage"),
            Server::Iotoll | Server::Polling => {
                let mut command = placed(bench, place, bench.iotoll().get_program())?;
                let backend = match storage {
                    Storage::Memory => format!("memory:{MEBIBYTES}m"),
                    Storage::File => format!("file:{}", data.display()),
                };
                command.args(["serve", "--threads", "1", "--backend", &backend]).stderr(Stdio::null());
                if server == Server::Polling {
                    command.args(["--path-busy-poll", POLL]);
                }
                match socket {
                    Socket::Unix => command.args(["--unix", &path]),
                    Socket::Tcp => command.args(["--listen", "127.0.0.1:0"]),
                };
                let mut process = Beside { child: command.stdout(Stdio::piped()).spawn()? };
                let line = first_line(&mut process)?;
                let uri = line.strip_prefix("listening on ").context("iotoll serve does not listen")?.to_owned();
                (process, uri)
            }
        };
        let end = Instant::now() + Duration::from_secs(10);
        let listens = || match uri.strip_prefix("nbd://") {
            Some(address) => TcpStream::connect(address).is_ok(),
            None => Path::new(&path).exists(),
        };
        while !listens() {
            ensure!(Instant::now() < end, "{server:?} does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(Self { uri, _process: process })
    }

    /// Starts a bare server for this block size and queue depth.
    pub fn bare(bench: &Bench, socket: Socket, place: Place, block: u64, depth: u32) -> anyhow::Result<Self> {
        let address = match socket {
            Socket::Tcp => "127.0.0.1:0".to_owned(),
            Socket::Unix => bench.path(&format!("bare-{place:?}-{block}-{depth}.socket")).display().to_string(),
        };
        let words = bench.load(&["bare-server", &address, &block.to_string(), &depth.to_string()]);
        let (program, arguments) = words.split_first().context("no command")?;
        let mut command = placed(bench, place, program)?;
        let mut process = Beside { child: command.args(arguments).stdout(Stdio::piped()).spawn()? };
        let uri = first_line(&mut process)?;
        ensure!(!uri.is_empty(), "the bare server does not listen");
        Ok(Self { uri, _process: process })
    }
}

/// A free port. Another process could take it before its use, but not on a machine that runs nothing else.
fn free_port() -> anyhow::Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string())
}

/// A command that runs a server at that place.
fn placed(bench: &Bench, place: Place, program: impl AsRef<Path>) -> anyhow::Result<Command> {
    let Some(words) = place.servers_cpu()?.map(on_cpu) else { return Ok(bench.command(program)) };
    let mut command = bench.command(words.first().map_or("", String::as_str));
    command.args(words.iter().skip(1)).arg(program.as_ref());
    Ok(command)
}

impl Place {
    /// The client's CPU, if it is pinned.
    pub fn clients_cpu(self) -> anyhow::Result<Option<u32>> {
        match self {
            Self::Anywhere => Ok(None),
            Self::OneCpu | Self::Apart => allowed_cpu(0).map(Some),
        }
    }

    /// The server's CPU, if it is pinned.
    fn servers_cpu(self) -> anyhow::Result<Option<u32>> {
        match self {
            Self::Anywhere => Ok(None),
            Self::OneCpu => allowed_cpu(0).map(Some),
            Self::Apart => allowed_cpu(1).map(Some),
        }
    }
}

/// One of the CPUs that this process may run on.
fn allowed_cpu(number: usize) -> anyhow::Result<u32> {
    let cpus = sys::schedule::allowed_cpus()?;
    cpus.get(number).copied().context("this process may use only one CPU; allow it two (taskset, cpuset)")
}

/// The prefix that runs a command on one CPU.
pub fn on_cpu(cpu: u32) -> Vec<String> {
    ["taskset".to_owned(), "-c".to_owned(), cpu.to_string()].to_vec()
}

fn first_line(process: &mut Beside) -> anyhow::Result<String> {
    let stdout = process.child.stdout.take().context("no standard output")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    Ok(line.trim().to_owned())
}
