//! Programs: loading, attaching to raw tracepoints, running once.

use super::{Code, Command, Error, address, address_mut, call, object_name, open};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// A program that the kernel has verified and compiled.
#[derive(Debug)]
pub struct Program {
    descriptor: OwnedFd,
}

/// A program at a tracepoint. Dropping it detaches the program.
#[derive(Debug)]
pub struct Link {
    _descriptor: OwnedFd,
}

#[repr(C)]
struct Load {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
}

#[repr(C)]
struct Open {
    name: u64,
    program: u32,
    padding: u32,
}

#[repr(C)]
#[derive(Default)]
struct TestRun {
    program: u32,
    result: u32,
    input_size: u32,
    output_size: u32,
    input: u64,
    output: u64,
    repeat: u32,
    duration: u32,
    arguments_size: u32,
    results_size: u32,
    arguments: u64,
    results: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    padding: u32,
}

/// `struct bpf_prog_info` up to the number of verified instructions.
#[repr(C)]
#[derive(Default)]
struct Info {
    kind: u32,
    id: u32,
    before_run_time: [u64; 23],
    run_time: u64,
    runs: u64,
    left_out: u64,
}
const _: () = assert!(std::mem::offset_of!(Info, run_time) == 192);

#[repr(C)]
struct InfoOf {
    object: u32,
    size: u32,
    info: u64,
}

const RAW_TRACEPOINT: u32 = 17;
const FLAG_RUN_ON_CPU: u32 = 1;
/// The kernel gives some of its helpers only to programs that state a license compatible with the GPL.
const LICENSE: &std::ffi::CStr = c"Dual MIT/GPL";
/// Room for the verifier's log.
const LOG_BYTES: u32 = 1 << 20;
/// Lines at the end of the log that an error has: the reason is there.
const LOG_LINES: usize = 6;

impl Program {
    /// Loads a program for raw tracepoints. Its context is the arguments of the tracepoint, 8 bytes each.
    ///
    /// # Errors
    /// Without the right, or when the verifier rejects the program; the error has the end of its log.
    pub fn load(name: &str, code: &Code<'_>) -> Result<Self, Error> {
        match load(name, code, &mut []) {
            Ok(descriptor) => Ok(Self { descriptor }),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS | libc::ENOMEM)) => {
                Err(Error::new("loading a BPF program", error))
            }
            Err(_) => Err(rejected(name, code)),
        }
    }

    /// Runs the program at each pass of a raw tracepoint (`sched_switch`, without its group) until the link is dropped.
    ///
    /// # Errors
    /// When there is no such tracepoint, or the program reads more arguments than it has.
    pub fn attach(&self, tracepoint: &str) -> Result<Link, Error> {
        let missing = || {
            Error::because(format!(
                "the kernel has no raw tracepoint {tracepoint} (its subsystem or CONFIG_BPF_EVENTS is missing, or it has \
                 another name in this version)"
            ))
        };
        let name = CString::new(tracepoint).map_err(|_| missing())?;
        let mut attributes = Open { name: address(name.as_bytes_with_nul()), program: self.raw(), padding: 0 };
        // SAFETY: the structure has the attributes of this command, and the name lives during the call.
        let opened = unsafe { open(Command::RawTracepointOpen, &mut attributes, size_of::<Open>()) };
        match opened {
            Ok(descriptor) => Ok(Link { _descriptor: descriptor }),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Err(missing()),
            Err(error) => Err(Error::new("attaching a BPF program to a raw tracepoint", error)),
        }
    }

    /// Runs the program once on a CPU, with interrupts disabled unless this thread is there.
    ///
    /// # Errors
    /// When the CPU is offline, or the program reads more arguments.
    pub fn run_on(&self, cpu: u32, arguments: &[u64]) -> Result<(), Error> {
        self.run(Some(cpu), arguments)
    }

    /// Runs the program once in this thread.
    ///
    /// # Errors
    /// When the program reads more arguments.
    pub fn run_here(&self, arguments: &[u64]) -> Result<(), Error> {
        self.run(None, arguments)
    }

    fn run(&self, cpu: Option<u32>, arguments: &[u64]) -> Result<(), Error> {
        const ATTEMPT: &str = "running a BPF program once";
        let too_many = |_| Error::unsupported(ATTEMPT);
        let arguments_size = u32::try_from(size_of_val(arguments)).map_err(too_many)?;
        let mut attributes = TestRun {
            program: self.raw(),
            arguments_size,
            arguments: if arguments.is_empty() { 0 } else { address(arguments) },
            flags: if cpu.is_some() { FLAG_RUN_ON_CPU } else { 0 },
            cpu: cpu.unwrap_or(0),
            ..TestRun::default()
        };
        // SAFETY: the structure has the attributes of this command, and the arguments live during the call.
        let run = unsafe { call(Command::ProgramTestRun, &mut attributes, size_of::<TestRun>()) };
        match (run, cpu) {
            (Ok(_), _) => Ok(()),
            (Err(error), Some(cpu)) if error.raw_os_error() == Some(libc::ENXIO) => {
                Err(Error::because(format!("there is no CPU {cpu}, or it is offline")))
            }
            (Err(error), _) => Err(Error::new(ATTEMPT, error)),
        }
    }

    /// How often the kernel left it out, because an interrupt came while it ran on the same CPU. Always counted.
    ///
    /// # Errors
    /// As bpf(2).
    pub fn left_out(&self) -> Result<u64, Error> {
        let mut info = Info::default();
        let size = u32::try_from(size_of::<Info>()).unwrap_or(u32::MAX);
        let mut attributes = InfoOf { object: self.raw(), size, info: address_mut(&mut info) };
        // SAFETY: the structure has the attributes of this command. The kernel writes at most `size` bytes of the
        // information, which consists of numbers; the addresses in it are 0, so that nothing else is written.
        let read = unsafe { call(Command::ObjectInfo, &mut attributes, size_of::<InfoOf>()) };
        read.map_err(|error| Error::new("reading the statistics of a BPF program", error))?;
        Ok(info.left_out)
    }

    fn raw(&self) -> u32 {
        self.descriptor.as_raw_fd().unsigned_abs()
    }
}

fn load(name: &str, code: &Code<'_>, log: &mut [u8]) -> io::Result<OwnedFd> {
    let count = u32::try_from(code.instructions.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let log_size = u32::try_from(log.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut attributes = Load {
        kind: RAW_TRACEPOINT,
        count,
        instructions: address(code.instructions.as_slice()),
        license: address(LICENSE.to_bytes_with_nul()),
        log_level: u32::from(log_size > 0),
        log_size,
        log: if log_size > 0 { address_mut(log) } else { 0 },
        kernel_version: 0,
        flags: 0,
        name: object_name(name),
    };
    // SAFETY: the structure has the attributes of this command. The instructions, the license (ends with 0) and the log
    // live during the call, and the kernel writes at most `log_size` bytes of the log.
    unsafe { open(Command::ProgramLoad, &mut attributes, size_of::<Load>()) }
}

/// Loads the program again, with a log.
fn rejected(name: &str, code: &Code<'_>) -> Error {
    let mut log = vec![0; usize::try_from(LOG_BYTES).unwrap_or(0)];
    let error = load(name, code, &mut log).err();
    let text = log.split(|byte| *byte == 0).next().map(String::from_utf8_lossy).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("processed ")).collect();
    let last = lines.get(lines.len().saturating_sub(LOG_LINES)..).unwrap_or_default();
    match error {
        Some(error) if last.is_empty() => Error::new("loading a BPF program", error),
        _ => Error::because(format!("the kernel's verifier rejects program {name}: {}", last.join("; "))),
    }
}
