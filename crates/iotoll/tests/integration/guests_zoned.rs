//! `zonemode=zbd` on a zoned device: null_blk of a guest, with zones of 16 MiB that have to be written in order.

mod long {
    use super::super::guests::{guest, ready};
    use super::super::iotoll::{Folder, whole};

    const ZONED: &str = "run --kernel debian:6.1 --replicates 1 --quiet --cache-limit 200m --no-save --format json --stack null_blk-zoned \
                         --size=64m --bs=4k --direct=1";

    /// The device would answer a write elsewhere than at a write pointer with EIO.
    #[test]
    fn a_zoned_device_takes_all_writes_and_its_limits_count() {
        let folder = Folder::new();
        if !ready("a_zoned_device_takes_all_writes_and_its_limits_count") {
            return;
        }
        let run = |options: &str| guest(&folder, &format!("{ZONED} {options}"), &[]).run();
        for (options, ios) in [
            ("--zonemode=zbd --rw=randwrite --number_ios=300", 300),
            (
                "--zonemode=zbd --rw=randrw --ioengine=libaio --iodepth=8 --numjobs=2 --max_open_zones=2 --number_ios=300",
                600,
            ),
            // More than the zones hold, so that they are reset.
            ("--zonemode=zbd --rw=write --bs=256k --ioengine=io_uring --iodepth=4 --number_ios=600", 600),
            ("--zonemode=zbd --rw=randwrite --zone_reset_threshold=0 --zone_reset_frequency=0.1 --number_ios=300", 300),
        ] {
            let ended = run(options);
            assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{options}: {ended:?}");
            let point = &ended.json()["points"][0];
            assert_eq!(whole(&point["ios"]), ios, "{options}");
            assert!(whole(&point["path_proof"]["block_writes"]) > 0, "{options}: {point}");
        }
        for (options, says) in [
            ("--rw=randwrite --number_ios=300", "Input/output error"),
            (
                "--zonemode=zbd --rw=write --max_open_zones=9",
                "max_open_zones=9 is more than the 8 that the device allows",
            ),
            ("--zonemode=zbd --rw=write --zonesize=1m", "has zones of 16777216 bytes, not of 1048576"),
            ("--zonemode=zbd --rw=write --direct=0", "only with direct=1"),
            ("--zonemode=zbd --rw=randtrim", "use bs=16777216"),
            ("--zonemode=zbd --rw=write --bs=3m", "not a multiple of bs=3145728"),
        ] {
            let ended = run(options);
            assert!(ended.code != Some(0) && ended.stderr.contains(says), "{options}: {ended:?}");
        }
    }
}
