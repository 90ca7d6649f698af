//! Writes results to standard output.

use crate::arguments::Shown;
use crate::failure;
use report::Finding;
use std::io::{IsTerminal, Write};
use std::path::Path;

/// Prints a finding on standard output; `folder` has its record.
pub fn print(finding: &dyn Finding, shown: Shown, folder: Option<&Path>) -> anyhow::Result<()> {
    let ink = shown.color.ink(std::io::stdout().is_terminal(), &|name| std::env::var_os(name));
    write(&shown.render(finding, ink, columns(), folder))
}

/// Writes text to standard output. A closed pipe (`iotoll … | head`) is not an error and does not change the exit code.
pub fn write(text: &str) -> anyhow::Result<()> {
    failure::written(std::io::stdout().lock().write_all(text.as_bytes()))
}

/// Width of the terminal; 100 columns if there is none.
pub fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(100)
}
