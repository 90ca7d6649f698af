//! The options of requests whose sizes differ.

use super::*;

pub(super) static OPTIONS: &[JobOption] = &[
    work("bsrange", Words("one size, bs"), "4k-16k", "4k")
        .help("Draw each block's size from this range, in multiples of the smallest. Overrides bs")
        .also(&["blocksize_range"])
        .text("SMALLEST-LARGEST in bytes (READ,WRITE,TRIM)", parsed!(requests.ranges, ranges)),
    work("bssplit", Words("one size, bs"), "4k/60:64k/40", "4k/60:64k/50")
        .help(
            "Draw each block's size from this list. Sizes without a percentage share the rest. Overrides bs and \
             bsrange",
        )
        .text(
            "SIZE/PERCENT:SIZE/PERCENT… of up to 64 sizes in bytes (READ,WRITE,TRIM)",
            parsed!(requests.splits, splits),
        ),
    work("bs_unaligned", Is("0"), "1", "2")
        .help("Let the sizes of bsrange and bssplit be other than multiples of the smallest")
        .also(&["blocksize_unaligned"])
        .switch(field!(requests.unaligned)),
    work("bs_is_seq_rand", Is("0"), "1", "2")
        .help("Give sequential requests the sizes of reads, and random ones those of writes, in every direction")
        .boolean(field!(requests.sizes_by_order)),
];

fn ranges(text: &str) -> Result<[Option<Option<SizeRange>>; 3], Wrong> {
    each_direction(text, |item| value::requests::range(item).map(Some))
}

fn splits(text: &str) -> Result<[Option<Vec<SizeShare>>; 3], Wrong> {
    each_direction(text, value::requests::split)
}
