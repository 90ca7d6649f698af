//! `iotoll serve`: an NBD server, which says itself what it did and what that cost it.

use crate::failure::{self, BadInput};
use crate::{render, signals};
use anyhow::Context;
use clap::Args;
use lab::run::Calibration;
use model::injected::Injected;
use model::plan::value::{Choice, choice, list_words};
use model::plan::{InjectAt, PathCopy, PathCrc, PathFraming, PathNull, PathPlan, PathReceive, PathSegment, PathSend};
use model::unit::{Hertz, Nanos};
use nbd::backends::Backend;
use nbd::client::{Address, Uri};
use nbd::server::{Access, Counters, Exports, Listener, Observer, Options, ServerHandle, serve};
use nbd::{Delay, Layer, Tuning};
use report::number;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use std::fs::File;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What to serve, and to whom.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// The storage: memory:SIZE (zeros, gone at the end), file:PATH (a block device with --read-only), null:SIZE (reads are zeros, writes are forgotten)
    #[arg(long, value_name = "WHAT", value_parser = storage)]
    backend: Storage,
    /// Read and write the file past the page cache, one request of a thread at a time
    #[arg(long)]
    direct: bool,
    /// Address and port of TCP; port 0 picks one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:10809", conflicts_with = "unix")]
    listen: SocketAddr,
    /// A Unix socket instead; it must not exist, and is removed at the end
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// A name for it; several name the same storage, the first is the default export
    #[arg(long, value_name = "NAME", default_value = "")]
    export: Vec<String>,
    /// Refuse every change
    #[arg(long)]
    read_only: bool,
    /// Listen beyond this machine, to anybody who gets there: there is no encryption and no password
    #[arg(long)]
    insecure_network: bool,
    /// Threads; each has its own connections
    #[arg(long, value_name = "N", default_value_t = Options::default().threads,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=256))]
    threads: usize,
    /// Clients at the same time
    #[arg(long, value_name = "N", default_value_t = Options::default().connections,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=65_536))]
    connections: usize,
    /// How payloads get behind the headers of replies: pull-up copies all, pull-up:BYTES those up to that, gather none; zero-copy sends pages, zero-copy:BYTES of those above that
    /// [default: pull-up:2048; of a file all is read first. Said of a file, its pages are sent straight from the page cache, and a storage that fails ends the connection]
    #[arg(long, value_name = "HOW", value_parser = sending)]
    path_send: Option<PathSend>,
    /// How payloads of writes get to memory: copy receives all with what is around them and copies, copy:BYTES those up to that, in-place none
    #[arg(long, value_name = "HOW", default_value_t, value_parser = receiving)]
    path_receive: PathReceive,
    /// Whether all that is there is sent and received at one go (one-go), or each header and each segment sent by itself (segment-at-a-time), or each header and each page sent and received by itself (page-at-a-time)
    #[arg(long, value_name = "HOW", default_value = model::plan::value::word(PathFraming::default()), value_parser = word::<PathFraming>)]
    path_framing: PathFraming,
    /// Payloads that are sent from where they lie are sent as if they lay in pieces of so many bytes: whole, or 512 at least
    #[arg(long, value_name = "BYTES", default_value_t, value_parser = segment)]
    path_segment: PathSegment,
    /// The largest payload of a request that is taken, 4k to 32m; clients are told, but nbdcopy and fio do not heed it below 256k
    #[arg(long, value_name = "BYTES", default_value = "32m", value_parser = payload)]
    path_max_payload: u32,
    /// How what is copied is copied: plain, rep-movsb or non-temporal (past the caches)
    #[arg(long, value_name = "HOW", default_value = model::plan::value::word(PathCopy::default()), value_parser = word::<PathCopy>)]
    path_copy: PathCopy,
    /// Whether clients that want it get checksums behind payloads, and have theirs checked; nobody but iotoll's own engine knows them
    #[arg(long, value_name = "WHETHER", default_value = model::plan::value::word(PathCrc::default()), value_parser = word::<PathCrc>)]
    path_crc: PathCrc,
    /// What is only claimed to be done: none, or server: whatever the storage is, it is not touched; writes are forgotten and reads are zeros
    #[arg(long, value_name = "WHAT", default_value = model::plan::value::word(PathNull::default()), value_parser = null)]
    path_null: PathNull,
    /// How long, at most, further requests of a client that has several in flight are waited for; less where it usually takes less; 0: not at all
    #[arg(long, value_name = "MICROSECONDS", default_value_t = Options::default().tuning.coalesce.as_micros() as u64,
        value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    path_coalesce: u64,
    /// For how long requests are looked for again and again before they are slept for: burns CPU, saves wake-ups
    #[arg(long, value_name = "MICROSECONDS", default_value_t = Tuning::default().busy_poll.as_micros() as u64,
        value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    path_busy_poll: u64,
    /// Busy work for each request, where --inject-at says: to see whether what is measured finds it. The thread does nothing else meanwhile, but others have their turn between
    #[arg(long, value_name = "NANOSECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1_000_000_000))]
    inject_ns: u64,
    /// Where --inject-ns is added: where the server understands a request, or where its storage is asked for it (not with --path-null server)
    #[arg(long, value_name = "WHERE", default_value = "server", requires = "inject_ns", value_parser = layer)]
    inject_at: Layer,
}

