//! fio's logs: the same files, with the rows that fio writes, or true ones where fio's are not.

use super::iotoll::{Folder, whole};
use super::machine::needs;
use std::collections::BTreeMap;

const MEASURED: &str = "run --meters thread --background 200ms --quiet";

/// Two jobs, the second after the first, with all logs of I/Os. Both programs do the same I/Os in the same order.
const JOB: &str = "[global]\nsize=64k\nbs=4k\nwrite_bw_log=foo\nwrite_iops_log=\n\
    [b]\nnumjobs=2\nrw=write\nwrite_lat_log=out/l\n\
    [c]\nstonewall\nioengine=libaio\niodepth=1\nbs=16k\nrw=read\nper_job_logs=0\nwrite_lat_log\n";

/// The rows of each log below a folder, without what differs from run to run: times and values, and rows of submissions, whose order is another
/// one.
fn logs(folder: &Folder) -> BTreeMap<String, Vec<String>> {
    let logs = folder.listing().into_keys().filter(|name| name.ends_with(".log"));
    let rows = |name: &String| {
        let text = folder.text(name);
        let row = |line: &str| line.splitn(3, ", ").nth(2).unwrap().to_owned();
        // fio has rows of the submission where there was none.
        if name == "out/l_slat.1.log" || name == "out/l_slat.2.log" {
            Vec::new()
        } else {
            text.lines().map(row).collect()
        }
    };
    logs.map(|name| (name.clone(), rows(&name))).collect()
}

/// The rows of a log as numbers.
fn rows(folder: &Folder, name: &str) -> Vec<Vec<u64>> {
    let text = folder.text(name);
    text.lines().map(|line| line.split(", ").map(|field| field.parse().unwrap()).collect()).collect()
}

#[test]
fn each_io_has_the_row_of_fio() {
    needs!("fio");
    let of = |run: &dyn Fn(&Folder)| {
        let folder = Folder::new();
        std::fs::create_dir(folder.path("out")).unwrap();
        folder.write("job.fio", JOB);
        run(&folder);
        (logs(&folder), folder)
    };
    let (theirs, _) = of(&|folder| drop(folder.command("fio job.fio").run().done()));
    let (ours, folder) = of(&|folder| drop(folder.iotoll(&format!("{MEASURED} --no-save job.fio")).run().done()));
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    assert_eq!(ours, theirs);
    assert_eq!(ours["out/l_clat.2.log"][1], "1, 4096, 0");
    let [lat, slat, clat] = ["lat", "slat", "clat"].map(|kind| rows(&folder, &format!("c_{kind}.log")));
    for ((lat, slat), clat) in lat.iter().zip(&slat).zip(&clat) {
        assert!(lat[1].abs_diff(slat[1] + clat[1]) <= 1, "{lat:?} {slat:?} {clat:?}");
    }
}

/// Windows end when they are to end, and hold all I/Os, where fio's begin with an I/O and leave the last one out.
#[test]
fn windows_hold_all_ios() {
    let folder = Folder::new();
    let finding = folder.measured(
        "run --name=a --rw=randrw --size=1m --rate_iops=1000 --runtime=330ms --time_based --thinktime=110ms --thinktime_blocks=50 \
         --write_bw_log=w --write_iops_log=w --write_lat_log=w --log_avg_msec=100",
    );
    let job = &finding["jobs"][0];
    let ios = ["read", "write"].map(|direction| whole(&job[direction]["ios"]));
    for (name, factor) in [("w_iops.1.log", 1), ("w_bw.1.log", 4)] {
        let rows = rows(&folder, name);
        let mut sums = [0.0; 2];
        let mut ends = [0; 2];
        for row in &rows {
            let direction = usize::try_from(row[2]).unwrap();
            sums[direction] += (row[0] - ends[direction]) as f64 / 1e3 * row[1] as f64;
            ends[direction] = row[0];
        }
        assert!(rows.iter().take(6).all(|row| row[0] % 100 == 0) && ends[0] >= 330, "{rows:?}");
        for (sum, ios) in sums.iter().zip(ios) {
            let expected = (ios * factor) as f64;
            assert!((sum / expected - 1.0).abs() < 0.05, "{name}: {sum} {expected} {rows:?}");
        }
    }
}
