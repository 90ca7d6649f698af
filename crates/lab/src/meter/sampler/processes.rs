//! The mapped files of processes, by which the stacks of programs are unwound and named.

use super::unwinding::Unwinding;
use crate::bounded_file::{self, LONGEST_FILE, at_most};
use crate::guardian::setting_file::shown;
use crate::names::{Mapping, Program, mapping};
use crate::proc_files::Stat;
use framehop::{CacheNative, FrameAddress, MayAllocateDuringUnwind, Unwinder, UnwinderNative};
use model::profile::Function;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use sys::perf::{Forked, Mapped, Named, UserRegisters};

/// A place in a mapped file, or in memory without a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// `None` for memory without a file.
    pub(super) file: Option<usize>,
    /// In the file; otherwise the address.
    pub(super) offset: u64,
}

/// All processes that were sampled, and their files.
#[derive(Default)]
pub struct Processes {
    files: Vec<MappedFile>,
    /// What is mapped from each path, and when that file was written last.
    by_identity: HashMap<Identity, usize>,
    known: HashMap<u32, Process>,
    /// Of every process between those that were sampled and the first.
    parents: HashMap<u32, u32>,
    cache: Option<CacheNative<MayAllocateDuringUnwind>>,
    /// Time in which files were read, since the first window of those that are named together.
    reading: Cell<Duration>,
    /// Bytes of all files that are kept for unwinding.
    kept: usize,
    /// Files of which nothing or not all is used, and why.
    refused: RefCell<BTreeSet<String>>,
}

/// The mount namespace, the path in it, and the file that is there.
type Identity = (PathBuf, String, u64, Option<(SystemTime, u64)>);

/// A file stays open, because it is named after the window, when the process may have ended.
struct MappedFile {
    name: String,
    path: String,
    contents: Contents,
    unwinding: Option<Arc<Unwinding>>,
    program: OnceCell<Program>,
}

enum Contents {
    Of(File),
    /// The kernel's part of every process (vdso).
    Bytes(Vec<u8>),
    Unknown,
}

#[derive(Default)]
struct Process {
    mappings: BTreeMap<u64, (Mapping, Option<usize>)>,
    unwinder: Rules,
    /// The name of its first thread, if it is known.
    name: Option<String>,
    names: HashMap<u32, String>,
    kernel: bool,
    mounts: PathBuf,
}

/// Bytes of a section that several processes share.
type Section = Arc<[u8]>;

#[derive(Default)]
struct Rules(UnwinderNative<Section, MayAllocateDuringUnwind>);

/// Code that a program made in its memory.
const NO_FILE: &str = "[memory without a file]";
/// More calls than any program makes without a defect.
const DEEPEST: usize = 256;
/// Time for reading files in windows that are named together.
const LONGEST_READING: Duration = Duration::from_secs(10);
const LATE: &str = "reading all before them took more than 10 s";
/// Bytes that are kept of all files together.
const MOST_KEPT: usize = 2 << 30;
/// Files of all processes, which stay open, and parts of a process's memory that it may execute: a process can make more than others need.
const MOST_FILES: usize = 2048;
const MOST_MAPPINGS: usize = 4096;
/// Bytes of the list of them.
const LONGEST_LIST: u64 = 16 << 20;
/// Refused files that are named.
const MOST_REFUSED: usize = 8;

impl Processes {
    /// Forgets what may have changed while nothing was sampled. Files stay.
    pub(super) fn begin_window(&mut self) {
        self.known.clear();
        self.parents.clear();
        self.reading.set(Duration::ZERO);
    }

    /// Files of which nothing or not all was used, and why.
    pub(super) fn refused(&self) -> Vec<String> {
        self.refused.borrow().iter().cloned().collect()
    }

    fn refuse(&self, name: &str, why: &str) {
        let mut refused = self.refused.borrow_mut();
        let name = if why == LATE { "further files" } else { name };
        if refused.len() < MOST_REFUSED {
            refused.insert(format!("{}: {why}", shown(name)));
        }
    }

    /// Reads something, while there is time.
    fn reads<T>(&self, read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        if self.reading.get() > LONGEST_READING {
            return Err(LATE.to_owned());
        }
        let begun = Instant::now();
        let read = read();
        self.reading.set(self.reading.get() + begun.elapsed());
        read
    }

