//! The options of the priority of single requests.

use crate::plan::job::{EngineKind, PriorityShare};
use crate::plan::options::{Default, JobOption, PLAIN, Role, Value::*};
use crate::plan::value::{PerDirection, each_direction, requests, typed};

/// The engines that pass a priority with a request.
const ENGINES: &[EngineKind] = &[EngineKind::Libaio, EngineKind::IoUring];

pub(super) static OPTIONS: &[JobOption] = &[
    JobOption {
        name: "cmdprio_percentage",
        help: "Give this percentage of the reads and writes the priority of cmdprio_class and cmdprio. The kernel heeds it with direct=1. A value for trims has no effect",
        default: Default::Value("0"),
        engines: ENGINES,
        role: Role::Work,
        example: "20",
        bad_example: "101",
        get: |job| Some(both(job.priorities.percent)),
        set: PerDirection("percent", 0..=100, |draft, given| take(&mut draft.job.priorities.percent, given)),
        ..PLAIN
    },
    JobOption {
        name: "cmdprio_class",
        help: "The class of that priority: 1 real time, 2 best effort, 3 idle",
        default: Default::Words("1"),
        engines: ENGINES,
        role: Role::Work,
        example: "2",
        bad_example: "4",
        get: |job| (job.priorities.class != [0, 0]).then(|| both(job.priorities.class)),
        set: PerDirection("as a class", 1..=3, |draft, given| take(&mut draft.job.priorities.class, given)),
        ..PLAIN
    },
    JobOption {
        name: "cmdprio",
        help: "The level of that priority, 0 (highest) to 7",
        default: Default::Value("0"),
        engines: ENGINES,
        role: Role::Work,
        example: "4",
        bad_example: "8",
        get: |job| Some(both(job.priorities.level)),
        set: PerDirection("as a level", 0..=7, |draft, given| take(&mut draft.job.priorities.level, given)),
        ..PLAIN
    },
    JobOption {
        name: "cmdprio_bssplit",
        help: "Give a percentage of the requests of each size a priority: CLASS and LEVEL (HINT is for the device), or those of cmdprio_class and cmdprio",
        default: Default::Words("none"),
        engines: ENGINES,
        role: Role::Work,
        example: "64k/25/1/1:64k/75/3/2",
        bad_example: "64k/60:64k/50",
        get: |job| {
            let [read, write] = job.priorities.splits.each_ref().map(|split| split_in_words(split));
            match (read, write) {
                (None, None) => None,
                (read, write) if read == write => read,
                (read, write) => Some(format!("{},{}", read.unwrap_or_default(), write.unwrap_or_default())),
            }
        },
        set: Text("SIZE/PERCENT[/CLASS/LEVEL[/HINT]]:… of up to 64 parts (READ,WRITE)", |draft, text| {
            let [read, write, _] = each_direction(text, requests::priorities)?;
            let places = draft.job.priorities.splits.iter_mut().zip([read, write]);
            places.filter_map(|(place, given)| Some((place, given?))).for_each(|(place, given)| *place = given);
            Ok(())
        }),
        ..PLAIN
    },
];

/// READ,WRITE, or one value that both have.
fn both([read, write]: [u8; 2]) -> String {
    if read == write { read.to_string() } else { format!("{read},{write}") }
}

fn take([read, write]: &mut [u8; 2], given: PerDirection) {
    for (place, given) in [(read, given.read), (write, given.write)] {
        *place = given.and_then(|given| u8::try_from(given).ok()).unwrap_or(*place);
    }
}

fn split_in_words(split: &[PriorityShare]) -> Option<String> {
    let one = |share: &PriorityShare| {
        let priority = share.priority.map(|priority| {
            let hint = if priority.hint > 0 { format!("/{}", priority.hint) } else { String::new() };
            format!("/{}/{}{hint}", priority.class, priority.level)
        });
        format!("{}/{}{}", typed::bytes(share.size.0), share.percent, priority.unwrap_or_default())
    };
    typed::list(&split.iter().map(one).collect::<Vec<_>>(), ":")
}
