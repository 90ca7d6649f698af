//! The steps of every verb that measures: what was asked enters, a verb gives what differs, and the record is saved, studied and printed:
//! on standard output, or where fio's `--output` says and in the format of its `--output-format`, with `report.html` beside the record.

use crate::arguments::{FioFlags, Measuring, Output, SessionArguments, Shown, ink};
use crate::failure::{self, BadInput, bad};
use crate::input::Inputs;
use crate::progress::ProgressLine;
use crate::signals::{self, LeftBehind, guardian};
use clap::Args;
use lab::Interruption;
use lab::created::Created;
use lab::guardian::Guardian;
use lab::service::{Addresses, ServiceSettings};
use lab::session::Settings;
use lab::store::{RecordFolder, Saver};
use model::experiment::Around;
use model::finding::RunFinding;
use model::kind::{self, CommandLine, Recorded};
use model::limit::{Limit, judge};
use model::plan::service::{Names, Service, ServicePlan, resolve};
use model::record::{Outcome, Record, Source};
use model::stored::Stored;
use report::{Ink, html, shell, text};
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use verbs::Finding;
use verbs::format::PAGE;

/// What differs between the verbs that measure.
pub struct Measurement<'a, R: Recorded> {
    /// Names the folder of the record if the user does not.
    pub name: &'a str,
    /// What limits are of, and what an earlier record must fit.
    pub plan: &'a R::Plan,
    /// The plan, if it is to be shown instead of measured.
    pub shown_plan: Option<&'a dyn Finding>,
    /// What is read beside the workload, and where it runs.
    pub settings: Settings,
    /// Says where the result goes, and in which formats.
    pub fio: Option<&'a FioFlags>,
    /// The second or the third signal ends the program at once, after removing what would be left behind. With `None` none does: settings
    /// must be switched back and commands ended first, which takes seconds.
    pub last_signal: Option<u32>,
    /// Whether the record grows on disk, and stays whatever happens. Another one is saved when it is complete.
    pub grows: bool,
    /// Saves the record, if it has not grown.
    pub save: &'a dyn Fn(&R, &Saving) -> anyhow::Result<()>,
    /// Writes what else belongs into the folder of the record.
    pub write_beside: &'a WriteBeside<R>,
    /// Names what `write_beside` writes in the note that says where the record is.
    pub files: &'a str,
    /// Why there is nothing to show, although the measurement ended.
    pub did_nothing: &'a dyn Fn(&R) -> Option<String>,
    /// What a line about a measurement that failed says after the reason; `None` if the result says it.
    pub after_failure: &'a dyn Fn(&R) -> Option<&'static str>,
    /// The exit code, if it does not follow from the finding.
    pub exit_code: &'a dyn Fn(&R, &Interruption) -> Option<ExitCode>,
}

type WriteBeside<R> = dyn Fn(&Path, &R, &<R as Recorded>::Finding) -> anyhow::Result<()>;

impl<'a, R: Recorded> Measurement<'a, R> {
    /// A measurement whose record grows on disk.
    pub fn growing(name: &'a str, plan: &'a R::Plan) -> Self {
        Self {
            name,
            plan,
            shown_plan: None,
            settings: Settings::default(),
            fio: None,
            last_signal: Some(2),
            grows: true,
            save: &|_, _| Ok(()),
            write_beside: &|_, _, _| Ok(()),
            files: "",
            did_nothing: &|_| None,
            after_failure: &|_| None,
            exit_code: &|_, _| None,
        }
    }
}

impl<'a> Measurement<'a, Record> {
    /// The measurement of a cost, whose record is saved when it is complete.
    pub fn whole(name: &'a str, plan: &'a Source, measuring: &Measuring) -> Self {
        Self {
            settings: measuring.settings(),
            grows: false,
            save: &|record, saving| saving.save(record),
            write_beside: &|folder, _, finding| write_profile(folder, finding),
            ..Self::growing(name, plan)
        }
    }
}

/// What a measurement is asked for besides its plan.
pub struct Asked<'a> {
    pub words: &'a [String],
    pub output: &'a Output,
    pub earlier: Earlier,
    pub services: Services,
    pub around: Around,
    pub inputs: Inputs,
}

