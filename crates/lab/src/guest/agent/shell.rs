//! A shell on the guest's console.

use super::super::stack::Stack;
use super::setup::SEARCH_PATH;
use crate::error::{Error, Result};
use std::fs::OpenOptions;
use std::io::Write;
use std::process::{Command, Stdio};

const CONSOLE: &str = "/dev/ttyS0";
const BUSYBOX: &str = "/usr/bin/busybox";

/// Runs the shell to its end. `size` is `ROWSxCOLUMNS`.
pub(super) fn run(stack: &Stack, release: &str, size: &str) -> Result<()> {
    let failed = |error| Error::instrument("the shell", error);
    let console = || OpenOptions::new().read(true).write(true).open(CONSOLE).map_err(failed);
    let applet = |words: &[&str]| {
        let mut command = Command::new(BUSYBOX);
        command.args(words).env("PATH", SEARCH_PATH).env("HOME", "/root").env("TERM", "linux").current_dir("/");
        command
    };
    // A serial line does not know the size of the terminal.
    let (rows, columns) = size.split_once('x').unwrap_or(("24", "80"));
    let _ = applet(&["stty", "rows", rows, "cols", columns]).stdin(console()?).status();
    // Names that programs of the stack have stay theirs: it complains about them.
    let _ = applet(&["--install", "-s", "/usr/bin"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let _ = std::os::unix::fs::symlink("/init", "/usr/bin/iotoll");
    let place = stack.target.path();
    let greeting = format!(
        "{} on {release}: the I/O goes to {place}. `exit` or Ctrl-D ends the guest, Ctrl-A X kills it.\r\n",
        stack.name
    );
    console()?.write_all(greeting.as_bytes()).map_err(failed)?;
    // A session of its own with the console as its terminal, for Ctrl-C and job control.
    let mut shell = applet(&["setsid", "-c", BUSYBOX, "sh"]);
    shell.env("PS1", format!("{}:\\w# ", stack.name));
    shell.stdin(console()?).stdout(console()?).stderr(console()?).status().map_err(failed)?;
    Ok(())
}
