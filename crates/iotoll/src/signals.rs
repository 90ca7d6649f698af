//! Ctrl-C, SIGTERM and a terminal that goes away: the first asks the measurement to end and keep what it has, a second one
//! ends it where nothing has to be put back.

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Signals that come together are one: a terminal, or timeout(1), may send to the process and to its group.
const TOGETHER: Duration = Duration::from_millis(300);

/// What a second signal does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Second {
    /// It ends the program at once.
    Ends,
    /// Nothing more than the first: what was switched on has to be switched off, and commands have to be ended, before
    /// the program ends. That takes seconds.
    Waits,
}

/// A flag that the first signal sets.
pub fn interrupted(second: Second) -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = flag.clone();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    if second == Second::Waits {
        // Ctrl-\ would otherwise end it with something switched on.
        signals.add_signal(SIGQUIT)?;
    }
    if !ignores_hangup() {
        signals.add_signal(SIGHUP)?;
    }
    std::thread::Builder::new().name("iotoll-signals".to_owned()).spawn(move || {
        let mut first: Option<Instant> = None;
        for _ in &mut signals {
            set.store(true, Ordering::Relaxed);
            if first.get_or_insert_with(Instant::now).elapsed() > TOGETHER && second == Second::Ends {
                std::process::exit(crate::failure::INTERRUPTED.into());
            }
        }
    })?;
    Ok(flag)
}

/// Whether the program was started to outlive its terminal, as with nohup(1).
pub fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // Signals are numbered from 1, bits from 0.
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 << (SIGHUP - 1) != 0)
}