impl<'a> Asked<'a> {
    /// Without anything around the measurement.
    pub fn alone(words: &'a [String], output: &'a Output, earlier: &Earlier) -> Self {
        let (services, around, inputs) = (Services::default(), Around::default(), Inputs::default());
        Self { words, output, earlier: earlier.clone(), services, around, inputs }
    }

    /// With the services and shell commands of the command line.
    ///
    /// # Errors
    /// When they refer to something that there is not.
    pub fn of(
        words: &'a [String],
        output: &'a Output,
        earlier: &Earlier,
        session: &SessionArguments,
    ) -> anyhow::Result<Self> {
        let services = Services::of(&session.service)?;
        let around = services.around(session.around())?;
        Ok(Self { services, around, ..Self::alone(words, output, earlier) })
    }
}

/// Measures by `work`, saves the record, studies it and prints the finding. Files that are made for it are noted in `Created`, and kept when it
/// ends well. What fails after the first reading is in the record, with everything measured before.
///
/// # Errors
/// When something does not fit, or nothing was measured.
pub fn measure<R: Recorded<Finding: Finding>>(
    verb: Measurement<R>,
    asked: Asked,
    work: impl FnOnce(Settings, &Created, lab::progress::Observer) -> lab::Result<R>,
) -> anyhow::Result<ExitCode> {
    let Asked { words, output, earlier, services, around, inputs } = asked;
    let limits = limits::<R>(&earlier, verb.plan)?;
    if let Some(plan) = verb.shown_plan {
        // There is nothing to leave out.
        Results::prepare(verb.fio, Shown { full: true, ..output.shown })?.print(plan, None)?;
        return Ok(ExitCode::SUCCESS);
    }
    let stored = stored(earlier.stored.as_deref(), verb.plan)?;
    let results = Results::prepare(verb.fio, output.shown)?;
    let left = LeftBehind::default();
    let interruption = signals::interruption(verb.last_signal, left.clone())?;
    let guardian = guardian(words);
    let saving = Saving::prepare(output, verb.name)?;
    let settings = Settings {
        interruption: interruption.clone(),
        command_line: CommandLine { limits: limits.clone(), ..inputs.command_line(words) },
        around,
        services: services.settings(&guardian),
        guardian: guardian.clone(),
        saver: saving.saver(),
        ..verb.settings.clone()
    };
    let created = Arc::new(Created::guarded(guardian));
    left.unless({
        // If the measurement is ending anyway, no signal needs to undo it.
        let (created, saving) = (Arc::downgrade(&created), (!verb.grows).then(|| saving.clone()));
        move || {
            created.upgrade().iter().for_each(|created| created.undo());
            saving.iter().for_each(Saving::abandon);
        }
    });
    let line = ProgressLine::new(output.quiet);
    let outcome = work(settings, &created, &mut |progress| line.show(&progress));
    // Before the signal handler is dropped: removing large files takes a while.
    created.undo();
    drop(created);
    line.clear();
    let record = outcome.inspect_err(|_| saving.abandon()).map_err(mended)?;
    if let Some(why) = (verb.did_nothing)(&record) {
        saving.abandon();
        failure::complain(&why);
        return Ok((verb.exit_code)(&record, &interruption).unwrap_or(ExitCode::SUCCESS));
    }
    // First of all, so that no study that fails can lose it.
    let saved = (verb.save)(&record, &saving).map(|()| saving.folder());
    let mut finding = record.study(stored.as_ref());
    finding.as_mut().limits = judge(&limits, |metric| record.at_places(&finding, stored.as_ref(), metric));
    conclude(&verb, &record, &finding, saved, &results, output)?;
    Ok((verb.exit_code)(&record, &interruption).unwrap_or_else(|| failure::of_finding(finding.as_ref())))
}

/// Adds how to fix a command that cannot be started. Those of `compare` say it themselves.
fn mended(error: lab::Error) -> anyhow::Error {
    match error {
        lab::Error::NotStarted { .. } => bad(format!("{error}; check the command after --")),
        error => error.into(),
    }
}

