//! `iotoll report`: a saved record is studied and printed again.

use crate::arguments::ReportArguments;
use crate::stdout;
use crate::stored;
use model::comparison::CompareRecord;
use model::envelope::Kind;
use model::guest::GuestRecord;
use model::kind::Recorded;
use model::record::Record;
use report::Finding;
use std::process::ExitCode;

/// Runs the verb.
pub fn report(arguments: &ReportArguments) -> anyhow::Result<ExitCode> {
    match lab::store::kind_at(&arguments.record)? {
        Kind::Cost => show::<Record>(arguments)?,
        Kind::Compare => show::<CompareRecord>(arguments)?,
        Kind::Guest => show::<GuestRecord>(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a record of one kind.
fn show<R: Recorded>(arguments: &ReportArguments) -> anyhow::Result<()>
where
    R::Finding: Finding,
{
    let record: R = lab::store::load(&arguments.record)?;
    let stored = stored::load(arguments.stored.as_deref(), record.plan())?;
    stdout::print(&record.study(stored.as_ref()), arguments.format)
}
