//! Safety checks for devices, and the alignment that O_DIRECT needs.

use super::Target;
use lab::error::{Error, Result};
use model::plan::{Access, JobPlan, Order, Sizes};
use std::fs::{self, File, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Numbers of `/dev/null` and `/dev/zero`: the kernel's Documentation/admin-guide/devices.txt.
const NULL: (u32, u32) = (1, 3);
const ZERO: (u32, u32) = (1, 5);

fn number(metadata: &Metadata) -> Option<(u32, u32)> {
    let number = metadata.rdev();
    metadata.file_type().is_char_device().then(|| (rustix::fs::major(number), rustix::fs::minor(number)))
}

/// Whether this is `/dev/zero` or `/dev/null`, under any name: no storage, but the whole system call path.
pub(super) fn is_endless(metadata: &Metadata) -> bool {
    number(metadata).is_some_and(|number| number == NULL || number == ZERO)
}

/// Refuses to read `/dev/null`, where every read is at end of file.
pub(super) fn refuse_nothing_to_read(path: &Path, plan: &JobPlan) -> Result<()> {
    let metadata = fs::metadata(path).map_err(|error| Error::file(path, "reading the device's metadata", error))?;
    if number(&metadata) != Some(NULL) {
        return Ok(());
    }
    Err(Error::refused_file(plan, path, "has nothing to read; use filename=/dev/zero"))
}

/// Size of a block device.
pub(super) fn size(path: &Path) -> Result<u64> {
    let device = File::open(path).map_err(|error| Error::file(path, "opening the device", error))?;
    sys::device::size(&device).map_err(|error| Error::file(path, "reading the device's size", error))
}

/// Refuses to write to a device that is in use, or without the user's permission.
pub(super) fn refuse_unsafe_write(path: &Path, plan: &JobPlan) -> Result<()> {
    let refused = |why: &str| Err(Error::refused_file(plan, path, why));
    if !plan.target.allow_device_write {
        return refused("is a block device, and writing destroys its data; add --allow-device-write to allow it");
    }
    let metadata = fs::metadata(path).map_err(|error| Error::file(path, "reading the device's metadata", error))?;
    let number = metadata.rdev();
    let number = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
    match in_use(Path::new("/"), &number) {
        None => Ok(()),
        Some(use_) => refused(&format!("{use_}; iotoll never writes to a device in use")),
    }
}

/// How the device with this number is in use, if it is.
fn in_use(root: &Path, number: &str) -> Option<String> {
    let sys = root.join("sys/dev/block").join(number);
    let mut numbers = vec![number.to_owned()];
    let mut partitions = 0;
    for entry in fs::read_dir(&sys).into_iter().flatten().flatten() {
        if entry.path().join("partition").exists() {
            partitions += 1;
            numbers.extend(fs::read_to_string(entry.path().join("dev")).map(|text| text.trim().to_owned()));
        }
    }
    let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).unwrap_or_default();
    for line in mounts.lines() {
        let mut fields = line.split(' ').skip(2);
        if fields.next().is_some_and(|device| numbers.iter().any(|number| number == device)) {
            return Some(format!("is mounted on {}", fields.nth(1).unwrap_or("?")));
        }
    }
    if partitions > 0 {
        return Some(format!("has {partitions} partition(s)"));
    }
    let holders = fs::read_dir(sys.join("holders")).into_iter().flatten().flatten();
    if let Some(holder) = holders.map(|entry| entry.file_name()).next() {
        return Some(format!("is part of {}", holder.display()));
    }
    let name = fs::read_to_string(sys.join("uevent")).unwrap_or_default();
    let name = name.lines().find_map(|line| line.strip_prefix("DEVNAME="))?;
    let swaps = fs::read_to_string(root.join("proc/swaps")).unwrap_or_default();
    swaps.lines().any(|line| line.starts_with(&format!("/dev/{name} "))).then(|| "is used for swap".to_owned())
}

/// Refuses requests that O_DIRECT would answer with EINVAL, and says why.
pub(super) fn refuse_misalignment(plan: &JobPlan, target: &Target, file: &File) -> Result<()> {
    let Some(align) = direct_alignment(file) else { return Ok(()) };
    let names = match plan.access {
        Access::ReadWrite => ["bs of reads", "bs of writes"],
        Access::TrimWrite => ["bs of writes", "bs of trims"],
        Access::Read | Access::Write | Access::Trim => ["bs"; 2],
    };
    let sizes = plan.used_sizes().zip(names.into_iter().cycle()).flat_map(|(sizes, name)| match sizes {
        Sizes::One(size) => vec![(name, size)],
        Sizes::Range { least, most, .. } => vec![("bsrange", least), ("bsrange", most)],
        Sizes::Shares(shares) => shares.into_iter().map(|(size, _)| ("bssplit", size)).collect(),
    });
    let aligned = plan.requests.align.all().map(|align| ("blockalign", align.0));
    let places = aligned.into_iter().filter(|_| plan.order == Order::Random);
    for (option, bytes) in sizes.chain([("offset", target.span.begin)]).chain(places) {
        if bytes % align != 0 {
            let (path, mend) = (target.path.display(), format_args!("use a multiple of {align} or direct=0"));
            let why = format_args!("{path} requires multiples of {align} bytes; {mend}");
            return Err(Error::refused(plan, format_args!("{option}={bytes} with direct=1: {why}")));
        }
    }
    Ok(())
}

/// O_DIRECT offsets and lengths must be multiples of this. statx reports it since Linux 6.1; on older kernels the first
/// I/O shows it.
fn direct_alignment(file: &File) -> Option<u64> {
    sys::device::direct_alignment(file).ok().flatten()
}

/// The smallest block size, in bytes, of `direct=1` for a new file in a folder; `None` if there is none, or it is
/// unknown.
pub fn least_direct_block(folder: &Path) -> Option<u64> {
    let file = tempfile::NamedTempFile::new_in(folder).ok()?;
    rustix::fs::open(file.path(), rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECT, rustix::fs::Mode::empty())
        .ok()?;
    direct_alignment(file.as_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(mounts: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/self/mountinfo", mounts);
        write("proc/swaps", "Filename Type Size\n/dev/sdc partition 1 0 -2\n");
        write("sys/dev/block/8:0/sda1/partition", "1");
        write("sys/dev/block/8:0/sda1/dev", "8:1\n");
        write("sys/dev/block/8:16/holders/dm-0/x", "");
        write("sys/dev/block/8:32/uevent", "DEVNAME=sdc\n");
        write("sys/dev/block/8:48/uevent", "DEVNAME=sdd\n");
        root
    }

    #[test]
    fn every_use_of_a_device_is_detected() {
        let root = machine("22 1 8:1 / /home rw - ext4 /dev/sda1 rw\n");
        let use_of = |number| in_use(root.path(), number);
        assert_eq!(use_of("8:0").as_deref(), Some("is mounted on /home"));
        assert_eq!(use_of("8:16").as_deref(), Some("is part of dm-0"));
        assert_eq!(use_of("8:32").as_deref(), Some("is used for swap"));
        assert_eq!(use_of("8:48"), None);
        assert_eq!(in_use(machine("").path(), "8:0").as_deref(), Some("has 1 partition(s)"));
    }
}