/// Writes the report beside a record, and prints its finding. It is printed even if saving failed: nothing else is left of
/// the measurement.
///
/// # Errors
/// When the finding or what belongs beside the record cannot be written.
fn conclude<R: Recorded<Finding: Finding>>(
    verb: &Measurement<R>,
    record: &R,
    finding: &R::Finding,
    saved: anyhow::Result<Option<&Path>>,
    results: &Results,
    output: &Output,
) -> anyhow::Result<()> {
    let folder = saved.as_ref().ok().copied().flatten();
    let note = !output.quiet && !results.say_where();
    let mut kept = saved.and_then(|saved| {
        let Some(folder) = saved else { return Ok(()) };
        let page = write_page(folder, finding);
        let written = page.and_then(|()| (verb.write_beside)(folder, record, finding));
        if note {
            say_where(folder, verb.files, written.is_ok());
        }
        written
    });
    if let Outcome::Failed(why) = &finding.as_ref().outcome
        && let Some(more) = (verb.after_failure)(record)
    {
        failure::complain(&format!("{why}{more}"));
        // A full disk has no room for the report either, and that line says what to do.
        kept = Ok(());
    }
    both(kept, results.print(finding, folder))
}

/// A new seed, when the user gave none.
pub fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Short enough to type again.
    u64::from(now.subsec_nanos()) ^ (now.as_secs() & 0xffff)
}

/// What a result is judged by: an earlier record of the same kind, and limits.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Result")]
pub struct Earlier {
    /// Compare with an earlier record (its folder, or record.jsonl), and report what differs between then and now
    #[arg(long, value_name = "DIR")]
    pub stored: Option<PathBuf>,
    /// Exit with 3 if this limit is exceeded for sure, with 4 if that is undecided: 'METRIC > 30k' on a value (not of compare),
    /// 'METRIC > +3%' on its change since --stored (of compare, and of guests without --stored, against the first arm); an unknown
    /// METRIC lists all
    #[arg(long, value_name = "LIMIT")]
    pub fail_on: Vec<String>,
    /// The name of the experiment file, and its limits.
    #[arg(skip)]
    pub of_file: (String, Vec<String>),
}

/// The limits of a measurement of `plan`. Read before the measurement, so that what does not fit is refused at once.
pub fn limits<R: Recorded>(earlier: &Earlier, plan: &R::Plan) -> anyhow::Result<Vec<Limit>> {
    let read = |place: &str, texts: &[String]| {
        let limits = kind::limits::<R>(texts, plan, earlier.stored.is_some());
        limits.map_err(|why| BadInput(format!("{place} {why}")))
    };
    let (file, texts) = &earlier.of_file;
    Ok([read(&format!("{file}: fail_on"), texts)?, read("--fail-on", &earlier.fail_on)?].concat())
}

/// `--stored`: the record at `path`, if one was given and a measurement of `plan` can be compared with it.
pub fn stored<R: Recorded>(path: Option<&Path>, plan: &R::Plan) -> anyhow::Result<Option<Stored<R>>> {
    let Some(path) = path else { return Ok(None) };
    let refused = |why: String| BadInput(format!("--stored {why}"));
    let record: R = lab::store::load_earlier(path).map_err(|error| refused(error.to_string()))?;
    record.fits(plan).map_err(|why| refused(format!("{}: {why}", path.display())))?;
    Ok(Some(Stored::new(path.display().to_string(), record.trimmed())))
}

/// `--service`: servers, with their reserved addresses, and the texts that refer to them.
#[derive(Default)]
pub struct Services {
    pub services: Vec<Service>,
    pub addresses: Addresses,
}

impl Services {
    /// Reserves their addresses, without starting anything.
    fn of(plans: &[ServicePlan]) -> anyhow::Result<Self> {
        let addresses = addresses(plans)?;
        let services = resolve(plans, &[], &|name| addresses.of(name));
        let services = services.map_err(|why| BadInput(format!("--service: {why}")))?;
        Ok(Self { services, addresses })
    }