#[derive(Clone, Debug)]
enum Storage {
    Memory(u64),
    Null(u64),
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

/// Serves until SIGTERM or Ctrl-C.
pub fn run(arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
    let access = if arguments.read_only { Access::ReadOnly } else { Access::ReadWrite };
    let path = PathPlan {
        send: arguments.path_send.unwrap_or_default(),
        receive: arguments.path_receive,
        framing: arguments.path_framing,
        segment: arguments.path_segment,
        copy: arguments.path_copy,
        crc: arguments.path_crc,
        coalesce: Nanos(arguments.path_coalesce * 1000),
        busy_poll: Nanos(arguments.path_busy_poll * 1000),
        ..PathPlan::default()
    };
    let teller = Teller { calibration: Calibration::begin(), begun: Instant::now(), inject_ns: arguments.inject_ns };
    let tuning = Tuning { delay: delay(arguments, &teller.calibration), ..lab::engine::path_tuning(&path) };
    let mut storage = backend(arguments, &tuning, access)?;
    if arguments.path_null == PathNull::Server {
        storage = nbd::filters::null::in_place_of(&storage).context(NO_ADDRESSES)?;
    }
    let exports = Exports::new(names(&arguments.export)?, storage, access).with_max_payload(arguments.path_max_payload);
    // Before there is a socket that would be left behind.
    let handle = Arc::new(ServerHandle::new()?);
    heed_signals(&handle)?;
    let place = Place::listen(arguments)?;
    let options =
        Options { tuning, threads: arguments.threads, connections: arguments.connections, ..Options::default() };
    render::write(&format!("listening on {}\n", place.uri))?;
    let done = serve(&place.listener, &exports, &options, &handle, &teller)?;
    teller.so_far(&done);
    Ok(ExitCode::SUCCESS)
}

/// What is asked to be added to each request, by a clock that was looked at for long enough.
fn delay(arguments: &ServeArguments, calibration: &Calibration) -> Delay {
    // To 10 ppm.
    const LOOK: Duration = Duration::from_millis(10);
    let claimed = arguments.inject_at == Layer::Storage && arguments.path_null == PathNull::Server;
    if arguments.inject_ns == 0 || claimed {
        return Delay::NONE;
    }
    std::thread::sleep(LOOK);
    Delay::new(arguments.inject_at, Hertz(calibration.end().0).ticks(Nanos(arguments.inject_ns)).0)
}

fn names(names: &[String]) -> anyhow::Result<Vec<String>> {
    for (place, name) in names.iter().enumerate() {
        if name.len() > nbd::handshake::MAX_STRING {
            return Err(BadInput(format!("--export: a name of {} bytes; NBD has at most 4096", name.len())).into());
        }
        if names.iter().take(place).any(|other| other == name) {
            return Err(BadInput(format!("--export {name}: twice; leave one out")).into());
        }
    }
    Ok(names.to_vec())
}

/// What is wrong where a null storage cannot be had.
const NO_ADDRESSES: &str = "addresses for a reply of zeros";

fn backend(arguments: &ServeArguments, tuning: &Tuning, access: Access) -> anyhow::Result<Backend> {
    match &arguments.backend {
        Storage::File(path) => file(path, arguments, access),
        _ if arguments.direct => Err(BadInput("--direct is for --backend file:PATH; leave it out".to_owned()).into()),
        Storage::Memory(bytes) => Backend::memory(*bytes, tuning).map_err(|error| {
            BadInput(format!("--backend memory:{bytes}: there is not so much memory ({error}); ask for less")).into()
        }),
        Storage::Null(bytes) => Backend::null(*bytes).context(NO_ADDRESSES),
    }
}

fn file(path: &Path, arguments: &ServeArguments, access: Access) -> anyhow::Result<Backend> {
    let failed = |error| BadInput(format!("--backend file:{}: {error}; check the path", path.display()));
    // Whether a device is mounted or part of something nobody here looks, and clients write to it for as long as
    // this runs. To open a pipe waits, and to open a device may do something.
    let kind = std::fs::metadata(path).map_err(failed)?.file_type();
    if !(kind.is_file() || kind.is_block_device() && access == Access::ReadOnly) {
        let mend = "is no file; name one, or a block device with --read-only";
        return Err(BadInput(format!("--backend file:{}: {mend}", path.display())).into());
    }
    let file = File::options().read(true).write(access == Access::ReadWrite).open(path);
    let file = file.map_err(failed)?;
    if arguments.direct {
        return Backend::file_direct(file).map_err(|error| {
            let mend = "its file system has no O_DIRECT; leave out --direct";
            BadInput(format!("--backend file:{} --direct: {error}: {mend}", path.display())).into()
        });
    }
    // Who says how payloads are sent has them sent from the page cache, where that may be.
    let opened = if arguments.path_send.is_some() { Backend::page_cache(file) } else { Backend::file(file) };
    opened.with_context(|| format!("the size of {}", path.display()))
}

/// Where it listens. A Unix socket goes when this is dropped.
struct Place {
    listener: Listener,
    uri: String,
    made: Option<Made>,
}

/// A socket's file, and which one it is.
struct Made {
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl Made {
    fn identity(path: &Path) -> Option<(u64, u64)> {
        std::fs::symlink_metadata(path).ok().map(|facts| (facts.dev(), facts.ino()))
    }
}

impl Place {
    fn listen(arguments: &ServeArguments) -> anyhow::Result<Self> {
        if let Some(path) = &arguments.unix {
            return Self::unix(path);
        }
        let address = arguments.listen;
        if !address.ip().to_canonical().is_loopback() && !arguments.insecure_network {
            let mend =
                "clients elsewhere would come without encryption or password; --insecure-network if that is meant";
            return Err(BadInput(format!("--listen {address}: {mend}")).into());
        }
        let listener = TcpListener::bind(address);
        let listener = listener.map_err(|error| {
            let mend = match error.kind() {
                ErrorKind::AddrInUse => "choose another port, or port 0",
                ErrorKind::PermissionDenied => "choose a port above 1023",
                _ => "choose an address of this machine",
            };
            BadInput(format!("--listen {address}: {error}; {mend}"))
        })?;
        let uri = format!("nbd://{}", listener.local_addr()?);
        Ok(Self { listener: Listener::Tcp(listener), uri, made: None })
    }

