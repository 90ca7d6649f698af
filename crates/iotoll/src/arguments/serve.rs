//! The flags of `iotoll serve`.

use clap::Args;
use model::plan::value::{Choice, Wrong, choice, list_words};
use model::plan::{InjectAt, PathCopy, PathCrc, PathFraming, PathNull, PathReceive, PathSegment, PathSend, Peer};
use nbd::server::Options;
use nbd::{Layer, Tuning};
use std::net::SocketAddr;
use std::path::PathBuf;

/// What to serve, and where to listen.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// Storage: memory:SIZE (zeros at first, discarded at exit), file:PATH (a block device needs --read-only),
    /// null:SIZE (reads return zeros, writes are discarded)
    #[arg(long, help_heading = "Storage", value_name = "WHAT", value_parser = storage, required_unless_present = "echo")]
    pub backend: Option<Storage>,
    /// Return what arrives instead of serving a storage, for engine rr: tcp://ADDRESS:PORT, udp://ADDRESS:PORT or unix:PATH; port
    /// 0 picks a free one
    #[arg(long, help_heading = "Server", value_name = "ADDRESS", value_parser = echo, conflicts_with_all = ["backend", "direct", "listen", "unix", "export",
        "read_only", "inject_ns", "threads", "connections", "path_send", "path_crc", "path_coalesce", "path_busy_poll"])]
    pub echo: Option<Peer>,
    /// Open the file with O_DIRECT to bypass the page cache; each thread does one request at a time
    #[arg(long, help_heading = "Storage")]
    pub direct: bool,
    /// TCP address and port; port 0 picks a free one
    #[arg(
        long,
        help_heading = "Server",
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:10809",
        conflicts_with = "unix"
    )]
    pub listen: SocketAddr,
    /// Listen on this Unix socket instead; the path must not exist, and the socket is removed at exit
    #[arg(long, help_heading = "Server", value_name = "PATH")]
    pub unix: Option<PathBuf>,
    /// Export name; repeat the flag for more names of the same storage; the first is the default export
    #[arg(long, help_heading = "Storage", value_name = "NAME", default_value = "")]
    pub export: Vec<String>,
    /// Refuse writes and all other changes
    #[arg(long, help_heading = "Storage")]
    pub read_only: bool,
    /// Allow addresses that other machines can reach; there is no encryption and no authentication
    #[arg(long, help_heading = "Server")]
    pub insecure_network: bool,
    /// Worker threads; each serves its own connections [default: one for each CPU that the process may use, at most 256]
    #[arg(long, help_heading = "Server", value_name = "N", hide_default_value = true,
        default_value_t = std::thread::available_parallelism().map_or(1, |cpus| cpus.get().min(256)),
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=256))]
    pub threads: usize,
    /// Maximum number of connections
    #[arg(long, help_heading = "Server", value_name = "N", default_value_t = Options::default().connections,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=65_536))]
    pub connections: usize,
    /// How replies carry payloads: pull-up copies all, pull-up:BYTES copies up to BYTES, gather copies none; zero-copy
    /// sends pages, zero-copy:BYTES only for payloads above BYTES [default: pull-up:2048, and a file is read before it
    /// is sent. Any explicit value sends a file straight from the page cache, where a storage error ends the
    /// connection]
    #[arg(long, help_heading = "Path", value_name = "HOW", value_parser = of_form(PathSend::parse, PathSend::FORM))]
    pub path_send: Option<PathSend>,
    /// How the payloads of writes reach memory: copy receives everything into a buffer and copies, copy:BYTES copies up
    /// to BYTES, in-place copies none
    #[arg(long, help_heading = "Path", value_name = "HOW", default_value_t, value_parser = of_form(PathReceive::parse, PathReceive::FORM))]
    pub path_receive: PathReceive,
    /// Message framing: one-go (send and receive all that is ready at once), segment-at-a-time (one send per header and
    /// per segment), or page-at-a-time (one send and one receive per header and per page)
    #[arg(long, help_heading = "Path", value_name = "HOW", default_value = model::plan::value::word(PathFraming::default()), value_parser = word::<PathFraming>)]
    pub path_framing: PathFraming,
    /// Split payloads that are sent without a copy into segments of this many bytes: whole, or at least 512
    #[arg(long, help_heading = "Path", value_name = "BYTES", default_value_t, value_parser = of_form(PathSegment::parse, PathSegment::FORM))]
    pub path_segment: PathSegment,
    /// Largest payload of a request, 4k to 32m; advertised to clients, but nbdcopy and fio ignore limits below 256k
    #[arg(long, help_heading = "Path", value_name = "BYTES", default_value = "32m", value_parser = payload)]
    pub path_max_payload: u32,
    /// Copy method: plain, rep-movsb, or non-temporal (bypasses the caches)
    #[arg(long, help_heading = "Path", value_name = "HOW", default_value = model::plan::value::word(PathCopy::default()), value_parser = word::<PathCopy>)]
    pub path_copy: PathCopy,
    /// Offer checksums: append a CRC-32C to each payload and verify the client's. Only iotoll's own client supports it
    #[arg(long, help_heading = "Path", value_name = "off|on", default_value = model::plan::value::word(PathCrc::default()), value_parser = word::<PathCrc>)]
    pub path_crc: PathCrc,
    /// Skip the storage: none, or server (never touch the storage: discard writes, return zeros)
    #[arg(long, help_heading = "Path", value_name = "none|server", default_value = model::plan::value::word(PathNull::default()), value_parser = null)]
    pub path_null: PathNull,
    /// Longest wait for more requests from a client that has several in flight; shorter if they usually arrive sooner;
    /// 0 disables it
    #[arg(long, help_heading = "Path", value_name = "MICROSECONDS", default_value_t = Options::default().tuning.coalesce.as_micros() as u64,
        value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub path_coalesce: u64,
    /// Busy-poll time before sleeping; costs CPU, saves wake-ups
    #[arg(long, help_heading = "Path", value_name = "MICROSECONDS", default_value_t = Tuning::default().busy_poll.as_micros() as u64,
        value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub path_busy_poll: u64,
    /// Busy work added to each request at --inject-at, to check that a measurement finds it. The thread does nothing
    /// else meanwhile; other connections get their turn between requests
    #[arg(long, help_heading = "Injection", value_name = "NANOSECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1_000_000_000))]
    pub inject_ns: u64,
    /// Where to add --inject-ns: server (after parsing a request) or storage (before the storage operation; not with
    /// --path-null server)
    #[arg(long, help_heading = "Injection", value_name = "server|storage", default_value = "server", requires = "inject_ns", value_parser = layer)]
    pub inject_at: Layer,
}

