//! `iotoll compare`: an experiment from flags, measured round by round, kept as it is measured, studied, printed.

mod boots;

use crate::arguments::{CompareArguments, Words};
use crate::failure::{self, BadInput};
use crate::guardian::guardian;
use crate::progress::ProgressLine;
use crate::render::{self, PAGE};
use crate::run::files_and_options;
use crate::signals::{self, LaterSignals};
use crate::stored;
use lab::compare::{RecordWriter, Settings};
use lab::meter::Selection;
use lab::store::{RecordFile, RecordFolder};
use model::comparison::finding::LimitState;
use model::comparison::record::{End, Header, RoundRecord};
use model::comparison::{CompareFinding, CompareRecord};
use model::experiment::draft::{Draft, Surroundings, Workload};
use model::experiment::{ArmPlan, DraftRules, Experiment, file};
use model::kind::Recorded;
use model::plan::{DeviceWrites, UnknownOptions};
use model::record::Outcome;
use model::stored::Stored;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A limit of `--fail-on` was exceeded.
const EXCEEDED: u8 = 3;
/// Whether one was could not be decided.
const UNDECIDED: u8 = 4;

/// The first arm, where they are said as flags.
const BASELINE: &str = "baseline";

/// Runs the verb.
pub fn compare(arguments: &CompareArguments, words: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(folder) = &arguments.resume {
        return boots::resume(folder, arguments, words);
    }
    let experiment = experiment(arguments)?;
    if arguments.same_boot && experiment.boots.is_none() {
        let mend = "--same-boot is of experiments whose arms are boots (when = … in an experiment file); leave it out";
        return Err(BadInput(mend.into()).into());
    }
    let stored = stored::load(arguments.stored.as_deref(), &experiment)?;
    if arguments.parse_only {
        render::write(&format!("{}\n", serde_json::to_string_pretty(&experiment)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    if experiment.boots.is_some() {
        return boots::start(experiment, arguments, words);
    }
    let mut saving = Saving::prepare(arguments)?;
    let settings = settings(arguments, arguments.meters.clone(), words)?;
    let line = ProgressLine::new(arguments.quiet);
    let outcome = lab::compare::compare(experiment, &settings, &mut saving, &mut |stage| line.show_stage(&stage));
    line.clear();
    let record = outcome.inspect_err(|_| saving.abandon())?;
    conclude(&record, stored.as_ref(), saving.folder(), arguments)
}

/// Studies a record, writes the report into its folder, prints what was found, and says how to exit. What could not be
/// kept is printed all the same.
pub(crate) fn conclude(
    record: &CompareRecord,
    stored: Option<&Stored<CompareRecord>>,
    folder: Option<&Path>,
    arguments: &CompareArguments,
) -> anyhow::Result<ExitCode> {
    let finding = record.study(stored);
    let kept = folder.map_or(Ok(()), |folder| write_report(folder, &finding, !arguments.quiet));
    render::both(kept, render::print(&finding, arguments.format))?;
    Ok(exit_code(&finding))
}

/// How to measure.
pub(crate) fn settings(arguments: &CompareArguments, meters: Selection, words: &[String]) -> anyhow::Result<Settings> {
    Ok(Settings {
        measuring: lab::session::Settings {
            meters,
            probes: Vec::new(),
            background: Duration::ZERO,
            interruption: signals::interruption(LaterSignals::DoNotExit)?,
            command_line: words.to_vec(),
            // That of the experiment is in its place.
            place: None,
        },
        seed: arguments.seed.unwrap_or_else(fresh_seed),
        // Not its path: what lies there may be another program by the next round.
        program: "/proc/self/exe".into(),
        schedule: None,
        guardian: guardian(words),
    })
}

/// `iotoll worker`, which a comparison starts for itself.
pub fn worker(threads: usize) -> anyhow::Result<ExitCode> {
    let memory = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let latencies = lab::compare::worker::serve(&memory, threads)?;
    render::write(&serde_json::to_string(&latencies)?)?;
    Ok(ExitCode::SUCCESS)
}

/// A seed that nobody chose.
fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Short enough to be typed again.
    u64::from(now.subsec_nanos()) ^ (now.as_secs() & 0xffff)
}

fn exit_code(finding: &CompareFinding) -> ExitCode {
    match (&finding.outcome, finding.limits.iter().map(|limit| limit.state).max()) {
        (Outcome::Failed(why), _) => {
            failure::complain(why);
            failure::of_outcome(&finding.outcome)
        }
        (Outcome::Completed, Some(LimitState::Exceeded)) => ExitCode::from(EXCEEDED),
        (Outcome::Completed, Some(LimitState::Undecided)) => ExitCode::from(UNDECIDED),
        (outcome, _) => failure::of_outcome(outcome),
    }
}

fn bad(message: impl Into<String>) -> anyhow::Error {
    BadInput(message.into()).into()
}

fn experiment(arguments: &CompareArguments) -> anyhow::Result<Experiment> {
    let environment = |name: &str| std::env::var(name).ok();
    let surroundings = Surroundings {
        environment: &environment,
        unknown_options: if arguments.ignore_unknown { UnknownOptions::Ignore } else { UnknownOptions::Refuse },
        device_writes: if arguments.allow_device_write { DeviceWrites::Allow } else { DeviceWrites::Refuse },
    };
    let mut draft = match experiment_file(arguments)? {
        Some(draft) => draft,
        None => Draft {
            workload: workload(arguments)?,
            arms: arms(arguments)?,
            axes: arguments.sweep.clone(),
            against_itself: arguments.aa,
            ..Draft::default()
        },
    };
    let flags = DraftRules {
        targets: (!arguments.target.is_empty()).then(|| arguments.target.clone()),
        margin: arguments.margin,
        precision: arguments.precision,
        budget_seconds: arguments.budget,
        slice_seconds: arguments.slice,
        hang_timeout_seconds: arguments.hang_timeout,
    };
    draft.rules = flags.or(draft.rules);
    draft.cache = arguments.cache.or(draft.cache);
    draft.around = arguments.around.around().or(draft.around);
    draft.place = arguments.place.clone().or(draft.place);
    draft.limits.extend(&arguments.fail_on);
    draft.resolve(&surroundings).map_err(|error| bad(error.to_string()))
}

/// The experiment file, when the word for the job is one.
fn experiment_file(arguments: &CompareArguments) -> anyhow::Result<Option<Draft>> {
    let (files, options) = files_and_options(&arguments.job);
    let [file] = files.as_slice() else { return Ok(None) };
    if Path::new(file).extension().is_none_or(|extension| extension != "toml") {
        return Ok(None);
    }
    let alone = options.is_empty() && arguments.command.is_empty() && arguments.sweep.is_empty() && !arguments.aa;
    let nothing_said = [ArmPlan { name: BASELINE.to_owned(), ..ArmPlan::default() }];
    if !alone || arms(arguments)? != nothing_said {
        return Err(bad(format!(
            "{file}: an experiment file says itself what is compared; put arms, sweeps and options into it"
        )));
    }
    let text = render::read_text(Path::new(file), "the experiment file", "EXPERIMENT.toml")?;
    file::parse(file, &text).map(Some).map_err(|error| bad(error.to_string()))
}

fn workload(arguments: &CompareArguments) -> anyhow::Result<Workload> {
    let (files, options) = files_and_options(&arguments.job);
    match (files.as_slice(), arguments.command.as_slice()) {
        ([], []) if options.is_empty() => Ok(Workload::None),
        ([], []) => Ok(Workload::Flags(arguments.job.clone())),
        ([file], []) => {
            let text = render::read(Path::new(file))?;
            Ok(Workload::JobFile { name: (*file).to_owned(), text, options })
        }
        ([], command) if options.is_empty() => Ok(Workload::Command(command.to_vec())),
        ([_, second, ..], _) => Err(bad(format!("'{second}': one job file at a time; put the jobs into one file"))),
        (_, command) => {
            let program = command.first().map_or("", String::as_str);
            Err(bad(format!("compare: a job and a command ('{program}' after --): which of them? Give one")))
        }
    }
}

fn arms(arguments: &CompareArguments) -> anyhow::Result<Vec<ArmPlan>> {
    let words = |words: &Words| words.0.clone();
    let baseline = ArmPlan {
        name: BASELINE.to_owned(),
        options: arguments.baseline.as_ref().map(words).unwrap_or_default(),
        command: arguments.baseline_cmd.as_ref().map(words),
        ..ArmPlan::default()
    };
    let of_options =
        arguments.candidate.iter().map(|options| ArmPlan { options: words(options), ..ArmPlan::default() });
    let of_commands =
        arguments.candidate_cmd.iter().map(|command| ArmPlan { command: Some(words(command)), ..ArmPlan::default() });
    let mut candidates: Vec<ArmPlan> = of_options.chain(of_commands).collect();
    let toggled = !arguments.candidate_set.is_empty() || arguments.candidate_setup.is_some();
    if toggled {
        if candidates.len() > 1 {
            return Err(bad("compare: settings are of one candidate, and there are several; compare them one by one"));
        }
        // Under the setting it may be the same job or command otherwise, or another one.
        let candidate = candidates.pop().unwrap_or_else(|| ArmPlan {
            options: baseline.options.clone(),
            command: baseline.command.clone(),
            ..ArmPlan::default()
        });
        candidates.push(ArmPlan {
            settings: arguments.candidate_set.clone(),
            setup: arguments.candidate_setup.clone(),
            cleanup: arguments.candidate_cleanup.clone(),
            ..candidate
        });
    }
    if arguments.aa && !candidates.is_empty() {
        return Err(bad(
            "compare: --aa compares the baseline with itself, and there is a candidate; give one or the other",
        ));
    }
    for (number, candidate) in candidates.iter_mut().enumerate() {
        candidate.name = if number == 0 { "candidate".to_owned() } else { format!("candidate{}", number + 1) };
    }
    Ok(std::iter::once(baseline).chain(candidates).collect())
}

/// A record that is being written, and the folder that it is in.
pub(crate) struct Place {
    pub folder: RecordFolder,
    pub file: RecordFile,
}

impl Place {
    /// Makes sure of a folder for a record and its report, and begins the record.
    pub(crate) fn prepare(out: Option<&Path>) -> anyhow::Result<Self> {
        let folder = lab::store::folder(out, "compare")?;
        render::spare_page(&folder.path)?;
        let file = RecordFile::create(&folder.path).inspect_err(|_| folder.abandon())?;
        Ok(Self { folder, file })
    }

    /// Nothing was measured: takes away what was made.
    pub(crate) fn abandon(&self) {
        // Where it cannot be removed the folder stays too.
        let _ = std::fs::remove_file(self.file.path());
        self.folder.abandon();
    }
}

/// Where a record is kept, and the report beside it.
enum Saving {
    In(Place),
    Not,
}

impl Saving {
    fn prepare(arguments: &CompareArguments) -> anyhow::Result<Self> {
        Ok(if arguments.no_save { Self::Not } else { Self::In(Place::prepare(arguments.out.as_deref())?) })
    }

    fn abandon(&self) {
        if let Self::In(place) = self {
            place.abandon();
        }
    }

    fn folder(&self) -> Option<&Path> {
        match self {
            Self::In(place) => Some(&place.folder.path),
            Self::Not => None,
        }
    }

    fn file(&mut self) -> Option<&mut RecordFile> {
        match self {
            Self::In(place) => Some(&mut place.file),
            Self::Not => None,
        }
    }
}

/// Writes the report beside the record in `folder`, and says where.
fn write_report(folder: &Path, finding: &CompareFinding, note: bool) -> anyhow::Result<()> {
    render::write_page(folder, finding)?;
    if note {
        let folder = folder.display();
        failure::complain(&format!("record and {PAGE} in {folder}; show it again: iotoll report {folder}"));
    }
    Ok(())
}

impl RecordWriter for Saving {
    fn header(&mut self, header: &Header) -> lab::Result<()> {
        self.file().map_or(Ok(()), |file| file.header(header))
    }

    fn round(&mut self, round: &RoundRecord) -> lab::Result<()> {
        self.file().map_or(Ok(()), |file| file.round(round))
    }

    fn end(&mut self, end: &End) -> lab::Result<()> {
        self.file().map_or(Ok(()), |file| file.end(end))
    }
}
