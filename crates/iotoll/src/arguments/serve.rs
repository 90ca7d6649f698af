//! The flags of `iotoll serve`.

use clap::Args;
use model::plan::value::{Choice, choice, list_words};
use model::plan::{InjectAt, PathCopy, PathCrc, PathFraming, PathNull, PathReceive, PathSegment, PathSend};
use nbd::server::Options;
use nbd::{Layer, Tuning};
use std::net::SocketAddr;
use std::path::PathBuf;

/// What to serve, and to whom.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// The storage: memory:SIZE (zeros, gone at the end), file:PATH (a block device with --read-only), null:SIZE (reads are zeros, writes are forgotten)
    #[arg(long, value_name = "WHAT", value_parser = storage)]
    pub backend: Storage,
    /// Read and write the file past the page cache, one request of a thread at a time
    #[arg(long)]
    pub direct: bool,
    /// Address and port of TCP; port 0 picks one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:10809", conflicts_with = "unix")]
    pub listen: SocketAddr,
    /// A Unix socket instead; it must not exist, and is removed at the end
    #[arg(long, value_name = "PATH")]
    pub unix: Option<PathBuf>,
    /// A name for it; several name the same storage, the first is the default export
    #[arg(long, value_name = "NAME", default_value = "")]
    pub export: Vec<String>,
    /// Refuse every change
    #[arg(long)]
    pub read_only: bool,
    /// Listen beyond this machine, to anybody who gets there: there is no encryption and no password
    #[arg(long)]
    pub insecure_network: bool,
    /// Threads; each has its own connections
    #[arg(long, value_name = "N", default_value_t = Options::default().threads,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=256))]
    pub threads: usize,
    /// Clients at the same time
    #[arg(long, value_name = "N", default_value_t = Options::default().connections,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=65_536))]
    pub connections: usize,
    /// How payloads get behind the headers of replies: pull-up copies all, pull-up:BYTES those up to that, gather none; zero-copy sends pages, zero-copy:BYTES of those above that
    /// [default: pull-up:2048; of a file all is read first. Said of a file, its pages are sent straight from the page cache, and a storage that fails ends the connection]
    #[arg(long, value_name = "HOW", value_parser = sending)]
    pub path_send: Option<PathSend>,
    /// How payloads of writes get to memory: copy receives all with what is around them and copies, copy:BYTES those up to that, in-place none
    #[arg(long, value_name = "HOW", default_value_t, value_parser = receiving)]
    pub path_receive: PathReceive,
    /// Whether all that is there is sent and received at one go (one-go), or each header and each segment sent by itself (segment-at-a-time), or each header and each page sent and received by itself (page-at-a-time)
    #[arg(long, value_name = "HOW", default_value = model::plan::value::word(PathFraming::default()), value_parser = word::<PathFraming>)]
    pub path_framing: PathFraming,
    /// Payloads that are sent from where they lie are sent as if they lay in pieces of so many bytes: whole, or 512 at least
    #[arg(long, value_name = "BYTES", default_value_t, value_parser = segment)]
    pub path_segment: PathSegment,
    /// The largest payload of a request that is taken, 4k to 32m; clients are told, but nbdcopy and fio do not heed it below 256k
    #[arg(long, value_name = "BYTES", default_value = "32m", value_parser = payload)]
    pub path_max_payload: u32,
    /// How what is copied is copied: plain, rep-movsb or non-temporal (past the caches)
    #[arg(long, value_name = "HOW", default_value = model::plan::value::word(PathCopy::default()), value_parser = word::<PathCopy>)]
    pub path_copy: PathCopy,
    /// Whether clients that want it get checksums behind payloads, and have theirs checked; nobody but iotoll's own engine knows them
    #[arg(long, value_name = "WHETHER", default_value = model::plan::value::word(PathCrc::default()), value_parser = word::<PathCrc>)]
    pub path_crc: PathCrc,
    /// What is only claimed to be done: none, or server: whatever the storage is, it is not touched; writes are forgotten and reads are zeros
    #[arg(long, value_name = "WHAT", default_value = model::plan::value::word(PathNull::default()), value_parser = null)]
    pub path_null: PathNull,
    /// How long, at most, further requests of a client that has several in flight are waited for; less where it usually takes less; 0: not at all
    #[arg(long, value_name = "MICROSECONDS", default_value_t = Options::default().tuning.coalesce.as_micros() as u64,
        value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub path_coalesce: u64,
    /// For how long requests are looked for again and again before they are slept for: burns CPU, saves wake-ups
    #[arg(long, value_name = "MICROSECONDS", default_value_t = Tuning::default().busy_poll.as_micros() as u64,
        value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub path_busy_poll: u64,
    /// Busy work for each request, where --inject-at says: to see whether what is measured finds it. The thread does nothing else meanwhile, but others have their turn between
    #[arg(long, value_name = "NANOSECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1_000_000_000))]
    pub inject_ns: u64,
    /// Where --inject-ns is added: where the server understands a request, or where its storage is asked for it (not with --path-null server)
    #[arg(long, value_name = "WHERE", default_value = "server", requires = "inject_ns", value_parser = layer)]
    pub inject_at: Layer,
}

