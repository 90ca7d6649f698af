//! The program under test: a command line in a folder of its own, and its result.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The binary.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_iotoll");
/// Longest wait of a test.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A working folder, and beside it the folder of the ledgers of what runs in it.
pub struct Folder {
    directory: TempDir,
}

impl Folder {
    /// On the disk of the build, because a temporary folder is often in memory.
    pub fn new() -> Self {
        Self::within(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    /// In the folder for temporary files: paths of Unix sockets must be short.
    pub fn temporary() -> Self {
        Self::within(&std::env::temp_dir())
    }

    fn within(place: &Path) -> Self {
        let directory = TempDir::new_in(place).unwrap();
        fs::create_dir(directory.path().join("in")).unwrap();
        Self { directory }
    }

    /// A folder with a file of `bytes` bytes of data.
    pub fn with_file(name: &str, bytes: usize) -> Self {
        let folder = Self::new();
        folder.write(name, vec![0x5a; bytes]);
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("in").join(name)
    }

    /// A path as text.
    pub fn name(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.path(name), contents).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    pub fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Everything in it: path and, for a file, its size.
    pub fn listing(&self) -> BTreeMap<String, Option<u64>> {
        let mut found = BTreeMap::new();
        list(&self.path("."), "", &mut found);
        found
    }

    /// iotoll in this folder, with words as a shell splits them.
    pub fn iotoll(&self, words: &str) -> Iotoll {
        self.command("").word(PROGRAM).word_list(words)
    }

    /// Another program in this folder.
    pub fn command(&self, words: &str) -> Iotoll {
        let state = self.directory.path().join("state");
        let iotoll =
            Iotoll { words: Vec::new(), folder: self.path(""), state, stdout: Stdio::piped(), stderr: Stdio::piped() };
        iotoll.word_list(words)
    }

    /// The JSON of a short measurement that is not saved. It must succeed without any other output.
    #[track_caller]
    pub fn costed(&self, verb_and_options: &str) -> Value {
        self.iotoll(&short(verb_and_options)).run().found()
    }

    /// The same without meters of the machine, which takes half the time.
    #[track_caller]
    pub fn measured(&self, verb_and_options: &str) -> Value {
        self.costed(&verb_and_options.replacen(' ', " --meters thread ", 1))
    }

    /// The same for a job file's text.
    #[track_caller]
    pub fn measured_job(&self, text: &str) -> Value {
        self.write("job.fio", text);
        self.measured("run job.fio")
    }

    /// What `report` finds in a record.
    #[track_caller]
    pub fn reported(&self, words: &str) -> Value {
        self.iotoll(&format!("report {words} --format json")).run().done().json()
    }

    /// The processes that run in this folder, or whose ledgers are here: by number and name.
    pub fn processes(&self) -> Vec<(Pid, String)> {
        let (place, state) = (self.path(""), self.directory.path().join("state"));
        let variable = format!("XDG_STATE_HOME={}", state.display());
        let here = |entry: &fs::DirEntry| {
            let environment = || fs::read(entry.path().join("environ")).unwrap_or_default();
            fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| place == cwd)
                || environment().split(|byte| *byte == 0).any(|one| one == variable.as_bytes())
        };
        let process = |entry: fs::DirEntry| {
            let id = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
            Some((id, fs::read_to_string(entry.path().join("comm")).unwrap_or_default().trim().to_owned()))
        };
        fs::read_dir("/proc").into_iter().flatten().flatten().filter(here).filter_map(process).collect()
    }

    /// The lines of the record in `kept` that are of this kind.
    pub fn lines(&self, kind: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path("kept/record.jsonl")).unwrap_or_default();
        let begin = format!("{{\"{kind}\"");
        text.lines().filter(|line| line.starts_with(&begin)).map(str::to_owned).collect()
    }