    fn unix(path: &Path) -> anyhow::Result<Self> {
        let listener = UnixListener::bind(path).map_err(|error| {
            let mend = match error.kind() {
                ErrorKind::AddrInUse => "remove what is there, or choose another path",
                ErrorKind::InvalidInput => "choose a shorter path, of at most 107 bytes",
                _ => "choose another path",
            };
            BadInput(format!("--unix {}: {error}; {mend}", path.display()))
        })?;
        // Clients may be anywhere.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let uri = Uri { address: Address::Unix(path.clone()), export: String::new() }.to_string();
        Ok(Self { listener: Listener::Unix(listener), uri, made: Some(Made { identity: Made::identity(&path), path }) })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Somebody may have removed it already, and begun another server in its place.
        if let Some(made) = self.made.as_ref().filter(|made| made.identity == Made::identity(&made.path)) {
            let _ = std::fs::remove_file(&made.path);
        }
    }
}

/// The first SIGTERM or Ctrl-C finishes what has arrived; SIGUSR1 asks what was done so far.
fn heed_signals(handle: &Arc<ServerHandle>) -> anyhow::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGUSR1])?;
    if !signals::ignores_hangup() {
        signals.add_signal(SIGHUP)?;
    }
    let handle = handle.clone();
    std::thread::Builder::new().name("iotoll-signals".to_owned()).spawn(move || {
        for signal in &mut signals {
            if signal == SIGUSR1 { handle.report() } else { handle.stop() }
        }
    })?;
    Ok(())
}

/// Says what happens, on standard error.
struct Teller {
    calibration: Calibration,
    begun: Instant,
    inject_ns: u64,
}

impl Observer for Teller {
    fn note(&self, text: &str) {
        failure::complain(text);
    }

    fn delays(&self, burnt_ticks: f64) {
        let injected = Injected { asked: self.inject_ns as f64, burnt: burnt_ticks * 1e9 / self.calibration.end().0 };
        // Of requests, not of I/Os.
        let burns = injected.in_words().replace("I/O", "request");
        failure::complain(&format!("--inject-ns {}: a thread {burns}", self.inject_ns));
    }

    fn so_far(&self, counters: &Counters) {
        let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let spent = Duration::new(spent.tv_sec.unsigned_abs(), u32::try_from(spent.tv_nsec).unwrap_or(0));
        let cycles = spent.as_secs_f64() * self.calibration.end().0;
        let each = |whole: f64, parts: u64| {
            if parts == 0 { "–".to_owned() } else { number::significant(whole / parts as f64) }
        };
        failure::complain(&format!(
            "{} requests in {}, {} with an error; {} bytes sent, {} received; {} requests per wait, {} per receive, {} per send; total \
             pull-up was {} bytes, zero-copy {}, received in place {}; the server's own CPU time {}: {} cycles per request, without what others did for it",
            number::count(counters.requests),
            number::seconds(self.begun.elapsed().as_secs_f64()),
            number::count(counters.errors),
            number::count(counters.sent_bytes),
            number::count(counters.received_bytes),
            each(counters.requests as f64, counters.waits),
            each(counters.requests as f64, counters.receives),
            each(counters.requests as f64, counters.sends),
            number::count(counters.pulled_up_bytes),
            number::count(counters.zero_copy_bytes),
            number::count(counters.in_place_bytes),
            number::seconds(spent.as_secs_f64()),
            each(cycles, counters.requests),
        ));
    }
}
