//! Operations on names: each I/O creates, examines or removes a file or folder, and moves no data.

use super::traits::{Perform, Sync};
use super::{OpenEngine, Setup, result_of};
use crate::error::{Error, Result};
use crate::workload::request_source::Request;
use model::plan::{EngineKind, StatCall};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags};
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;

/// As fio makes files.
const FILE_MODE: Mode = Mode::from_raw_mode(0o600);
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o700);

enum Operation {
    CreateFile,
    CreateFolder,
    RemoveFile,
    RemoveFolder,
    Ask(StatCall),
}

struct Names {
    paths: Vec<CString>,
    operation: Operation,
    calls: u64,
}

pub(super) fn open(setup: &Setup) -> Result<OpenEngine> {
    let operation = match setup.plan.engine {
        EngineKind::Filecreate => Operation::CreateFile,
        EngineKind::Dircreate => Operation::CreateFolder,
        EngineKind::Filedelete => Operation::RemoveFile,
        EngineKind::Dirdelete => Operation::RemoveFolder,
        _ => Operation::Ask(setup.plan.calls.stat),
    };
    let path = |target: &crate::workload::target::Target| {
        let path = CString::new(target.path.as_os_str().as_bytes());
        path.map_err(|error| Error::file(&target.path, "using its name", error.into()))
    };
    let paths = setup.targets.iter().map(path).collect::<Result<_>>()?;
    let mut engine = Names { paths, operation, calls: 0 };
    Ok(Box::new(move |worker| worker.run_direct(&mut engine)))
}

impl Perform for Names {
    #[inline(always)]
    fn perform(&mut self, request: &Request) -> i32 {
        let Some(path) = self.paths.get(request.file as usize) else { return -9 };
        self.calls += 1;
        let outcome = match self.operation {
            Operation::CreateFile => {
                // The file is closed here.
                self.calls += 1;
                rustix::fs::open(path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, FILE_MODE).map(drop)
            }
            Operation::CreateFolder => rustix::fs::mkdir(path, FOLDER_MODE),
            Operation::RemoveFile => rustix::fs::unlink(path),
            Operation::RemoveFolder => rustix::fs::rmdir(path),
            Operation::Ask(StatCall::Stat) => rustix::fs::stat(path).map(drop_metadata),
            Operation::Ask(StatCall::Lstat) => rustix::fs::lstat(path).map(drop_metadata),
            Operation::Ask(StatCall::Statx) => {
                rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::ALL).map(drop_metadata)
            }
        };
        result_of(outcome.map(|()| 0).map_err(Into::into))
    }

    fn sync(&mut self, _: u32, _: Sync) -> io::Result<bool> {
        Ok(false)
    }

    fn syscalls(&self) -> Option<u64> {
        Some(self.calls)
    }
}

/// The kernel has copied the metadata; nothing reads them.
fn drop_metadata<T>(metadata: T) {
    std::hint::black_box(&metadata);
}
