//! The options of the positions of requests: alignment, distribution, increments.

use crate::plan::options::{Default, JobOption, PLAIN, Role, Value::*};
use crate::plan::value::requests::{self, LARGEST_BLOCK};
use crate::plan::value::{LARGEST_FILE, choice, list_words, typed, word};
use crate::unit::Bytes;

pub(super) static OPTIONS: &[JobOption] = &[
    JobOption {
        name: "blockalign",
        aliases: &["ba"],
        help: "Align random positions to this. Another alignment than the smallest block of the direction sets norandommap",
        default: Default::Words("the smallest block"),
        role: Role::Work,
        example: "512",
        bad_example: "0",
        get: |job| typed::each_given(&job.requests.align, |align| (align.0 > 0).then(|| typed::bytes(align.0))),
        set: PerDirection("bytes", 1..=LARGEST_BLOCK, |draft, align| {
            draft.job.requests.align.update([align.read, align.write, align.trim].map(|align| align.map(Bytes)));
        }),
        ..PLAIN
    },
    JobOption {
        name: "percentage_random",
        help: "Percentage of a random order that is random; the rest follows the request before it",
        default: Default::Value("100"),
        role: Role::Work,
        example: "80,50",
        bad_example: "101",
        get: |job| Some(typed::each(job.requests.percent_random.all().map(ToString::to_string))),
        set: Text("0 to 100 percent (READ,WRITE,TRIM)", |draft, text| {
            draft.job.requests.percent_random.update(requests::percentages(text)?);
            Ok(())
        }),
        ..PLAIN
    },
    JobOption {
        name: "random_distribution",
        help: "How often a random order uses each block. Any but random sets norandommap. CENTRE, from 0 to 1, is the place of \
               the block that is used most",
        default: Default::Value("random"),
        role: Role::Work,
        example: "zipf:1.2",
        bad_example: "zipf:0",
        get: |job| Some(typed::distribution(&job.requests.distribution)),
        set: Text(
            "random, zipf:THETA[:CENTRE], pareto:POWER[:CENTRE], normal:PERCENT[:CENTRE], zoned:PERCENT/PERCENT:… or \
             zoned_abs:PERCENT/BYTES:…",
            |draft, text| {
                draft.job.requests.distribution = requests::distribution(text)?;
                Ok(())
            },
        ),
        ..PLAIN
    },
    JobOption {
        name: "random_generator",
        help: "Generator of random positions. All three are the same permutation of the blocks here; lfsr also uses each block \
               once with norandommap",
        default: Default::Value("tausworthe"),
        role: Role::Work,
        example: "lfsr",
        bad_example: "mt19937",
        get: |job| Some(word(job.requests.generator).to_owned()),
        set: Choice(list_words::<crate::plan::job::Generator>, |draft, text| {
            draft.job.requests.generator = choice(text)?;
            Ok(())
        }),
        ..PLAIN
    },
    JobOption {
        name: "rw_sequencer",
        help: "Where the blocks of a run of rw=randread:N are: behind each other (sequential), or all at the same place (identical)",
        default: Default::Value("sequential"),
        role: Role::Work,
        example: "identical",
        bad_example: "random",
        get: |job| Some(word(job.requests.sequencer).to_owned()),
        set: Choice(list_words::<crate::plan::job::Sequencer>, |draft, text| {
            draft.job.requests.sequencer = choice(text)?;
            Ok(())
        }),
        ..PLAIN
    },
    JobOption {
        name: "softrandommap",
        help: "Go on without a map of random blocks if there is no memory for it. Has no effect: the map is never too large",
        default: Default::Value("0"),
        role: Role::Nothing,
        example: "1",
        bad_example: "2",
        get: |_| None,
        set: Boolean(|_, _| {}),
        ..PLAIN
    },
    JobOption {
        name: "offset_increment",
        help: "Start the region of each copy of numjobs this far behind that of the copy before it. A percentage is of the file",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1g",
        bad_example: "101%",
        get: |job| Some(typed::size(job.region.increment)),
        set: Size(0..=LARGEST_FILE, 0..=100, |draft, increment| draft.job.region.increment = increment),
        ..PLAIN
    },
    JobOption {
        name: "offset_align",
        help: "Round offset and offset_increment in percent up to this; 0 means to the smallest block",
        default: Default::Value("0"),
        role: Role::Work,
        example: "1m",
        bad_example: "-1",
        get: |job| Some(typed::bytes(job.region.align.0)),
        set: Number("bytes", 0..=LARGEST_FILE, |draft, align| draft.job.region.align = Bytes(align)),
        ..PLAIN
    },
];
