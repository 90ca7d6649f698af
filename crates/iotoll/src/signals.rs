//! Ctrl-C, SIGTERM and a terminal hangup: the first signal asks the measurement to end and keep its readings. Later
//! signals act according to what would be left behind. If iotoll is killed, its guardian undoes what it changed.

use crate::failure::{INTERRUPTED, complain};
use crate::measure;
use lab::Interruption;
use lab::guardian::Guardian;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Signals within this time count as one: a terminal, or timeout(1), may send one to the process and one to its group.
const TOGETHER: Duration = Duration::from_millis(300);

/// What an immediate exit would leave behind, and how to remove it. Empty until something is made; signals are handled
/// even before that.
#[derive(Clone, Default)]
pub struct LeftBehind(Arc<OnceLock<Box<dyn Fn() + Send + Sync>>>);

impl LeftBehind {
    /// Registers the undo action of what was made. Called once.
    pub fn unless(&self, undo: impl Fn() + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(undo));
    }

    fn take_back(&self) {
        self.0.get().into_iter().for_each(|undo| undo());
    }
}

/// Handles signals from now on. The signal with number `last` ends the program at once, after removing what would be `left` behind; with
/// `None`, none does, and the second signal kills a command that is being measured.
pub fn interruption(last: Option<u32>, left: LeftBehind) -> anyhow::Result<Arc<Interruption>> {
    // Beyond `ulimit -f`, write(2) then fails with EFBIG instead of the program without a word. Not ignored, because commands
    // that iotoll starts would inherit that.
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    let interruption = Arc::new(Interruption::default());
    let told = interruption.clone();
    let failed = |error| lab::Error::instrument("starting to receive signals", error);
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    if last.is_none() {
        // Ctrl-\ would otherwise end the program with a setting still switched on.
        signals.add_signal(SIGQUIT)?;
    }
    if !ignores_hangup() {
        signals.add_signal(SIGHUP)?;
    }
    let thread = std::thread::Builder::new().name("iotoll-signals".to_owned()).spawn(move || {
        let mut latest: Option<Instant> = None;
        for _ in &mut signals {
            if latest.is_some_and(|latest| latest.elapsed() <= TOGETHER) {
                continue;
            }
            latest = Some(Instant::now());
            let times = told.request();
            let waits = told.clone();
            // Print nothing if it ends within this time.
            let say = move || {
                std::thread::sleep(Duration::from_secs(1));
                waits.awaited().iter().for_each(|what| complain(what));
            };
            let _ = std::thread::Builder::new().spawn(say);
            if last.is_some_and(|last| times >= last) {
                left.take_back();
                complain("interrupted again: ended at once, and nothing is kept");
                std::process::exit(INTERRUPTED.into());
            }
        }
    });
    thread.map_err(failed)?;
    Ok(interruption)
}

/// Whether the program was started to outlive its terminal, as with nohup(1).
pub fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // Signals are numbered from 1, bits from 0.
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 << (SIGHUP - 1) != 0)
}

/// `iotoll guardian`: undoes what iotoll changed if iotoll is killed. Iotoll starts it itself.
pub fn serve_as_guardian() -> anyhow::Result<ExitCode> {
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        // Catch the signals and do nothing. Ignored signals would stay ignored in the commands that the guardian runs.
        signal_hook::flag::register(signal, Arc::default())?;
    }
    let ready = || measure::write("\n").map_err(std::io::Error::other);
    lab::guardian::serve(std::io::stdin().lock(), ready)?;
    Ok(ExitCode::SUCCESS)
}

/// Restores what earlier runs left behind that were killed together with their guardians, and reports it; then returns the guardian of
/// this run.
pub fn guardian(words: &[String]) -> Guardian {
    lab::guardian::put_back().iter().for_each(|line| complain(line));
    // Not the path: another program may replace the file later.
    Guardian::of("/proc/self/exe".into(), words.to_vec())
}
