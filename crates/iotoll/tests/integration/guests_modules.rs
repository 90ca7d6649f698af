//! Modules under development in guests: one replaces the kernel's own, is checked against it, and a planted change is found exactly.

use super::guests::{CACHE, guest, ready};
use super::iotoll::{Folder, number};
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
fn a_module_that_the_stack_does_not_load_is_refused() {
    let Some(folder) = ready() else { return };
    let Some(brd) = stock("brd") else { return skip("the kernel's modules are compressed") };
    let words = format!("run {NULL_BLK} --no-save --module brd={}", brd.display());
    guest(&folder, &words, &[]).run().refused(2, &["stack 'null_blk' does not load 'brd'"]);
}

/// `./check` runs it with `--long` only: it downloads Linux' sources.
mod long {
    use super::*;

    /// Plants this many instructions.
    const PLANTED: i64 = 1000;

    /// A module of 6.1 with the instructions before `place` of the function that begins with `function`.
    struct Plant {
        module: &'static str,
        /// Its folder in Linux' sources, and its file there.
        sources: (&'static str, &'static str),
        function: &'static str,
        place: &'static str,
    }

    impl Plant {
        /// Builds the module with and without the change, and measures both: functions of the module. `None` where it cannot be built.
        fn measured(&self, folder: &Folder, job: &str) -> Option<[Vec<(String, Value)>; 2]> {
            let Self { module, sources: (sources, file), function, place } = self;
            folder.write(
                "plant.py",
                format!(
                    "import sys\npath = sys.argv[1] + '/{file}'\ntext = open(path).read()\nplace = text.index('{function}')\n\
                     place = text.index('{place}', place)\n\
                     open(path, 'w').write(text[:place] + 'asm volatile(\".rept {PLANTED}; nop; .endr\");\\n\\t' + text[place:])\n"
                ),
            );
            let build = Path::new(ROOT).join("experiments/build-module.sh");
            let cache = format!("XDG_CACHE_HOME={CACHE}");
            let plant = folder.name("plant.py");
            let built = folder.name("built");
            if let Err(why) = tool("env", &[&cache, build.to_str()?, "6.1", sources, &built, "python3", &plant]) {
                skip(&why);
                return None;
            }
            let arm = |which: &str| format!("--module {module}={built}/{{release}}/{which}/{module}.ko");
            // One boot at a time: of a guest with a cluster it takes half a minute.
            for module in [String::new(), arm("unchanged"), arm("edited")] {
                guest(folder, &format!("run {job} {module} --no-save"), &[]).run().done();
            }
            let words =
                format!("run {job} --by-function --no-save --format json {} {}", arm("unchanged"), arm("edited"));
            let finding = guest(folder, &words, &[]).run().found();
            // The first arm is the kernel's own module.
            Some([1, 2].map(|arm| {
                let functions = finding["points"][arm]["functions"].as_array().unwrap().iter();
                let own = functions.filter(|function| function["module"] == *module);
                own.map(|function| (function["name"].as_str().unwrap().to_owned(), function.clone())).collect()
            }))
        }
    }

    /// The change stands in the function alone, which each I/O calls once, and no function is called more or less often.
    fn is_found_exactly(plant: &Plant, (ios, job): (i64, &str)) {
        let Some(folder) = ready().filter(|_| has("make") && has("cc")) else { return };
        let job = format!("{job} --number_ios={ios}");
        let Some([unchanged, edited]) = plant.measured(&folder, &job) else { return };
        let of_all = |function: &Value, field: &str| (number(&function[field]) * ios as f64).round() as i64;
        let mut found = 0;
        for (name, before) in &unchanged {
            let Some((_, after)) = edited.iter().find(|other| other.0 == *name) else { continue };
            let [before, after] = [before, after]
                .map(|function| [of_all(function, "instructions_per_io"), of_all(function, "calls_per_io")]);
            let is_changed = plant.function.contains(&format!(" {name}("));
            let planted = if is_changed { ios * PLANTED } else { 0 };
            assert_eq!(after, [before[0] + planted, before[1]], "{name}");
            if is_changed {
                assert_eq!(after[1], ios, "{name}");
                found += 1;
            }
        }
        assert!(found == 1 && unchanged.len() > 2, "{unchanged:?}");
    }

    #[test]
    fn a_planted_change_of_a_module_is_found_exactly() {
        let plant = Plant {
            module: "null_blk",
            sources: ("drivers/block/null_blk", "main.c"),
            function: "static blk_status_t null_queue_rq(struct blk_mq_hw_ctx *hctx,",
            place: "might_sleep_if",
        };
        is_found_exactly(&plant, (100, NULL_BLK));
    }

    #[test]
    fn a_planted_change_of_libceph_is_found_exactly() {
        let plant = Plant {
            module: "libceph",
            sources: ("net/ceph", "messenger.c"),
            function: "void ceph_con_send(struct ceph_connection *con, struct ceph_msg *msg)",
            place: "/* set src+dst */",
        };
        let job = "--kernel debian:6.1 --replicates 1 --quiet --stack rbd --direct=1 --size=1m --bs=64k --rw=write";
        is_found_exactly(&plant, (20, job));
    }
}
