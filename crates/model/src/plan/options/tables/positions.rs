//! The options of the positions of requests: alignment, distribution, increments.

use super::*;

pub(super) static OPTIONS: &[JobOption] = &[
    work("blockalign", Words("the smallest block"), "512", "0")
        .help(
            "Align random positions to this. Another alignment than the smallest block of the direction sets \
             norandommap",
        )
        .also(&["ba"])
        .per_direction(
            "bytes",
            1..=value::requests::LARGEST_BLOCK,
            place(
                |job| typed::each_given(&job.requests.align, |align| (align.0 > 0).then(|| typed::bytes(align.0))),
                |draft, given| draft.job.requests.align.update(given.map(|align| align.map(Bytes))),
            ),
        ),
    work("percentage_random", Is("100"), "80,50", "101")
        .help("Percentage of a random order that is random; the rest follows the request before it")
        .text("0 to 100 percent (READ,WRITE,TRIM)", parsed!(requests.percent_random, value::requests::percentages)),
    work("random_distribution", Is("random"), "zipf:1.2", "zipf:0")
        .help(
            "How often a random order uses each block. Any but random sets norandommap. CENTRE, from 0 to 1, is \
             the place of the block that is used most",
        )
        .text(
            "random, zipf:THETA[:CENTRE], pareto:POWER[:CENTRE], normal:PERCENT[:CENTRE], zoned:PERCENT/PERCENT:… or \
             zoned_abs:PERCENT/BYTES:…",
            parsed!(requests.distribution, value::requests::distribution),
        ),
    work("random_generator", Is("tausworthe"), "lfsr", "mt19937")
        .help(
            "Generator of random positions. All three are the same permutation of the blocks here; lfsr also uses \
             each block once with norandommap",
        )
        .choice(word_of!(requests.generator)),
    work("rw_sequencer", Is("sequential"), "identical", "random")
        .help(
            "Where the blocks of a run of rw=randread:N are: behind each other (sequential), or all at the same \
             place (identical)",
        )
        .choice(word_of!(requests.sequencer)),
    nothing("softrandommap", Is("0"), "1", "2")
        .help(
            "Go on without a map of random blocks if there is no memory for it. Has no effect: the map is never \
             too large",
        )
        .boolean(nowhere!()),
    work("offset_increment", Is("0"), "1g", "101%")
        .help(
            "Start the region of each copy of numjobs this far behind that of the copy before it. A percentage is \
             of the file",
        )
        .size(0, 0..=100, field!(region.increment)),
    work("offset_align", Is("0"), "1m", "-1")
        .help("Round offset and offset_increment in percent up to this; 0 means to the smallest block")
        .number("bytes", 0..=LARGEST_FILE, field!(region.align)),
];