    /// What iotoll has still to undo.
    pub fn ledgers(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.directory.path().join("state/iotoll")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    /// No process that was started here still runs.
    #[track_caller]
    pub fn assert_no_processes(&self) {
        assert!(eventually(|| self.processes().is_empty()), "left in {}: {:?}", self.name(""), self.processes());
    }

    /// Neither a process nor anything to undo is left.
    #[track_caller]
    pub fn assert_undone(&self, how: &str) {
        self.assert_no_processes();
        assert!(self.ledgers().is_empty(), "{how}: {:?}", self.ledgers());
    }
}

impl Drop for Folder {
    /// A test that fails ends what it started: otherwise that would hold the output of the tests open.
    fn drop(&mut self) {
        if std::thread::panicking() {
            for (process, _) in self.processes() {
                // It may have ended meanwhile.
                let _ = kill_process(process, Signal::KILL);
            }
        }
    }
}

/// The words of a short measurement that is not saved, by its verb and options.
pub fn short(verb_and_options: &str) -> String {
    let (verb, options) = verb_and_options.split_once(' ').unwrap();
    let own = !["run", "cost"].contains(&verb) || options.contains("--background");
    let background = if own { "" } else { "--background 200ms" };
    format!("{verb} {background} --no-save --quiet --format json {options}")
}

fn list(directory: &Path, below: &str, found: &mut BTreeMap<String, Option<u64>>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let name = format!("{below}{}", entry.file_name().display());
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() {
            list(&entry.path(), &format!("{name}/"), found);
        }
        found.insert(name, metadata.is_file().then_some(metadata.len()));
    }
}

/// Checks six cases at the same time: they mostly sleep.
pub fn at_once<C: Send, I: IntoIterator<Item = C, IntoIter: Send>>(cases: I, check: impl Fn(C) + Sync) {
    let cases = Mutex::new(cases.into_iter());
    let next = || cases.lock().unwrap().next();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while let Some(case) = next() {
                    check(case);
                }
            });
        }
    });
}

/// Waits until `so` is true, and returns whether it ever was.
pub fn eventually(mut so: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < TIMEOUT {
        if so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

/// A command line that is not started yet.
pub struct Iotoll {
    words: Vec<String>,
    folder: PathBuf,
    state: PathBuf,
    stdout: Stdio,
    stderr: Stdio,
}

impl Iotoll {
    /// More words, as a shell splits them.
    pub fn word_list(mut self, words: &str) -> Self {
        self.words.extend(shell_words::split(words).unwrap());
        self
    }

    /// One more word, which may contain blanks.
    pub fn word(mut self, word: impl Into<String>) -> Self {
        self.words.push(word.into());
        self
    }

    /// Another copy of the binary.
    pub fn program(mut self, path: &Path) -> Self {
        self.words[0] = path.display().to_string();
        self
    }

    /// Under another command, such as prlimit.
    pub fn under(mut self, command: &[&str]) -> Self {
        self.words.splice(0..0, command.iter().map(|word| (*word).to_owned()));
        self
    }

    pub fn stdout(mut self, stdout: impl Into<Stdio>) -> Self {
        self.stdout = stdout.into();
        self
    }

    pub fn stderr(mut self, stderr: impl Into<Stdio>) -> Self {
        self.stderr = stderr.into();
        self
    }

    #[track_caller]
    pub fn start(self) -> Running {
        // nohup(1), a shell's `&` and the daemons of CI systems make their children ignore these.
        let mut command = Command::new("env");
        command.arg("--default-signal=HUP,INT,QUIT,TERM,CHLD").args(&self.words);
        command.current_dir(&self.folder).env("XDG_STATE_HOME", &self.state);
        command.stdin(Stdio::null()).stdout(self.stdout).stderr(self.stderr);
        // setsid makes a group itself, unless it leads one already: then it would be in the way as another process.
        if self.words[0] != "setsid" {
            command.process_group(0);
        }
        let mut child = command.spawn().unwrap();
        let (stdout, stderr) = (child.stdout.take().map(reader), child.stderr.take().map(reader));
        Running { child, words: self.words, stdout, stderr }
    }

    #[track_caller]
    pub fn run(self) -> Ended {
        self.start().wait()
    }
}

fn reader(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    })
}

/// A running command line, which leads a process group. If it is dropped before its end, the group is ended.
pub struct Running {
    child: Child,
    words: Vec<String>,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
}

