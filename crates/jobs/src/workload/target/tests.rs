//! Files are found, made, refused and removed as a user expects.

use super::*;
use crate::worker_pool::JobCopy;
use lab::interruption::Interruption;
use model::plan::{Access, EngineKind, Fallocate, Order, Size, Target as Place, WriteSync};
use model::unit::Bytes;
use std::fs::OpenOptions;
use std::io::Write;

fn job(path: &Path, access: Access, size: Option<u64>) -> JobPlan {
    let target = Place {
        files: vec![path.to_str().unwrap().to_owned()],
        size: size.map(|size| Size::Bytes(Bytes(size))),
        ..Place::default()
    };
    JobPlan { name: "a".into(), engine: EngineKind::Psync, access, order: Order::Random, target, ..JobPlan::default() }
}

fn prepare_quietly(plan: &JobPlan, created: &Created) -> Result<Vec<Target>> {
    prepare(plan, 0, created, &mut |_, _, _| true)
}

/// Its files cannot be had, for a reason with these words.
#[track_caller]
fn refused(plan: &JobPlan, words: &[&str]) {
    let why = prepare_quietly(plan, &Created::default()).unwrap_err().to_string();
    assert!(words.iter().all(|word| why.contains(word)), "{why}");
}

/// A folder, and the path of a file in it.
fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    (directory, path)
}

#[test]
fn a_file_to_be_read_is_written_first_and_removed_unless_kept() {
    let (_directory, path) = place();
    let created = Created::default();
    let targets = prepare_quietly(&job(&path, Access::Read, Some(100_000)), &created).unwrap();
    assert_eq!(targets[0].span, Span { begin: 0, length: 100_000, beyond: 0 });
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes.len(), 100_000);
    assert!(bytes.chunks(4096).all(|chunk| chunk.iter().any(|byte| *byte != 0)), "no hole");
    assert!(!has_holes(&targets[0]));
    drop(created);
    assert!(!path.exists());

    let created = Created::default();
    prepare_quietly(&job(&path, Access::Read, Some(4096)), &created).unwrap();
    created.keep();
    drop(created);
    assert!(path.exists());
}

#[test]
fn unlink_removes_new_files_and_keeps_existing_ones() {
    let directory = tempfile::tempdir().unwrap();
    let [made, there, kept] = ["made", "there", "kept"].map(|name| directory.path().join(name));
    fs::write(&there, vec![1; 8192]).unwrap();
    let created = Created::default();
    for path in [&made, &there] {
        let mut plan = job(path, Access::Write, Some(4096));
        plan.files.unlink = true;
        prepare_quietly(&plan, &created).unwrap();
    }
    prepare_quietly(&job(&kept, Access::Write, Some(4096)), &created).unwrap();
    created.keep();
    drop(created);
    assert!(!made.exists() && there.exists() && kept.exists());
}

#[test]
fn an_existing_file_is_never_removed_nor_shortened() {
    let (_directory, path) = place();
    fs::write(&path, vec![1; 8192]).unwrap();
    let created = Created::default();
    let targets = prepare_quietly(&job(&path, Access::Write, Some(4096)), &created).unwrap();
    assert_eq!(targets[0].span.length, 4096);
    drop(created);
    assert_eq!(fs::metadata(&path).unwrap().len(), 8192);
}

/// Files of another process: one that replaced a file that was made or lengthened, and bytes appended to one.
#[test]
fn only_own_changes_are_undone() {
    let directory = tempfile::tempdir().unwrap();
    let [made, longer, replaced, appended, given_away] =
        ["made", "longer", "replaced", "appended", "given-away"].map(|name| directory.path().join(name));
    for path in [&longer, &replaced, &appended] {
        fs::write(path, [1; 1000]).unwrap();
    }
    let created = Created::default();
    for path in [&made, &longer, &replaced, &appended, &given_away] {
        prepare_quietly(&job(path, Access::Write, Some(4096)), &created).unwrap();
    }
    // Made while the old file exists, so that it gets another inode number.
    let other = directory.path().join("other");
    for path in [&replaced, &given_away] {
        fs::write(&other, [2; 2000]).unwrap();
        fs::rename(&other, path).unwrap();
    }
    OpenOptions::new().append(true).open(&appended).unwrap().write_all(&[3; 500]).unwrap();
    created.undo();
    let length = |path: &PathBuf| fs::metadata(path).ok().map(|metadata| metadata.len());
    assert_eq!([&made, &longer, &replaced, &given_away].map(length), [None, Some(1000), Some(2000), Some(2000)]);
    assert_eq!(length(&appended), Some(4596));
}

