//! What a guest boots from, in the cache: the kernel, the first file system with this program, the stack's modules and
//! programs; and the name of the guest that is saved after its boot.

use super::cache::{Cache, Part, touch};
use super::cpio::{Content, Initramfs};
use super::kernel::Kernel;
use super::machine::{CPU, MEMORY_MIB};
use super::modules;
use super::programs::{self, Placed, Program};
use super::protocol::{MODULE_LIST, REPLICATE_PARAMETER, STACK_PARAMETER};
use super::stack::Stack;
use super::tool;
use lab::error::{Error, Result};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where modules are in a guest.
const MODULES: &str = "/lib/modules";

/// A stack of a kernel, ready to boot.
#[derive(Clone, Debug)]
pub(super) struct Image {
    pub kernel: PathBuf,
    /// The first file system.
    pub initramfs: PathBuf,
    /// Hash of all that determines it.
    hash: String,
    stack: &'static Stack,
}

/// Makes the image of a stack, unless the cache has it.
pub(super) fn make(
    kernel: &Kernel,
    stack: &'static Stack,
    emulator: &str,
    cache: &Cache,
    observe: &mut dyn FnMut(String),
) -> Result<Image> {
    let programs: Vec<Program> = stack.programs().collect();
    let placed = programs::gather(&programs, &stack.library_packages, cache, observe)?;
    let hash = tool::hash(recipe(kernel, stack, emulator, &placed)?.as_bytes());
    let name = |ending: &str| format!("{}.{ending}", hash.get(..16).unwrap_or(&hash));
    let initramfs = cache.entry(Part::GUESTS, &name("cpio"));
    let written = fs::read_to_string(cache.entry(Part::GUESTS, &name("hash")));
    if written.is_ok_and(|written| fs::read(&initramfs).is_ok_and(|bytes| tool::hash(&bytes) == written)) {
        touch(&initramfs);
    } else {
        observe(format!("making the guest of {} with {}", stack.name, kernel.release));
        let bytes = compose(kernel, stack, &placed)?.bytes()?;
        cache.write(Part::GUESTS, &name("cpio"), &bytes)?;
        cache.write(Part::GUESTS, &name("hash"), tool::hash(&bytes).as_bytes())?;
    }
    Ok(Image { kernel: kernel.image.clone(), initramfs, hash, stack })
}

/// Everything that the guest is made from, as text: the same text, the same guest.
fn recipe(kernel: &Kernel, stack: &Stack, emulator: &str, placed: &Placed) -> Result<String> {
    let mut text = format!("{emulator} {CPU} {MEMORY_MIB} {stack:?}\n");
    let mut add = |path: &Path| -> Result<()> {
        let state = fs::metadata(path).map_err(|error| Error::file(path, "reading its size", error))?;
        // The time of the last change also tells a file apart whose time of modification was copied.
        let (modified, changed) = ((state.mtime(), state.mtime_nsec()), (state.ctime(), state.ctime_nsec()));
        let _ = writeln!(text, "{} {} {modified:?} {changed:?}", path.display(), state.len());
        Ok(())
    };
    add(&kernel.image)?;
    // A build changes its modules and not the folder that they are below.
    let mut files = kernel.modules.iter().flat_map(|folder| modules::index(folder).into_values());
    files.try_for_each(|file| add(&file))?;
    kernel.replaced.iter().try_for_each(|replaced| add(&replaced.file))?;
    placed.values().try_for_each(|file| add(file))?;
    Ok(text)
}

fn compose(kernel: &Kernel, stack: &Stack, placed: &Placed) -> Result<Initramfs> {
    let mut files = Initramfs::default();
    for folder in ["/proc", "/sys", "/dev", "/tmp", "/run", "/etc", "/var/lib", "/root"] {
        files.directory(folder);
    }
    files.symlink("/var/run", "/run");
    files.character_device("/dev/console", 5, 1);
    files.character_device("/dev/null", 1, 3);
    for (path, text) in ETC {
        files.file(path, Content::Bytes(text.as_bytes().to_vec()), 0o644);
    }
    for (path, file) in placed {
        files.file(path, Content::Host(file.clone()), 0o755);
    }
    let mut list = String::new();
    let names: Vec<&str> = stack.modules().map(|(name, _)| name).collect();
    let mut found = Vec::new();
    for name in &stack.optional_modules {
        found.extend(modules::closure(kernel, &[name]).unwrap_or_default());
    }
    found.extend(modules::closure(kernel, &names)?);
    for replaced in &kernel.replaced {
        if !found.iter().any(|module| module.name == replaced.name) {
            return Err(Error::Refused(format!(
                "module '{replaced}': stack '{}' does not load '{}', so nothing would differ; give a stack that does",
                stack.name, replaced.name
            )));
        }
    }
    let mut seen = BTreeSet::new();
    for module in found.into_iter().filter(|module| seen.insert(module.name.clone())) {
        let path = format!("{MODULES}/{}.ko", module.name);
        let parameters = stack.modules().find(|(name, _)| name.replace('-', "_") == module.name);
        let _ = writeln!(list, "{path} {}", parameters.map_or("", |(_, parameters)| parameters));
        files.file(&path, Content::Bytes(module.bytes), 0o644);
    }
    files.file(MODULE_LIST, Content::Bytes(list.into_bytes()), 0o644);
    Ok(files)
}

/// What the programs of stacks read.
const ETC: [(&str, &str); 8] = [
    (
        "/etc/passwd",
        "root:x:0:0:root:/root:/bin/false\n_rpc:x:0:0::/run/rpcbind:/bin/false\nnobody:x:65534:65534::/:/bin/false\n",
    ),
    ("/etc/group", "root:x:0:\nnogroup:x:65534:\n"),
    ("/etc/hosts", "127.0.0.1 localhost\n"),
    ("/etc/hosts.allow", "ALL: ALL\n"),
    (
        "/etc/nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\nrpc: files\n",
    ),
    (
        "/etc/netconfig",
        "udp tpi_clts v inet udp - -\ntcp tpi_cots_ord v inet tcp - -\nlocal tpi_cots_ord - loopback - - -\n",
    ),
    ("/etc/protocols", "tcp 6 TCP\nudp 17 UDP\n"),
    ("/etc/services", "sunrpc 111/tcp portmapper\nsunrpc 111/udp portmapper\nnfs 2049/tcp\nmountd 20048/tcp\n"),
];

/// A guest that is booted once: an image with parameters, perturbed.
#[derive(Clone, Debug)]
pub(super) struct Guest {
    pub image: Image,
    /// The user's kernel parameters.
    pub parameters: String,
    pub replicate: u32,
    /// For people: "the guest of nfs-rdma on 6.1.0-50-amd64, replicate 2".
    pub what: String,
}

impl Guest {
    /// Its kernel parameters beside those of every guest.
    pub(super) fn all_parameters(&self) -> String {
        let Stack { kernel_parameters, name, .. } = self.image.stack;
        // Of one length, because it moves what follows it in memory.
        format!(
            "{kernel_parameters} {} {STACK_PARAMETER}={name} {REPLICATE_PARAMETER}={:03}",
            self.parameters, self.replicate
        )
    }

    /// Its name in the cache: what it is made of, its parameters, its replicate.
    pub(super) fn name(&self) -> String {
        let text = format!("{} {}", self.image.hash, self.all_parameters());
        format!("{:016x}", xxhash_rust::xxh3::xxh3_64(text.as_bytes()))
    }
}
