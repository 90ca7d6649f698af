//! Writes results to standard output, or where fio's `--output` says and in the format of its `--output-format`.

use crate::arguments::{FioFlags, Shown, ink};
use crate::failure::{self, BadInput};
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use verbs::Finding;

/// Prints a finding on standard output; `folder` has its record.
pub fn print(finding: &dyn Finding, shown: Shown, folder: Option<&Path>) -> anyhow::Result<()> {
    let ink = ink(shown.color, std::io::stdout().is_terminal(), &|name| std::env::var_os(name));
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

/// Width of a table in a file.
const COLUMNS: usize = 100;

/// The form of a result, and the file that it is written into, if it is not standard output.
pub struct Results {
    shown: Shown,
    file: Option<(PathBuf, File)>,
}

impl Results {
    /// What fio's flags ask for, if there are such flags. Opens the file, so that one that cannot be written is found before the measurement.
    /// What it contains stays until there is a result.
    pub fn prepare(fio: Option<&FioFlags>, shown: Shown) -> anyhow::Result<Self> {
        let open = |path: &PathBuf| {
            let file = File::options().write(true).create(true).truncate(false).open(path);
            let refused =
                |error| BadInput(format!("--output {}: {error}; name a file that can be written", path.display()));
            file.map(|file| (path.clone(), file)).map_err(refused)
        };
        let file = fio.and_then(|fio| fio.file.as_ref()).map(open).transpose()?;
        let format = fio.and_then(FioFlags::format).unwrap_or(shown.format);
        Ok(Self { shown: Shown { format, ..shown }, file })
    }

    /// Whether it says on standard output where the record is.
    pub fn say_where(&self) -> bool {
        self.file.is_none() && self.shown.is_glance()
    }

    /// Prints a finding; `folder` has its record.
    pub fn print(&self, finding: &dyn Finding, folder: Option<&Path>) -> anyhow::Result<()> {
        let Some((path, mut file)) = self.file.as_ref().map(|(path, file)| (path, file)) else {
            return print(finding, self.shown, folder);
        };
        let ink = ink(self.shown.color, false, &|name| std::env::var_os(name));
        let text = self.shown.render(finding, ink, COLUMNS, folder);
        // A device or a pipe has no contents to replace.
        let is_file = file.metadata().is_ok_and(|data| data.is_file());
        let emptied = if is_file { file.set_len(0) } else { Ok(()) };
        let written = emptied.and_then(|()| file.write_all(text.as_bytes()));
        Ok(written.map_err(|error| lab::Error::file(path, "writing the result (--output)", error))?)
    }
}
