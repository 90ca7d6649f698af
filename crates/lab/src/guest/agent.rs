//! The first process of a guest: sets up a stack, waits to be saved, and measures what the host assigns; or starts a shell.
//!
//! The kernel starts this program as /init. It never returns: the guest ends with it.

mod counters;
mod kernel_log;
mod measure;
mod osdmap;
mod services;
mod setup;
mod shell;

use super::protocol::{
    ALL_SYMBOLS, ASSIGNMENT, Assignment, MODULE_SYMBOLS, REPLICATE_PARAMETER, Reply, SHELL_PARAMETER, STACK_PARAMETER,
};
use super::stack::{self, Stack};
use super::symbols;
use crate::error::{Error, Result};
use setup::Setup;
use std::fs;
use std::io::Write;
use std::time::Duration;
use sys::guest::Ports;

/// The kernel works in the background after boot: 6.12 tests its cryptography then, which doubles early figures. Costs no time
/// of the host, whose clock jumps over the guest's idle time.
const SETTLE: Duration = Duration::from_secs(5);

/// Whether this process is the first of a guest.
pub fn is_first_process() -> bool {
    std::process::id() == 1 && fs::metadata(super::protocol::MODULE_LIST).is_ok()
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
    let name = parameter(STACK_PARAMETER);
    let stack = stack::named(name).ok_or_else(|| Error::Refused(format!("no stack is called '{name}'")))?;
    let perturbation = setup::perturb(parameter(REPLICATE_PARAMETER).parse().unwrap_or(0));
    setup::load_modules()?;
    let setup = Setup { environment: stack.environment, options: "" };
    stack.boot.iter().flat_map(|group| group.iter()).try_for_each(|step| setup.perform(*step))?;
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let ready = Reply::Ready { release: release.trim().to_owned() };
    let size = parameter(SHELL_PARAMETER);
    if !size.is_empty() {
        stack.attach.iter().try_for_each(|step| setup.perform(*step))?;
        send(&ports()?, &ready);
        services::tell_the_user();
        return shell::run(stack, release.trim(), size);
    }
    std::thread::sleep(SETTLE);
    let text = paused(&ready)?;
    let (wanted, text) = text.split_last().unwrap_or((&0, &[]));
    let assignment: Assignment = serde_json::from_slice(text)
        .map_err(|error| Error::Refused(format!("the host's assignment cannot be read: {error}")))?;
    let done = assigned(stack, &assignment)?;
    let symbols = match *wanted {
        ALL_SYMBOLS => symbols(|_| true)?,
        MODULE_SYMBOLS => symbols(symbols::is_of_guest)?,
        _ => String::new(),
    };
    let ports = ports()?;
    send(&ports, &Reply::Done(super::protocol::Done { symbols_bytes: symbols.len() as u64, ..done }));
    ports.write(symbols.as_bytes());
    drop(perturbation);
    Ok(())
}

/// Access to the ports. No thread may have it while the jobs run.
fn ports() -> Result<Ports> {
    Ports::open().map_err(|error| Error::instrument("iopl", error))
}

/// Tells the host that the guest is ready, and pauses until the host lets it go on with an assignment.
fn paused(ready: &Reply) -> Result<Vec<u8>> {
    let ports = ports()?;
    send(&ports, ready);
    ports.pause();
    ports.read(ASSIGNMENT).ok_or_else(|| Error::Refused("the host passes no assignment".to_owned()))
}

/// The kernel's functions whose lines `wanted` accepts, and the executable mappings of all processes.
fn symbols(wanted: fn(&str) -> bool) -> Result<String> {
    let text = fs::read_to_string("/proc/kallsyms").map_err(|error| Error::instrument("/proc/kallsyms", error))?;
    let lines = text.lines().filter(|line| symbols::is_function(line) && wanted(line));
    let mut kept = lines.fold(String::new(), |kept, line| kept + line + "\n");
    kept += symbols::MAPPINGS;
    kept += &mappings();
    Ok(kept)
}

/// The executable mappings of all processes.
fn mappings() -> String {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut text = String::new();
    for entry in entries.filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit)) {
        // Kernel threads have none; a process may just have ended.
        let maps = fs::read_to_string(entry.path().join("maps")).unwrap_or_default();
        for line in maps.lines().filter(|line| line.contains("r-xp")) {
            text += line;
            text.push('\n');
        }
    }
    text
}

fn assigned(stack: &Stack, assignment: &Assignment) -> Result<super::protocol::Done> {
    for (name, value) in &assignment.sysctls {
        setup::set_sysctl(name, value)?;
    }
    let options = assignment.mount_options.as_deref().unwrap_or_default();
    let setup = Setup { environment: stack.environment, options };
    stack.attach.iter().try_for_each(|step| setup.perform(*step))?;
    measure::measure(stack, assignment)
}

fn send(ports: &Ports, reply: &Reply) {
    let mut line = serde_json::to_vec(reply).unwrap_or_default();
    let _ = line.write_all(b"\n");
    ports.write(&line);
}
