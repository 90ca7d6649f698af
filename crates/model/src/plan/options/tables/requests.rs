//! The options of a job's requests: direction, size, offset, order.

use super::*;

pub(super) static OPTIONS: &[JobOption] = &[
    work("rw", words(list_words::<(Access, Order)>, RW), Is("read"), "randread", "randread:0")
        .also(&["readwrite"])
        .help(
            "Select the I/O direction and order. randread:N reads N blocks in order from each random position on; \
         read:8k leaves 8k out behind each block, read:-8k goes back. So do the other orders",
        ),
    work("rwmixread", percent(field!(read_percent)), Is("50"), "70", "101")
        .help("Percentage of reads in mixed I/O. The later of rwmixread and rwmixwrite wins"),
    other("rwmixwrite", percent(RWMIXWRITE), Is("50"), "30", "-1").help("Percentage of writes in mixed I/O"),
    work("bs", text(parsed!(block_sizes, blocks)), Is("4k"), "4k,8k", "4x")
        .form("1 to 4194300k bytes (READ,WRITE,TRIM)")
        .also(&["blocksize"])
        .help("Block size of the I/O"),
    work("size", size(1, 1..=200, field!(target.size)), Words("the size of the files"), "1g", "0")
        .help("Size of the job's region, over all its files. More than 100% of a block device is all of it, as in fio"),
    work("io_size", size(1, 1..=100, field!(duration.io_size)), Words("as size"), "4g", "200%")
        .also(&["io_limit"])
        .help("Transfer this amount instead of size. A percentage is of size"),
    work("offset", size(0, 0..=99, field!(target.offset)), Is("0"), "10%", "100%")
        .also(&["fileoffset"])
        .help("Start the region at this offset in each file"),
    work("norandommap", switch(field!(no_random_map)), Is("0"), "1", "2")
        .help("Pick random blocks with replacement, so that some repeat before others are used"),
    other("randrepeat", boolean(field!(repeatable)), Is("1"), "0", "2")
        .help("Use the same random sequence in each run"),
    nothing("allrandrepeat", boolean(unshown(|draft, on| draft.job.repeatable |= on)), Is("0"), "1", "2")
        .help("As randrepeat=1, if it is 1"),
    other("randseed", number("as a seed", 0..=u64::MAX, field!(seed)), Words("see randrepeat"), "42", "-1")
        .help("Seed the random sequence. Overrides randrepeat"),
];

// Places that are no fields.
const RW: Place<SetText> = place(
    |job| Some(typed::pattern(job)),
    |draft, text| {
        let job = &mut draft.job;
        (job.access, job.order, job.random_run, job.requests.skip) = pattern(text)?;
        Ok(())
    },
);
const RWMIXWRITE: Place<Set<u8>> = unshown(|draft, percent| draft.job.read_percent = 100_u8.saturating_sub(percent));

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
