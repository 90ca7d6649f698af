//! `iotoll serve`: an NBD server that reports its work and the cost of it.

use crate::failure::{BadInput, bad, one_line};
use crate::measure;
use crate::signals::{self, LeftBehind};
use crate::standard_error::{PATIENCE, say_within};
use anyhow::Context;
use clap::{Args, FromArgMatches};
use jobs::echo::identity;
use lab::calibration::Calibration;
use model::plan::{JobPlan, PathPlan, Peer, options};
use nbd::Tuning;
use nbd::backends::Backend;
use nbd::client::{Address, Uri};
use nbd::server::{Counters, Export, Listener, Observer, Options, ServerHandle, serve};
use report::number;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs::File;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What to serve, and where to listen.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// Storage: memory:SIZE (zeros at first, discarded at exit), file:PATH (a block device needs --read-only),
    /// null:SIZE (reads return zeros, writes are discarded)
    #[arg(long, help_heading = "Storage", value_name = "WHAT", value_parser = storage, required_unless_present = "echo")]
    pub backend: Option<Storage>,
    /// Return what arrives instead of serving a storage, for engine rr: tcp://ADDRESS:PORT, udp://ADDRESS:PORT or unix:PATH; port
    /// 0 picks a free one
    #[arg(long, help_heading = "Server", value_name = "ADDRESS", value_parser = peer, conflicts_with_all = ["backend", "listen", "unix", "export",
        "read_only", "threads", "connections", "path_send", "path_crc", "path_coalesce", "path_busy_poll"])]
    pub echo: Option<Peer>,
    #[arg(long, hide = true)]
    direct: bool,
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
    /// Export name; clients that ask for none get it, too
    #[arg(long, help_heading = "Storage", value_name = "NAME", default_value = "")]
    pub export: String,
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
    #[command(flatten)]
    pub path: PathArguments,
    /// Largest payload of a request, 4k to 32m; advertised to clients, but nbdcopy and fio ignore limits below 256k
    #[arg(long, help_heading = "Path", value_name = "BYTES", default_value = "32m", value_parser = payload)]
    pub path_max_payload: u32,
    /// Skip the storage: none, or server (never touch the storage: discard writes, return zeros)
    #[arg(long, help_heading = "Path", value_name = "none|server", default_value = "none", value_parser = ["none", "server"], hide_possible_values = true)]
    pub path_null: String,
}

/// The options of engine `nbd` that the server has too, each as a flag of the same name.
#[derive(Debug)]
pub struct PathArguments {
    path: PathPlan,
    /// `--path-send` is given: a file is sent from the page cache, where it allows it.
    sends_from_cache: bool,
}

/// What `--path-send` says besides.
const SENDS_FROM_CACHE: &str = ". Any explicit value sends a file straight from the page cache, where a storage error ends the \
                                connection; without one, a file is read before it is sent";

/// Their names.
const OF_BOTH_SIDES: [&str; 8] = [
    "path_send",
    "path_receive",
    "path_framing",
    "path_segment",
    "path_copy",
    "path_crc",
    "path_coalesce",
    "path_busy_poll",
];

