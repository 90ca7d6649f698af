//! Block devices: read as they are, written to only with permission and if they are not in use.

use super::iotoll::{Ended, Folder, warns, whole};
use super::machine::{LoopDevice, Mount, needs, skip, tool};
use std::fs;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

/// A loop device of 8 MiB of data, or a skip of this test.
fn attached() -> Option<(Folder, LoopDevice)> {
    let folder = Folder::with_file("image", 8 << 20);
    let device = LoopDevice::attach(&folder.path("image"), &["--partscan"])?;
    Some((folder, device))
}

fn run(folder: &Folder, device: &str, options: &str) -> Ended {
    let options =
        format!("run --background 200ms --no-save --quiet --format json --name=d --filename={device} {options}");
    folder.iotoll(&options).run()
}

#[test]
fn a_device_is_read_and_with_permission_written() {
    let Some((folder, device)) = attached() else { return };
    let before = folder.read("image");
    let read = run(&folder, &device.path, "--rw=randread --bs=4k --number_ios=100").done();
    assert_eq!(whole(&read.json()["jobs"][0]["ios"]), 100);
    for rw in ["write", "randrw", "trim"] {
        let refused = run(&folder, &device.path, &format!("--rw={rw} --bs=4k --number_ios=100"));
        refused.refused(2, &["'d'", &device.path, "is a block device", "--allow-device-write"]);
    }
    assert_eq!(folder.read("image"), before, "a refused write wrote");
    for engine in ["psync", "libaio", "io_uring"] {
        let options = format!("--rw=write --bs=4k --direct=1 --number_ios=16 --ioengine={engine} --allow-device-write");
        let written = run(&folder, &device.path, &options).done();
        assert_eq!(whole(&written.json()["jobs"][0]["write"]["bytes"]), 65_536, "{engine}");
    }
    let after = folder.read("image");
    assert!(after[..65_536].chunks(4096).all(|block| block.iter().any(|byte| *byte != 0x5a)), "nothing was written");
    assert_eq!(after[65_536..], before[65_536..], "more was written than was asked for");
    let trimmed = run(&folder, &device.path, "--rw=trim --bs=64k --number_ios=4 --allow-device-write").done();
    assert_eq!(whole(&trimmed.json()["jobs"][0]["trim"]["bytes"]), 4 * 65_536);
    let beyond = run(&folder, &device.path, "--rw=read --size=1g");
    beyond.refused(2, &["'d'", "8388608 bytes", "use a smaller size="]);
}

#[test]
fn more_than_all_of_a_device_is_all_of_it_as_in_fio_and_of_a_file_an_error() {
    let Some((folder, device)) = attached() else { return };
    let options = "--rw=write --bs=64k --size=200%";
    let written = run(&folder, &device.path, &format!("{options} --allow-device-write")).done();
    assert_eq!(whole(&written.json()["jobs"][0]["write"]["ios"]), 128);
    run(&folder, "new", options).refused(2, &["size=200%", "size=100%", "loops="]);
    needs!("fio");
    let words = format!("--name=a --filename={} {options} --output-format=json", device.path);
    let fio = tool("fio", &words.split(' ').collect::<Vec<_>>()).unwrap();
    let fio: serde_json::Value = serde_json::from_str(&fio).unwrap();
    assert_eq!(whole(&fio["jobs"][0]["write"]["total_ios"]), 128);
}

#[test]
fn a_device_that_is_mounted_or_has_partitions_is_never_written_to() {
    let Some((folder, device)) = attached() else { return };
    tool("mkfs.ext4", &["-q", &device.path]).unwrap();
    let Some(mounted) = Mount::new(folder.path("mounted"), &["-t", "ext4", &device.path]) else { return };
    for options in ["--rw=write", "--rw=randrw --direct=1", "--rw=trim"] {
        let ended = run(&folder, &device.path, &format!("{options} --number_ios=1 --allow-device-write"));
        ended.refused(2, &[&device.path, "is mounted on", "mounted"]);
    }
    run(&folder, &device.path, "--rw=read --number_ios=10").done();
    drop(mounted);
    // One partition of type 0x83, from sector 2048 on, 8192 sectors, and the boot signature.
    let mut sector = [0u8; 512];
    sector[446..462].copy_from_slice(&[0, 0, 0, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0x20, 0, 0]);
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    fs::OpenOptions::new().write(true).open(folder.path("image")).unwrap().write_all_at(&sector, 0).unwrap();
    let Some(device) = LoopDevice::attach(&folder.path("image"), &["--partscan"]) else { return };
    // Tell the kernel to look, if it does not by itself.
    let _ = tool("partx", &["--add", &device.path]);
    if !fs::exists(format!("/sys/block/{0}/{0}p1", device.name())).unwrap() {
        return skip("this kernel has no partitions on loop devices");
    }
    let ended = run(&folder, &device.path, "--rw=write --number_ios=1 --allow-device-write");
    ended.refused(2, &[&device.path, "has 1 partition"]);
    run(&folder, &device.path, "--rw=read --number_ios=10").done();
}

#[test]
fn a_device_that_reports_errors_ends_the_run() {
    // The image is truncated while the device keeps its size: reads beyond its end fail like those of a broken disk.
    let Some((folder, device)) = attached() else { return };
    fs::OpenOptions::new().write(true).open(folder.path("image")).unwrap().set_len(4096).unwrap();
    let ended = run(&folder, &device.path, "--rw=read --bs=64k --direct=1");
    if ended.json()["outcome"] == "completed" {
        return skip("this kernel reads zeros beyond the end of a loop device's file");
    }
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(warns(&ended.json(), "job_failed", &["'d'", "read of 65536 bytes at offset"]), "{ended:?}");
}

#[test]
fn a_device_in_use_is_never_written_to() {
    let Some((folder, device)) = attached() else { return };
    let exclusive = rustix::fs::OFlags::EXCL.bits().cast_signed();
    let held = fs::OpenOptions::new().read(true).custom_flags(exclusive).open(&device.path).unwrap();
    let write = "--rw=write --bs=4k --number_ios=1 --allow-device-write";
    run(&folder, &device.path, write).refused(2, &[&device.path, "is in use"]);
    drop(held);
    // Two jobs of one run share its claim.
    run(&folder, &device.path, &format!("{write} --numjobs=2")).done();
}

/// A block is trimmed although a write of it is in the page cache, also by a job of the device's name.
#[test]
fn blocks_that_were_just_written_are_trimmed() {
    let Some((folder, device)) = attached() else { return };
    folder.write("job.fio", format!("[{}]\nrw=trimwrite\nbs=32k\nsize=128k\nloops=2\n", device.path));
    let finding = folder.measured("run --allow-device-write job.fio");
    let job = &finding["jobs"][0];
    assert_eq!((whole(&job["trim"]["ios"]), whole(&job["write"]["ios"]), whole(&job["errors"])), (8, 8, 0), "{job}");
}
