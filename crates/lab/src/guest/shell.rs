//! `iotoll guest shell`: a guest to look around in.

use super::boot_files::{self, Guest};
use super::cache::Cache;
use super::kernel::{self, Kernel};
use super::machine::{Machine, Purpose};
use super::modules::replaced;
use super::protocol::SHELL_PARAMETER;
use super::run::Settings;
use super::stack::{self, BUSYBOX};
use super::tool::{Emulator, at_once, enough_space};
use crate::error::{Error, Result};
use crate::guardian::undo::Undo;
use crate::guardian::{Guardian, UndoGuard};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr, ttyname};
use std::io::{stdin, stdout};
use std::process::{Command, Stdio};

#[derive(Clone, Debug)]
pub struct Look<'a> {
    /// The kernel, as the user names it.
    pub kernel: &'a str,
    /// Modules that replace those of the kernel.
    pub module: &'a str,
    pub stack: &'a str,
    /// More kernel parameters.
    pub parameters: &'a str,
}

/// Boots a guest with a shell at this program's terminal, and waits until it ends. `observe` is told what is prepared;
/// `begins` is called before the terminal belongs to the guest.
///
/// # Errors
/// When there is no terminal, the guest cannot be made, or it ends before its shell begins.
pub fn run(look: &Look, settings: &Settings, observe: &mut dyn FnMut(String), begins: &mut dyn FnMut()) -> Result<()> {
    if !isatty(stdin()) || !isatty(stdout()) {
        return Err(Error::Refused(
            "guest shell: standard input and output must be a terminal; run it in one, without a pipe".to_owned(),
        ));
    }
    let stack = stack::named(look.stack)?;
    let emulator = Emulator::find(&settings.care)?;
    let cache = Cache::open(settings.care.clone())?;
    enough_space(&cache)?;
    at_once()?;
    let kernel = kernel::locate(look.kernel, &cache, observe)?;
    let kernel = Kernel { replaced: replaced(look.module, &kernel)?, ..kernel };
    let image = boot_files::make(&kernel, stack, &emulator.name, &[BUSYBOX], &cache, observe)?;
    let size = tcgetwinsize(stdout()).map_or((24, 80), |size| (size.ws_row.max(1), size.ws_col.max(1)));
    let guest = Guest {
        what: format!("the guest of {} on {}", stack.name, kernel.release),
        image,
        parameters: format!("{} {SHELL_PARAMETER}={}x{}", look.parameters, size.0, size.1),
        replicate: 0,
    };
    begins();
    let terminal = Terminal::keep(&settings.care.guardian)?;
    let ended = Machine::start(&guest, settings, Purpose::Look).and_then(Machine::wait_for_user);
    drop(terminal);
    ended
}

/// The terminal as it was. QEMU changes it, and restores it only when it ends by itself.
struct Terminal {
    attributes: Termios,
    flags: OFlags,
    /// If iotoll is killed.
    _guard: UndoGuard,
}

impl Terminal {
    fn keep(guardian: &Guardian) -> Result<Self> {
        let failed = |error: rustix::io::Errno| Error::instrument("reading the terminal's settings", error.into());
        let attributes = tcgetattr(stdin()).map_err(failed)?;
        let flags = fcntl_getfl(stdin()).map_err(failed)?;
        let guard = match restoring_command() {
            Some(command) => guardian.arm(Undo::Run { command, directory: "/".into(), longest_seconds: 5.0 })?,
            None => UndoGuard::default(),
        };
        Ok(Self { attributes, flags, _guard: guard })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // An error cannot be reported from here.
        let _ = tcsetattr(stdin(), OptionalActions::Drain, &self.attributes);
        let _ = fcntl_setfl(stdin(), self.flags);
    }
}

/// A shell command that restores the terminal from another process, if there is stty(1).
fn restoring_command() -> Option<String> {
    let name = ttyname(stdin(), Vec::new()).ok()?.into_string().ok()?;
    let output = Command::new("stty").arg("-g").stdin(Stdio::inherit()).output().ok()?;
    let settings = String::from_utf8(output.stdout).ok()?;
    let settings = settings.trim();
    let plain = |text: &str, more: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c));
    (!settings.is_empty() && plain(settings, ":") && plain(&name, "/_-")).then(|| format!("stty -F {name} {settings}"))
}
