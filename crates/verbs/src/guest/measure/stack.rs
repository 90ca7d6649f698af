//! What a guest sets up for the I/O: modules, programs and steps, which `stacks.toml` lists.

use super::programs::Program;
use lab::error::{Error, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The stacks, and the groups that they name.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(rename = "stack")]
    stacks: Vec<Stack>,
    packages: BTreeMap<String, String>,
    steps: BTreeMap<String, Vec<Step>>,
    counters: BTreeMap<String, Vec<Counter>>,
}

/// A test reads it; without that it would be empty if it were damaged.
static TABLE: LazyLock<Table> = LazyLock::new(|| toml::from_str(include_str!("stacks.toml")).unwrap_or_default());

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stack {
    /// Its name on the command line.
    pub name: String,
    /// What the I/O goes through, for users.
    pub about: String,
    modules: Vec<String>,
    /// Modules that a kernel may have built in, under another name, or not at all.
    pub optional_modules: Vec<String>,
    programs: Vec<String>,
    /// Packages with libraries whose names do not say it: they are searched before others.
    pub library_packages: Vec<String>,
    /// Environment of its programs, beside that of every program.
    pub environment: BTreeMap<String, String>,
    pub kernel_parameters: String,
    boot: Vec<String>,
    attach: Vec<String>,
    /// Where the I/O goes.
    pub target: Target,
    proof: Vec<String>,
}

impl Stack {
    /// The modules with their parameters, in the order in which they are loaded.
    pub fn modules(&self) -> impl Iterator<Item = (&str, &str)> {
        self.modules.iter().map(|module| module.split_once(' ').unwrap_or((module, "")))
    }

    /// Programs of the host that it needs, and files that these open while they run.
    pub fn programs(&'static self) -> impl Iterator<Item = Program> {
        let package = |name: &str| TABLE.packages.get(name).map_or("", String::as_str);
        self.programs.iter().map(move |name| Program { name, package: package(name) })
    }

    /// Steps at boot, before the guest is saved.
    pub fn boot(&'static self) -> impl Iterator<Item = &'static Step> {
        self.boot.iter().filter_map(|group| TABLE.steps.get(group)).flatten()
    }

    /// Steps of each measurement, after its sysctls are set.
    pub fn attach(&'static self) -> impl Iterator<Item = &'static Step> {
        self.attach.iter().filter_map(|group| TABLE.steps.get(group)).flatten()
    }

    /// Counters that show which path the I/O took.
    pub fn counters(&'static self) -> impl Iterator<Item = &'static Counter> {
        self.proof.iter().filter_map(|group| TABLE.counters.get(group)).flatten()
    }

    /// Whether a measurement can mount or map it with options of its own.
    pub fn takes_mount_options(&'static self) -> bool {
        self.attach().any(|step| matches!(step, Step::MountWithOptions(..) | Step::WriteWithOptions(..)))
    }
}

/// Where the I/O goes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// To files of the job in this folder.
    Folder(String),
    Device(String),
    /// To a device that has a block only once it was written: its blocks are written first.
    Sparse(String),
}

impl Default for Target {
    fn default() -> Self {
        Self::Folder("/stack".to_owned())
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Makes a folder and those above it.
    Folder(String),
    /// mount(2): type, source, folder, options. `noatime` among the options becomes a flag.
    Mount(String, String, String, String),
    /// The same with the assignment's mount options appended.
    MountWithOptions(String, String, String, String),
    /// Writes to a file a text.
    Write(String, String),
    /// Writes to a file a text, the assignment's mount options after a comma, and another text.
    WriteWithOptions(String, String, String),
    /// Makes a symbolic link: to, at.
    Link(String, String),
    /// Runs a program to its end.
    Run(String),
    /// Runs a program to its end, which comes within these seconds unless something else is wrong: what.
    RunWithin(String, u64, String),
    /// Starts a program that stays: if it ends, the guest fails.
    Start(String),
    /// Marks the pool of this map of a Ceph cluster as being created.
    CreatePool(String),
    /// Waits these seconds, for what programs do after their start.
    Settle(u64),
    /// Waits until this path exists.
    Await(String),
    /// Waits until a TCP server of the guest listens at this port.
    AwaitPort(u16),
}

/// A counter that shows the path.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counter {
    /// Its name in the report.
    pub name: String,
    /// Where it is read.
    pub source: Source,
    /// What its increase must be.
    #[serde(default)]
    pub expected: Expected,
}

/// Where a counter is read.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A field of /sys/block/DEVICE/stat, from 0.
    Block(String, usize),
    /// All fields of /sys/block/DEVICE/stat that count I/Os: reads, writes, discards.
    BlockIos(String),
    /// The sum of these counts of KiB in /proc/vmstat, in sectors: what was submitted to block devices.
    Sectors(Vec<String>),
    /// A field of the line `xprt: TRANSPORT …` in /proc/self/mountstats, from 0 after the transport's name.
    Transport(String, usize),
    /// The number that follows this word in /proc/self/mountstats, at the operation of this name: a field from 0.
    Operation(String, usize),
    /// A file with one number.
    File(String),
    /// Bytes that a network interface has sent.
    BytesSent(String),
    /// A counter of a program of Ceph: the socket of its administration, sections that begin so (their sum), the name.
    Ceph(String, String, String),
    /// Whether a file of the job has the DAX attribute: 1 or 0. A state, not an increase.
    Dax,
    /// Whether the job's files are on a file system of this type: 1 or 0. A state, not an increase.
    FileSystem(u64),
}

/// What an increase must be, if the I/O took the path that the stack says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expected {
    /// At least one for each I/O that is not served from the page cache.
    EachDirectIo,
    /// At least one for each byte that is not served from the page cache.
    EachDirectByte,
    /// More than nothing.
    Some,
    /// Nothing.
    None,
    /// Anything: it is reported.
    #[default]
    Any,
}

pub fn stacks() -> &'static [Stack] {
    &TABLE.stacks
}

/// The stack of this name.
///
/// # Errors
/// When there is none.
pub fn named(name: &str) -> Result<&'static Stack> {
    stacks().iter().find(|stack| stack.name == name).ok_or_else(|| {
        let names: Vec<_> = stacks().iter().map(|stack| stack.name.as_str()).collect();
        Error::Refused(format!("stack '{name}': there is no such stack; there are {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_and_package_that_a_stack_names_is_in_the_table() {
        let table: Table = toml::from_str(include_str!("stacks.toml")).unwrap();
        assert_eq!(table.stacks.len(), 11);
        for stack in &table.stacks {
            assert!(stack.boot.iter().chain(&stack.attach).all(|group| table.steps.contains_key(group)), "{stack:?}");
            assert!(stack.proof.iter().all(|group| table.counters.contains_key(group)), "{stack:?}");
            assert!(stack.programs.iter().all(|name| table.packages.contains_key(name)), "{stack:?}");
        }
    }
}
