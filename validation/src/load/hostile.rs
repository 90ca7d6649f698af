//! Hostile input by area: one random input from a seed, and whether iotoll withstands it.

mod inputs;
mod server;

use super::argument;
use crate::bench::seeded::Seeded;
use anyhow::Context;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The result of one input.
struct Attempt {
    /// What was tried, in words.
    input: String,
    /// Why iotoll did not withstand it.
    fell: Option<String>,
    /// The longest wait of another client.
    wait_millis: Option<f64>,
}

/// Tries one random input of an area.
type Area = fn(&mut Seeded) -> anyhow::Result<Attempt>;

const AREAS: [(&str, Area); 8] = [
    ("server", server::attempt),
    ("reports", report),
    ("undo", undo),
    ("exhaustion", exhaustion),
    ("surroundings", surroundings),
    ("programs", inputs::program),
    ("traces", inputs::trace),
    ("edits", inputs::edited),
];

/// Every verb that ends by itself within seconds.
const VERBS: [&str; 7] = [
    "run --background 200ms --quiet --out kept --ioengine=null --size=1m",
    "run --background 200ms --quiet --out kept --filename=data --size=1m --rw=randrw --number_ios=100",
    "cost --background 200ms --no-save --quiet --ios 5 -- true",
    "compare --no-save --quiet --budget 500ms --ioengine=null --size=1m --candidate bs=8k",
    "ftq --no-save --quiet --cpu --duration 200ms",
    "blast --no-save --quiet --duration 300ms --rounds 2",
    "doctor",
];

/// `AREA SEED`: tries one input, beside a record in the folder `base`.
pub fn run(arguments: &[&str]) -> anyhow::Result<()> {
    let area = AREAS.iter().find(|area| arguments.first() == Some(&area.0)).context("no such area")?;
    let mut seeded = Seeded::new(argument(arguments, 1)?);
    let Attempt { input, fell, wait_millis } = area.1(&mut seeded)?;
    match &fell {
        Some(why) => eprintln!("NOT WITHSTOOD: {}: {input}: {why}", area.0),
        None => eprintln!("{}: {input}", area.0),
    }
    println!("{}", serde_json::json!({ "withstood": fell.is_none(), "wait_millis": wait_millis }));
    Ok(())
}

/// Why this is not how iotoll ends.
fn fell(output: &Output) -> Option<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    let lines = said.lines().count();
    match output.status.code() {
        _ if said.contains("panicked") => Some(format!("it panicked: {said}")),
        None => Some(format!("{}", output.status)),
        Some(0) => None,
        Some(1 | 2) if lines == 1 => None,
        // The result says it, with what was measured before.
        Some(1) if lines == 0 && String::from_utf8_lossy(&output.stdout).contains("Failed: ") => None,
        Some(code) => Some(format!("exit status {code} with {lines} lines on standard error: {said}")),
    }
}

fn one_of<T: Copy>(seeded: &mut Seeded, items: &[T]) -> Option<T> {
    items.get(usize::try_from(seeded.below(items.len() as u64)).ok()?).copied()
}

/// An empty folder of one input.
fn fresh(name: &str) -> anyhow::Result<PathBuf> {
    let path = std::path::absolute(name)?;
    if path.exists() {
        std::fs::remove_dir_all(&path)?;
    }
    std::fs::create_dir(&path)?;
    Ok(path)
}