    /// A process began: with the mappings of its parent, and perhaps for so short a time that nothing else will tell of it.
    pub fn forked(&mut self, Forked { process, parent }: Forked) {
        if process == parent {
            return;
        }
        self.parents.insert(process, parent);
        if !self.known.contains_key(&parent) {
            self.learn(parent);
        }
        let mut child = Process::default();
        if let Some(parent) = self.known.get(&parent) {
            child.mounts.clone_from(&parent.mounts);
            child.names.extend(parent.name.iter().map(|name| (process, name.clone())));
            child.name.clone_from(&parent.name);
            for (begin, (mapping, file)) in &parent.mappings {
                child.add(&self.files, *begin, mapping.clone(), *file);
            }
        }
        self.known.insert(process, child);
    }

    /// A thread has a name.
    pub(super) fn named(&mut self, named: &Named<'_>) {
        let Named { process, thread, name, executed } = *named;
        let known = self.known.entry(process);
        let known = if executed {
            // Its mappings follow, each in a record of its own.
            let fresh = Process { name: None, ..Process::default() };
            let entry = known.insert_entry(fresh);
            entry.into_mut()
        } else if let std::collections::hash_map::Entry::Occupied(entry) = known {
            entry.into_mut()
        } else {
            return;
        };
        let name = String::from_utf8_lossy(name).into_owned();
        if process == thread {
            known.name = Some(name.clone());
        }
        known.names.insert(thread, name);
        if executed && !self.parents.contains_key(&process) {
            self.learn_parents(process);
        }
    }

    /// A process mapped a file.
    pub fn mapped(&mut self, mapped: &Mapped<'_>) {
        // The mappings of a process that was not sampled yet are read when it is.
        if !self.known.contains_key(&mapped.process) {
            return;
        }
        let end = mapped.begin.saturating_add(mapped.length);
        let path = String::from_utf8_lossy(mapped.path).into_owned();
        let mapping = Mapping { end, offset: mapped.offset, inode: mapped.inode, path };
        self.add(mapped.process, mapped.begin, mapping);
    }

    fn process(&mut self, process: u32) -> &mut Process {
        if !self.known.contains_key(&process) {
            self.learn(process);
        }
        self.known.entry(process).or_default()
    }

    fn learn(&mut self, process: u32) {
        let stat = Stat::of(process);
        let kernel = stat.as_ref().is_some_and(Stat::is_kernel);
        let name = stat.map(|stat| stat.name);
        self.known.insert(process, Process { kernel, name, ..Process::default() });
        self.learn_parents(process);
        let maps = File::open(directory(process).join("maps")).and_then(|file| at_most(file, LONGEST_LIST));
        for (begin, mapping) in String::from_utf8_lossy(&maps.unwrap_or_default()).lines().filter_map(mapping) {
            self.add(process, begin, mapping);
        }
    }

    /// At once, because processes end.
    fn learn_parents(&mut self, process: u32) {
        let mut child = process;
        while child > 1 && !self.parents.contains_key(&child) {
            let Some(Stat { parent, .. }) = Stat::of(child) else { return };
            self.parents.insert(child, parent);
            child = parent;
        }
    }

    fn add(&mut self, process: u32, begin: u64, mapping: Mapping) {
        if self.known.get(&process).is_some_and(|known| known.mappings.len() >= MOST_MAPPINGS) {
            return;
        }
        let file = self.file(process, begin, &mapping);
        let known = self.known.entry(process).or_default();
        known.add(&self.files, begin, mapping, file);
    }

    fn file(&mut self, process: u32, begin: u64, mapping: &Mapping) -> Option<usize> {
        // The kernel's records call memory without a file `//anon`; a program may name it.
        if mapping.path.is_empty() || mapping.inode == 0 && !mapping.path.starts_with("[v") {
            return None;
        }
        let known = self.known.entry(process).or_default();
        if known.mounts.as_os_str().is_empty() {
            known.mounts = fs::read_link(directory(process).join("ns/mnt")).unwrap_or_default();
        }
        // A path may hold another file later, and a file other bytes.
        let found = fs::metadata(rooted(process, &mapping.path)).ok().filter(|found| found.ino() == mapping.inode);
        let state = found.and_then(|found| Some((found.modified().ok()?, found.len())));
        let identity = (known.mounts.clone(), mapping.path.clone(), mapping.inode, state);
        if let Some(place) = self.by_identity.get(&identity) {
            return Some(*place);
        }
        let place = self.files.len();
        if place >= MOST_FILES {
            return None;
        }
        let mut file = MappedFile::open(process, begin, mapping);
        file.unwinding = self.unwinding(&file).map_err(|why| self.refuse(&file.name, &why)).ok().flatten();
        self.kept += file.unwinding.as_ref().map_or(0, |unwinding| unwinding.bytes());
        self.files.push(file);
        self.by_identity.insert(identity, place);
        Some(place)
    }

