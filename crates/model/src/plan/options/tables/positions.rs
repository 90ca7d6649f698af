//! The options of the positions of requests: alignment, distribution, increments.

use super::*;

pub(super) static OPTIONS: &[JobOption] = &[
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
        .form(
            "random, zipf:THETA[:CENTRE], pareto:POWER[:CENTRE], normal:PERCENT[:CENTRE], zoned:PERCENT/PERCENT:… or \
         zoned_abs:PERCENT/BYTES:…",
        )
        .help(
            "How often a random order uses each block. Any but random sets norandommap. CENTRE, from 0 to 1, is \
         the place of the block that is used most",
        ),
    work("random_generator", word_of!(requests.generator), Is("tausworthe"), "lfsr", "mt19937").help(
        "Generator of random positions. All three are the same permutation of the blocks here; lfsr also uses \
         each block once with norandommap",
    ),
    work("rw_sequencer", word_of!(requests.sequencer), Is("sequential"), "identical", "random").help(
        "Where the blocks of a run of rw=randread:N are: behind each other (sequential), or all at the same \
         place (identical)",
    ),
    nothing("softrandommap", boolean(nowhere!()), Is("0"), "1", "2").help(
        "Go on without a map of random blocks if there is no memory for it. Has no effect: the map is never \
         too large",
    ),
    work("offset_increment", size(0, 0..=100, field!(region.increment)), Is("0"), "1g", "101%").help(
        "Start the region of each copy of numjobs this far behind that of the copy before it. A percentage is \
         of the file",
    ),
    work("offset_align", number("bytes", 0..=LARGEST_FILE, field!(region.align)), Is("0"), "1m", "-1")
        .help("Round offset and offset_increment in percent up to this; 0 means to the smallest block"),
];

// Places that are no fields.
const BLOCKALIGN: Place<Set<[Option<u64>; 3]>> = place(
    |job| typed::each_given(&job.requests.align, |align| (align.0 > 0).then(|| typed::bytes(align.0))),
    |draft, given| draft.job.requests.align.update(given.map(|align| align.map(Bytes))),
);
