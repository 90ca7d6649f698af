//! Jobs with `zonemode=zbd` on a file that stands for a zoned device do what fio does with them.

use super::iotoll::{Folder, whole};
use super::like_fio::Like::{Fio, FioByNumber, FioInAnyOrder, InZones, Verifying};
use super::like_fio::{Case, compare};
use super::machine::{has, skip};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};

const CASES: &[Case] = &[
    ("[a]\nrw=write\nzonemode=zbd\nzonesize=16k\nfilename=x", &[("x", 64)], Fio),
    ("[a]\nrw=write\nloops=2\nzonemode=zbd\nzonesize=16k\nfilename=x", &[("x", 64)], Fio),
    ("[a]\nrw=write\nzonecapacity=12k\nsize=64k\nzonemode=zbd\nzonesize=16k\nfilename=x", &[("x", 64)], Fio),
    ("[a]\nrw=write\nzoneskip=16k\nzonemode=zbd\nzonesize=16k\nfilename=x", &[("x", 128)], Fio),
    ("[a]\nrw=write\noffset=4k\nsize=40k\nzonemode=zbd\nzonesize=16k\nfilename=x", &[("x", 64)], Fio),
    ("[a]\nrw=write\noffset=1z\nsize=2z\nzonemode=zbd\nzonesize=16k\nfilename=x", &[("x", 64)], Fio),
    ("[a]\nrw=write\nzonemode=zbd\nzonesize=16k\nfilename=x", &[("x", 60)], Fio),
    ("[a]\nrw=randwrite\nzonemode=zbd\nzonesize=16k\nfilename=x", &[("x", 64)], FioInAnyOrder),
    ("[a]\nrw=randwrite\nbs=8k\nzonecapacity=8k\nzonemode=zbd\nzonesize=16k\nfilename=x", &[("x", 64)], InZones(16)),
    ("[a]\nrw=randwrite\nmax_open_zones=1\nloops=2\nzonemode=zbd\nzonesize=16k\nfilename=x", &[("x", 64)], InZones(16)),
    (
        "[a]\nrw=randwrite\nmax_open_zones=3\nloops=3\nzonemode=zbd\nzonesize=16k\nfilename=x",
        &[("x", 128)],
        InZones(16),
    ),
    (
        "[a]\nrw=randwrite\nmax_open_zones=4\njob_max_open_zones=1\nloops=2\nzonemode=zbd\nzonesize=16k\nfilename=x",
        &[("x", 128)],
        InZones(16),
    ),
    (
        "[a]\nrw=randwrite\nzone_reset_threshold=0.3\nzone_reset_frequency=0.5\nio_size=128k\nzonemode=zbd\nzonesize=16k\nfilename=x",
        &[("x", 64)],
        InZones(16),
    ),
    (
        "[a]\nrw=randwrite\nnumjobs=2\nmax_open_zones=2\nzonemode=zbd\nzonesize=16k\nfilename=x",
        &[("x", 64)],
        FioByNumber,
    ),
    (
        "[global]\nzonemode=zbd\nzonesize=16k\nfilename=x\n[a]\nrw=write\nio_size=24k\n[b]\nstonewall\nrw=randread\n[c]\nstonewall\nrw=randread\nbs=8k",
        &[("x", 64)],
        InZones(16),
    ),
    (
        "[global]\nzonemode=zbd\nzonesize=16k\nfilename=x\n[a]\nrw=randwrite\nio_size=32k\n[b]\nstonewall\nrw=randread",
        &[("x", 64)],
        InZones(16),
    ),
    (
        "[global]\nzonemode=zbd\nzonesize=16k\nfilename=x\n[a]\nrw=write\nio_size=32k\n[b]\nstonewall\nrw=read",
        &[("x", 64)],
        Fio,
    ),
    (
        "[global]\nzonemode=zbd\nzonesize=16k\nfilename=x\n[a]\nrw=write\n[b]\nstonewall\nrw=read\nzoneskip=16k",
        &[("x", 128)],
        Fio,
    ),
    ("[a]\nrw=read\nread_beyond_wp=1\nzonemode=zbd\nzonesize=16k\nfilename=x", &[("x", 64)], Fio),
    ("[a]\nrw=read\nbs=8k\nsize=44k\nread_beyond_wp=1\nzonemode=zbd\nzonesize=16k\nfilename=x", &[("x", 64)], Fio),
    ("[a]\nrw=randread\nread_beyond_wp=1\nzonemode=zbd\nzonesize=16k\nfilename=x", &[("x", 64)], FioInAnyOrder),
    (
        "[a]\nrw=randread\nbs=8k\nsize=44k\nread_beyond_wp=1\nzonemode=zbd\nzonesize=16k\nfilename=x",
        &[("x", 64)],
        FioInAnyOrder,
    ),
    ("[a]\nrw=randread\nzonemode=zbd\nzonesize=16k\nfilename=x", &[("x", 64)], Fio),
    ("[a]\nrw=randrw\nzonemode=zbd\nzonesize=16k\nfilename=x", &[("x", 64)], InZones(16)),
    ("[a]\nrw=write\nverify=crc32c\nzonemode=zbd\nzonesize=16k\nfilename=x", &[("x", 64)], Verifying),
    ("[a]\nrw=randwrite\nverify=md5\nzonemode=zbd\nzonesize=16k\nfilename=x", &[("x", 64)], Verifying),
];

