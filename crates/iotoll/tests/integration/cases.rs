//! Tables of command lines and what they come to, in `cases/`.
//!
//! A case has a name and steps in a folder of its own. An object makes files: a text, a number of bytes, the length of a file of holes, the
//! target of a link, or `null` for a folder. A list is a command line, what it says, and its exit status. What it says are parts of its output
//! (with a `!` before, what it does not say), or values by their path in its JSON: two numbers are bounds, a text is a part, `#` is the length of a
//! list, `warnings:CODE` are the caveats of a code, `warnings:` are all. `$ ` begins a shell's line, `measured ` a measurement that is short and not saved.

use super::iotoll::{Ended, Folder, PROGRAM, at_once, items, short};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;

/// Plays the cases of a table, four at once, because they mostly wait, or alone. Their exit status is `code` where none is given. Names that begin with `alone`
/// are of cases that decide by costs: only these, or only the others.
fn play(table: &str, code: i64, alone: bool) {
    let mut cases: BTreeMap<String, Vec<Value>> = serde_json::from_str(table).unwrap();
    cases.retain(|name, _| name.starts_with("alone") == alone);
    let cases = Mutex::new(cases);
    at_once(0..if alone { 1 } else { 4 }, |_| {
        let next = || cases.lock().unwrap().pop_first();
        while let Some((name, steps)) = next() {
            let folder = Folder::new();
            for it in steps {
                match it.as_object() {
                    Some(files) => files.iter().for_each(|(name, file)| make(&folder, name, file)),
                    None => {
                        let code = it[2].as_i64().unwrap_or(code);
                        step(&folder, &name, it[0].as_str().unwrap(), &it[1], code as i32);
                    }
                }
            }
            folder.assert_no_processes();
        }
    });
}

fn make(folder: &Folder, name: &str, file: &Value) {
    let path = folder.path(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    match file {
        Value::Null => fs::create_dir(path).unwrap(),
        Value::Number(bytes) => folder.write(name, vec![0x5a; bytes.as_u64().unwrap() as usize]),
        Value::String(text) => folder.write(name, text),
        _ if file["link"].is_string() => std::os::unix::fs::symlink(file["link"].as_str().unwrap(), path).unwrap(),
        _ => fs::File::create(path).unwrap().set_len(file["holes"].as_u64().unwrap()).unwrap(),
    }
}

fn run(folder: &Folder, line: &str) -> Ended {
    if let Some(line) = line.strip_prefix("$ ") {
        return folder.command("bash -c").word(format!("IOTOLL={PROGRAM}\n{line}")).run();
    }
    let measured = line.strip_prefix("measured ").map(|line| short(&line.replacen(' ', " --meters thread ", 1)));
    let line = measured.unwrap_or_else(|| line.to_owned());
    folder.iotoll(&line).run()
}

/// Runs a command line and compares what it says. A refusal (2) leaves no trace; any failure says one line.
fn step(folder: &Folder, name: &str, line: &str, says: &Value, code: i32) {
    let before = folder.listing();
    let ended = run(folder, line);
    let shown: String = ended.stdout.chars().take(1000).collect();
    let how = format!("{name}: {line}: {:?}: {}\n{shown}", ended.code, ended.stderr);
    assert_eq!(ended.code, Some(code), "{how}");
    if let Some(values) = says.as_object() {
        let finding = ended.json();
        for (path, expected) in values {
            let found = at(&finding, path);
            assert!(fits(&found, expected), "{path} is {found}, not {expected}: {how}");
        }
        if line.contains("--fail-on") && finding["limits"].is_array() && (code == 0 || [3, 4].contains(&code)) {
            limits_are_told(&ended);
        }
        return assert!(!line.starts_with("measured ") || code != 0 || ended.stderr.is_empty(), "{how}");
    }
    let text = if code == 0 { &ended.stdout } else { &ended.stderr };
    for part in items(says).map(|part| part.as_str().unwrap()) {
        assert!(contains(text, part), "'{part}': {how}");
    }
    match code {
        0 => {}
        2 => {
            ended.refused(2, &[]);
            assert_eq!(folder.listing(), before, "{how}");
        }
        _ => ended.failed(code, &[]),
    }
}

/// Standard error has a line for each limit that is not kept. The worst place of each is the first.
#[track_caller]
pub fn limits_are_told(ended: &Ended) {
    let finding = ended.json();
    let found: Vec<[&str; 2]> =
        items(&finding["limits"]).map(|it| ["limit", "state"].map(|key| it[key].as_str().unwrap())).collect();
    let is_first = |place: usize| place == 0 || found[place][0] != found[place - 1][0];
    let failed = (0..found.len()).filter(|place| is_first(*place) && found[*place][1] != "kept");
    let failed: Vec<String> =
        failed.map(|place| format!("iotoll: {} is {}: ", found[place][0], found[place][1])).collect();
    let told: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(told.len(), failed.len(), "{ended:?}");
    assert!(told.iter().zip(&failed).all(|(line, begin)| line.starts_with(begin)), "{ended:?}");
}

/// The value at a path.
fn at(finding: &Value, path: &str) -> Value {
    if let Some(code) = path.strip_prefix("warnings:") {
        let of_code = items(&finding["warnings"]).filter(|it| it["code"] == code || code.is_empty());
        let messages: Vec<&str> = of_code.filter_map(|it| it["message"].as_str()).collect();
        return if messages.is_empty() && !code.is_empty() { Value::Null } else { messages.join("\n").into() };
    }
    path.split('.').fold(finding.clone(), |value, key| match key {
        "#" => value.as_array().map_or(Value::Null, |list| list.len().into()),
        key => key.parse::<usize>().map_or_else(|_| value[key].clone(), |place| value[place].clone()),
    })
}

/// Whether a text has a part, or with `!` before has it not.
fn contains(text: &str, part: &str) -> bool {
    part.strip_prefix('!').map_or_else(|| text.contains(part), |part| !text.contains(part))
}

fn fits(found: &Value, expected: &Value) -> bool {
    match expected {
        Value::Array(bounds) if bounds.len() == 2 && bounds.iter().all(Value::is_number) => {
            let [low, high] = [0, 1].map(|end: usize| bounds[end].as_f64().unwrap());
            found.as_f64().is_some_and(|found| (low..high).contains(&found))
        }
        Value::String(part) => found.as_str().is_some_and(|found| contains(found, part)),
        Value::Number(_) => found.as_f64() == expected.as_f64(),
        _ => found == expected,
    }
}

#[test]
fn what_is_wrong_is_refused_in_one_line_and_leaves_nothing() {
    play(include_str!("cases/refusals.json"), 2, false);
}

#[test]
fn jobs_do_what_their_options_say() {
    play(include_str!("cases/jobs.json"), 0, false);
}

#[test]
fn commands_are_counted_and_their_status_is_kept() {
    play(include_str!("cases/commands.json"), 0, false);
}

#[test]
fn limits_decide_the_exit_status() {
    play(include_str!("cases/limits.json"), 0, false);
}

/// `./check` runs them one at a time.
mod alone {
    #[test]
    fn values_of_a_run_decide_its_exit_status() {
        super::play(include_str!("cases/limits.json"), 0, true);
    }
}
