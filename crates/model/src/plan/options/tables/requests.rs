//! The options of a job's requests: direction, size, offset, order.

use super::MANY;
use crate::plan::job::{Access, BlockSizes, Order};
use crate::plan::options::{Default, JobOption, PLAIN, Role, Value::*};
use crate::plan::value::requests::{blocks, signed};
use crate::plan::value::{LARGEST_FILE, Wrong, choice, count_in, list_words, typed};
use crate::unit::Bytes;

pub(super) static OPTIONS: &[JobOption] = &[
    JobOption {
        name: "rw",
        aliases: &["readwrite"],
        help: "Select the I/O direction and order. randread:N reads N blocks in order from each random position on; read:8k leaves 8k out behind each block, read:-8k goes back. So do the other orders",
        default: Default::Value("read"),
        role: Role::Work,
        example: "randread",
        bad_example: "randread:0",
        get: |job| Some(typed::pattern(job)),
        set: Choice(list_words::<(Access, Order)>, |draft, text| {
            let job = &mut draft.job;
            (job.access, job.order, job.random_run, job.requests.skip) = pattern(text)?;
            Ok(())
        }),
        ..PLAIN
    },
    JobOption {
        name: "rwmixread",
        help: "Percentage of reads in mixed I/O. The later of rwmixread and rwmixwrite wins",
        default: Default::Value("50"),
        role: Role::Work,
        example: "70",
        bad_example: "101",
        get: |job| Some(job.read_percent.to_string()),
        set: Percent(|draft, percent| draft.job.read_percent = percent),
        ..PLAIN
    },
    JobOption {
        name: "rwmixwrite",
        help: "Percentage of writes in mixed I/O",
        default: Default::Value("50"),
        role: Role::Other,
        example: "30",
        bad_example: "-1",
        get: |_| None,
        set: Percent(|draft, percent| draft.job.read_percent = 100_u8.saturating_sub(percent)),
        ..PLAIN
    },
    JobOption {
        name: "bs",
        aliases: &["blocksize"],
        help: "Block size of the I/O",
        default: Default::Value("4k"),
        role: Role::Work,
        example: "4k,8k",
        bad_example: "4x",
        get: |job| {
            let BlockSizes { read, write, trim } = job.block_sizes;
            Some(typed::each([read, write, trim].map(|size| typed::bytes(size.0))))
        },
        set: Text("1 to 4194300k bytes (READ,WRITE,TRIM)", |draft, text| {
            let [read, write, trim] = blocks(text)?;
            let now = &mut draft.job.block_sizes;
            now.read = read.map_or(now.read, Bytes);
            now.write = write.map_or(now.write, Bytes);
            now.trim = trim.map_or(now.trim, Bytes);
            Ok(())
        }),
        ..PLAIN
    },
    JobOption {
        name: "size",
        help: "Size of the job's region, over all its files. More than 100% of a block device is all of it, as in fio",
        default: Default::Words("the size of the files"),
        role: Role::Work,
        example: "1g",
        bad_example: "0",
        get: |job| job.target.size.map(typed::size),
        set: Size(1..=LARGEST_FILE, 1..=200, |draft, size| draft.job.target.size = Some(size)),
        ..PLAIN
    },
    JobOption {
        name: "io_size",
        aliases: &["io_limit"],
        help: "Transfer this amount instead of size. A percentage is of size",
        default: Default::Words("as size"),
        role: Role::Work,
        example: "4g",
        bad_example: "200%",
        get: |job| job.duration.io_size.map(typed::size),
        set: Size(1..=LARGEST_FILE, 1..=100, |draft, size| draft.job.duration.io_size = Some(size)),
        ..PLAIN
    },
    JobOption {
        name: "offset",
        aliases: &["fileoffset"],
        help: "Start the region at this offset in each file",
        default: Default::Value("0"),
        role: Role::Work,
        example: "10%",
        bad_example: "100%",
        get: |job| Some(typed::size(job.target.offset)),
        set: Size(0..=LARGEST_FILE, 0..=99, |draft, offset| draft.job.target.offset = offset),
        ..PLAIN
    },
    JobOption {
        name: "norandommap",
        help: "Pick random blocks with replacement, so that some repeat before others are used",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1",
        bad_example: "2",
        get: |job| Some(typed::switch(job.no_random_map)),
        set: Switch(|draft, on| draft.job.no_random_map = on),
        ..PLAIN
    },
    JobOption {
        name: "randrepeat",
        help: "Use the same random sequence in each run",
        default: Default::Value("1"),
        role: Role::Other,
        example: "0",
        bad_example: "2",
        get: |job| Some(typed::switch(job.repeatable)),
        set: Boolean(|draft, on| draft.job.repeatable = on),
        ..PLAIN
    },
    JobOption {
        name: "allrandrepeat",
        help: "As randrepeat=1, if it is 1",
        default: Default::Value("0"),
        role: Role::Nothing,
        example: "1",
        bad_example: "2",
        get: |_| None,
        set: Boolean(|draft, on| draft.job.repeatable |= on),
        ..PLAIN
    },
    JobOption {
        name: "randseed",
        help: "Seed the random sequence. Overrides randrepeat",
        default: Default::Words("see randrepeat"),
        role: Role::Other,
        example: "42",
        bad_example: "-1",
        get: |job| job.seed.map(|seed| seed.to_string()),
        set: Number("as a seed", 0..=u64::MAX, |draft, seed| draft.job.seed = Some(seed)),
        ..PLAIN
    },
];

/// Parses `rw=`, with fio's modifier behind a colon: the length of the runs of a random order, or the bytes between the
/// blocks of a sequential one.
fn pattern(text: &str) -> Result<(Access, Order, u32, i64), Wrong> {
    let Some((word, modifier)) = text.split_once(':') else {
        return choice(text).map(|(access, order)| (access, order, 1, 0));
    };
    let (access, order) = choice(word)?;
    match order {
        Order::Random if access != Access::TrimWrite => {
            let is = format!("has no number of blocks from 1 to {MANY} behind the ':'");
            let length = count_in(modifier, &(1..=MANY)).map_err(|_| Wrong::because(text, is))?;
            Ok((access, order, length, 0))
        }
        Order::Random => Err(Wrong::because(text, "has a ':N' modifier, which randtrimwrite does not support")),
        Order::Sequential => {
            let is = "has no number of bytes behind the ':'";
            Ok((access, order, 1, signed(modifier).map_err(|_| Wrong::because(text, is))?))
        }
    }
}