#[test]
fn zones_are_written_and_read_as_by_fio() {
    if !has("fio") || !has("strace") {
        return skip("zones_are_written_and_read_as_by_fio", "no fio or no strace here");
    }
    compare(CASES);
}

/// The zones that a program says it has reset.
fn resets(folder: &Folder, job: &str, by_fio: bool) -> u64 {
    folder.write("x", vec![0x5a; 128 << 10]);
    folder.write("job.fio", format!("[a]\nzonemode=zbd\nzonesize=16k\nfilename=x\n{job}\n"));
    if !by_fio {
        let ended = folder.iotoll("run --no-save --background 200ms --format json job.fio").run();
        return whole(&ended.json()["jobs"][0]["zone_resets"]);
    }
    let ended = Command::new("fio").arg("job.fio").current_dir(folder.path(".")).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&ended.stdout);
    let before = text.split(" zone resets").next().unwrap_or_default();
    before.rsplit(' ').next().unwrap_or_default().parse().unwrap()
}

#[test]
fn as_many_zones_are_reset_as_by_fio() {
    if !has("fio") {
        return skip("as_many_zones_are_reset_as_by_fio", "no fio here");
    }
    let folder = Folder::new();
    for (job, expected) in [
        ("rw=write", 0),
        ("rw=write\nloops=2", 8),
        ("rw=write\nzoneskip=16k", 4),
        ("rw=randwrite\nbs=8k\nzonecapacity=8k", 8),
        ("rw=write\nverify=md5\ndo_verify=0\nloops=3", 16),
        ("rw=randwrite\nzone_reset_threshold=0\nzone_reset_frequency=1", 24),
    ] {
        let found = [true, false].map(|by_fio| resets(&folder, job, by_fio));
        assert_eq!(found[0], found[1], "{job}");
        assert_eq!(found[0], expected, "{job}");
    }
}

#[test]
fn a_file_that_is_made_has_all_of_its_zones() {
    let folder = Folder::new();
    let options = "--name=a --rw=randwrite --zonemode=zbd --zonesize=16k --size=64k --filename=x --fallocate=none";
    assert_eq!(whole(&folder.measured(&format!("run {options}"))["jobs"][0]["write"]["ios"]), 16);
    // No memory is taken for zones without number.
    let ended = folder.iotoll("run --no-save --name=a --rw=write --zonemode=zbd --zonesize=512 --bs=512 --size=8g --filename=y --fallocate=none");
    ended.run().refused(2, &["has 16777216 zones of 512 bytes; use a larger zonesize="]);
}

#[test]
fn a_job_that_finds_no_data_says_so() {
    let folder = Folder::with_file("x", 64 << 10);
    let options = "--name=a --rw=randread --zonemode=zbd --zonesize=16k --filename=x";
    let ended = folder.iotoll(&format!("run --no-save --background 200ms --format json {options}")).run();
    let warnings = ended.json()["warnings"].to_string();
    assert!(ended.code == Some(0) && warnings.contains("none of its zones has data"), "{ended:?}");
}

/// The first call that does not keep to zones of this size: a write elsewhere than behind the one before it in its zone, or at the
/// beginning of the zone, or a read of what no write of any thread has reached.
pub(super) fn out_of_order(threads: &[Vec<String>], size: u64) -> Option<String> {
    let parts = |call: &str| {
        let (letter, rest) = call.split_at(1);
        let numbers: Vec<u64> = rest.rsplit(' ').take(2).filter_map(|number| number.parse().ok()).collect();
        let [length, offset] = numbers.as_slice() else { panic!("{call}") };
        (letter.to_owned(), *offset, offset + length)
    };
    let (mut reached, mut wrong) = (BTreeMap::<u64, u64>::new(), None);
    for thread in threads {
        let mut pointers = BTreeMap::<u64, u64>::new();
        for call in thread {
            let (letter, offset, end) = parts(call);
            let zone = offset / size;
            let pointer = pointers.get(&zone).copied().unwrap_or(zone * size);
            if letter == "W" && (offset == pointer || offset == zone * size) && end <= (zone + 1) * size {
                pointers.insert(zone, end);
                let most = reached.entry(zone).or_default();
                *most = end.max(*most);
            } else if letter == "W" {
                wrong = wrong.or(Some(call.clone()));
            }
        }
    }
    let unwritten = |call: &&String| {
        let (letter, offset, end) = parts(call);
        letter == "R" && end > reached.get(&(offset / size)).copied().unwrap_or(0)
    };
    wrong.or_else(|| threads.iter().flatten().find(unwritten).cloned())
}
