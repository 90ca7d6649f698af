//! Ctrl-C and SIGTERM: the first asks the measurement to end and keep what it has, the second ends it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that the first signal sets.
pub fn interrupted() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // In this order: at the first signal the flag is still down, so nothing is shut down.
        signal_hook::flag::register_conditional_shutdown(signal, crate::failure::INTERRUPTED.into(), flag.clone())?;
        signal_hook::flag::register(signal, flag.clone())?;
    }
    Ok(flag)
}