#[test]
fn missing_folders_are_made_and_removed_unless_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a/b/x");
    for kept in [false, true] {
        let created = Created::default();
        prepare_quietly(&job(&path, Access::Write, Some(4096)), &created).unwrap();
        assert!(path.is_file());
        if kept {
            created.keep();
        }
        drop(created);
        assert_eq!([path.is_file(), directory.path().join("a").exists()], [kept; 2]);
    }
}

#[test]
fn sizes_are_divided_and_rounded_as_in_fio() {
    let (_directory, path) = place();
    fs::write(&path, vec![1; 100 << 10]).unwrap();
    let span = |offset, size| {
        let mut plan = job(&path, Access::Read, None);
        (plan.target.offset, plan.target.size) = (offset, size);
        prepare_quietly(&plan, &Created::default()).map(|targets| targets[0].span).map_err(|error| error.to_string())
    };
    let bytes = |bytes| Size::Bytes(Bytes(bytes));
    // 33 % are 33,792 bytes, 8¼ blocks; 33 % of the size are 8 blocks.
    let all = Span { begin: 36_864, length: 65_536, beyond: 0 };
    assert_eq!(span(Size::Percent(33), None), Ok(all));
    assert_eq!(span(bytes(0), Some(Size::Percent(33))), Ok(Span { begin: 0, length: 32_768, beyond: 69_632 }));
    assert_eq!(span(bytes(0), Some(Size::Percent(100))), Ok(Span { begin: 0, length: 102_400, beyond: 0 }));
    assert!(span(bytes(200_000), None).is_err_and(|error| error.contains("is behind its end")));
    let share = |number, size| Share { copy: 0, number, count: 3 }.of(size, 1);
    assert_eq!([0, 1, 2].map(|number| share(number, 100)), [34, 33, 33]);
}

#[test]
fn impossible_targets_are_refused_in_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    let device = |name: &str, size| job(Path::new(name), Access::Read, size);
    refused(&job(&missing, Access::Read, None), &["does not exist; give size="]);
    refused(&job(directory.path(), Access::Read, Some(1)), &["is a directory"]);
    refused(&device("/dev/random", Some(1)), &["neither a file nor a block device"]);
    refused(&device("/dev/null", Some(1)), &["nothing to read; use filename=/dev/zero"]);
    refused(&device("/dev/zero", None), &["give size="]);
    let mut nowhere = job(Path::new("x"), Access::Write, Some(1));
    nowhere.target.directory = Some(directory.path().join("nowhere").to_str().unwrap().to_owned());
    refused(&nowhere, &["is not a folder that exists; make it first"]);
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    refused(&job(&file.join("x"), Access::Write, Some(1)), &["file/x"]);
    refused(&job(&missing, Access::Write, Some(u64::MAX)), &["exceeds the largest possible file"]);
}

#[test]
fn devices_without_storage_need_no_layout() {
    let created = Created::default();
    for (path, access) in [("/dev/zero", Access::Read), ("/dev/zero", Access::ReadWrite), ("/dev/null", Access::Write)]
    {
        let mut plan = job(Path::new(path), access, Some(1 << 30));
        plan.files.invalidate = Some(true);
        let targets = prepare_quietly(&plan, &created).unwrap();
        assert_eq!(targets[0].span, Span { begin: 0, length: 1 << 30, beyond: 0 }, "{path}");
        crate::cached_files::set_cache(
            &JobCopy { plan: &plan, number: 0, targets, replay: None },
            &Interruption::default(),
        )
        .unwrap();
    }
}

#[test]
fn an_interrupted_layout_leaves_nothing() {
    let (_directory, path) = place();
    let created = Created::default();
    let plan = job(&path, Access::Read, Some(4 << 20));
    let outcome = prepare(&plan, 0, &created, &mut |_, done, _| done < 1 << 20);
    assert!(outcome.unwrap_err().to_string().contains("interrupted"));
    drop(created);
    assert!(!path.exists());
}