/// What holds the bytes of an export.
#[derive(Clone, Debug)]
pub enum Storage {
    /// Zeros of this many bytes in memory.
    Memory(u64),
    /// Nothing, which claims to have this many bytes.
    Null(u64),
    /// A file or a block device.
    File(PathBuf),
}

fn storage(text: &str) -> Result<Storage, String> {
    let bytes = |text: &str| match model::plan::value::integer(text) {
        Ok(bytes) if (1..=i64::MAX as u64).contains(&bytes) => Ok(bytes),
        _ => Err(format!("'{text}' is no size: a number of bytes, with k, m, g or t behind it")),
    };
    match text.split_once(':') {
        Some(("memory", size)) => bytes(size).map(Storage::Memory),
        Some(("null", size)) => bytes(size).map(Storage::Null),
        Some(("file", path)) if !path.is_empty() => Ok(Storage::File(path.into())),
        _ => Err("memory:SIZE, null:SIZE or file:PATH is expected".to_owned()),
    }
}

fn sending(text: &str) -> Result<PathSend, String> {
    PathSend::parse(text).map_err(|wrong| format!("{}; expected {}", wrong.reason, PathSend::FORM))
}

fn receiving(text: &str) -> Result<PathReceive, String> {
    PathReceive::parse(text).map_err(|wrong| format!("{}; expected {}", wrong.reason, PathReceive::FORM))
}

fn segment(text: &str) -> Result<PathSegment, String> {
    PathSegment::parse(text).map_err(|wrong| format!("{}; expected {}", wrong.reason, PathSegment::FORM))
}

fn payload(text: &str) -> Result<u32, String> {
    match model::plan::value::integer(text) {
        Ok(bytes @ 4096..=33_554_432) => Ok(bytes as u32),
        _ => Err(format!("'{text}' is not between 4k and 32m")),
    }
}

fn null(text: &str) -> Result<PathNull, String> {
    match word(text)? {
        PathNull::Wire => Err("'wire' is the engine's: path_null=wire in a job; expected none or server".to_owned()),
        null => Ok(null),
    }
}

fn layer(text: &str) -> Result<Layer, String> {
    match choice(text) {
        Ok(InjectAt::Server) => Ok(Layer::Server),
        Ok(InjectAt::Storage) => Ok(Layer::Storage),
        Ok(InjectAt::Submit | InjectAt::Wire) => {
            Err(format!("'{text}' is the engine's: inject_at={text} in a job; expected server or storage"))
        }
        Err(wrong) => Err(format!("{}; expected server or storage", wrong.reason)),
    }
}

fn word<T: Choice>(text: &str) -> Result<T, String> {
    choice(text).map_err(|wrong| format!("{}; expected one of {}", wrong.reason, list_words::<T>()))
}
