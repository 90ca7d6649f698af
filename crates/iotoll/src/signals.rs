//! Ctrl-C and SIGTERM: the first asks the measurement to end and keep what it has, a second one ends it.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Signals that come together are one: a terminal, or timeout(1), may send to the process and to its group.
const TOGETHER: Duration = Duration::from_millis(300);

/// A flag that the first signal sets.
pub fn interrupted() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = flag.clone();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::Builder::new().name("iotoll-signals".to_owned()).spawn(move || {
        let mut first: Option<Instant> = None;
        for _ in &mut signals {
            set.store(true, Ordering::Relaxed);
            if first.get_or_insert_with(Instant::now).elapsed() > TOGETHER {
                std::process::exit(crate::failure::INTERRUPTED.into());
            }
        }
    })?;
    Ok(flag)
}