    fn unwinding(&self, file: &MappedFile) -> Result<Option<Arc<Unwinding>>, String> {
        file.contents.fits()?;
        let unwinding = self.reads(|| Ok(Unwinding::of(&file.contents.bytes()?)))?;
        if unwinding.as_ref().is_some_and(|unwinding| unwinding.refused) {
            self.refuse(&file.name, "its unwind tables may have no end, so its calls are not followed by them");
        }
        match unwinding {
            Some(unwinding) if self.kept + unwinding.bytes() > MOST_KEPT => {
                Err(format!("the files of programs have more than {} GiB", MOST_KEPT >> 30))
            }
            unwinding => Ok(unwinding.map(Arc::new)),
        }
    }

    /// The functions of a file.
    fn program<'a>(&self, file: &'a MappedFile) -> &'a Program {
        file.program.get_or_init(|| {
            let bytes = self.reads(|| file.contents.bytes());
            let bytes = bytes.map_err(|why| self.refuse(&file.name, &why)).unwrap_or_default();
            Program::of(file.name.clone(), &bytes)
        })
    }

    /// The name of a thread when it is first asked for.
    pub(super) fn thread(&mut self, process: u32, thread: u32) -> String {
        let Process { name, names, .. } = self.process(process);
        let read = || fs::read(directory(process).join(format!("task/{thread}/comm"))).ok();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim_end().to_owned();
        // A thread that has ended has mostly the name of its process.
        let ended = || name.clone().unwrap_or_else(|| "[ended]".to_owned());
        names.entry(thread).or_insert_with(|| read().map_or_else(ended, text)).clone()
    }

    /// Whether it is a thread of the kernel.
    pub(super) fn is_kernel(&self, process: u32) -> bool {
        self.known.get(&process).is_some_and(|process| process.kernel)
    }

    pub(super) fn parent(&self, process: u32) -> Option<u32> {
        self.parents.get(&process).copied()
    }

    /// The calls of a program, the innermost first, and whether they reach its first function.
    pub fn unwind(&mut self, process: u32, registers: UserRegisters, stack: &[u8]) -> (Vec<Place>, bool) {
        self.process(process);
        let Some(known) = self.known.get(&process) else { return (Vec::new(), false) };
        let cache = self.cache.get_or_insert_with(CacheNative::new);
        let mut word = |address: u64| {
            let at = usize::try_from(address.wrapping_sub(registers.stack)).map_err(|_| ())?;
            let bytes = stack.get(at..).and_then(|rest| rest.first_chunk::<8>()).ok_or(())?;
            Ok(u64::from_ne_bytes(*bytes))
        };
        let mut frames = known.unwinder.0.iter_frames(registers.instruction, native(registers), cache, &mut word);
        let mut places = Vec::new();
        loop {
            match frames.next() {
                Ok(Some(FrameAddress::InstructionPointer(address))) => places.push(known.place(address)),
                // The call stands before the address to which it returns.
                Ok(Some(FrameAddress::ReturnAddress(address))) => places.push(known.place(address.get() - 1)),
                // A first function is in a file: what is elsewhere was taken for a return address.
                Ok(None) => {
                    let whole = places.last().is_some_and(|place| place.file.is_some());
                    return (places, whole);
                }
                Err(_) => return (places, false),
            }
            if places.len() >= DEEPEST {
                return (places, false);
            }
        }
    }

    /// The function at a place.
    pub fn function(&self, place: Place) -> Function {
        let file = place.file.and_then(|file| self.files.get(file));
        let function = |name: String, module: &str, file: &str, begin: u64| Function {
            name,
            module: module.to_owned(),
            kernel: false,
            file: file.to_owned(),
            begin,
        };
        let Some(file) = file else { return function(NO_FILE.to_owned(), "", "", 0) };
        let program = self.program(file);
        match program.function(place.offset) {
            Some((name, begin)) => function(name.to_owned(), &file.name, &file.path, begin),
            None => function(format!("[{}]", file.name), &file.name, &file.path, 0),
        }
    }
}

