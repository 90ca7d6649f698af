//! `iotoll compare` where arms are boots: measures one boot at a time; the record says which boot is next.

use super::CompareArguments;
use super::comparison;
use crate::failure::{self, BadInput, bad};
use crate::measure::{self, conclude, stored};
use crate::progress::ProgressLine;
use crate::saving::Saving;
use crate::signals::LeftBehind;
use crate::stdout::Results;
use lab::compare::{Settings, boots};
use lab::meter::Selection;
use lab::session::Settings as Session;
use lab::store::Saver;
use model::comparison::CompareRecord;
use model::comparison::record::{BootRecord, Header};
use model::experiment::{Begun, Experiment};
use model::origin::CommandLine;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// An experiment of boots that has been started.
struct Course<'a> {
    /// Absolute: the user may resume from another directory.
    folder: PathBuf,
    saver: Saver,
    header: Header,
    boots: Vec<BootRecord>,
    arguments: &'a CompareArguments,
    settings: Settings,
}

/// Whether the next arm can be measured now.
enum Ready {
    Yes,
    /// Another arm is booted, or none of them.
    Other(Vec<usize>),
    /// The machine was not rebooted since the last measurement.
    SameBoot,
}

/// Starts an experiment: measures the first boot if it is already booted, and prints which boot is next.
pub fn start(
    mut experiment: Experiment,
    arguments: &CompareArguments,
    words: &[String],
    command_line: CommandLine,
) -> anyhow::Result<ExitCode> {
    let events = arguments.observed.meters.events.as_ref().is_some_and(|events| !events.is_empty());
    let odd = [
        (
            arguments.observed.profile,
            "--profile: each boot measures one arm; leave it out, and profile each boot by iotoll run or cost",
        ),
        (events, "--events: each boot measures one arm; leave it out, and count in each boot by iotoll run or cost"),
        (
            !arguments.observed.session.probes().is_empty(),
            "--probe: the kernels of arms that are boots need not have the same counters; leave it out",
        ),
        (arguments.output.no_save, "compare: an experiment of boots needs a saved record; leave out --no-save"),
    ];
    if let Some((_, why)) = odd.into_iter().find(|(is_asked, _)| *is_asked) {
        return Err(bad(why));
    }
    if let Some(plan) = &mut experiment.boots {
        plan.begun = Some(begun(arguments)?);
    }
    let settings = settings(arguments, &experiment, arguments.observed.meters.meters.clone(), words, command_line)?;
    let saving = Saving::prepare(&arguments.output, "compare")?;
    let saver = saving.saver();
    let header = boots::begin(experiment, &settings)
        .and_then(|header| saver.begin(&header.envelope, &header).map(|()| header))
        .inspect_err(|_| saving.abandon())?;
    let folder = std::path::absolute(saving.folder().unwrap_or(Path::new(".")))?;
    let mut course = Course { folder, saver, header, boots: Vec::new(), arguments, settings };
    match course.ready()? {
        Ready::Yes => course.go_on(),
        Ready::Other(_) | Ready::SameBoot => course.await_boot(),
    }
}

/// How to measure with these meters.
fn settings(
    arguments: &CompareArguments,
    experiment: &Experiment,
    meters: Selection,
    words: &[String],
    command_line: CommandLine,
) -> anyhow::Result<Settings> {
    let comparison = comparison(arguments, experiment);
    let begun = measure::begun(words, command_line, comparison.last_signal, LeftBehind::default())?;
    let Session { events, probes, .. } = comparison.settings;
    Ok(super::settings(Session { meters, events, probes, ..begun }, arguments.rules.seed))
}

/// Directory and flags of the start.
fn begun(arguments: &CompareArguments) -> anyhow::Result<Begun> {
    let lost = |why: String| BadInput(format!("compare: current directory: {why}"));
    let directory = std::env::current_dir().map_err(|error| lost(format!("{error}; change to one that exists")))?;
    if directory.to_str().is_none() {
        let shown = directory.display();
        return Err(lost(format!("'{shown}' is not UTF-8 text, which a record cannot store; rename it")).into());
    }
    Ok(Begun { directory, meters: arguments.observed.meters.meters.clone(), stored: arguments.stored.clone() })
}

