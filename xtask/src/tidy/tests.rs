//! Checks every rule against trees that break it: a rule that cannot fail does not belong in the table.

use super::*;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

const MANIFEST: &str = "[package]\nname = \"x\"\n\n[lints]\nworkspace = true\n\n[dependencies]\n";

const LAB: &str = r#"//! The lab.
use model::plan;
use std::path::Path;
// It does not println! a thing.
const A: &str = "unsafe todo!";
"#;

const PLAN: &str = "//! Plan.
use crate::job::{Job, size::Size};
use crate::Plan;
const DEPTH: u32 = 1;

#[cfg(test)]
mod tests {
    fn f() { crate::plan::g(); }
}
";

const SYS: &str = "//! System.
fn f() {
    // SAFETY: nothing is passed.
    unsafe { g() };
}
/// Does g.
///
/// # Safety
/// None.
#[inline]
pub unsafe fn g() {}
";

/// A tree in a temporary directory, removed when the test ends.
struct Fixture {
    root: PathBuf,
}

impl Fixture {
    fn new(files: &[(&str, String)]) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("iotoll-tidy-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let fixture = Self { root: std::env::temp_dir().join(name) };
        for (path, text) in files {
            let path = fixture.root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fixture
    }

    fn check(&self) -> Vec<Breach> {
        check(&Tree::read(&self.root).unwrap())
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // A leftover directory in the temporary directory does no harm.
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// A small tree that follows every rule and comes close to breaking some.
fn kept() -> Vec<(&'static str, String)> {
    vec![
        ("ARCHITECTURE.md", format!("# Map\n\n```\n{}```\n", imports::architecture())),
        ("README.md", "# A b\n\n[map](ARCHITECTURE.md#map), [a](#a-b), [site](https://example.org)\n".to_owned()),
        ("docs/SUMMARY.md", "[A](a.md)\n".to_owned()),
        (
            "docs/a.md",
            "# A\n\n(`DEPTH`, `model/src/plan.rs`), (`DEPTH`, same file), `job/size.rs`, `NAME.rs`, `model/plan.rs`, in `UTC`\n".to_owned(),
        ),
        ("Cargo.lock", "source = \"registry+https://github.com/rust-lang/crates.io-index\"\n".to_owned()),
        ("crates/model/Cargo.toml", MANIFEST.to_owned()),
        ("crates/lab/Cargo.toml", format!("{MANIFEST}model.workspace = true\nsys = {{ path = \"../sys\" }}\n")),
        ("crates/lab/src/lib.rs", LAB.to_owned()),
        ("crates/sys/Cargo.toml", "[dependencies]\nlibc.workspace = true\n".to_owned()),
        ("crates/sys/src/lib.rs", SYS.to_owned()),
        ("crates/iotoll/src/main.rs", "//! The binary.\nfn main() {\n    println!(\"\");\n}\n".to_owned()),
        // Imports that form no cycle: of a child and its parent, of tests, of names that are not modules of the crate.
        ("crates/model/src/lib.rs", "//! Model.\nmod job;\nmod plan;\n".to_owned()),
        ("crates/model/src/job.rs", "//! Job.\nmod size;\n#[cfg(test)]\nmod tests;\nuse size::Size;\n".to_owned()),
        ("crates/model/src/job/size.rs", "//! Size.\nuse super::Job;\n".to_owned()),
        ("crates/model/src/job/tests.rs", "//! Tests.\nuse crate::plan::Plan;\n".to_owned()),
        ("crates/model/src/plan.rs", PLAN.to_owned()),
        ("crates/verbs/src/ftq/page.rs", "//! Page.\nuse crate::ftq::plan::Plan;\n".to_owned()),
        ("crates/verbs/src/guest/page.rs", "//! Page.\n#[cfg(test)]\nuse lab::session;\n".to_owned()),
        ("crates/verbs/src/guest/measure/run.rs", "//! Run.\nuse lab::session;\n".to_owned()),
        (
            "xtask/lines.toml",
            "\"crates/model\" = [50, 50]\n\"crates/lab\" = [4, 0]\n\"crates/sys\" = [9, 0]\n\"crates/iotoll\" = [3, 0]\n\"crates/verbs\" = [9, 9]\n".to_owned(),
        ),
        ("target/debug/build/mod.rs", "unsafe".to_owned()),
    ]
}

/// What to add to or replace in the valid tree so that the rule breaks at that line.
fn broken(rule: &str) -> Vec<(&'static str, usize, String)> {
    let model = |line: &str| ("crates/model/src/lib.rs", 2, format!("//! Model.\n{line}\n"));
    match rule {
        "imports" => vec![
            ("crates/model/Cargo.toml", 8, format!("{MANIFEST}sys.workspace = true\n")),
            ("crates/model/Cargo.toml", 8, format!("{MANIFEST}[dev-dependencies.iotoll-lab]\n")),
            ("crates/report/Cargo.toml", 9, format!("{MANIFEST}\nlab = {{ path = \"../lab\" }}\n")),
            ("crates/extra/Cargo.toml", 1, MANIFEST.to_owned()),
        ],
        "use" => vec![
            model("pub use lab::worker::Worker;"),
            model("use iotoll_sys::clock;"),
            model("#[path = \"../../lab/src/lib.rs\"] mod lab;"),
        ],
        "verbs" => vec![
            ("crates/verbs/src/ftq/study.rs", 2, "//! Study.\nuse crate::guest::record::Boot;\n".to_owned()),
            ("crates/verbs/src/ftq/measure.rs", 2, "//! Measure.\nuse crate::guest::record::Boot;\n".to_owned()),
            ("crates/verbs/src/pages/limits.rs", 2, "//! Limits.\nuse crate::guest::record::Boot;\n".to_owned()),
            ("crates/verbs/src/guest/study.rs", 2, "//! Study.\nuse lab::session;\n".to_owned()),
        ],
        "architecture" => vec![
            ("ARCHITECTURE.md", 1, imports::architecture().replace("report → model\n", "")),
            ("ARCHITECTURE.md", 7, imports::architecture().replace("report → model\n", "report → model, lab\n")),
        ],
        "unsafe" => vec![
            model("fn f() { unsafe { g() } }"),
            model("#![allow(unsafe_code)]"),
            ("crates/model/Cargo.toml", 1, "[package]\n[dependencies]\n".to_owned()),
        ],
        "print" => ["println!(\"\")", "std::eprintln!()", "let x = dbg!(1);"].map(model).to_vec(),
        "unfinished" => {
            let notes = [concat!("// FIX", "ME later"), concat!("/* HA", "CK */")];
            let code = ["fn f() { todo!() }", "fn f() { unimplemented!() }", "#[ignore]", "#[ignore = \"slow\"]"];
            let mut trees: Vec<_> = notes.into_iter().chain(code).map(model).collect();
            trees.push(("check", 1, concat!("# XX", "X\n").to_owned()));
            trees
        }
        "machine-path" => vec![
            ("README.md", 1, concat!("see /wo", "rk/main\n").to_owned()),
            model(concat!("const A: &str = \"/wo", "rk/x\";")),
        ],
        "registry" => vec![
            ("Cargo.lock", 1, "source = \"registry+https://mirror.example/index\"\n".to_owned()),
            (".cargo/config.toml", 1, "[source.crates-io]\n".to_owned()),
        ],
        "name" => vec![
            ("crates/model/src/utils.rs", 1, "//! Model.\n".to_owned()),
            ("crates/model/src/common/job.rs", 1, "//! Model.\n".to_owned()),
        ],
        "opening" => vec![("crates/model/src/job.rs", 1, "use std::fmt;\n//! Late.\n".to_owned())],
        "length" => vec![("crates/model/src/job.rs", 601, format!("//! Long.\n{}", "\n".repeat(600)))],
        "link" => vec![
            ("README.md", 3, "# A\n\n[gone](docs/gone.md)\n".to_owned()),
            ("README.md", 2, "# A\n[no heading](ARCHITECTURE.md#crates)\n".to_owned()),
            ("README.md", 1, "![picture](docs/images/a.svg)\n".to_owned()),
            ("docs/a.md", 1, "[beyond the book](../ARCHITECTURE.md)\n".to_owned()),
            ("docs/left-out.md", 1, "# Left out\n".to_owned()),
        ],
        "citation" => vec![
            ("docs/a.md", 3, "# A\n\nsee `model/src/gone.rs`\n".to_owned()),
            ("docs/a.md", 4, "# A\n\n`job.rs`,\n(`DEPTH`, same file)\n".to_owned()),
            ("docs/a.md", 1, "(`DEPTH`, `DEPTHS`, `model/src/plan.rs`)\n".to_owned()),
        ],
        "ceiling" => vec![
            ("xtask/lines.toml", 1, "\"crates/model\" = [2, 50]\n".to_owned()),
            ("xtask/lines.toml", 1, "\"crates/model\" = [50, 200]\n".to_owned()),
            ("xtask/lines.toml", 1, String::new()),
        ],
        _ => Vec::new(),
    }
}

#[test]
fn a_tree_that_follows_the_rules_has_no_breach() {
    assert_eq!(Fixture::new(&kept()).check(), []);
}

#[test]
fn every_rule_reports_the_line_that_breaks_it() {
    for rule in &RULES {
        let trees = broken(rule.name);
        assert!(!trees.is_empty(), "no tree breaks the rule `{}`: add one, or drop the rule", rule.name);
        for (path, line, text) in trees {
            let mut files = kept();
            files.retain(|(kept, _)| *kept != path);
            files.push((path, text.clone()));
            let found = Fixture::new(&files).check();
            let expected = found.iter().any(|it| (it.rule, it.path.as_str(), it.line) == (rule.name, path, line));
            assert!(expected, "`{}` at {path}:{line} of {text:?} is not among {found:?}", rule.name);
        }
    }
}

#[test]
fn a_breach_reads_like_a_compiler_error() {
    let breach = Breach { rule: "print", ..Breach::new("crates/lab/src/lib.rs", 7, "println! outside the binary") };
    assert_eq!(breach.to_string(), "crates/lab/src/lib.rs:7: println! outside the binary [print]");
}

#[test]
fn the_tree_of_a_missing_root_is_an_error() {
    assert!(Tree::read(&std::env::temp_dir().join("iotoll-tidy-none")).is_err());
}