impl Running {
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it is `ready`.
    #[track_caller]
    pub fn when(mut self, mut ready: impl FnMut(&Self) -> bool) -> Self {
        let mut ended = false;
        let so = eventually(|| {
            ended = self.ended();
            ready(&self) || ended
        });
        if !so || ended && !ready(&self) {
            panic!("never ready: {:?}", if ended { Ok(self.wait()) } else { Err(&self.words) });
        }
        self
    }

    /// Whether the program has this many threads named `name`.
    pub fn has_threads(&self, name: &str, count: usize) -> bool {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.id())).into_iter().flatten().flatten();
        let named =
            tasks.filter(|task| fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == name));
        named.count() >= count
    }

    /// Its children, by number and name.
    pub fn children(&self) -> Vec<(Pid, String)> {
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.id())).unwrap_or_default();
        let child = |id: &str| {
            let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
            Some((Pid::from_raw(id.parse().ok()?)?, name.trim().to_owned()))
        };
        children.split_whitespace().filter_map(child).collect()
    }

    /// The process that undoes what iotoll changed if it is killed.
    pub fn guardian(&self) -> Option<Pid> {
        self.children().into_iter().find(|(_, name)| name == "undo-guardian").map(|(id, _)| id)
    }

    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    #[track_caller]
    pub fn ended_by(self, signal: Signal) -> Ended {
        self.signal(signal);
        self.wait()
    }

    pub fn ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    #[track_caller]
    pub fn wait(mut self) -> Ended {
        let mut status: Option<ExitStatus> = None;
        if !eventually(|| {
            status = self.child.try_wait().unwrap();
            status.is_some()
        }) {
            panic!("{:?} did not end", self.words);
        }
        let status = status.unwrap();
        let text =
            |reader: Option<JoinHandle<String>>| reader.map_or_else(String::new, |reader| reader.join().unwrap());
        Ended {
            words: std::mem::take(&mut self.words),
            code: status.code(),
            signal: status.signal(),
            stdout: text(self.stdout.take()),
            stderr: text(self.stderr.take()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let group = Pid::from_child(&self.child);
        // Politely first, so that settings are restored.
        let _ = kill_process_group(group, Signal::TERM);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(5) && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// The result of a command line.
#[derive(Debug)]
pub struct Ended {
    words: Vec<String>,
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The JSON of what succeeded without any other output.
    #[track_caller]
    pub fn found(&self) -> Value {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{}\n{}", self.words.join(" "), self.stdout);
        self.json()
    }

    /// It was refused: this exit status, and exactly one line, which contains all of `named`. What fio alone can do has a line of advice.
    #[track_caller]
    pub fn refused(&self, code: i32, named: &[&str]) {
        assert_eq!(self.stdout, "", "{self:?}");
        self.failed(code, named);
    }

    /// As `refused`, but it may print what was measured before it failed.
    #[track_caller]
    pub fn failed(&self, code: i32, named: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(self.stderr.starts_with("iotoll: ") && self.stderr.ends_with('\n'), "{self:?}");
        let reasons = self.stderr.lines().filter(|line| !line.ends_with("iotoll cost -- fio …"));
        assert_eq!(reasons.count(), 1, "{self:?}");
        for word in named {
            assert!(self.stderr.contains(word), "'{word}' is not in {self:?}");
        }
    }

    /// It succeeded.
    #[track_caller]
    pub fn done(self) -> Self {
        assert_eq!((self.code, self.signal), (Some(0), None), "{self:?}");
        self
    }
}

/// A whole number in JSON.
#[track_caller]
pub fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no whole number: {value}"))
}

/// A number in JSON.
#[track_caller]
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// The items of a list in JSON; of anything else none.
pub fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Whether a warning of this code contains all of these words.
pub fn warns(finding: &Value, code: &str, words: &[&str]) -> bool {
    let messages = items(&finding["warnings"]).filter(|it| it["code"] == code).filter_map(|it| it["message"].as_str());
    messages.into_iter().any(|message| words.iter().all(|word| message.contains(word)))
}