    /// The shell commands around a measurement, with references to services replaced.
    fn around(&self, around: Around) -> anyhow::Result<Around> {
        let shell = |command: Option<String>| self.names().fill_in_shell(command.as_ref()).map_err(BadInput);
        let Around { setup, prepare, cleanup } = around;
        Ok(Around { setup: shell(setup)?, prepare: shell(prepare)?, cleanup: shell(cleanup)? })
    }

    /// The settings that start them.
    fn settings(self, guardian: &Guardian) -> ServiceSettings {
        let Self { services, addresses } = self;
        // Not the path: another program may replace the file before then.
        ServiceSettings { services, addresses, guardian: guardian.clone(), program: "/proc/self/exe".into() }
    }

    /// What texts may refer to.
    pub fn names(&self) -> Names<'_> {
        Names { services: &self.services, swept: &[], arm: None }
    }
}

/// Reserves an address for each service.
pub fn addresses(plans: &[ServicePlan]) -> anyhow::Result<Addresses> {
    Ok(Addresses::choose(plans.iter().map(|plan| plan.name.as_str()))?)
}

/// Prints a finding on standard output; `folder` has its record.
pub fn print(finding: &dyn Finding, shown: Shown, folder: Option<&Path>) -> anyhow::Result<()> {
    let ink = ink(shown.color, std::io::stdout().is_terminal(), &|name| std::env::var_os(name));
    write(&text_of(finding, shown, ink, columns(), folder))
}

/// A finding as it is asked for: one screen, whose last line says where all the rest is, or all of it.
fn text_of(finding: &dyn Finding, shown: Shown, ink: Ink, columns: usize, folder: Option<&Path>) -> String {
    if !shown.is_glance() {
        return shown.format.render(finding, ink, columns);
    }
    let rest = match folder.map(|folder| shell::quoted(&folder.display().to_string())) {
        Some(folder) => format!("The rest: iotoll report --full {folder}, or {PAGE} there"),
        None => "The rest: --full".to_owned(),
    };
    text::glance(&finding.document(), ink, columns, &rest)
}

/// Writes text to standard output. A closed pipe (`iotoll … | head`) is not an error and does not change the exit code.
pub fn write(text: &str) -> anyhow::Result<()> {
    failure::written(std::io::stdout().lock().write_all(text.as_bytes()))
}

/// Width of a table where there is no terminal.
const COLUMNS: usize = 100;

/// Width of the terminal.
pub fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(COLUMNS)
}

/// The form of a result, and the file that it is written into, if it is not standard output.
pub struct Results {
    shown: Shown,
    file: Option<(PathBuf, File)>,
}

impl Results {
    /// What fio's flags ask for, if there are such flags. Opens the file, so that one that cannot be written is found before the measurement.
    /// What it contains stays until there is a result.
    pub fn prepare(fio: Option<&FioFlags>, shown: Shown) -> anyhow::Result<Self> {
        let open = |path: &PathBuf| {
            let file = File::options().write(true).create(true).truncate(false).open(path);
            let refused =
                |error| BadInput(format!("--output {}: {error}; name a file that can be written", path.display()));
            file.map(|file| (path.clone(), file)).map_err(refused)
        };
        let file = fio.and_then(|fio| fio.file.as_ref()).map(open).transpose()?;
        let format = fio.and_then(FioFlags::format).unwrap_or(shown.format);
        Ok(Self { shown: Shown { format, ..shown }, file })
    }

    /// Whether it says on standard output where the record is.
    pub fn say_where(&self) -> bool {
        self.file.is_none() && self.shown.is_glance()
    }

    /// Prints a finding; `folder` has its record.
    pub fn print(&self, finding: &dyn Finding, folder: Option<&Path>) -> anyhow::Result<()> {
        let Some((path, mut file)) = self.file.as_ref().map(|(path, file)| (path, file)) else {
            return print(finding, self.shown, folder);
        };
        let ink = ink(self.shown.color, false, &|name| std::env::var_os(name));
        let text = text_of(finding, self.shown, ink, COLUMNS, folder);
        // A device or a pipe has no contents to replace.
        let is_file = file.metadata().is_ok_and(|data| data.is_file());
        let emptied = if is_file { file.set_len(0) } else { Ok(()) };
        let written = emptied.and_then(|()| file.write_all(text.as_bytes()));
        Ok(written.map_err(|error| lab::Error::file(path, "writing the result (--output)", error))?)
    }
}

