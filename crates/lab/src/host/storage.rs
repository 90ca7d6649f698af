//! The file systems and devices that hold the files of a measurement, from the kernel's mount table and from sysfs.
//!
//! A file that does not exist yet is where its nearest existing folder is. What the kernel does not say stays unknown.

use crate::starters::look_through;
use crate::sysroot::Sysroot;
use model::experiment::{Experiment, Work};
use model::plan::parse::{self, Settings};
use model::plan::{JobPlan, Medium, Phase, Plan};
use model::storage::Storage;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Folders of sysfs above a partition or a stacked device to look through for a model.
const MOST_STACKED: usize = 8;

/// What holds the files of a plan.
pub fn of_plan(plan: &Plan) -> Vec<Storage> {
    of_names(plan.phases.iter().flat_map(names_of_phase))
}

/// What holds the files that a command names.
pub fn of_command(words: &[String]) -> Vec<Storage> {
    of_names(names_of_command(words).into_iter())
}

/// What holds the files of all cases of an experiment.
pub fn of_experiment(experiment: &Experiment) -> Vec<Storage> {
    let names = |work: &Work| match work {
        Work::Jobs(plan) => plan.phases.iter().flat_map(names_of_phase).collect(),
        Work::Command(words) => names_of_command(words),
    };
    of_names(experiment.cases.iter().flat_map(|case| names(&case.work)))
}

/// What holds these files, each once.
pub fn of_names(names: impl Iterator<Item = String>) -> Vec<Storage> {
    let mut distinct: Vec<String> = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    read(Path::new("/"), &distinct)
}

fn names_of_phase(phase: &Phase) -> Vec<String> {
    phase.jobs.iter().flat_map(names_of_job).collect()
}

/// The files of a job, or the folder in which it makes its own.
fn names_of_job(job: &JobPlan) -> Vec<String> {
    if job.engine.medium() != Medium::Files {
        return Vec::new();
    }
    let folder = job.target.directory.as_deref();
    if job.target.files.is_empty() {
        return vec![folder.unwrap_or(".").to_owned()];
    }
    let at = |file: &String| match folder {
        Some(folder) => format!("{folder}/{file}"),
        None => file.clone(),
    };
    job.target.files.iter().map(at).collect()
}

/// Words of a command that are paths, or options whose value is one: `if=/dev/sda`, `--filename=data`. The program itself is not
/// what it reads and writes, and a job file of fio stands for the files of its jobs.
fn names_of_command(words: &[String]) -> Vec<String> {
    let before = look_through(words);
    let is_fio = words.get(before).is_some_and(|program| Path::new(program).file_name() == Some("fio".as_ref()));
    let named = |word: &String| {
        let value = word.split_once('=').map(|(_, value)| value);
        let is_file = |text: &&str| {
            let kind = std::fs::metadata(text).map(|metadata| metadata.file_type());
            !text.is_empty() && kind.is_ok_and(|kind| kind.is_file() || kind.is_dir() || kind.is_block_device())
        };
        [Some(word.as_str()), value].into_iter().flatten().find(is_file).map(str::to_owned)
    };
    let mut found = Vec::new();
    for (word, name) in words.iter().skip(before + 1).filter_map(|word| Some((word, named(word)?))) {
        match is_fio && *word == name && Path::new(word).is_file() {
            true => found.extend(names_of_job_file(word)),
            false => found.push(name),
        }
    }
    found
}

/// The files of the jobs of a job file; none if it cannot be read as fio reads it.
fn names_of_job_file(name: &str) -> Vec<String> {
    /// Longer files are none that a person wrote.
    const MOST: u64 = 1 << 20;
    let mut text = String::new();
    let read = File::open(name).and_then(|file| file.take(MOST).read_to_string(&mut text));
    let settings = Settings {
        environment: &|name| std::env::var(name).ok(),
        ignore_unknown: true,
        device_writes: true,
        ..Settings::default()
    };
    let plan = read.ok().and_then(|_| parse::job_file(name, &text, &settings).ok());
    plan.iter().flat_map(|plan| plan.phases.iter().flat_map(names_of_phase)).collect()
}

/// What holds `files`, in the order in which they are named. The kernel's files are below `root`.
fn read(root: &Path, files: &[String]) -> Vec<Storage> {
    let kernel = Sysroot::at(root);
    let mounts: Vec<Mount> = kernel.text("proc/self/mountinfo").unwrap_or_default().lines().filter_map(mount).collect();
    let mut found: Vec<Storage> = Vec::new();
    for file in files {
        let storage = below(&kernel, &mounts, Path::new(file));
        match found.iter_mut().find(|other| Storage { files: Vec::new(), ..(*other).clone() } == storage) {
            Some(other) => other.files.push(file.clone()),
            None => found.push(Storage { files: vec![file.clone()], ..storage }),
        }
    }
    found
}

/// A line of the mount table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    /// `MAJOR:MINOR`.
    device: String,
    point: PathBuf,
    options: String,
    file_system: String,
    source: String,
}