impl Args for PathArguments {
    fn augment_args(command: clap::Command) -> clap::Command {
        let ours = options::reference().filter(|option| OF_BOTH_SIDES.contains(&option.name));
        command.args(ours.map(|option| {
            let flag = clap::Arg::new(option.name).long(option.name.replace('_', "-")).help_heading("Path");
            let more = if option.name == "path_send" { SENDS_FROM_CACHE } else { "" };
            let help = format!("{}{more}: {} [default: {}]", option.help, option.values(), option.default_in_words());
            let name = option.name;
            flag.value_name("HOW").help(help).value_parser(move |text: &str| {
                options::apply(&mut JobPlan::default(), name, text)
                    .map(|()| text.to_owned())
                    .map_err(|wrong| wrong.reason)
            })
        }))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for PathArguments {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        let mut job = JobPlan::default();
        for name in OF_BOTH_SIDES {
            if let Some(text) = matches.get_one::<String>(name) {
                // Its parser has accepted it.
                let _ = options::apply(&mut job, name, text);
            }
        }
        Ok(Self { path: job.path, sends_from_cache: matches.contains_id("path_send") })
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
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

fn peer(text: &str) -> Result<Peer, String> {
    Peer::parse(text).map_err(|_| format!("expected {}", Peer::FORM))
}

fn payload(text: &str) -> Result<u32, String> {
    match model::plan::value::integer(text) {
        Ok(bytes @ 4096..=33_554_432) => Ok(bytes as u32),
        _ => Err(format!("'{text}' is not between 4k and 32m")),
    }
}

/// Serves until SIGTERM or Ctrl-C.
pub fn run(arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
    let Some(storage) = &arguments.backend else { return echo(arguments) };
    if arguments.direct {
        return Err(bad("--direct: iotoll serve has no O_DIRECT; use qemu-nbd --cache=none -f raw FILE"));
    }
    let teller = StderrReporter { calibration: Calibration::begin(), begun: Instant::now() };
    let tuning = jobs::engine::path_tuning(&arguments.path.path);
    let mut storage = backend(storage, arguments, &tuning)?;
    if arguments.path_null == "server" {
        storage = Backend::null(storage.size()).context(NO_ADDRESSES)?;
    }
    let name = &arguments.export;
    if name.len() > nbd::handshake::MAX_STRING {
        return Err(bad(format!("--export: a name of {} bytes; NBD allows at most 4096", name.len())));
    }
    let export = Export::new(name.clone(), storage, arguments.read_only, arguments.path_max_payload);
    // Before there is a socket that would be left behind.
    let handle = Arc::new(ServerHandle::new()?);
    heed_signals(&handle)?;
    let place = BoundListener::listen(arguments)?;
    let options =
        Options { tuning, threads: arguments.threads, connections: arguments.connections, ..Options::default() };
    measure::write(&format!("listening on {}\n", place.uri))?;
    let done = serve(&place.listener, &export, &options, &handle, &teller)?;
    teller.report(&done);
    Ok(ExitCode::SUCCESS)
}

/// Returns what arrives, until SIGTERM or Ctrl-C.
fn echo(arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
    let Some(peer) = &arguments.echo else { return Ok(ExitCode::SUCCESS) };
    if let (Peer::Tcp(address) | Peer::Udp(address), false) = (peer, arguments.insecure_network) {
        let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
        let loopback = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback());
        if !loopback && host != "localhost" {
            let mend = "other machines could send to it; add --insecure-network to allow it";
            return Err(bad(format!("--echo {peer}: {mend}")));
        }
    }
    let interruption = signals::interruption(Some(2), LeftBehind::default())?;
    let mut told = Ok(());
    let ready = |at| {
        told = measure::write(&format!("listening on {at}\n"));
        told.is_ok()
    };
    jobs::echo::serve(peer, ready, &|| interruption.is_requested())?;
    told?;
    Ok(ExitCode::SUCCESS)
}

/// Context of the error when a null storage cannot be made.
const NO_ADDRESSES: &str = "reserving addresses for replies of zeros";

fn backend(storage: &Storage, arguments: &ServeArguments, tuning: &Tuning) -> anyhow::Result<Backend> {
    match storage {
        Storage::File(path) => file(path, arguments),
        Storage::Memory(bytes) => Backend::memory(*bytes, tuning).map_err(|error| {
            BadInput(format!("--backend memory:{bytes}: not enough memory ({error}); use a smaller size")).into()
        }),
        Storage::Null(bytes) => Backend::null(*bytes).context(NO_ADDRESSES),
    }
}

fn file(path: &Path, arguments: &ServeArguments) -> anyhow::Result<Backend> {
    let failed = |error| BadInput(format!("--backend file:{}: {error}; check the path", path.display()));
    // A mounted device, or a part of another device, would be damaged: nothing checks for that here, and clients write
    // for as long as this runs. Opening a pipe blocks, and opening a device may have side effects.
    let kind = std::fs::metadata(path).map_err(failed)?.file_type();
    if !(kind.is_file() || kind.is_block_device() && arguments.read_only) {
        let mend = "is not a file; give a regular file, or a block device with --read-only";
        return Err(bad(format!("--backend file:{}: {mend}", path.display())));
    }
    let file = File::options().read(true).write(!arguments.read_only).open(path);
    let file = file.map_err(failed)?;
    let opened = if arguments.path.sends_from_cache { Backend::page_cache(file) } else { Backend::file(file) };
    opened.with_context(|| format!("reading the size of {}", path.display()))
}

/// The listener. Dropping it removes a Unix socket.
struct BoundListener {
    listener: Listener,
    uri: String,
    /// The file of a Unix socket, and its identity.
    made: Option<(PathBuf, Option<(u64, u64)>)>,
}

impl BoundListener {
    fn listen(arguments: &ServeArguments) -> anyhow::Result<Self> {
        if let Some(path) = &arguments.unix {
            return Self::unix(path);
        }
        let address = arguments.listen;
        if !address.ip().to_canonical().is_loopback() && !arguments.insecure_network {
            let mend =
                "other machines could connect without encryption or authentication; add --insecure-network to allow it";
            return Err(bad(format!("--listen {address}: {mend}")));
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
                ErrorKind::AddrInUse => "remove the existing file, or choose another path",
                ErrorKind::InvalidInput => "choose a shorter path, of at most 107 bytes",
                _ => "choose another path",
            };
            BadInput(format!("--unix {}: {error}; {mend}", path.display()))
        })?;
        // Clients may have another working directory.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let uri = Uri { address: Address::Unix(path.clone()), export: String::new() }.to_string();
        Ok(Self { listener: Listener::Unix(listener), uri, made: Some((path.clone(), identity(&path))) })
    }
}

