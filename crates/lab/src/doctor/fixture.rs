//! Fabricated machines: the kernel's files in a directory.

use std::collections::BTreeMap;
use std::path::Path;
use tempfile::TempDir;

/// A root directory that is removed on drop.
pub(crate) struct Fixture {
    directory: TempDir,
}

impl Fixture {
    /// A machine without files.
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    /// The root directory.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file and its parent directories.
    pub(crate) fn write(&self, path: &str, contents: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }

    pub(crate) fn write_all(self, files: &[(&str, &str)]) -> Self {
        for (path, contents) in files {
            self.write(path, format!("{contents}\n"));
        }
        self
    }

    /// A cpuidle state of one CPU.
    pub(crate) fn idle_state(&self, cpu: u32, state: u32, name: &str, latency_micros: u32, disable: u32) {
        let directory = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}");
        self.write(&format!("{directory}/name"), format!("{name}\n"));
        self.write(&format!("{directory}/latency"), format!("{latency_micros}\n"));
        self.write(&format!("{directory}/disable"), format!("{disable}\n"));
    }
}

/// One of the machines in a file: each file of the kernel with its contents.
fn recorded(name: &str) -> Fixture {
    let machines: BTreeMap<String, BTreeMap<String, String>> =
        serde_json::from_str(include_str!("machines.json")).unwrap();
    let files: Vec<_> = machines[name].iter().map(|(path, contents)| (path.as_str(), contents.as_str())).collect();
    Fixture::new().write_all(&files)
}

/// Factory settings: turbo, hyperthreads, powersave, deep C-states, two nodes, an ordinary user.
pub(crate) fn intel_metal() -> Fixture {
    let fixture = recorded("intel_metal");
    fixture.write("dev/cpu_dma_latency", 2_000_000_000i32.to_ne_bytes());
    fixture
}

/// Set up for measuring, as root.
pub(crate) fn amd_metal() -> Fixture {
    recorded("amd_metal")
}

/// A small cloud guest, as root.
pub(crate) fn guest() -> Fixture {
    recorded("guest")
}

/// An ordinary user in a container that shows /proc but not /sys.
pub(crate) fn container() -> Fixture {
    recorded("container")
}
