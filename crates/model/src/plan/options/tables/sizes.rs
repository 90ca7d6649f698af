//! The options of requests whose sizes differ.

use super::*;

pub(super) static OPTIONS: &[JobOption] = &[
    work("bsrange", text(parsed!(requests.ranges, ranges)), Words("one size, bs"), "4k-16k", "4k")
        .form("SMALLEST-LARGEST in bytes (READ,WRITE,TRIM)")
        .also(&["blocksize_range"])
        .help("Draw each block's size from this range, in multiples of the smallest. Overrides bs"),
    work("bssplit", text(parsed!(requests.splits, splits)), Words("one size, bs"), "4k/60:64k/40", "4k/60:64k/50")
        .form("SIZE/PERCENT:SIZE/PERCENT… of up to 64 sizes in bytes (READ,WRITE,TRIM)")
        .help(
            "Draw each block's size from this list. Sizes without a percentage share the rest. Overrides bs and \
             bsrange",
        ),
    work("bs_unaligned", switch(field!(requests.unaligned)), Is("0"), "1", "2")
        .also(&["blocksize_unaligned"])
        .help("Let the sizes of bsrange and bssplit be other than multiples of the smallest"),
    work("bs_is_seq_rand", boolean(field!(requests.sizes_by_order)), Is("0"), "1", "2")
        .help("Give sequential requests the sizes of reads, and random ones those of writes, in every direction"),
];

fn ranges(text: &str) -> Result<[Option<Option<SizeRange>>; 3], Wrong> {
    each_direction(text, |item| range(item).map(Some))
}

fn splits(text: &str) -> Result<[Option<Vec<SizeShare>>; 3], Wrong> {
    each_direction(text, split)
}