#[test]
fn misaligned_direct_io_names_the_multiple() {
    let directory = tempfile::tempdir_in(".").unwrap();
    let path = directory.path().join("f");
    let mut plan = job(&path, Access::Read, Some(1 << 20));
    plan.direct = true;
    plan.block_sizes.read = Bytes(1000);
    refused(&plan, &["bs=1000", "multiple"]);
    plan.block_sizes.read = Bytes(4096);
    let created = Created::default();
    let targets = prepare_quietly(&plan, &created).unwrap();
    open(&plan, &targets[0]).unwrap();
}

/// A job file that is harmless with fio must not write elsewhere with iotoll.
#[test]
fn the_directory_is_prepended_to_every_name() {
    for (name, whole) in [("f", "d/f"), ("/abs/f", "d//abs/f")] {
        let mut plan = job(Path::new(name), Access::Write, None);
        plan.target.directory = Some("d".to_owned());
        assert_eq!(names::paths(&plan, 0), [PathBuf::from(whole)]);
        plan.target.directory = None;
        assert_eq!(names::paths(&plan, 0), [PathBuf::from(name)]);
    }
}

/// `[/dev/nvme0n1]` is the device, not a file beside it.
#[test]
fn a_job_with_the_name_of_a_device_uses_the_device() {
    let mut plan = job(Path::new("x"), Access::Read, None);
    plan.target.files.clear();
    plan.name = "/dev/zero".to_owned();
    assert_eq!(names::paths(&plan, 1), [PathBuf::from("/dev/zero")]);
    plan.files.count = Some(2);
    assert_eq!(names::paths(&plan, 1)[1], PathBuf::from("/dev/zero.1.1"), "as in fio");
    plan.files.count = None;
    let folder = tempfile::tempdir().unwrap();
    plan.name = folder.path().join("plain").display().to_string();
    std::fs::write(&plan.name, "").unwrap();
    assert_eq!(names::paths(&plan, 0), [PathBuf::from(format!("{}.0.0", plan.name))]);
}

#[test]
fn files_that_the_kernel_makes_up_are_refused() {
    for path in ["/proc/self/mem", "/proc/self/status", "/proc/nowhere", "/sys/kernel/mm/transparent_hugepage/enabled"]
    {
        refused(&job(Path::new(path), Access::Read, Some(1 << 20)), &[path, "the kernel makes up"]);
    }
}

#[test]
fn more_than_the_file_system_holds_is_refused_and_leaves_nothing() {
    let (_directory, path) = place();
    for fallocate in [Fallocate::Native, Fallocate::None] {
        let mut plan = job(&path, Access::Read, Some(1 << 60));
        plan.files.fallocate = fallocate;
        refused(&plan, &["free; use a smaller size="]);
        assert!(!path.exists());
    }
}

#[test]
fn an_offset_that_leaves_less_than_a_block_is_named() {
    let (_directory, path) = place();
    fs::write(&path, vec![1; 65536]).unwrap();
    for (offset, left) in [(65536, "0 of them"), (65536 - 512, "512 of them")] {
        let mut plan = job(&path, Access::Read, None);
        plan.target.offset = Size::Bytes(Bytes(offset));
        refused(&plan, &[&format!("offset={offset}"), left]);
    }
}

#[test]
fn a_name_does_not_put_its_file_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let named = |name: &str| {
        let mut plan = job(Path::new("x"), Access::Write, Some(4096));
        (plan.name, plan.target.files) = (name.to_owned(), Vec::new());
        plan.target.directory = Some(directory.path().to_str().unwrap().to_owned());
        plan
    };
    ["a/../../x", "../x"].iter().for_each(|name| refused(&named(name), &[name, "add filename="]));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    prepare_quietly(&named(".."), &Created::default()).unwrap();
    // With filename=, the user says where.
    let path = directory.path().join("a/../b");
    prepare_quietly(&job(&path, Access::Write, Some(4096)), &Created::default()).unwrap();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "all of it is undone");
}

/// A job of writes to its own files in a folder.
fn own_files(folder: &Path, size: Option<u64>) -> JobPlan {
    let mut plan = job(Path::new("x"), Access::Write, size);
    plan.target.files.clear();
    plan.target.directory = Some(folder.to_str().unwrap().to_owned());
    plan.order = Order::Sequential;
    plan
}