/// Continues the experiment at `path` (a folder, or the record in it), in the directory and with the flags of its
/// start.
pub fn resume(path: &Path, arguments: &CompareArguments, words: &[String]) -> anyhow::Result<ExitCode> {
    let shown = path.display();
    if let Some(word) = arguments.job.first() {
        let why = "the experiment was defined when it was started; leave it out";
        return Err(bad(format!("compare --resume {shown}: '{word}': {why}")));
    }
    let (saver, record) = boots::resume(path)?;
    let refused = |why: String| Err(bad(format!("{shown}: {why}")));
    let record_file = std::path::absolute(saver.path().unwrap_or_default())?;
    let folder = record_file.parent().unwrap_or(&record_file).to_owned();
    let (header, boots) = (record.header, record.boots);
    let begun = header.experiment.boots.as_ref().and_then(|plan| plan.begun.as_ref());
    if let Some(Begun { directory, .. }) = begun
        && let Err(error) = std::env::set_current_dir(directory)
    {
        let directory = directory.display();
        return refused(format!(
            "it was started in {directory}: {error}; its file names are relative to that directory, so mount or make it"
        ));
    }
    // Needed only after the last boot; checked now so that an error shows at once.
    stored::<CompareRecord>(stored_path(&header), &header.experiment)?;
    let meters = begun.map_or_else(|| arguments.observed.meters.meters.clone(), |begun| begun.meters.clone());
    let settings = settings(arguments, &header.experiment, meters, words, words.to_vec().into())?;
    let mut course = Course { folder, saver, header, boots, arguments, settings };
    match course.ready()? {
        Ready::Yes => course.go_on(),
        Ready::Other(booted) => {
            let names: Vec<&str> = booted.iter().map(|arm| course.name(*arm)).collect();
            let now = if names.is_empty() {
                "no arm is booted".to_owned()
            } else {
                format!("arm '{}' is booted", names.join("', '"))
            };
            refused(format!("{now}, but the next is {}: boot that one", course.wanted()))
        }
        Ready::SameBoot => refused(format!(
            "{} is next again, but the machine was not rebooted since the last measurement; reboot (--same-boot measures it \
             again without a reboot)",
            course.wanted()
        )),
    }
}

/// The earlier comparison of `--stored`.
fn stored_path(header: &Header) -> Option<&Path> {
    header.experiment.boots.as_ref()?.begun.as_ref()?.stored.as_deref()
}

impl Course<'_> {
    /// The next arm; none after the last boot.
    fn next(&self) -> Option<usize> {
        boots::order(&self.header).get(self.boots.len()).copied()
    }

    fn name(&self, arm: usize) -> &str {
        self.header.experiment.arms.get(arm).map_or("", |arm| arm.name.as_str())
    }

    /// "arm 'patched' (uname -r = 6.9)".
    fn wanted(&self) -> String {
        let arm = self.next().and_then(|arm| self.header.experiment.arms.get(arm));
        let when = arm.and_then(|arm| arm.when.as_ref()).map(ToString::to_string).unwrap_or_default();
        format!("arm '{}' ({when})", arm.map_or("", |arm| arm.name.as_str()))
    }

    fn ready(&self) -> anyhow::Result<Ready> {
        let booted = boots::booted(&self.header.experiment, &self.settings)?;
        let Some(next) = self.next() else { return Ok(Ready::Yes) };
        if booted != [next] {
            return Ok(Ready::Other(booted));
        }
        let again = match self.boots.last() {
            Some(last) => last.arm == next && last.boot_id == lab::host::boot_id()?,
            None => false,
        };
        Ok(if again && !self.arguments.boots.same_boot { Ready::SameBoot } else { Ready::Yes })
    }

    /// Measures the booted arm, and further arms as long as the hook boots them.
    fn go_on(&mut self) -> anyhow::Result<ExitCode> {
        let all = boots::order(&self.header).len();
        while let Some(arm) = self.next() {
            let line = ProgressLine::new(self.arguments.output.quiet);
            let measured =
                boots::measure(&self.header, &self.boots, arm, &self.settings, &mut |progress| line.show(&progress));
            line.clear();
            let (boot, round) = measured?;
            boots::add(&self.saver, &boot, &round)?;
            self.boots.push(boot);
            self.say(&format!("boot {} of {all} measured: arm '{}'", self.boots.len(), self.name(arm)));
            if self.next().is_some() {
                self.call_hook()?;
                if !matches!(self.ready()?, Ready::Yes) {
                    return self.name_next();
                }
            }
        }
        self.conclude()
    }

    /// Nothing can be measured in this boot: calls the hook, or tells the user what to boot.
    fn await_boot(&mut self) -> anyhow::Result<ExitCode> {
        self.call_hook()?;
        if matches!(self.ready()?, Ready::Yes) {
            return self.go_on();
        }
        self.name_next()
    }

    fn call_hook(&self) -> anyhow::Result<()> {
        let experiment = &self.header.experiment;
        let (Some(plan), Some(next)) = (&experiment.boots, self.next()) else { return Ok(()) };
        let Some(hook) = &plan.hook else { return Ok(()) };
        Ok(boots::call(hook, self.name(next), &self.folder, experiment, &self.settings)?)
    }

    fn name_next(&self) -> anyhow::Result<ExitCode> {
        let (wanted, folder) = (self.wanted(), self.folder.display());
        // Even with --quiet: the user needs it to continue.
        failure::complain(&format!("boot {wanted} next, then: iotoll compare --resume {folder}"));
        Ok(ExitCode::SUCCESS)
    }

    fn say(&self, what: &str) {
        if !self.arguments.output.quiet {
            failure::complain(what);
        }
    }

    /// All boots are measured: writes the end and the report.
    fn conclude(&mut self) -> anyhow::Result<ExitCode> {
        self.saver.append("end", &boots::end(&self.header))?;
        let record: CompareRecord = lab::store::load(&self.folder)?;
        let experiment = &record.header.experiment;
        let stored = stored(stored_path(&record.header), experiment)?;
        let output = &self.arguments.output;
        let results = Results::prepare(None, output.shown)?;
        let comparison = comparison(self.arguments, experiment);
        let finding = conclude(&comparison, &record, stored.as_ref(), Ok(Some(&self.folder)), &results, output)?;
        Ok(failure::of_finding(finding.as_ref()))
    }
}