/// The storage of the exports.
#[derive(Clone, Debug)]
pub enum Storage {
    /// Memory of this many bytes, initially zeros.
    Memory(u64),
    /// A null storage that claims this many bytes.
    Null(u64),
    /// A file or a block device.
    File(PathBuf),
}

fn storage(text: &str) -> Result<Storage, String> {
    let bytes = |text: &str| match model::plan::value::integer(text) {
        Ok(bytes) if (1..=i64::MAX as u64).contains(&bytes) => Ok(bytes),
        _ => Err(format!("'{text}' is not a size; expected bytes with an optional suffix k, m, g or t")),
    };
    match text.split_once(':') {
        Some(("memory", size)) => bytes(size).map(Storage::Memory),
        Some(("null", size)) => bytes(size).map(Storage::Null),
        Some(("file", path)) if !path.is_empty() => Ok(Storage::File(path.into())),
        _ => Err("expected memory:SIZE, null:SIZE or file:PATH".to_owned()),
    }
}

fn echo(text: &str) -> Result<Peer, String> {
    Peer::parse(text).map_err(|_| format!("expected {}", Peer::FORM))
}

/// A parser whose reason says what is `expected`.
fn of_form<T>(
    parse: impl Fn(&str) -> Result<T, Wrong> + Clone + Send + Sync,
    expected: &'static str,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync {
    move |text| parse(text).map_err(|wrong| format!("{}; expected {expected}", wrong.reason))
}

fn payload(text: &str) -> Result<u32, String> {
    match model::plan::value::integer(text) {
        Ok(bytes @ 4096..=33_554_432) => Ok(bytes as u32),
        _ => Err(format!("'{text}' is not between 4k and 32m")),
    }
}

fn null(text: &str) -> Result<PathNull, String> {
    match word(text)? {
        PathNull::Wire => Err("'wire' is for the client (path_null=wire in a job); expected none or server".to_owned()),
        null => Ok(null),
    }
}

fn layer(text: &str) -> Result<Layer, String> {
    match choice(text) {
        Ok(InjectAt::Server) => Ok(Layer::Server),
        Ok(InjectAt::Storage) => Ok(Layer::Storage),
        Ok(InjectAt::Submit | InjectAt::Wire) => {
            Err(format!("'{text}' is for the client (inject_at={text} in a job); expected server or storage"))
        }
        Err(wrong) => Err(format!("{}; expected server or storage", wrong.reason)),
    }
}

fn word<T: Choice>(text: &str) -> Result<T, String> {
    choice(text).map_err(|wrong| format!("{}; expected one of {}", wrong.reason, list_words::<T>()))
}
