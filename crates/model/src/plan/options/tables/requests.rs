//! The options of a job's requests: direction, size, offset, order.

use super::*;

pub(super) static OPTIONS: &[JobOption] = &[
    work("rw", Is("read"), "randread", "randread:0")
        .help(
            "Select the I/O direction and order. randread:N reads N blocks in order from each random position on; \
             read:8k leaves 8k out behind each block, read:-8k goes back. So do the other orders",
        )
        .also(&["readwrite"])
        .choice((
            list_words::<(Access, Order)>,
            place(
                |job| Some(typed::pattern(job)),
                |draft, text| {
                    let job = &mut draft.job;
                    (job.access, job.order, job.random_run, job.requests.skip) = pattern(text)?;
                    Ok(())
                },
            ),
        )),
    work("rwmixread", Is("50"), "70", "101")
        .help("Percentage of reads in mixed I/O. The later of rwmixread and rwmixwrite wins")
        .percent(field!(read_percent)),
    other("rwmixwrite", Is("50"), "30", "-1")
        .help("Percentage of writes in mixed I/O")
        .percent(unshown(|draft, percent| draft.job.read_percent = 100_u8.saturating_sub(percent))),
    work("bs", Is("4k"), "4k,8k", "4x")
        .help("Block size of the I/O")
        .also(&["blocksize"])
        .text("1 to 4194300k bytes (READ,WRITE,TRIM)", parsed!(block_sizes, value::requests::blocks)),
    work("size", Words("the size of the files"), "1g", "0")
        .help("Size of the job's region, over all its files. More than 100% of a block device is all of it, as in fio")
        .size(1, 1..=200, field!(target.size)),
    work("io_size", Words("as size"), "4g", "200%")
        .help("Transfer this amount instead of size. A percentage is of size")
        .also(&["io_limit"])
        .size(1, 1..=100, field!(duration.io_size)),
    work("offset", Is("0"), "10%", "100%")
        .help("Start the region at this offset in each file")
        .also(&["fileoffset"])
        .size(0, 0..=99, field!(target.offset)),
    work("norandommap", Is("0"), "1", "2")
        .help("Pick random blocks with replacement, so that some repeat before others are used")
        .switch(field!(no_random_map)),
    other("randrepeat", Is("1"), "0", "2").help("Use the same random sequence in each run").boolean(field!(repeatable)),
    nothing("allrandrepeat", Is("0"), "1", "2")
        .help("As randrepeat=1, if it is 1")
        .boolean(unshown(|draft, on| draft.job.repeatable |= on)),
    other("randseed", Words("see randrepeat"), "42", "-1")
        .help("Seed the random sequence. Overrides randrepeat")
        .number("as a seed", 0..=u64::MAX, field!(seed)),
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
            Ok((access, order, 1, value::requests::signed(modifier).map_err(|_| Wrong::because(text, is))?))
        }
    }
}
