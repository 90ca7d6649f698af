//! Traces: fio replays ours with the same calls, and we replay fio's.

use super::iotoll::{Folder, PROGRAM};
use super::like_fio::under_strace;
use super::machine::needs;

const WRITES_AND_READS: &str = "--name=x --size=32k --bs=4k --rw=randrw --nrfiles=2 --fsync=2";

/// The reads, writes and syncs of a command.
fn calls(folder: &Folder, command: &[&str]) -> Vec<String> {
    let of_io = "trace=pread64,pwrite64,fsync,fdatasync";
    let (trace, _) = under_strace(folder, &["-y", "-s", "0", "-e", of_io], command);
    let place = std::fs::canonicalize(folder.path(".")).unwrap();
    super::like_fio::calls(&trace, &place.display().to_string()).concat()
}

/// The lines of a trace without their times and the folders of files: what is issued.
fn issued(folder: &Folder, trace: &str) -> Vec<String> {
    let text = folder.text(trace);
    let words = text.lines().map(|line| line.split(' ').collect::<Vec<_>>()).filter(|words| words.len() == 5);
    words
        .map(|words| {
            let file = words[1].rsplit('.').next().unwrap();
            // Syncs have no range, whatever is there.
            let range = if words[2].ends_with("sync") { String::new() } else { words[3..].join(" ") };
            format!("{} {file} {range}", words[2])
        })
        .collect()
}

#[test]
fn traces_are_replayed_by_both() {
    needs!("fio", "strace");
    let folder = Folder::new();
    folder.command(&format!("fio {WRITES_AND_READS} --write_iolog=theirs")).run().done();
    folder.measured(&format!("run {WRITES_AND_READS} --write_iolog=ours"));
    for trace in ["theirs", "ours"] {
        let options = [format!("--read_iolog={trace}"), "--replay_no_stall=1".to_owned()];
        let [read, fast] = options.each_ref().map(String::as_str);
        let by_fio = calls(&folder, &["fio", "--name=r", read, fast]);
        let run = [PROGRAM, "run", "--no-save", "--quiet", "--background", "200ms", read, fast];
        let by_us = calls(&folder, &[&run[..], &["--write_iolog=again"]].concat());
        assert_eq!(by_us, by_fio, "{trace}");
        assert!(by_us.len() > 8, "{by_us:?}");
        assert_eq!(issued(&folder, "again"), issued(&folder, trace), "{trace}");
    }
}

#[test]
fn a_trace_changes_only_files_in_the_folders_of_its_job() {
    let (folder, elsewhere) = (Folder::new(), Folder::with_file("victim", 8192));
    let victim = elsewhere.name("victim");
    let before = elsewhere.read("victim");
    let trace = |name: &str, file: &str, what: &str| {
        folder.write(name, format!("fio version 3 iolog\n0 {file} add\n0 {file} open\n500 {file} {what}\n"));
    };
    trace("writes", &victim, "write 0 4096");
    trace("trims", &victim, "trim 0 4096");
    trace("lengthens", &victim, "read 0 16384");
    trace("reads", &victim, "read 0 4096");
    std::os::unix::fs::symlink(elsewhere.path("."), folder.path("link")).unwrap();
    trace("through", "link/victim", "write 0 4096");
    let run = |options: &str| folder.iotoll(&format!("run --no-save --name=r {options}")).run();
    for name in ["writes", "trims", "lengthens", "through"] {
        let says = [&*format!("read_iolog: {name}: it changes"), "which is not below", "replay_redirect=FILE"];
        run(&format!("--read_iolog={name}")).refused(2, &says);
        assert_eq!(elsewhere.read("victim"), before, "{name}");
    }
    folder.measured("run --name=r --read_iolog=reads");
    assert_eq!(elsewhere.read("victim"), before);
    folder.measured("run --name=r --read_iolog=writes --replay_redirect=mine");
    assert_eq!(elsewhere.read("victim"), before);
    folder.measured(&format!("run --name=r --read_iolog=writes --directory={}", elsewhere.path(".").display()));
    assert_ne!(elsewhere.read("victim"), before);
}