/// Where a record and its report are saved; checked before the measurement. Nowhere with `--no-save`.
#[derive(Clone)]
pub struct Saving(Option<(RecordFolder, Saver)>);

impl Saving {
    /// Makes the folder that the command line asks for, and begins the record. Without `--out` its name is the time and `name`.
    pub fn prepare(output: &Output, name: &str) -> anyhow::Result<Self> {
        if output.no_save {
            return Ok(Self(None));
        }
        let folder = lab::store::folder(output.out.as_deref(), name)?;
        let saver = spare_page(&folder.path).and_then(|()| Ok(Saver::create(&folder.path)?));
        let saver = saver.inspect_err(|_| folder.abandon())?;
        Ok(Self(Some((folder, saver))))
    }

    /// What saves the record while it grows.
    pub fn saver(&self) -> Saver {
        self.0.as_ref().map(|(_, saver)| saver.clone()).unwrap_or_default()
    }

    /// Removes what was made, if nothing was measured.
    pub fn abandon(&self) {
        if let Some((folder, saver)) = &self.0 {
            saver.remove();
            folder.abandon();
        }
    }

    /// The folder, if there is one.
    pub fn folder(&self) -> Option<&Path> {
        self.0.as_ref().map(|(folder, _)| folder.path.as_path())
    }

    /// Saves a complete record in place of the growing one.
    pub fn save(&self, record: &Record) -> anyhow::Result<()> {
        Ok(self.folder().map_or(Ok(()), |folder| lab::store::save(folder, record))?)
    }
}

/// Writes a profile, if there is one, for programs that draw and compare profiles.
fn write_profile(folder: &Path, finding: &RunFinding) -> anyhow::Result<()> {
    report::flame_graph::folded(finding)
        .map_or(Ok(()), |stacks| write_file(&folder.join("profile.folded"), "writing the profile", stacks.as_bytes()))
}

/// Writes a file beside a record; `doing` says what that is.
pub fn write_file(path: &Path, doing: &'static str, contents: &[u8]) -> anyhow::Result<()> {
    let written = lab::store::create_afresh(path).and_then(|mut file| file.write_all(contents));
    Ok(written.map_err(|error| lab::Error::file(path, doing, error))?)
}

/// Says where the record and its page are, and other `files` beside them.
fn say_where(folder: &Path, files: &str, has_page: bool) {
    let folder = folder.display();
    let page = if has_page { format!(" and {PAGE}") } else { String::new() };
    failure::complain(&format!("record{files}{page} in {folder}; to show it again: iotoll report {folder}"));
}

/// Combines the errors of saving and printing, so that neither hides the other.
fn both(kept: anyhow::Result<()>, printed: anyhow::Result<()>) -> anyhow::Result<()> {
    if let (Err(lost), Err(_)) = (&kept, &printed) {
        failure::complain(&failure::in_words(lost));
    }
    printed.and(kept)
}

/// Refuses a folder that already contains a report.
fn spare_page(folder: &Path) -> anyhow::Result<()> {
    let page = folder.join(PAGE);
    // A symbolic link that leads nowhere is one too.
    if std::fs::symlink_metadata(&page).is_ok() {
        let page = page.display();
        return Err(bad(format!("{page}: already exists; choose another --out, or remove it")));
    }
    Ok(())
}

/// Writes the report beside the record in `folder`.
fn write_page(folder: &Path, finding: &dyn Finding) -> anyhow::Result<()> {
    let (path, page) = (folder.join(PAGE), html::html(&finding.document()));
    let written = lab::store::create_afresh(&path).and_then(|mut file| file.write_all(page.as_bytes()));
    Ok(written.map_err(|error| {
        // Half a page is none.
        let _ = std::fs::remove_file(&path);
        lab::Error::record(&path, "writing the report", error)
    })?)
}
