//! The options of a job's requests: direction, order, sizes, positions.

use super::*;

pub(super) static OPTIONS: &[JobOption] = &[
    work("rw", words(list_words::<(Access, Order)>, RW), Is("read"), "randread", "randread:0")
        .also(&["readwrite"])
        .help(
            "Select the I/O direction and order. randread:N reads N blocks in order from each random position on; so do the \
             other random orders",
        ),
    work("rwmixread", percent(field!(requests.read_percent)), Is("50"), "70", "101")
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
    work("norandommap", switch(field!(requests.no_random_map)), Is("0"), "1", "2")
        .help("Pick random blocks with replacement, so that some repeat before others are used"),
    other("randrepeat", boolean(field!(requests.repeatable)), Is("1"), "0", "2")
        .help("Use the same random sequence in each run"),
    other("randseed", number("as a seed", 0..=u64::MAX, field!(requests.seed)), Words("see randrepeat"), "42", "-1")
        .help("Seed the random sequence. Overrides randrepeat"),
];

pub(super) static SIZES: &[JobOption] = &[
    said("bs_unaligned", "sizes of bsrange and bssplit are multiples of the smallest")
        .also(&["blocksize_unaligned"])
        .bare(),
    work("bsrange", text(parsed!(requests.ranges, ranges)), Words("one size, bs"), "4k-16k", "4k-x")
        .form("SMALLEST-LARGEST in bytes (READ,WRITE,TRIM)")
        .also(&["blocksize_range"])
        .help("Draw each block's size from this range, in multiples of the smallest. Overrides bs"),
    work("bssplit", text(parsed!(requests.splits, splits)), Words("one size, bs"), "4k/60:64k/40", "4k/60:64k/50")
        .form("SIZE/PERCENT:SIZE/PERCENT… of up to 64 sizes in bytes (READ,WRITE,TRIM)")
        .help(
            "Draw each block's size from this list. Sizes without a percentage share the rest. Overrides bs and \
             bsrange",
        ),
];

pub(super) static POSITIONS: &[JobOption] = &[
    work("blockalign", per_direction("bytes", 1..=LARGEST_BLOCK, BLOCKALIGN), Words("the smallest block"), "512", "0")
        .also(&["ba"])
        .help(
            "Align random positions to this. Another alignment than the smallest block of the direction sets \
         norandommap",
        ),
    work("percentage_random", text(parsed!(requests.percent_random, percentages)), Is("100"), "80,50", "101")
        .form("0 to 100 percent (READ,WRITE,TRIM)")
        .help("Percentage of a random order that is random; the rest follows the request before it"),
    work("random_distribution", text(parsed!(requests.distribution, distribution)), Is("random"), "zipf:1.2", "zipf:0")
        .form("random, or zipf:THETA")
        .help("How often a random order uses each block. zipf sets norandommap"),
    nothing("random_generator", "both stand for the same permutation of the blocks")
        .only(&["tausworthe", "tausworthe64"]),
    work("offset_increment", size(0, 0..=100, field!(target.increment)), Is("0"), "1g", "101%").help(
        "Start the region of each copy of numjobs this far behind that of the copy before it. A percentage is \
         of the file",
    ),
    work("offset_align", number("bytes", 0..=LARGEST_FILE, field!(target.align)), Is("0"), "1m", "-1")
        .help("Round offset and offset_increment in percent up to this; 0 means to the smallest block"),
];

// Places that are no fields.
const RW: Place<SetText> = place(
    |job| Some(typed::pattern(job)),
    |draft, text| {
        let job = &mut draft.job;
        (job.access, job.order, job.requests.run) = pattern(text)?;
        Ok(())
    },
);
const RWMIXWRITE: Place<Set<u8>> =
    unshown(|draft, percent| draft.job.requests.read_percent = 100_u8.saturating_sub(percent));

/// Parses `rw=`, with the length of the runs of a random order behind a colon.
fn pattern(text: &str) -> Result<(Access, Order, u32), Wrong> {
    let Some((word, length)) = text.split_once(':') else {
        return choice(text).map(|(access, order)| (access, order, 1));
    };
    let (access, order) = choice(word)?;
    if order == Order::Sequential || access == Access::TrimWrite {
        return Err(Wrong::because(
            text,
            "has something behind a ':', which only randread, randwrite, randtrim and randrw may have",
        ));
    }
    let is = format!("has no number of blocks from 1 to {MANY} behind the ':'");
    let length = count_in(length, &(1..=MANY)).map_err(|_| Wrong::because(text, is))?;
    Ok((access, order, length))
}

fn ranges(text: &str) -> Result<[Option<Option<SizeRange>>; 3], Wrong> {
    each_direction(text, |item| range(item, &BLOCK).map(Some))
}

fn splits(text: &str) -> Result<[Option<Vec<SizeShare>>; 3], Wrong> {
    each_direction(text, split)
}

const BLOCKALIGN: Place<Set<[Option<u64>; 3]>> = place(
    |job| typed::each_given(&job.requests.align, |align| (align.0 > 0).then(|| typed::bytes(align.0))),
    |draft, given| draft.job.requests.align.take(given),
);