fn lengths(folder: &Path) -> Vec<(String, u64)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let of = |entry: fs::DirEntry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len());
    let mut lengths: Vec<_> = entries.map(of).collect();
    lengths.sort();
    lengths
}

#[test]
fn a_job_has_as_many_files_as_it_asks_for_with_names_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let mut plan = own_files(directory.path(), Some(20 << 10));
    plan.files.count = Some(3);
    let created = Created::default();
    prepare(&plan, 2, &created, &mut |_, _, _| true).unwrap();
    assert_eq!(lengths(directory.path()), ["a.2.0", "a.2.1", "a.2.2"].map(|name| (name.to_owned(), 6826)));
    plan.files.name_format = Some("w-$jobname$clientuid.$jobnum/$filenum".to_owned());
    assert_eq!(names::paths(&plan, 1)[2], directory.path().join("w-a.1/2"));
    plan.files.name_format = Some("../$filenum".to_owned());
    refused(&plan, &["filename_format leads out"]);
}

#[test]
fn what_lies_before_the_offset_of_a_file_of_its_own_size_is_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let mut plan = own_files(directory.path(), None);
    plan.files.each = Some(Bytes(16 << 10));
    plan.target.offset = Size::Bytes(Bytes(4096));
    let targets = prepare_quietly(&plan, &Created::default()).unwrap();
    assert_eq!(targets[0].span, Span { begin: 4096, length: 12 << 10, beyond: 0 });
    plan.target.offset = Size::Bytes(Bytes(1 << 20));
    refused(&plan, &["filesize= leaves nothing"]);
}

#[test]
fn what_is_overwritten_has_data_and_a_file_that_may_not_be_made_is_named() {
    let (_directory, path) = place();
    let mut plan = job(&path, Access::Write, Some(64 << 10));
    plan.files.making.overwrite = true;
    prepare_quietly(&plan, &Created::default()).unwrap();
    let created = Created::default();
    prepare_quietly(&plan, &created).unwrap();
    let bytes = fs::read(&path).unwrap();
    assert!(bytes.len() == 64 << 10 && bytes.chunks(4096).all(|chunk| chunk.iter().any(|byte| *byte != 0)));
    drop(created);
    plan.files.making.forbidden = true;
    refused(&plan, &["has 0 of 65536 bytes, and allow_file_create=0"]);
    assert!(!path.exists());
    fs::write(&path, [1; 4096]).unwrap();
    assert!(prepare_quietly(&plan, &Created::default()).is_err() && fs::read(&path).unwrap() == [1; 4096]);
    fs::write(&path, [1; 64 << 10]).unwrap();
    prepare_quietly(&plan, &Created::default()).unwrap();
}

/// A file that the job makes is removed if the run fails, and one that was there is not.
#[test]
fn files_that_the_job_makes_are_not_laid_out_and_undone() {
    let directory = tempfile::tempdir().unwrap();
    let [missing, there] = ["missing", "there"].map(|name| directory.path().join(name));
    fs::write(&there, "").unwrap();
    let created = Created::default();
    for path in [&missing, &there] {
        let mut plan = job(path, Access::Write, Some(4096));
        plan.files.making.on_open = true;
        let targets = prepare_quietly(&plan, &created).unwrap();
        assert_eq!(fs::metadata(path).unwrap().len(), 0);
        open(&plan, &targets[0]).unwrap().write_all(b"data").unwrap();
        plan.access = Access::Read;
        refused(&plan, &["too short to be read"]);
    }
    drop(created);
    assert!(!missing.exists() && there.exists());
}

#[test]
fn the_flags_of_sync_are_those_of_open() {
    let (_directory, path) = place();
    for (sync, bits) in [(WriteSync::None, 0), (WriteSync::DataSync, 0o10_000), (WriteSync::Sync, 0o4_010_000)] {
        let mut plan = job(&path, Access::Write, Some(4096));
        plan.files.opening.sync = sync;
        let created = Created::default();
        let targets = prepare_quietly(&plan, &created).unwrap();
        let flags = rustix::fs::fcntl_getfl(open(&plan, &targets[0]).unwrap()).unwrap();
        assert_eq!(flags.bits() & 0o4_010_000, bits);
    }
}