impl Drop for BoundListener {
    fn drop(&mut self) {
        // Another server may have replaced the socket meanwhile.
        if let Some((path, _)) = self.made.as_ref().filter(|(path, made)| *made == identity(path)) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The first SIGTERM or Ctrl-C stops the server after the requests that have arrived.
fn heed_signals(handle: &Arc<ServerHandle>) -> anyhow::Result<()> {
    let failed = |error| lab::Error::instrument("starting to receive signals", error);
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    if !signals::ignores_hangup() {
        signals.add_signal(SIGHUP)?;
    }
    let handle = handle.clone();
    let thread = std::thread::Builder::new().name("iotoll-signals".to_owned());
    let thread = thread.spawn(move || signals.forever().for_each(|_| handle.stop()));
    thread.map_err(failed)?;
    Ok(())
}

/// Reports on standard error. An event loop does not wait for the reader.
struct StderrReporter {
    calibration: Calibration,
    begun: Instant,
}

impl Observer for StderrReporter {
    fn note(&self, text: &str) {
        say_within(&one_line(text), Duration::ZERO);
    }
}

impl StderrReporter {
    fn report(&self, counters: &Counters) {
        let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let spent = Duration::new(spent.tv_sec.unsigned_abs(), u32::try_from(spent.tv_nsec).unwrap_or(0));
        let cycles = spent.as_secs_f64() * self.calibration.end().0;
        let each = |whole: f64, parts: u64| {
            if parts == 0 { "–".to_owned() } else { number::significant(whole / parts as f64) }
        };
        let report = format!(
            "{} requests in {}, {} failed; {} bytes sent, {} received; {} requests per wait, {} per receive, {} per send; \
             {} bytes pulled up, {} sent zero-copy, {} received in place; server CPU time {}: {} cycles per request, \
             not counting work that others did for it",
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
        );
        say_within(&one_line(&report), PATIENCE);
    }
}
