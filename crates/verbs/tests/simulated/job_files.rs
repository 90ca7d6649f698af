//! 100,000 generated job files through the parser; `./check` takes a tenth of them.
//!
//! A fifth of them are valid and must mean what was generated. The others are valid ones that are broken at the level
//! of bytes, tokens or lines, and must be either accepted or refused with one line that names the place.

use crate::random::Random;
use model::plan::parse::{Settings, job_file};
use model::plan::{Access, EngineKind, JobPlan, Order, Phase, Plan, Size, options};
use model::unit::{Bytes, Nanos};
use std::fmt::Write;

const FILES: u64 = if crate::ALL { 100_000 } else { 10_000 };
const FILE_NAME: &str = "generated.fio";

#[test]
fn generated_files_mean_what_was_generated() {
    for seed in 0..FILES / 5 {
        let (text, expected) = valid_file(&mut Random::new(seed));
        match job_file(FILE_NAME, &text, &Settings::default()) {
            Ok(plan) => assert_eq!(plan.phases, expected.phases, "seed {seed}:\n{text}"),
            Err(error) => panic!("seed {seed}: {error}:\n{text}"),
        }
    }
}

#[test]
fn broken_files_are_accepted_or_refused_with_their_place() {
    let environment = |name: &str| (name.len() % 2 == 1).then(|| "4k\nü".to_owned());
    let settings = Settings { environment: &environment, ..Settings::default() };
    let mut refused = 0;
    for seed in FILES / 5..FILES {
        let random = &mut Random::new(seed);
        let mut text = valid_file(random).0;
        for _ in 0..=random.below(3) {
            text = broken(&text, random);
        }
        if let Err(error) = job_file(FILE_NAME, &text, &settings) {
            refused += 1;
            error.errors().for_each(|error| check_refusal(&error.to_string(), &text, seed));
        }
    }
    assert!(refused > FILES / 4, "only {refused} were refused: the mutations are too gentle");
}

/// `FILE:LINE: option 'NAME': REASON`, or the same for a section, on one line, with a line number that exists.
fn check_refusal(message: &str, text: &str, seed: u64) {
    let rest = message.strip_prefix(FILE_NAME).and_then(|rest| rest.strip_prefix(':'));
    let (line, rest) = rest.and_then(|rest| rest.split_once(": ")).unwrap_or(("", ""));
    let placed = line.parse::<usize>().is_ok_and(|line| (1..=text.lines().count().max(1)).contains(&line));
    let named = rest.starts_with("option '") || rest.starts_with("section '");
    let reasoned = rest.contains("': ") && !message.contains(|character: char| character.is_control());
    assert!(placed && named && reasoned, "seed {seed}: {message:?} for:\n{text}");
}

/// An option as text, with its effect on the expected job.
type Choice = (String, Box<dyn Fn(&mut JobPlan)>);

fn choice(text: impl Into<String>, effect: impl Fn(&mut JobPlan) + 'static) -> Choice {
    (text.into(), Box::new(effect))
}

fn bytes(random: &mut Random, most: u64) -> (String, u64) {
    let kib = 1 + random.below(most);
    let text = match random.below(4) {
        0 => format!("{kib}k"),
        1 => format!("{kib}KB"),
        2 => format!("0x{:x}", kib * 1024),
        _ => (kib * 1024).to_string(),
    };
    (text, kib * 1024)
}

fn option(random: &mut Random) -> Choice {
    let number = 1 + random.below(64);
    let count = number as u32;
    let on = random.below(2) == 1;
    let bit = u8::from(on);
    match random.below(22) {
        0 => {
            let (word, access, order) = random.pick(&[
                ("read", Access::Read, Order::Sequential),
                ("randwrite", Access::Write, Order::Random),
                ("readwrite", Access::ReadWrite, Order::Sequential),
                ("randtrimwrite", Access::TrimWrite, Order::Random),
            ]);
            let name = random.pick(&["rw", "readwrite"]);
            choice(format!("{name}={word}"), move |job| (job.access, job.order) = (access, order))
        }
        1 => {
            let engine = random.pick(&[EngineKind::Libaio, EngineKind::IoUring]);
            choice(format!("ioengine={}", engine.name()), move |job| job.engine = engine)
        }
        2 => {
            let (text, size) = bytes(random, 64);
            choice(format!("bs={text}"), move |job| {
                let all = &mut job.block_sizes;
                (all.read, all.write, all.trim) = (Bytes(size), Bytes(size), Bytes(size));
            })
        }
        3 => {
            let (text, size) = bytes(random, 64);
            choice(format!("blocksize=,{text}"), move |job| {
                (job.block_sizes.write, job.block_sizes.trim) = (Bytes(size), Bytes(size));
            })
        }
        4 => {
            let (text, size) = bytes(random, 1 << 20);
            choice(format!("io_size={text}"), move |job| job.duration.io_size = Some(Size::Bytes(Bytes(size))))
        }
        5 => choice(format!("offset={number}%"), move |job| job.target.offset = Size::Percent(number as u8)),
        6 => choice(format!("numjobs={number}"), move |job| job.copies = count),
        7 => choice(format!("direct={bit}"), move |job| job.direct = on),
        8 => choice(format!("rwmixwrite={number}"), move |job| job.requests.read_percent = 100 - number as u8),
        9 => {
            let unit = random.pick(&[("", 1000), ("s", 1000), ("sec", 1000), ("ms", 1), ("m", 60_000)]);
            let text = format!("runtime={number}{}", unit.0);
            choice(text, move |job| job.duration.runtime = Nanos::from_millis(number * unit.1))
        }
        10 => choice(format!("thinktime={number}"), move |job| job.pace.think_time = Nanos::from_micros(number)),
        11 => choice("group_reporting", |job| job.reporting.group = true),
        12 => choice(format!("norandommap={bit}"), move |job| job.requests.no_random_map = on),
        13 => choice(format!("fsync={number}"), move |job| job.sync.every = count),
        14 => choice(format!("randseed={number}"), move |job| job.requests.seed = Some(number)),
        15 => choice(format!("rate_iops={number},7"), move |job| {
            (job.pace.ios.read, job.pace.ios.write, job.pace.ios.trim) = (number, 7, 7);
        }),
        16 => choice(format!("cpus_allowed={count},0-1"), move |job| {
            job.thread.cpus_allowed = vec![0, 1];
            job.thread.cpus_allowed.extend((count > 1).then_some(count));
        }),
        17 => choice(format!("percentile_list=99.5:{number}"), move |job| {
            job.reporting.percentiles = vec![number as f64, 99.5]
        }),
        18 => choice(format!("filename=/tmp/ü\\:{number}:b"), move |job| {
            // As in fio, another one adds to the files.
            job.target.files.extend([format!("/tmp/ü:{number}"), "b".to_owned()]);
        }),
        19 => choice(format!("inject_ns={number}k"), move |job| job.inject.time = Nanos(number * 1024)),
        20 => choice(format!("loops={number}"), move |job| job.duration.loops = count),
        _ => choice(format!("invalidate={bit}"), move |job| job.files.invalidate = Some(on)),
    }
}