fn directory(process: u32) -> PathBuf {
    Path::new("/proc").join(process.to_string())
}

/// A path as a process sees it.
fn rooted(process: u32, path: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{process}/root{path}"))
}

impl Process {
    fn add(&mut self, files: &[MappedFile], begin: u64, mapping: Mapping, file: Option<usize>) {
        let file_of = file.and_then(|file| files.get(file));
        let module = file_of.and_then(|file| file.unwinding.as_ref()?.module(&file.name, begin, &mapping));
        // A mapping in place of another one.
        let over = self.mappings.range(..mapping.end).rev().take_while(|(_, (it, _))| it.end > begin);
        let over: Vec<u64> = over.map(|(begin, _)| *begin).collect();
        for begin in over {
            self.mappings.remove(&begin);
            self.unwinder.0.remove_module(begin);
        }
        self.mappings.insert(begin, (mapping, file));
        if let Some(module) = module {
            self.unwinder.0.add_module(module);
        }
    }

    fn place(&self, address: u64) -> Place {
        let mapping = self.mappings.range(..=address).next_back().filter(|(_, (mapping, _))| address < mapping.end);
        match mapping {
            Some((begin, (mapping, Some(file)))) => {
                Place { file: Some(*file), offset: address - begin + mapping.offset }
            }
            Some((_, (_, None))) => Place { file: None, offset: address },
            None => Place { file: None, offset: address },
        }
    }
}

impl MappedFile {
    fn open(process: u32, begin: u64, mapping: &Mapping) -> Self {
        let path = mapping.path.trim_end_matches(" (deleted)");
        let name = Path::new(path).file_name().map_or_else(|| path.to_owned(), |it| it.to_string_lossy().into_owned());
        let contents = if path.starts_with('[') {
            vdso().filter(|_| path == "[vdso]").map_or(Contents::Unknown, Contents::Bytes)
        } else {
            // The first also finds a file that was deleted or replaced; but meanwhile another one may be mapped there.
            let open = directory(process).join(format!("map_files/{begin:x}-{:x}", mapping.end));
            let same = |file: &File| file.metadata().is_ok_and(|found| found.ino() == mapping.inode);
            let mut paths = [open, rooted(process, path), PathBuf::from(path)].into_iter();
            let file = paths.find_map(|path| bounded_file::open(&path).ok().filter(same));
            file.map_or(Contents::Unknown, Contents::Of)
        };
        Self { name, path: path.to_owned(), contents, unwinding: None, program: OnceCell::new() }
    }
}

impl Contents {
    fn fits(&self) -> Result<(), String> {
        match self {
            Self::Of(file) if file.metadata().is_ok_and(|found| found.len() > LONGEST_FILE) => {
                Err(format!("longer than {} MiB", LONGEST_FILE >> 20))
            }
            _ => Ok(()),
        }
    }

    /// All bytes; none if the file is not known.
    fn bytes(&self) -> Result<Vec<u8>, String> {
        match self {
            Self::Of(file) => at_most(At { file, offset: 0 }, LONGEST_FILE).map_err(|error| error.to_string()),
            Self::Bytes(bytes) => Ok(bytes.clone()),
            Self::Unknown => Ok(Vec::new()),
        }
    }
}

/// Reads a file that others may read too.
struct At<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for At<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// The kernel maps the same to all processes, also to this one.
fn vdso() -> Option<Vec<u8>> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let (begin, mapping) = maps.lines().filter_map(mapping).find(|(_, mapping)| mapping.path == "[vdso]")?;
    let mut bytes = vec![0; usize::try_from(mapping.end - begin).ok()?];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, begin).ok()?;
    Some(bytes)
}

#[cfg(target_arch = "x86_64")]
fn native(registers: UserRegisters) -> framehop::UnwindRegsNative {
    framehop::UnwindRegsNative::new(registers.instruction, registers.stack, registers.frame)
}

#[cfg(target_arch = "aarch64")]
fn native(registers: UserRegisters) -> framehop::UnwindRegsNative {
    framehop::UnwindRegsNative::new(registers.link, registers.stack, registers.frame)
}