/// `27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard` (proc_pid_mountinfo(5)).
fn mount(line: &str) -> Option<Mount> {
    let (own, of_file_system) = line.split_once(" - ")?;
    let mut own = own.split(' ').skip(2);
    let (device, _root, point, options) = (own.next()?, own.next()?, own.next()?, own.next()?);
    let mut rest = of_file_system.split(' ');
    let (file_system, source, inner) = (rest.next()?, rest.next()?, rest.next().unwrap_or_default());
    // Those of the mount come first; those of the file system repeat some of them.
    let mut all: Vec<&str> = options.split(',').collect();
    for option in inner.split(',').filter(|option| !option.is_empty()) {
        if !all.contains(&option) && !["rw", "ro"].contains(&option) {
            all.push(option);
        }
    }
    Some(Mount {
        device: device.to_owned(),
        point: PathBuf::from(unescaped(point)),
        options: all.join(","),
        file_system: file_system.to_owned(),
        source: unescaped(source),
    })
}

/// The kernel writes a blank, a tab, a newline and a backslash as a backslash and three octal digits.
fn unescaped(text: &str) -> String {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    escapes.iter().fold(text.to_owned(), |text, (escape, letter)| text.replace(escape, letter))
}

/// What holds one file.
fn below(kernel: &Sysroot, mounts: &[Mount], file: &Path) -> Storage {
    let metadata = std::fs::metadata(file).ok();
    if let Some(device) = metadata.filter(|metadata| metadata.file_type().is_block_device()) {
        return of_device(kernel, &number(device.rdev()), Storage::default());
    }
    let Some(path) = resolved(file) else { return Storage::default() };
    // A later mount covers an earlier one at the same place.
    let at = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    let Some(mount) = at.max_by_key(|mount| mount.point.components().count()) else { return Storage::default() };
    let storage = Storage {
        file_system: Some(mount.file_system.clone()),
        mount_point: Some(mount.point.display().to_string()),
        mount_options: Some(mount.options.clone()),
        source: Some(mount.source.clone()),
        ..Storage::default()
    };
    // A file system on several devices has a number of its own, so the device is what was mounted.
    let anonymous = mount.device.starts_with("0:");
    let mounted = anonymous.then(|| std::fs::metadata(&mount.source).ok()).flatten();
    let mounted = mounted.filter(|metadata| metadata.file_type().is_block_device());
    match mounted {
        Some(device) => of_device(kernel, &number(device.rdev()), storage),
        None if anonymous => storage,
        None => of_device(kernel, &mount.device, storage),
    }
}

/// The path without links, of the file or of its nearest folder that exists.
fn resolved(file: &Path) -> Option<PathBuf> {
    let whole = std::path::absolute(file).ok()?;
    whole.ancestors().find_map(|path| path.canonicalize().ok())
}

/// `MAJOR:MINOR` of a device number.
fn number(device: u64) -> String {
    format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device))
}

/// Adds what sysfs says of a block device.
fn of_device(kernel: &Sysroot, number: &str, storage: Storage) -> Storage {
    let folder = format!("sys/dev/block/{number}");
    let name = |folder: &str| {
        let text = kernel.text(&format!("{folder}/uevent"))?;
        text.lines().find_map(|line| line.strip_prefix("DEVNAME=").map(str::to_owned))
    };
    // A partition has its model and its queue in the folder of its disk, which is above it.
    let whole = if kernel.has(&format!("{folder}/partition")) { format!("{folder}/..") } else { folder.clone() };
    Storage {
        device: name(&folder),
        model: model_of(kernel, &whole, MOST_STACKED),
        scheduler: kernel.text(&format!("{whole}/queue/scheduler")).and_then(|text| chosen(&text)),
        ..storage
    }
}

/// The model of a disk, or of the disks below a stacked device (dm, md).
fn model_of(kernel: &Sysroot, folder: &str, depth: usize) -> Option<String> {
    let words = |file: &str| kernel.text(&format!("{folder}/{file}")).filter(|text| !text.is_empty());
    let backing = || words("loop/backing_file").map(|file| format!("loop device on {file}"));
    let own = words("device/model").or_else(|| words("dm/name").map(|name| format!("device mapper {name}")));
    let own = own.or_else(backing);
    let below = kernel.names(&format!("{folder}/slaves"));
    let below = below.iter().filter(|_| depth > 0).filter_map(|name| {
        let folder = format!("{folder}/slaves/{name}");
        let whole = if kernel.has(&format!("{folder}/partition")) { format!("{folder}/..") } else { folder };
        model_of(kernel, &whole, depth - 1)
    });
    let mut below: Vec<String> = below.collect();
    below.dedup();
    match (own, below.is_empty()) {
        (own, true) => own,
        (Some(own), false) => Some(format!("{own} on {}", below.join(" and "))),
        (None, false) => Some(below.join(" and ")),
    }
}