/// Writes up to `most` options, with random whitespace and comments before each, and applies them to `job`.
fn options(random: &mut Random, most: u64, text: &mut String, job: &mut JobPlan) {
    for _ in 0..random.below(most + 1) {
        let (option, effect) = option(random);
        let option = if random.below(4) == 0 { option.replace('=', " = ") } else { option };
        let before = random.pick(&["", "", "  ", "\t", "\n", "; note\n", "# größe=1\n"]);
        let after = random.pick(&["", "", " ", " ; why", "#", "\r"]);
        let _ = writeln!(text, "{before}{option}{after}");
        effect(job);
    }
}

fn valid_file(random: &mut Random) -> (String, Plan) {
    let (mut text, mut plan) = (String::new(), Plan::default());
    let mut global = JobPlan::default();
    for index in 0..1 + random.below(4) {
        if random.below(3) == 0 {
            text.push_str("[global]\n");
            options(random, 4, &mut text, &mut global);
        }
        let mut job = JobPlan { name: format!("job{index}"), ..global.clone() };
        let _ = writeln!(text, "[{}]", job.name);
        options(random, 8, &mut text, &mut job);
        let alone = random.below(3) == 0;
        text.push_str(if alone { "stonewall\n" } else { "" });
        match plan.phases.last_mut() {
            Some(phase) if !alone => phase.jobs.push(job),
            _ => plan.phases.push(Phase { jobs: vec![job] }),
        }
    }
    (text, plan)
}

/// A text that is broken at the level of bytes, of what is between separators, or of lines.
fn broken(text: &str, random: &mut Random) -> String {
    match random.below(3) {
        0 => {
            let byte = |random: &mut Random| random.pick(b"\0\t\n\r =;#[]${}:,%-.09kKx\\'\"\x7f\xc3\xbc\xff");
            String::from_utf8_lossy(&changed(text.as_bytes().to_vec(), 4, random, byte)).into_owned()
        }
        1 => changed(text.split_inclusive(['=', '\n', ',']).map(str::to_owned).collect(), 3, random, token).concat(),
        _ => changed(text.lines().map(str::to_owned).collect(), 3, random, line).join("\n"),
    }
}

/// Puts new items in, replaces, repeats, exchanges or removes some, `most` times at most.
fn changed<T: Clone>(mut items: Vec<T>, most: u64, random: &mut Random, new: impl Fn(&mut Random) -> T) -> Vec<T> {
    for _ in 0..=random.below(most) {
        let (at, other, item) = (random.index(items.len()), random.index(items.len()), new(random));
        match random.below(8) {
            1 if !items.is_empty() => items[at] = item,
            2 if !items.is_empty() => items.swap(at, other),
            3 if !items.is_empty() => items.insert(at, items[other].clone()),
            4 if !items.is_empty() => drop(items.remove(at)),
            _ => items.insert(at, item),
        }
    }
    items
}

/// Separated by blanks; the first one is empty.
const TOKENS: &str = " = -1 0 1 4k 4x 1e9 NaN inf 100% 101% % , ,, ,,, : \\: 0-3 3-0 0-4294967295 0x 0xffffffffffffffffff \
    18446744073709551615 18446744073709551616 16384p 99999999999d ${HOME} ${X ${} $ncpus größe 4ü \u{feff} \u{2028} \u{0} \
    randread:8 null spin psync";

fn token(random: &mut Random) -> String {
    random.pick(&TOKENS.split(' ').collect::<Vec<_>>()).to_owned()
}

/// An option with a value that may be invalid, or what is no option.
fn line(random: &mut Random) -> String {
    let table: Vec<_> = options::reference().collect();
    let option = &table[random.index(table.len())];
    match random.below(5) {
        0 => format!("{}={}", option.name, token(random)),
        1 => format!("{}={}", option.name, option.example),
        2 => format!("{}={}", option.name, option.bad_example),
        3 => option.name.to_owned(),
        _ => random.pick(&["[", "[]", "[a", "[global]", "]", "include x", "verify=md5", "[ü]", "="]).to_owned(),
    }
}
