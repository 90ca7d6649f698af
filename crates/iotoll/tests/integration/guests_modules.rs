//! Modules under development in guests: one replaces the kernel's own, is checked against it, and a planted change is found exactly.

use super::guests::{CACHE, guest, ready};
use super::iotoll::{Folder, at_once, number};
use super::machine::{has, skip, tool};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const NULL_BLK: &str =
    "--kernel debian:6.1 --replicates 1 --quiet --stack null_blk --direct=1 --rw=randread --bs=4k --number_ios=100";

/// The kernel's own file of a module.
fn stock(name: &str) -> Option<PathBuf> {
    let kernels = fs::read_dir(Path::new(CACHE).join("iotoll/kernels")).ok()?.flatten().map(|entry| entry.path());
    let modules =
        kernels.filter(|path| path.to_string_lossy().contains("linux-image-6.1.")).map(|path| path.join("lib/modules"));
    let found = modules.filter_map(|folder| tool("find", &[folder.to_str()?, "-name", &format!("{name}.ko")]).ok());
    found.flat_map(|text| text.lines().map(PathBuf::from).collect::<Vec<_>>()).next()
}

#[test]
fn a_module_that_does_not_fit_is_refused() {
    let folder = Folder::new();
    if !ready("a_module_that_does_not_fit_is_refused") {
        return;
    }
    let (Some(null_blk), Some(brd)) = (stock("null_blk"), stock("brd")) else {
        return skip("a_module_that_does_not_fit_is_refused", "the kernel's modules are compressed");
    };
    let bytes = fs::read(&null_blk).unwrap();
    let magic = b"vermagic=6.1.";
    let place = bytes.windows(magic.len()).position(|window| window == magic).unwrap() + magic.len();
    let mut other = bytes.clone();
    other[place] = b'9';
    folder.write("other.ko", other);
    let brd = brd.display();
    let cases = [
        ("null_blk=gone.ko".to_owned(), vec!["gone.ko: no such file"]),
        (format!("null_blk={brd}"), vec!["the file is the module 'brd'"]),
        (
            "null_blk=other.ko".to_owned(),
            vec!["vermagic differs", "6.1.9-", "instead of 6.1.0-", "linux", "headers of 6.1.0-"],
        ),
        (format!("brd={brd}"), vec!["stack 'null_blk' does not load 'brd'"]),
        ("null_blk".to_owned(), vec!["write NAME=FILE"]),
    ];
    at_once(cases, |(module, named)| {
        let named: Vec<&str> = named.into_iter().filter(|word| *word != "linux").collect();
        guest(&folder, &format!("run {NULL_BLK} --no-save --module {module}"), &[]).run().refused(2, &named);
    });
}

/// `./check` runs it with `--long` only: it downloads Linux' sources.
mod long {
    use super::*;

    #[test]
    fn a_planted_change_of_a_module_is_found_exactly() {
        const TEST: &str = "a_planted_change_of_a_module_is_found_exactly";
        let folder = Folder::new();
        if !ready(TEST) || !has("make") || !has("cc") {
            return;
        }
        // 1000 instructions in the function that takes a request.
        let function = "static blk_status_t null_queue_rq(struct blk_mq_hw_ctx *hctx,";
        folder.write(
            "plant.py",
            format!(
                "import sys\npath = sys.argv[1] + '/main.c'\ntext = open(path).read()\nplace = text.index('{function}')\n\
                 place = text.index('might_sleep_if', place)\n\
                 open(path, 'w').write(text[:place] + 'asm volatile(\".rept 1000; nop; .endr\");\\n\\t' + text[place:])\n"
            ),
        );
        let build = Path::new(ROOT).join("experiments/build-module.sh");
        let cache = format!("XDG_CACHE_HOME={CACHE}");
        let plant = folder.path("plant.py").display().to_string();
        let built = folder.path("built").display().to_string();
        let words = [&cache, build.to_str().unwrap(), "6.1", "drivers/block/null_blk", &built, "python3", &plant];
        if let Err(why) = tool("env", &words) {
            return skip(TEST, &why);
        }
        let words = format!(
            "run {NULL_BLK} --by-function --no-save --format json --module null_blk={built}/{{release}}/unchanged/null_blk.ko \
             --module null_blk={built}/{{release}}/edited/null_blk.ko"
        );
        let ended = guest(&folder, &words, &[]).run();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        let finding = ended.json();
        let of = |arm: usize| {
            let functions = finding["points"][arm]["functions"].as_array().unwrap().iter();
            let own = functions.filter(|function| function["module"] == "null_blk");
            own.map(|function| (function["name"].as_str().unwrap().to_owned(), function.clone())).collect::<Vec<_>>()
        };
        let (unchanged, edited) = (of(1), of(2));
        let field = |function: &Value, name: &str| (number(&function[name]) * 100.0).round() as i64;
        for ((name, before), (_, after)) in
            unchanged.iter().filter_map(|own| Some((own, edited.iter().find(|other| other.0 == own.0)?)))
        {
            let planted = if name == "null_queue_rq" { 100 * 1000 } else { 0 };
            assert_eq!(field(after, "instructions_per_io") - field(before, "instructions_per_io"), planted, "{name}");
            assert_eq!(field(after, "calls_per_io"), field(before, "calls_per_io"), "{name}");
        }
        assert!(
            edited.iter().any(|(name, function)| name == "null_queue_rq" && field(function, "calls_per_io") == 100)
        );
    }
}