fn report(seeded: &mut Seeded) -> anyhow::Result<Attempt> {
    const FORMATS: [&str; 6] = ["table", "json", "mail", "markdown", "csv", "html"];
    const MARKUP: [&str; 5] = [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "\u{1b}[2J\u{7}",
        "</td>|`x`",
        "\u{202e}\n\n# x",
    ];
    let base = std::fs::read("base/record.jsonl")?;
    let folder = fresh("hostile")?;
    let format = one_of(seeded, &FORMATS).context("formats")?;
    let mut iotoll = Command::new("iotoll");
    let input = match seeded.below(8) {
        0 => {
            std::os::unix::fs::symlink("/nowhere", folder.join("link"))?;
            iotoll
                .args(["run", "--quiet", "--background", "200ms", "--ioengine=null", "--size=1m", "--out"])
                .arg(folder.join("link"));
            "--out is a dangling link".to_owned()
        }
        1 | 2 => {
            let length = usize::try_from(seeded.below(base.len() as u64))?;
            std::fs::write(folder.join("record.jsonl"), base.get(..length).unwrap_or_default())?;
            iotoll.arg("report").arg(&folder).args(["--format", format]);
            format!("a record cut to {length} bytes, {format}")
        }
        _ => {
            let markup = one_of(seeded, &MARKUP).context("markup")?;
            let mut lines = Vec::new();
            let (mut count, part) = (0, 1 + seeded.below(20));
            for line in base.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let mut value: Value = serde_json::from_slice(line)?;
                mark(&mut value, markup, part, seeded, &mut count);
                serde_json::to_writer(&mut lines, &value)?;
                lines.push(b'\n');
            }
            std::fs::write(folder.join("record.jsonl"), lines)?;
            iotoll.arg("report").arg(&folder).args(["--format", format]);
            format!("{markup:?} in {count} strings, {format}")
        }
    };
    let output = iotoll.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let leaks = (format == "html" && (text.contains("<script>alert") || text.contains("<img src=x")))
        || text.contains('\u{1b}');
    let leak = leaks.then(|| "the output contains it".to_owned());
    Ok(Attempt { input, fell: fell(&output).or(leak), wait_millis: None })
}

/// Puts `markup` into one of `part` strings.
fn mark(value: &mut Value, markup: &str, part: u64, seeded: &mut Seeded, count: &mut u64) {
    match value {
        Value::String(text) if seeded.below(part) == 0 => {
            *count += 1;
            text.push_str(markup);
        }
        Value::Array(values) => values.iter_mut().for_each(|value| mark(value, markup, part, seeded, count)),
        Value::Object(values) => values.values_mut().for_each(|value| mark(value, markup, part, seeded, count)),
        _ => {}
    }
}

fn undo(seeded: &mut Seeded) -> anyhow::Result<Attempt> {
    const SHELL: [&str; 6] =
        ["$(touch pwned)", "`touch pwned`", "'; touch pwned; '", "\"; touch pwned; \"", "a b", "&touch pwned&"];
    let folder = fresh("undo")?;
    let victim = folder.join("victim");
    std::fs::write(&victim, "mine\n")?;
    let mut iotoll = Command::new("iotoll");
    iotoll.current_dir(&folder);
    let input = if seeded.below(2) == 0 {
        forge(&folder.join("state/iotoll"), &victim, seeded)?;
        iotoll.env("XDG_STATE_HOME", folder.join("state"));
        iotoll.args("run --no-save --quiet --background 200ms --ioengine=null --size=1m".split(' '));
        "a forged ledger".to_owned()
    } else {
        let name: String = (0..=seeded.below(3)).filter_map(|_| one_of(seeded, &SHELL)).collect();
        std::fs::create_dir(folder.join(&name))?;
        iotoll.env("TMPDIR", folder.join(&name));
        let service = "server=iotoll serve --backend memory:1m --unix {server.socket}";
        iotoll.args(
            "run --no-save --quiet --background 200ms --ioengine=nbd --uri={server.uri} --number_ios=9 --service"
                .split(' '),
        );
        iotoll.arg(service);
        format!("TMPDIR={name}")
    };
    let output = iotoll.output()?;
    let touched = std::fs::read(&victim)? != b"mine\n" || folder.join("pwned").exists();
    let touched = touched.then(|| "another file was touched".to_owned());
    Ok(Attempt { input, fell: fell(&output).or(touched), wait_millis: None })
}

/// A ledger that iotoll would not write: it belongs to another user, others can write to it, or it is damaged.
fn forge(folder: &Path, victim: &Path, seeded: &mut Seeded) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(folder)?;
    let path = folder.join(format!("{}-{}.jsonl", seeded.below(1 << 22), seeded.below(1 << 30)));
    let victim = victim.display().to_string();
    let entry = serde_json::json!({ "add": [1, { "restore": [{ "found": { "path": victim, "value": "theirs", "kernel": false }, "set": ["mine\n"] }] }] });
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let header = serde_json::json!({ "opened": {
        "schema": "iotoll.ledger/1", "boot_id": boot.trim(), "unix_seconds": 1.0, "command_line": ["iotoll"], "directory": "/",
        "iotoll": null,
    } });
    let mut text = format!("{header}\n{entry}\n").into_bytes();
    let forged = seeded.below(3);
    if forged == 2 || !rustix::process::geteuid().is_root() {
        let place = usize::try_from(seeded.below(text.len() as u64 - 1))?;
        text.truncate(place);
    }
    std::fs::write(&path, text)?;
    match forged {
        0 => std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666))?,
        1 if rustix::process::geteuid().is_root() => std::os::unix::fs::chown(&path, Some(65534), None)?,
        _ => {}
    }
    Ok(())
}

