//! `iotoll compare` where arms are boots: one boot is measured at a time, and the record says what is next.

use super::{Place, conclude, settings};
use crate::arguments::CompareArguments;
use crate::failure::{self, BadInput};
use crate::progress::ProgressLine;
use crate::stored;
use lab::compare::{RecordWriter, Settings, boots};
use lab::store::RecordFile;
use model::comparison::CompareRecord;
use model::comparison::record::{BootRecord, Header};
use model::experiment::{Begun, Experiment};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// An experiment of boots that is under way.
struct Course<'a> {
    /// From the root: whoever goes on is elsewhere.
    folder: PathBuf,
    file: RecordFile,
    header: Header,
    boots: Vec<BootRecord>,
    arguments: &'a CompareArguments,
    settings: Settings,
}

/// Whether the arm that is next can be measured now.
enum Ready {
    Yes,
    /// Another one is booted, or none that is known.
    Other(Vec<usize>),
    /// It is the boot that was measured last.
    SameBoot,
}

/// Begins an experiment: measures the first boot, if that is booted already, and says what is to be booted next.
pub fn start(mut experiment: Experiment, arguments: &CompareArguments, words: &[String]) -> anyhow::Result<ExitCode> {
    if arguments.no_save {
        return Err(BadInput("compare: boots are remembered in the record; --no-save cannot be".to_owned()).into());
    }
    if let Some(plan) = &mut experiment.boots {
        plan.begun = Some(begun(arguments)?);
    }
    let settings = settings(arguments, arguments.meters.clone(), words)?;
    let mut place = Place::prepare(arguments.out.as_deref())?;
    let header = boots::begin(experiment, &settings).and_then(|header| place.file.header(&header).map(|()| header));
    let header = header.inspect_err(|_| place.abandon())?;
    let folder = std::path::absolute(&place.folder.path)?;
    let mut course = Course { folder, file: place.file, header, boots: Vec::new(), arguments, settings };
    match course.ready()? {
        Ready::Yes => course.go_on(),
        Ready::Other(_) | Ready::SameBoot => course.await_boot(),
    }
}

/// Where and how it is begun.
fn begun(arguments: &CompareArguments) -> anyhow::Result<Begun> {
    let lost = |why: String| BadInput(format!("compare: the folder that this was started in: {why}"));
    let directory = std::env::current_dir().map_err(|error| lost(format!("{error}; start it in one that is there")))?;
    if directory.to_str().is_none() {
        let shown = directory.display();
        return Err(lost(format!("'{shown}' is not UTF-8 text, which a record cannot hold; rename it")).into());
    }
    Ok(Begun { directory, meters: arguments.meters.clone(), stored: arguments.stored.clone() })
}

/// Goes on with the experiment at `path`, a folder or the record in it: where it was begun, and so.
pub fn resume(path: &Path, arguments: &CompareArguments, words: &[String]) -> anyhow::Result<ExitCode> {
    let shown = path.display();
    if let Some(word) = arguments.job.first() {
        let why = "what is compared was said when it was begun; leave it out";
        return Err(BadInput(format!("compare --resume {shown}: '{word}': {why}")).into());
    }
    let (file, record) = boots::resume(path)?;
    let refused = |why: String| Err(BadInput(format!("{shown}: {why}")).into());
    let record_file = std::path::absolute(file.path())?;
    let folder = record_file.parent().unwrap_or(&record_file).to_owned();
    let (header, boots) = (record.header, record.boots);
    let begun = header.experiment.boots.as_ref().and_then(|plan| plan.begun.as_ref());
    if let Some(Begun { directory, .. }) = begun
        && let Err(error) = std::env::set_current_dir(directory)
    {
        let directory = directory.display();
        return refused(format!(
            "it was begun in {directory}: {error}; names of files are below that, so mount or make it"
        ));
    }
    // Only when all boots are measured is it needed, and what is wrong with it is said now.
    stored::load::<CompareRecord>(stored_path(&header), &header.experiment)?;
    let meters = begun.map_or_else(|| arguments.meters.clone(), |begun| begun.meters.clone());
    let settings = settings(arguments, meters, words)?;
    let mut course = Course { folder, file, header, boots, arguments, settings };
    match course.ready()? {
        Ready::Yes => course.go_on(),
        Ready::Other(booted) => {
            let names: Vec<&str> = booted.iter().map(|arm| course.name(*arm)).collect();
            let now = if names.is_empty() {
                "no arm is booted".to_owned()
            } else {
                format!("arm '{}' is booted", names.join("', '"))
            };
            refused(format!("{now}, and the order that was drawn wants {} now: boot that", course.wanted()))
        }
        Ready::SameBoot => refused(format!(
            "{} is to be booted again, and this is still the boot that was measured; boot it (--same-boot measures it again all \
             the same)",
            course.wanted()
        )),
    }
}

/// The earlier comparison that it stands beside.
fn stored_path(header: &Header) -> Option<&Path> {
    header.experiment.boots.as_ref()?.begun.as_ref()?.stored.as_deref()
}

impl Course<'_> {
    /// The arm that is next; none when all boots were measured.
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
        Ok(if again && !self.arguments.same_boot { Ready::SameBoot } else { Ready::Yes })
    }

    /// Measures the arm that is booted, and the ones after it as long as somebody boots them meanwhile.
    fn go_on(&mut self) -> anyhow::Result<ExitCode> {
        let all = boots::order(&self.header).len();
        while let Some(arm) = self.next() {
            let line = ProgressLine::new(self.arguments.quiet);
            let measured =
                boots::measure(&self.header, &self.boots, arm, &self.settings, &mut |stage| line.show_stage(&stage));
            line.clear();
            let (boot, round) = measured?;
            boots::add(&mut self.file, &boot, &round)?;
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

    /// Nothing can be measured in this boot: whoever boots the next one is told, or called.
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
        // Always: without it nobody knows how to go on.
        failure::complain(&format!("boot {wanted} next, then: iotoll compare --resume {folder}"));
        Ok(ExitCode::SUCCESS)
    }

    fn say(&self, what: &str) {
        if !self.arguments.quiet {
            failure::complain(what);
        }
    }

    /// All boots were measured: the end, and the report.
    fn conclude(&mut self) -> anyhow::Result<ExitCode> {
        self.file.end(&boots::end(&self.header))?;
        let record: CompareRecord = lab::store::load(&self.folder)?;
        let stored = stored::load(stored_path(&record.header), &record.header.experiment)?;
        conclude(&record, stored.as_ref(), Some(&self.folder), self.arguments)
    }
}
