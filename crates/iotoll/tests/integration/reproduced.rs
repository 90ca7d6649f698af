//! A report can be measured again from itself: its command line and its files, taken out of it, ask for the same work.

use super::iotoll::{Folder, PROGRAM};
use super::machine::needs;
use std::os::unix::fs::symlink;
use std::process::{Command, Output};

const JOB: &str = "[global]\nioengine=psync\nbs=4k\niodepth=1\nsize=1m\nfilename=${DATA}\n\n[it's `reads`]\nrw=randread\nnumber_ios=64\n";
const EXPERIMENT: &str = "title = \"two depths\"\nbudget = \"1s\"\njob = '''\n[a]\nioengine=null\nrw=randread\nsize=1m\n'''\n\
                          arm = [{ name = \"one\" }, { name = \"eight\", options = [\"iodepth=8\"] }]\n";

/// A folder in which `iotoll` is the program, and a shell command in it.
struct Reader {
    folder: Folder,
}

impl Reader {
    fn new() -> Self {
        let folder = Folder::new();
        std::fs::create_dir(folder.path("bin")).unwrap();
        symlink(PROGRAM, folder.path("bin/iotoll")).unwrap();
        Self { folder }
    }

    /// What a shell makes of a command line, with nothing of this process's environment that the command refers to.
    fn shell(&self, command: &str) -> Output {
        let mut shell = Command::new("bash");
        let path = format!("{}:{}", self.folder.path("bin").display(), std::env::var("PATH").unwrap());
        shell.env("PATH", path).env_remove("DATA").current_dir(self.folder.path("."));
        shell.args(["-c", command]).output().unwrap()
    }

    #[track_caller]
    fn succeeds(&self, command: &str) -> String {
        let output = self.shell(command);
        assert!(output.status.success(), "{command}\n{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// The contents of the code blocks of a page: their language, the line above that names them, their text.
fn blocks(page: &str) -> Vec<(String, String, String)> {
    let lines: Vec<&str> = page.lines().collect();
    let mut found = Vec::new();
    let mut place = 0;
    while let Some(line) = lines.get(place) {
        let Some(language) = line.strip_prefix("```") else {
            place += 1;
            continue;
        };
        let length = lines[place + 1..].iter().position(|line| *line == "```").unwrap();
        let above = lines[..place].iter().rev().find(|line| !line.is_empty()).unwrap_or(&"");
        let name = above.trim_end_matches(':').trim_matches('`').to_owned();
        found.push((language.to_owned(), name, lines[place + 1..place + 1 + length].join("\n")));
        place += length + 2;
    }
    found
}

/// The command line that a report prints, and a folder with the files that it prints.
fn reader_of(page: &str) -> (String, Reader) {
    let reader = Reader::new();
    let mut command = None;
    for (language, name, text) in blocks(page) {
        match language.as_str() {
            "sh" => command = Some(text),
            "ini" | "toml" => reader.folder.write(&name, format!("{text}\n")),
            _ => {}
        }
    }
    (command.expect("a command line"), reader)
}

/// Runs a command that prints a markdown report, then runs the command line of that report in an empty folder, with only the
/// files of the report.
#[track_caller]
fn read_again(command: &str, file: (&str, &str)) -> (String, String) {
    let writer = Reader::new();
    writer.folder.write(file.0, file.1);
    let page = writer.succeeds(command);
    let (command, reader) = reader_of(&page);
    let plan = reader.succeeds(&format!("{command} --parse-only"));
    (page, plan)
}

#[test]
fn a_comparison_of_a_job_file_can_be_read_from_its_report() {
    let measure = "DATA='my data' iotoll compare job.fio --candidate 'bs=8k iodepth=1' --budget 1s --meters thread --quiet --no-save \
                   --format markdown";
    let (page, plan) = read_again(measure, ("job.fio", JOB));
    for part in ["rw=randread", "bs=4k", "bs=8k", "iodepth=1", "Storage: my data: ", "Settings: ", "Mitigations: "] {
        assert!(page.contains(part), "'{part}' is not in\n{page}");
    }
    assert!(page.contains(&format!("Made by: iotoll {}, method version ", env!("CARGO_PKG_VERSION"))), "{page}");
    assert!(plan.contains("rw=randread bs=4k") && plan.contains("filename=my data"), "{plan}");
}

#[test]
fn a_run_can_be_measured_again_from_its_report() {
    let measure = "DATA=data iotoll run job.fio --background 200ms --quiet --no-save --format markdown";
    let writer = Reader::new();
    writer.folder.write("job.fio", JOB);
    let (command, reader) = reader_of(&writer.succeeds(measure));
    let again = reader.succeeds(&command);
    let work = "ioengine=psync rw=randread bs=4k size=1m iodepth=1 filename=data number_ios=64";
    assert!(again.contains(work), "{again}");
}

#[test]
fn an_experiment_can_be_read_from_its_report() {
    let measure = "iotoll compare two.toml --meters thread --quiet --no-save --format markdown";
    let (page, plan) = read_again(measure, ("two.toml", EXPERIMENT));
    assert!(page.contains("iodepth=1`\n- `one`: `unchanged`\n- `eight`: `iodepth=8`\n"), "{page}");
    assert!(plan.contains("two depths") && plan.contains("iodepth=8"), "{plan}");
}

#[test]
fn the_job_file_of_a_foreign_fio_is_in_the_report() {
    needs!("fio");
    let writer = Reader::new();
    writer.folder.write("null.fio", "[a]\nioengine=null\nsize=1m\n");
    let page = writer.succeeds("iotoll cost --quiet --no-save --background 200ms --format markdown -- fio null.fio");
    assert!(page.contains("`null.fio`:\n\n```ini\n[a]\nioengine=null"), "{page}");
}
