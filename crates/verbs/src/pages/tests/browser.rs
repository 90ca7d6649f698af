//! The page of a long recording in a browser: drawn at once, its tracks hidden and shown, zoomed down to single readings.

use crate::{Finding, ftq};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Debian's name of the program. A browser that hangs is ended.
const BROWSER: &str = "timeout -k 1 100 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
                       --hide-scrollbars --window-size=1200,1600 --disable-background-networking --enable-logging=stderr";

/// CPU time of the threads that draw pages, which other processes do not prolong.
fn work_seconds(browser: &Child) -> f64 {
    let of = |entry: fs::DirEntry| {
        let [stat, command] = ["stat", "cmdline"].map(|name| fs::read_to_string(entry.path().join(name)));
        let stat = stat.ok().filter(|_| command.is_ok_and(|it| it.contains("--type=renderer")))?;
        let fields: Vec<u32> = stat.rsplit_once(')')?.1.split(' ').map(|field| field.parse().unwrap_or(0)).collect();
        (fields[3] == browser.id()).then(|| f64::from(fields[12] + fields[13]) / 100.0)
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(of).sum()
}

#[test]
fn a_page_of_a_long_recording_is_drawn_at_once_and_answers_the_mouse() {
    let folder = std::env::temp_dir().join(format!("iotoll-browser-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (page, script) =
        (report::html::html(&ftq::page::fixture::named("dirty_limit").document()), include_str!("browser.js"));
    let place = folder.join("page.html");
    fs::write(&place, page.replacen("<head>", &format!("<head><script>{script}</script>"), 1)).unwrap();
    let mut words = BROWSER.split_whitespace();
    let mut browser = Command::new(words.next().unwrap());
    browser.args(words).arg(format!("--user-data-dir={}", folder.join("profile").display())).arg(&place);
    let mut browser = browser.process_group(0).stderr(Stdio::piped()).spawn().unwrap();
    let (mut told, mut others, mut work) = (Vec::<Value>::new(), Vec::new(), 0.0);
    for line in BufReader::new(browser.stderr.take().unwrap()).lines().map_while(Result::ok) {
        let Some((_, said)) = line.split_once(":CONSOLE:") else { continue };
        let Some((_, said)) = said.split_once("told: ") else {
            others.push(line);
            continue;
        };
        told.push(serde_json::from_str(said.rsplit_once("\", source: ").unwrap().0).unwrap());
        if told.len() == 2 {
            break;
        }
        work = work_seconds(&browser);
    }
    let group = format!("-{}", browser.id());
    Command::new("kill").args(["-KILL", "--", &group]).status().unwrap();
    browser.wait().unwrap();
    // Its processes may still be writing.
    while fs::remove_dir_all(&folder).is_err_and(|_| folder.exists()) {}
    assert_eq!(others, Vec::<String>::new(), "the console's errors and warnings");
    let [first, told] = told.as_slice() else {
        let path = std::env::var_os("IOTOLL_SKIP_LOG").filter(|path| !path.is_empty());
        let log = path.map(|path| fs::File::options().append(true).create(true).open(path).unwrap());
        return log
            .iter()
            .for_each(|mut log| writeln!(log, "SKIP {}: no chromium starts here", module_path!()).unwrap());
    };
    assert!(first["drawn"].as_f64().unwrap() < 1000.0 || work < 1.0, "{first}, {work} s of work");
    let names = ["time", "worker", "dirty", "writeback", "sleeps", "net.ib0.tx_bytes"];
    let expected = json!({"zoomed": ["false", "true", "false"], "names": names, "hidden": [true, true, true, true, true], "recoloured": true});
    for (key, expected) in expected.as_object().unwrap() {
        assert_eq!(&told[key], expected, "{told}");
    }
    let number = |value: &Value| value.as_u64().unwrap();
    assert!(number(&told["all"]) > 61_000 && told["again"] == told["all"], "{told}");
    let seen: Vec<u64> = told["seen"].as_array().unwrap().iter().map(number).collect();
    assert!(seen[0] < 6200 && seen[1] < seen[0] / 10 && (1..12).contains(&seen[2]), "{told}");
}
