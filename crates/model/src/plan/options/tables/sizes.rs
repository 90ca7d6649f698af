//! The options of requests whose sizes differ.

use crate::plan::options::{Default, JobOption, PLAIN, Role, Value::*};
use crate::plan::value::{each_direction, requests, typed};

pub(super) static OPTIONS: &[JobOption] = &[
    JobOption {
        name: "bsrange",
        aliases: &["blocksize_range"],
        help: "Draw each block's size from this range, in multiples of the smallest. Overrides bs",
        default: Default::Words("one size, bs"),
        role: Role::Work,
        example: "4k-16k",
        bad_example: "4k",
        get: |job| typed::each_given(&job.requests.ranges, |range| range.map(typed::range)),
        set: Text("SMALLEST-LARGEST in bytes (READ,WRITE,TRIM)", |draft, text| {
            draft.job.requests.ranges.update(each_direction(text, |item| requests::range(item).map(Some))?);
            Ok(())
        }),
        ..PLAIN
    },
    JobOption {
        name: "bssplit",
        help: "Draw each block's size from this list. Sizes without a percentage share the rest. Overrides bs and bsrange",
        default: Default::Words("one size, bs"),
        role: Role::Work,
        example: "4k/60:64k/40",
        bad_example: "4k/60:64k/50",
        get: |job| typed::each_given(&job.requests.splits, |split| typed::split(split)),
        set: Text("SIZE/PERCENT:SIZE/PERCENT… of up to 64 sizes in bytes (READ,WRITE,TRIM)", |draft, text| {
            draft.job.requests.splits.update(each_direction(text, requests::split)?);
            Ok(())
        }),
        ..PLAIN
    },
    JobOption {
        name: "bs_unaligned",
        aliases: &["blocksize_unaligned"],
        help: "Let the sizes of bsrange and bssplit be other than multiples of the smallest",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.requests.unaligned)),
        set: Switch(|draft, on| draft.job.requests.unaligned = on),
        ..PLAIN
    },
    JobOption {
        name: "bs_is_seq_rand",
        help: "Give sequential requests the sizes of reads, and random ones those of writes, in every direction",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.requests.sizes_by_order)),
        set: Boolean(|draft, on| draft.job.requests.sizes_by_order = on),
        ..PLAIN
    },
];
