//! Errors of a measurement: what, where, and how to fix it, in one line.

use model::plan::JobPlan;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

/// An error of the lab.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or device.
    #[error("{}: {what}: {source}{mend}", path.display())]
    File {
        path: PathBuf,
        /// What was being done.
        what: String,
        /// The error of the system.
        source: io::Error,
        /// How to fix it; empty, or begins with "; ".
        mend: String,
    },
    /// A request that is refused.
    #[error("{0}")]
    Refused(String),
    /// What was asked cannot be measured, and what was measured until then is worthless.
    #[error("{0}")]
    Misleading(String),
    /// A command that cannot be started.
    #[error("{program}: cannot be started: {source}{}", limit(.source))]
    NotStarted {
        program: String,
        /// The error of the system.
        source: io::Error,
    },
    /// Something that was measured failed.
    #[error("{0}")]
    Failed(String),
    /// Something did not answer in time.
    #[error("{0}")]
    Hung(String),
    /// A signal ended it before anything was measured.
    #[error("interrupted {0}: nothing was measured; files that iotoll made are removed")]
    Interrupted(String),
    /// A meter, a thread or another part of iotoll itself failed.
    #[error("{what}: {source}{}", limit(.source))]
    Instrument {
        /// What was being done.
        what: String,
        /// The error of the system.
        source: io::Error,
    },
}

/// The lab's results.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An operation on a file failed.
    pub fn file(path: &Path, what: impl Into<String>, source: io::Error) -> Self {
        let mend = mend(&source);
        Self::File { path: path.to_owned(), what: what.into(), source, mend }
    }

    /// A record could not be written.
    pub fn record(path: &Path, what: impl Into<String>, source: io::Error) -> Self {
        use rustix::io::Errno;
        let mend = match Errno::from_io_error(&source) {
            Some(Errno::NOSPC) => "; free some space, or choose another --out".to_owned(),
            Some(Errno::NOENT | Errno::EXIST | Errno::ROFS) => "; choose another --out".to_owned(),
            _ => mend(&source),
        };
        Self::Failed(format!("{}: {}: {source}{mend}", path.display(), what.into()))
    }

    /// What a job asks for is refused.
    pub fn refused(plan: &JobPlan, why: impl Display) -> Self {
        Self::Refused(format!("job '{}': {why}", plan.name))
    }

    /// The same because of a file or device.
    pub fn refused_file(plan: &JobPlan, path: &Path, why: impl Display) -> Self {
        Self::refused(plan, format_args!("{} {why}", path.display()))
    }

    /// An operation of a job failed.
    pub fn job(job: &str, what: impl Into<String>, source: io::Error) -> Self {
        Self::Failed(format!("job '{job}': {}: {source}{}", what.into(), mend(&source)))
    }

    /// A part of iotoll failed.
    pub fn instrument(what: impl Into<String>, source: io::Error) -> Self {
        Self::Instrument { what: what.into(), source }
    }
}

/// The fix for a limit that starting a process or a thread, or opening a file, meets; empty, or begins with "; ".
pub(crate) fn limit(error: &io::Error) -> String {
    use rustix::io::Errno;
    match Errno::from_io_error(error) {
        Some(Errno::MFILE) => "; raise the limit of open files: ulimit -n 65536".to_owned(),
        Some(Errno::NFILE) => "; the system's table of open files is full: raise fs.file-max".to_owned(),
        Some(Errno::AGAIN) => {
            "; raise the limit of processes and threads: ulimit -u, or pids.max of the control group".to_owned()
        }
        _ => String::new(),
    }
}

/// The fix for a system error, where one is known.
fn mend(error: &io::Error) -> String {
    use rustix::io::Errno;
    let advice = match Errno::from_io_error(error) {
        Some(Errno::NOSPC) => "free some space, or use a smaller size=",
        Some(Errno::MFILE | Errno::NFILE) => return limit(error),
        Some(Errno::NOENT) => "check filename= and directory=",
        Some(Errno::ACCESS | Errno::PERM) => "check the permissions, or run as root",
        Some(Errno::ROFS) => "the file system is read-only: remount it, or choose another filename=",
        Some(Errno::NODEV | Errno::NXIO) => "the device has disappeared; check that it is attached",
        Some(Errno::IO) => "the device or server reports an error: see dmesg, or the server's own log",
        Some(Errno::NOMEM) => "raise the limit of locked memory (ulimit -l), or use fewer or smaller buffers",
        Some(Errno::LOOP) => "the name is a link that leads to itself; choose another filename=",
        Some(Errno::NAMETOOLONG) => "use a shorter name or filename=",
        Some(Errno::FBIG) => "the file system or ulimit -f limits the file size; use a smaller size=",
        _ => return String::new(),
    };
    format!("; {advice}")
}
