//! Every command of the README, the guide, the recipes, the experiment files and the examples of the help is one that iotoll takes. Those with a job or an
//! experiment are resolved to the plan that would be measured; of the others, which would start something, the flags are parsed.

use super::iotoll::{Folder, Iotoll};
use super::machine::{needs, tool};
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A command, and where it is written.
struct Documented {
    place: String,
    words: Vec<String>,
}

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new(ROOT).join(folder)).unwrap().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    files.sort();
    files
}

/// The lines of the code blocks of a page, with those that a backslash continues in one.
fn code_lines(text: &str) -> Vec<(usize, String)> {
    let (mut lines, mut fence, mut open): (Vec<(usize, String)>, Option<bool>, bool) = (Vec::new(), None, false);
    for (number, line) in text.lines().enumerate() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            // A block of text is an output.
            fence = if fence.is_some() { None } else { Some(language != "text") };
            continue;
        }
        if !fence.unwrap_or(line.starts_with("    ")) {
            continue;
        }
        let (part, continued) = match line.trim().strip_suffix('\\') {
            Some(part) => (part, true),
            None => (line.trim(), false),
        };
        match lines.last_mut().filter(|_| open) {
            Some((_, before)) => before.push_str(part),
            None => lines.push((number + 1, part.to_owned())),
        }
        open = continued;
    }
    lines
}

/// The commands of iotoll in a line of a shell.
fn commands(place: &str, line: &str) -> Vec<Documented> {
    let line = line.trim_start_matches("- run: ").trim_start_matches("# Run: ");
    let line = ["here$", "there$"].iter().find_map(|prompt| line.strip_prefix(prompt)).unwrap_or(line);
    if !line.contains("iotoll ") {
        return Vec::new();
    }
    let words = shell_words::split(line).unwrap_or_else(|error| panic!("{place}: {line}: {error}"));
    let parts = words.split(|word| ["&", "&&", "|", ";"].contains(&word.as_str()));
    let ours = parts.filter(|words| words.first().is_some_and(|word| word == "iotoll") && words.len() > 1);
    let words = ours.map(|words| words[1..].iter().take_while(|word| *word != ">").cloned().collect());
    words.map(|words| Documented { place: place.to_owned(), words }).collect()
}

fn all() -> Vec<Documented> {
    let pages = [vec![Path::new(ROOT).join("README.md")], files("docs/guide", "md"), files("docs/recipes", "md")];
    let mut found = Vec::new();
    for page in pages.concat() {
        let name = page.file_name().unwrap().display().to_string();
        for (number, line) in code_lines(&fs::read_to_string(&page).unwrap()) {
            found.extend(commands(&format!("{name}:{number}"), &line));
        }
    }
    for file in files("experiments", "toml") {
        let name = file.file_name().unwrap().display().to_string();
        for line in fs::read_to_string(&file).unwrap().lines().filter(|line| line.starts_with("# Run: iotoll ")) {
            for part in line.split("; then ") {
                found.extend(commands(&name, part.split(", once").next().unwrap()));
            }
        }
    }
    found.extend(examples());
    found
}

/// The examples of the help: of every verb at least two.
fn examples() -> Vec<Documented> {
    let text = include_str!("../../src/arguments/examples.txt");
    let lines = text.lines().filter(|line| line.starts_with("  iotoll "));
    let found: Vec<Documented> = lines.flat_map(|line| commands("an example of the help", line.trim())).collect();
    let verbs = text.lines().filter(|line| line.starts_with("iotoll")).count();
    assert!(verbs > 12 && found.len() >= 2 * verbs, "{verbs}");
    found
}

/// The words that the three dots of a page stand for.
fn filled(words: &[String]) -> Vec<String> {
    let mut whole = Vec::new();
    for word in words {
        let before = whole.last().map(String::as_str).unwrap_or_default();
        match (word.as_str(), before) {
            ("…", "--candidate") => whole.push("bs=8k".to_owned()),
            ("…", "run") => whole.extend(["--kernel", "debian:6.12", "--rw=randread", "--bs=4k"].map(str::to_owned)),
            ("…", "ftq") => whole.extend(["--target", "data", "--rw=read"].map(str::to_owned)),
            _ => whole.push(word.clone()),
        }
    }
    whole
}

/// The job file that the README shows.
fn job_file() -> String {
    let readme = fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    let block = readme.split("with this `job.fio`:\n\n").nth(1).unwrap().split("\n\n").next().unwrap();
    block.lines().map(|line| format!("{}\n", line.strip_prefix("    ").unwrap())).collect()
}

/// A folder with the files that the commands name.
fn folder() -> Folder {
    let folder = Folder::with_file("data", 1 << 20);
    for name in ["job.fio", "bench.fio", "net.fio", "a.fio", "b.fio"] {
        folder.write(name, job_file());
    }
    std::os::unix::fs::symlink(Path::new(ROOT).join("experiments"), folder.path("experiments")).unwrap();
    fs::copy(folder.path("experiments/psync-or-io_uring.toml"), folder.path("experiment.toml")).unwrap();
    folder
}

/// The command with a flag that lets it do nothing.
fn harmless(folder: &Folder, words: &[String]) -> Iotoll {
    let plans =
        ["run", "compare", "ftq"].contains(&words[0].as_str()) || words.starts_with(&["guest".into(), "run".into()]);
    let verb = if words[0] == "guest" { 2 } else { 1 };
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let (place, flag) = if plans { (verb.min(end), "--parse-only") } else { (end, "--help") };
    let flag = (!words.iter().any(|word| word == flag)).then_some(flag);
    let words = words[..place].iter().map(String::as_str).chain(flag).chain(words[place..].iter().map(String::as_str));
    words.fold(folder.iotoll(""), Iotoll::word)
}

#[test]
fn every_documented_command_is_one_that_iotoll_takes() {
    let folder = folder();
    let documented = all();
    assert!(documented.len() > 100, "{}", documented.len());
    let mut wrong = Vec::new();
    for Documented { place, words } in &documented {
        let words = filled(words);
        let ended = harmless(&folder, &words).run();
        // The pages are for machines with more CPUs, and for one with an earlier record.
        let elsewhere = ["not online", "iotoll-runs/2026-05-03T101500Z-compare: reading the record"]
            .iter()
            .any(|why| ended.stderr.contains(why));
        if ended.code != Some(0) && !elsewhere {
            wrong.push(format!("{place}: iotoll {}: {}", words.join(" "), ended.stderr.trim()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_readme_s_job_is_one_for_fio_too() {
    let folder = Folder::new();
    folder.write("job.fio", job_file());
    folder.iotoll("run job.fio --size=4m --runtime=300ms --background 200ms --no-save --quiet").run().done();
    needs!("fio");
    tool("fio", &["--parse-only", &folder.name("job.fio")]).unwrap();
}