/// "mq-deadline" of "none [mq-deadline] kyber".
fn chosen(schedulers: &str) -> Option<String> {
    let marked = schedulers.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    let alone = || Some(schedulers.trim()).filter(|word| !word.is_empty() && !word.contains(' '));
    marked.or_else(alone).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::fixture::Fixture;

    const MOUNTS: &str = "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard\n\
                          40 27 259:1 / /srv/fast\\040disk rw,noatime - xfs /dev/nvme0n1p1 rw,attr2\n\
                          41 27 0:50 / /srv/nfs rw - nfs4 server:/export rw,vers=4.2,proto=tcp\n\
                          42 27 0:51 / /srv/nfs rw - tmpfs tmpfs rw,size=1g";

    fn machine() -> Fixture {
        let fixture = Fixture::new();
        fixture.write("proc/self/mountinfo", MOUNTS);
        fixture.write("sys/dev/block/254:0/uevent", "MAJOR=254\nDEVNAME=vda\n");
        fixture.write("sys/dev/block/254:0/queue/scheduler", "none [mq-deadline] kyber\n");
        fixture
    }

    #[test]
    fn the_root_has_its_file_system_and_device() {
        let files = ["/no-such-folder/a", "/no-such-folder/b"].map(str::to_owned);
        let found = read(machine().path(), &files);
        let [root] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(root.files, files);
        assert_eq!(root.file_system.as_deref(), Some("ext4"));
        assert_eq!(root.mount_options.as_deref(), Some("rw,relatime,discard"));
        assert_eq!((root.device.as_deref(), root.scheduler.as_deref()), (Some("vda"), Some("mq-deadline")));
        assert_eq!(root.model, None, "a virtual disk has none");
    }

    #[test]
    fn a_partition_has_the_model_of_its_disk() {
        let fixture = machine();
        fixture.write("sys/dev/block/259:1/partition", "1\n");
        fixture.write("sys/dev/block/259:1/uevent", "DEVNAME=nvme0n1p1\n");
        fixture.write("sys/dev/block/device/model", "Samsung SSD 990 PRO 2TB   \n");
        let mounts: Vec<Mount> = MOUNTS.lines().filter_map(mount).collect();
        assert_eq!(mounts[1].point, Path::new("/srv/fast disk"));
        let found = of_device(&Sysroot::at(fixture.path()), &mounts[1].device, Storage::default());
        assert_eq!(found.device.as_deref(), Some("nvme0n1p1"));
        assert_eq!(found.model.as_deref(), Some("Samsung SSD 990 PRO 2TB"));
    }

    #[test]
    fn a_stacked_device_names_what_is_below() {
        let fixture = machine();
        fixture.write("sys/dev/block/253:0/dm/name", "data\n");
        fixture.write("sys/dev/block/253:0/slaves/sda/device/model", "HGST\n");
        let found = of_device(&Sysroot::at(fixture.path()), "253:0", Storage::default());
        assert_eq!(found.model.as_deref(), Some("device mapper data on HGST"));
    }

    #[test]
    fn a_later_mount_covers_an_earlier_one() {
        let mounts: Vec<Mount> = MOUNTS.lines().filter_map(mount).collect();
        let at = mounts.iter().filter(|mount| Path::new("/srv/nfs/a").starts_with(&mount.point));
        let last = at.max_by_key(|mount| mount.point.components().count()).unwrap();
        assert_eq!(last.file_system, "tmpfs");
        assert_eq!(mount("nonsense"), None);
    }

    #[test]
    fn without_the_kernel_s_files_nothing_is_claimed() {
        let found = read(Fixture::new().path(), &["/x".to_owned()]);
        assert_eq!(found, [Storage { files: vec!["/x".to_owned()], ..Storage::default() }]);
    }

    #[test]
    fn files_of_jobs_and_of_commands_are_found() {
        let mut job = JobPlan { engine: model::plan::EngineKind::Psync, ..JobPlan::default() };
        assert_eq!(names_of_job(&job), ["."]);
        job.target.directory = Some("/srv".to_owned());
        job.target.files = vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(names_of_job(&job), ["/srv/a", "/srv/b"]);
        job.engine = model::plan::EngineKind::Null;
        assert!(names_of_job(&job).is_empty());
        let words = ["/bin/dd", "if=/proc/self/status", "of=/no/such/file", "/tmp", "bs=4k"].map(str::to_owned);
        assert_eq!(names_of_command(&words), ["/proc/self/status", "/tmp"]);
        // The files of a job file's jobs, whatever options only fio knows.
        let folder = tempfile::tempdir().unwrap();
        let of_job_file = |text: &str| {
            let path = folder.path().join("job.fio").display().to_string();
            std::fs::write(&path, text).unwrap();
            names_of_command(&["nice", "/usr/bin/fio", &path, "--filename=/dev"].map(str::to_owned))
        };
        let text = "[global]\nsize=1m\nsqthread_poll=1\nno_such_option=1\n[a]\nfilename=/srv/a\n[b]\nstonewall\ndirectory=/mnt\n";
        assert_eq!(of_job_file(text), ["/srv/a", "/mnt", "/dev"]);
        assert_eq!(of_job_file("no job"), ["/dev"]);
    }

    #[test]
    fn this_machine_says_where_its_temporary_folder_is() {
        let found = of_names(["/tmp/x".to_owned(), "/tmp/x".to_owned()].into_iter());
        assert_eq!(found.len(), 1);
        assert!(found[0].file_system.is_some(), "{found:?}");
    }
}
