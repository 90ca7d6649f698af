//! The options of zones: of any file (`zonemode=strided`), and of zoned devices and files that stand for them (`zonemode=zbd`).

use crate::plan::options::{Default, JobOption, PLAIN, Role, Value::*};
use crate::plan::value::{LARGEST_FILE, Wrong, typed};
use crate::unit::Bytes;

/// More open zones are not counted, as in fio 3.33.
const MOST_OPEN: u32 = 4096;

pub(super) static OPTIONS: &[JobOption] = &[
    JobOption {
        name: "zonemode",
        help: "Divide the file into zones. strided moves zonesize bytes in the first zonerange bytes of one, then goes zoneskip \
               bytes behind these. zbd writes each zone in order: of a zoned device, or of a file that stands for one",
        default: Default::Value("none"),
        role: Role::Work,
        example: "strided",
        bad_example: "zoned",
        get: |job| {
            let zones = job.requests.zones;
            let words = [(zones.strided, "strided"), (zones.device.on, "zbd")];
            Some(words.into_iter().find(|(on, _)| *on).map_or("none", |(_, word)| word).to_owned())
        },
        set: Choice(
            || "none, strided, zbd".to_owned(),
            |draft, text| {
                let zones = &mut draft.job.requests.zones;
                (zones.strided, zones.device.on) = match text {
                    "none" => (false, false),
                    "strided" => (true, false),
                    "zbd" => (false, true),
                    _ => return Err(Wrong::because(text, "is not supported")),
                };
                Ok(())
            },
        ),
        ..PLAIN
    },
    JobOption {
        name: "zonesize",
        help: "Bytes to move in a zone before the next one, with zonemode=strided; bytes of a zone, with zonemode=zbd",
        default: Default::Words("that of the zoned device; others require it"),
        role: Role::Work,
        example: "256m",
        bad_example: "-1",
        get: |job| given(job.requests.zones.size),
        set: Number("bytes", 0..=LARGEST_FILE, |draft, bytes| draft.job.requests.zones.size = Bytes(bytes)),
        ..PLAIN
    },
    JobOption {
        name: "zonecapacity",
        help: "Bytes of a zone that are written, from its beginning, with zonemode=zbd. A zoned device has its own",
        default: Default::Words("as zonesize"),
        role: Role::Work,
        example: "192m",
        bad_example: "-1",
        get: |job| given(job.requests.zones.device.capacity),
        set: Number("bytes", 0..=LARGEST_FILE, |draft, bytes| {
            draft.job.requests.zones.device.capacity = Bytes(bytes);
        }),
        ..PLAIN
    },
    JobOption {
        name: "zonerange",
        help: "Use this much of each zone, with zonemode=strided",
        default: Default::Words("as zonesize"),
        role: Role::Work,
        example: "1g",
        bad_example: "-1",
        get: |job| given(job.requests.zones.range),
        set: Number("bytes", 0..=LARGEST_FILE, |draft, bytes| draft.job.requests.zones.range = Bytes(bytes)),
        ..PLAIN
    },
    JobOption {
        name: "zoneskip",
        help: "Leave this much between two zones; with zonemode=zbd, whole zones, and only in sequential order",
        default: Default::Value("0"),
        role: Role::Work,
        example: "2g",
        bad_example: "8y",
        get: |job| Some(typed::bytes(job.requests.zones.skip.0)),
        set: Number("bytes", 0..=LARGEST_FILE, |draft, bytes| draft.job.requests.zones.skip = Bytes(bytes)),
        ..PLAIN
    },
    JobOption {
        name: "read_beyond_wp",
        help: "Read also what was not written since the zone was reset, with zonemode=zbd",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.requests.zones.device.reads_beyond)),
        set: Boolean(|draft, on| draft.job.requests.zones.device.reads_beyond = on),
        ..PLAIN
    },
    JobOption {
        name: "max_open_zones",
        help: "Zones that all jobs of a file may have begun to write and not filled, with zonemode=zbd; those of a device that are open beyond it are reset. 0 means those that the device allows",
        default: Default::Value("0"),
        role: Role::Work,
        example: "32",
        bad_example: "4097",
        get: |job| Some(job.requests.zones.device.max_open.to_string()),
        set: Count("zones", 0..=MOST_OPEN, |draft, zones| draft.job.requests.zones.device.max_open = zones),
        ..PLAIN
    },
    JobOption {
        name: "job_max_open_zones",
        help: "The same for each copy of the job. 0 means all of max_open_zones",
        default: Default::Value("0"),
        role: Role::Work,
        example: "4",
        bad_example: "4097",
        get: |job| Some(job.requests.zones.device.job_max_open.to_string()),
        set: Count("zones", 0..=MOST_OPEN, |draft, zones| draft.job.requests.zones.device.job_max_open = zones),
        ..PLAIN
    },
    JobOption {
        name: "ignore_zone_limits",
        help: "Do not ask the zoned device how many zones may be open",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.requests.zones.device.ignores_limits)),
        set: Boolean(|draft, on| draft.job.requests.zones.device.ignores_limits = on),
        ..PLAIN
    },
    JobOption {
        name: "zone_reset_threshold",
        help: "Reset zones while this part of the job's region is written: 0 to 1. zone_reset_frequency says how often",
        default: Default::Value("0"),
        role: Role::Work,
        example: "0.7",
        bad_example: "1.5",
        get: |job| Some(job.requests.zones.device.reset_threshold.to_string()),
        set: Text("a number from 0 to 1", |draft, text| {
            draft.job.requests.zones.device.reset_threshold = part(text)?;
            Ok(())
        }),
        ..PLAIN
    },
    JobOption {
        name: "zone_reset_frequency",
        help: "Of the writes above zone_reset_threshold, reset the zone before this part: 0 to 1. 0 means none",
        default: Default::Value("0"),
        role: Role::Work,
        example: "0.125",
        bad_example: "-1",
        get: |job| Some(job.requests.zones.device.reset_frequency.to_string()),
        set: Text("a number from 0 to 1", |draft, text| {
            draft.job.requests.zones.device.reset_frequency = part(text)?;
            Ok(())
        }),
        ..PLAIN
    },
];

/// Bytes, unless they are 0, which means another option's value.
fn given(size: Bytes) -> Option<String> {
    (size.0 > 0).then(|| typed::bytes(size.0))
}

fn part(text: &str) -> Result<f64, Wrong> {
    let part: f64 = text.parse().map_err(|_| Wrong::because(text, "is not a number"))?;
    if (0.0..=1.0).contains(&part) { Ok(part) } else { Err(Wrong::because(text, "is out of range")) }
}
