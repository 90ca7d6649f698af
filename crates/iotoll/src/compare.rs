//! `iotoll compare`: an experiment from flags, measured round by round, kept as it is measured, studied, printed.

use crate::arguments::{CompareArguments, Words};
use crate::boots;
use crate::failure::{self, BadInput};
use crate::progress::ProgressLine;
use crate::render;
use crate::run::files_and_options;
use crate::signals::{self, Second};
use crate::stored;
use lab::compare::{Keeper, Settings};
use lab::store::{RecordFolder, RoundsFile};
use model::comparison::CompareFinding;
use model::comparison::finding::LimitState;
use model::comparison::record::{End, Header, RoundRecord};
use model::experiment::draft::{Draft, Surroundings, Workload};
use model::experiment::{ArmPlan, Experiment, file};
use model::plan::{DeviceWrites, UnknownOptions};
use model::record::Outcome;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A limit of `--fail-on` was exceeded.
const EXCEEDED: u8 = 3;
/// Whether one was could not be decided.
const UNDECIDED: u8 = 4;

/// The report's file, beside the record.
const REPORT: &str = "report.html";

/// Runs the verb.
pub fn compare(arguments: &CompareArguments, words: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(folder) = &arguments.resume {
        return boots::resume(folder, arguments, words);
    }
    let experiment = experiment(arguments)?;
    let stored = stored::load(arguments.stored.as_deref(), &experiment)?;
    if arguments.parse_only {
        render::write(&format!("{}\n", serde_json::to_string_pretty(&experiment)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    if experiment.boots.is_some() {
        return boots::start(experiment, arguments, words);
    }
    let mut keeping = Keeping::prepare(arguments)?;
    let settings = settings(arguments, words)?;
    let line = ProgressLine::new(arguments.quiet);
    let outcome = lab::compare::compare(experiment, &settings, &mut keeping, &mut |stage| line.show_stage(&stage));
    line.clear();
    let record = outcome.inspect_err(|_| keeping.abandon())?;
    let finding = model::comparison::study_against(&record, stored.as_ref());
    let kept = keeping.report(&finding, !arguments.quiet);
    render::write(&arguments.format.render_comparison(&finding, render::ink(), render::columns()))?;
    kept?;
    Ok(exit_code(&finding))
}

/// How to measure.
pub(crate) fn settings(arguments: &CompareArguments, words: &[String]) -> anyhow::Result<Settings> {
    Ok(Settings {
        measuring: lab::run::Settings {
            meters: arguments.meters.clone(),
            background: Duration::ZERO,
            interrupted: signals::interrupted(Second::Waits)?,
            command_line: words.to_vec(),
        },
        seed: arguments.seed.unwrap_or_else(fresh_seed),
        // Not its path: what lies there may be another program by the next round.
        program: "/proc/self/exe".into(),
        schedule: None,
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

pub(crate) fn exit_code(finding: &CompareFinding) -> ExitCode {
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
    let rules = &mut draft.rules;
    if !arguments.target.is_empty() {
        rules.targets.clone_from(&arguments.target);
    }
    if let Some(margin) = arguments.margin {
        (rules.margin, rules.precision) = (margin, margin / 3.0);
    }
    rules.precision = arguments.precision.unwrap_or(rules.precision);
    rules.budget_seconds = arguments.budget.map_or(rules.budget_seconds, |budget| budget.as_secs_f64());
    rules.patience_seconds = arguments.patience.map(|patience| patience.as_secs_f64()).or(rules.patience_seconds);
    draft.limits.extend(&arguments.fail_on);
    draft.resolve(&surroundings).map_err(|error| bad(format!("compare: {error}")))
}

/// The experiment file, when the word for the job is one.
fn experiment_file(arguments: &CompareArguments) -> anyhow::Result<Option<Draft>> {
    let (files, options) = files_and_options(&arguments.job);
    let [file] = files.as_slice() else { return Ok(None) };
    if Path::new(file).extension().is_none_or(|extension| extension != "toml") {
        return Ok(None);
    }
    let arms = arms(arguments)?;
    let alone = options.is_empty() && arguments.command.is_empty() && arguments.sweep.is_empty() && !arguments.aa;
    if !alone || arms.len() > 1 || arms.first().is_some_and(|arm| arm.what() != ArmPlan::default().what()) {
        return Err(bad(format!(
            "{file}: an experiment file says itself what is compared; put arms, sweeps and options into it"
        )));
    }
    let text = render::read(Path::new(file))?;
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
        name: "baseline".to_owned(),
        options: arguments.baseline.as_ref().map(words).unwrap_or_default(),
        command: arguments.baseline_cmd.as_ref().map(words),
        ..ArmPlan::default()
    };
    let of_options =
        arguments.candidate.iter().map(|options| ArmPlan { options: words(options), ..ArmPlan::default() });
    let of_commands =
        arguments.candidate_cmd.iter().map(|command| ArmPlan { command: Some(words(command)), ..ArmPlan::default() });
    let mut candidates: Vec<ArmPlan> = of_options.chain(of_commands).collect();
    let toggled = !arguments.candidate_set.is_empty() || arguments.candidate_enter.is_some();
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
            enter: arguments.candidate_enter.clone(),
            leave: arguments.candidate_leave.clone(),
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

/// Where a record is kept, and the report beside it.
enum Keeping {
    In(RecordFolder, RoundsFile),
    Not,
}

impl Keeping {
    fn prepare(arguments: &CompareArguments) -> anyhow::Result<Self> {
        if arguments.no_save {
            return Ok(Self::Not);
        }
        let folder = lab::store::folder(arguments.out.as_deref(), "compare")?;
        let report = folder.path.join(REPORT);
        if report.exists() {
            return Err(bad(format!("{}: is there already; choose another --out, or remove it", report.display())));
        }
        let file = RoundsFile::create(&folder.path).inspect_err(|_| folder.abandon())?;
        Ok(Self::In(folder, file))
    }

    /// Nothing was measured: takes away what was made.
    fn abandon(&self) {
        if let Self::In(folder, file) = self {
            // Where it cannot be removed the folder stays too.
            let _ = std::fs::remove_file(file.path());
            folder.abandon();
        }
    }

    /// Writes the report beside the record, and says where.
    fn report(&self, finding: &CompareFinding, note: bool) -> anyhow::Result<()> {
        let Self::In(folder, _) = self else { return Ok(()) };
        write_report(&folder.path, finding, note)
    }
}

/// Writes the report beside the record in `folder`, and says where.
pub(crate) fn write_report(folder: &Path, finding: &CompareFinding, note: bool) -> anyhow::Result<()> {
    let path = folder.join(REPORT);
    std::fs::write(&path, report::compare::html(finding))
        .map_err(|error| lab::Error::file(&path, "writing the report", error))?;
    if note {
        let folder = folder.display();
        failure::complain(&format!("record and {REPORT} in {folder}; show it again: iotoll report {folder}"));
    }
    Ok(())
}

impl Keeper for Keeping {
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

impl Keeping {
    fn file(&mut self) -> Option<&mut RoundsFile> {
        match self {
            Self::In(_, file) => Some(file),
            Self::Not => None,
        }
    }
}
