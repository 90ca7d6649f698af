//! `iotoll compare` where arms are boots: one boot is measured at a time, and the record says what is next.

use crate::arguments::CompareArguments;
use crate::compare::{exit_code, settings, write_report};
use crate::failure::{self, BadInput};
use crate::progress::ProgressLine;
use crate::render;
use crate::stored;
use lab::compare::{Settings, boots};
use lab::store::{RoundsFile, folder, load_rounds};
use model::comparison::record::{BootRecord, Header};
use model::experiment::Experiment;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// An experiment of boots that is under way.
struct Course<'a> {
    folder: PathBuf,
    file: RoundsFile,
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
pub fn start(experiment: Experiment, arguments: &CompareArguments, words: &[String]) -> anyhow::Result<ExitCode> {
    if arguments.no_save {
        return Err(BadInput("compare: boots are remembered in the record; --no-save cannot be".to_owned()).into());
    }
    let settings = settings(arguments, words)?;
    let place = folder(arguments.out.as_deref(), "compare")?;
    let mut file = RoundsFile::create(&place.path).inspect_err(|_| place.abandon())?;
    let begun = boots::begin(experiment, &settings).and_then(|header| file.header(&header).map(|()| header));
    let header = begun.inspect_err(|_| {
        // Nothing was measured; where it cannot be removed the folder stays too.
        let _ = std::fs::remove_file(file.path());
        place.abandon();
    })?;
    let mut course = Course { folder: place.path, file, header, boots: Vec::new(), arguments, settings };
    match course.ready()? {
        Ready::Yes => course.go_on(),
        Ready::Other(_) | Ready::SameBoot => course.await_boot(),
    }
}

/// Goes on with the experiment in `folder`.
pub fn resume(folder: &Path, arguments: &CompareArguments, words: &[String]) -> anyhow::Result<ExitCode> {
    let (file, record) = RoundsFile::resume(folder)?;
    let shown = folder.display();
    // Only when all boots are measured is it needed, and what is wrong with it is said now.
    stored::load(arguments.stored.as_deref(), &record.header.experiment)?;
    let settings = settings(arguments, words)?;
    let (header, boots) = (record.header, record.boots);
    let mut course = Course { folder: folder.to_owned(), file, header, boots, arguments, settings };
    let refused = |why: String| Err(BadInput(format!("{shown}: {why}")).into());
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
            Some(last) => last.arm == next && last.boot_id == boots::boot_id()?,
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
            self.file.boot(&boot, &round)?;
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
        let record = load_rounds(&self.folder)?;
        let stored = stored::load(self.arguments.stored.as_deref(), &record.header.experiment)?;
        let finding = model::comparison::study_against(&record, stored.as_ref());
        let kept = write_report(&self.folder, &finding, !self.arguments.quiet);
        render::write(&self.arguments.format.render_comparison(&finding, render::ink(), render::columns()))?;
        kept?;
        Ok(exit_code(&finding))
    }
}
