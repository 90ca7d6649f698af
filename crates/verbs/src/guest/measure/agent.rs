//! The first process of a guest: sets up a stack, waits to be saved, and measures what the host assigns.
//!
//! The kernel starts this program as /init. It never returns: the guest ends with it.

mod measure;
mod osdmap;
mod setup;

use super::protocol::{
    ASSIGNMENT, Assignment, Done, MODULE_LIST, REPLICATE_PARAMETER, Reply, STACK_PARAMETER, SYMBOLS,
};
use super::run::MAPPINGS;
use super::stack;
use lab::error::{Error, Result};
use lab::names::kernel_function;
use setup::Setup;
use std::fs;
use std::time::Duration;
use sys::guest::Ports;

/// The kernel works in the background after boot: 6.12 tests its cryptography then, which doubles early figures. Costs no time
/// of the host, whose clock jumps over the guest's idle time.
const SETTLE: Duration = Duration::from_secs(5);

/// Whether this process is the first of a guest.
pub fn is_first_process() -> bool {
    std::process::id() == 1 && fs::metadata(MODULE_LIST).is_ok()
}

/// Lives as the first process of a guest.
pub fn live() -> ! {
    let outcome = work();
    if let Ok(ports) = Ports::open() {
        if let Err(error) = outcome {
            send(&ports, &Reply::Failed(error.to_string()));
        }
        ports.exit(0);
    }
    // Only if the machine has no port to end it. The kernel panics if the first process exits, which ends QEMU.
    std::process::exit(1);
}

fn work() -> Result<()> {
    setup::file_systems()?;
    let parameters = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let parameter = |name: &str| {
        parameters.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default()
    };
    let stack = stack::named(parameter(STACK_PARAMETER))?;
    let perturbation = setup::perturb(parameter(REPLICATE_PARAMETER).parse().unwrap_or(0));
    setup::load_modules()?;
    let setup = Setup { environment: &stack.environment, options: "" };
    stack.boot().try_for_each(|step| setup.perform(step))?;
    std::thread::sleep(SETTLE);
    let text = paused()?;
    let (wanted, text) = text.split_last().unwrap_or((&0, &[]));
    let assignment: Assignment = serde_json::from_slice(text)
        .map_err(|error| Error::Refused(format!("the host's assignment cannot be read: {error}")))?;
    assignment.sysctls.iter().try_for_each(|(name, value)| setup::set_sysctl(name, value))?;
    let setup = Setup { options: assignment.mount_options.as_deref().unwrap_or_default(), ..setup };
    stack.attach().try_for_each(|step| setup.perform(step))?;
    let done = measure::measure(stack, &assignment)?;
    let symbols = if *wanted == SYMBOLS { symbols()? } else { String::new() };
    let ports = ports()?;
    send(&ports, &Reply::Done(Done { symbols_bytes: symbols.len() as u64, ..done }));
    ports.write(symbols.as_bytes());
    drop(perturbation);
    Ok(())
}

/// Access to the ports. No thread may have it while the jobs run.
fn ports() -> Result<Ports> {
    Ports::open().map_err(|error| Error::instrument("iopl", error))
}

/// Tells the host that the guest is ready, and pauses until the host lets it go on with an assignment.
fn paused() -> Result<Vec<u8>> {
    let ports = ports()?;
    send(&ports, &Reply::Ready);
    ports.pause();
    ports.read(ASSIGNMENT).ok_or_else(|| Error::Refused("the host passes no assignment".to_owned()))
}

/// The kernel's functions, and the executable mappings of all processes.
fn symbols() -> Result<String> {
    let text = fs::read_to_string("/proc/kallsyms").map_err(|error| Error::instrument("/proc/kallsyms", error))?;
    let lines = text.lines().filter(|line| kernel_function(line).is_some());
    let mut kept = lines.fold(String::new(), |kept, line| kept + line + "\n") + MAPPINGS;
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit)) {
        // Kernel threads have none; a process may just have ended.
        let maps = fs::read_to_string(entry.path().join("maps")).unwrap_or_default();
        maps.lines().filter(|line| line.contains("r-xp")).for_each(|line| kept += &format!("{line}\n"));
    }
    Ok(kept)
}

fn send(ports: &Ports, reply: &Reply) {
    let mut line = serde_json::to_vec(reply).unwrap_or_default();
    line.push(b'\n');
    ports.write(&line);
}