/// `under` starts iotoll with a verb.
fn under(under: &[String], verb: &str, folder: &Path) -> anyhow::Result<Output> {
    std::fs::write(folder.join("data"), vec![7; 1 << 20])?;
    // By its path: some starters have no variables.
    let program = std::env::current_exe()?.with_file_name("iotoll");
    let mut command = Command::new(under.first().context("a starter")?);
    command.args(under.get(1..).unwrap_or_default()).arg(program).args(verb.split(' '));
    command.current_dir(folder).stdin(Stdio::null()).env("XDG_STATE_HOME", folder.join("state"));
    command.output().context("util-linux and coreutils are needed")
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn exhaustion(seeded: &mut Seeded) -> anyhow::Result<Attempt> {
    use std::os::unix::fs::PermissionsExt;
    let folder = fresh("exhausted")?;
    let verb = one_of(seeded, &VERBS).context("verbs")?;
    let root = rustix::process::geteuid().is_root();
    let limit = |name: &str, value: u64| words(&format!("prlimit --{name}={value}:{value}"));
    let starter = match seeded.below(5) {
        // The loader needs a few.
        0 => limit("nofile", 5 + seeded.below(60)),
        1 => limit("memlock", seeded.below(1 << 18)),
        2 => limit("fsize", seeded.below(1 << 16)),
        3 if root => {
            std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777))?;
            // Nobody else's processes count. Root ignores this limit.
            let user = 100_000 + seeded.below(100_000);
            let become_user =
                format!("setpriv --reuid={user} --regid={user} --clear-groups --inh-caps=-all --bounding-set=-all --");
            [limit("nproc", 1 + seeded.below(30)), words(&become_user)].concat()
        }
        3 => limit("nproc", 1 + seeded.below(30)),
        _ if root => {
            let mut script = words("unshare -m sh -c");
            let size = 1024 * (1 + seeded.below(2048));
            script.push(format!("mount -t tmpfs -o size={size} full . && cd . && TMPDIR=$PWD; export TMPDIR; cd \"$PWD\"; exec \"$0\" \"$@\""));
            script
        }
        _ => limit("fsize", seeded.below(1 << 16)),
    };
    let output = under(&starter, verb, &folder)?;
    Ok(Attempt { input: format!("{} {verb}", starter.join(" ")), fell: fell(&output), wait_millis: None })
}

fn surroundings(seeded: &mut Seeded) -> anyhow::Result<Attempt> {
    const ODD: [&str; 10] = [
        "env --ignore-signal=HUP,INT,TERM,CHLD,PIPE",
        "env --block-signal",
        "env -i PATH=/usr/bin:/bin",
        "env -u HOME -u XDG_STATE_HOME",
        "env TERM=dumb LC_ALL=tr_TR.UTF-8 LANGUAGE=de TZ=Asia/Kathmandu",
        "env HOME=/nonexistent COLUMNS=-1 LINES=x",
        "setsid -w",
        "nohup",
        "in <&-",
        "in >&-",
    ];
    let folder = fresh("surrounded")?;
    let verb = one_of(seeded, &VERBS).context("verbs")?;
    let mut starter = Vec::new();
    for _ in 0..=seeded.below(3) {
        let odd = one_of(seeded, &ODD).context("surroundings")?;
        match odd.strip_prefix("in ") {
            Some(redirection) => {
                starter.extend(words("sh -c"));
                starter.push(format!("exec \"$0\" \"$@\" {redirection}"));
            }
            None => starter.extend(words(odd)),
        }
    }
    let umask =
        one_of(seeded, &["0", "022", "777"]).filter(|mask| *mask != "777" || rustix::process::geteuid().is_root());
    starter.extend(words("sh -c"));
    starter.push(format!("umask {}; exec \"$0\" \"$@\"", umask.unwrap_or("077")));
    let output = under(&starter, verb, &folder)?;
    Ok(Attempt { input: format!("{} {verb}", starter.join(" ")), fell: fell(&output), wait_millis: None })
}
