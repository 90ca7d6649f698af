//! `iotoll cost -- CMD`: what a command costs the whole machine.

use crate::cost::measure::sheet::Sheet;
use lab::command::{CommandPlan, Count, Counter, Executed, Surroundings, counted_by, execute};
use lab::guardian::processes::Processes;
use lab::progress::{Observer, Progress};
use lab::session::{Session, Settings, outcome_of};
use lab::workload::target::Created;
use lab::{Error, Result, network_namespace, placing};
use model::experiment::Cell;
use model::probe::Probe;
use model::record::{Outcome, PhaseRecord, Record, Source};
use model::warning::add_once;

/// Measures a command. What the program prints for people goes to `print`.
///
/// # Errors
/// When the command cannot be started. A command that fails is in the record.
pub fn cost(
    plan: &CommandPlan,
    settings: &Settings,
    observer: Observer,
    print: &mut dyn FnMut(&str),
) -> Result<Record> {
    let servers = placing::servers_named(&plan.command);
    let session = Session::open(settings, &servers, &mut |service| observer(Progress::Starting { service }))?;
    let mut measured = measure(plan, &session, observer, print);
    session.close(measured.as_mut().map(|record| &mut record.outcome), &Created::default());
    measured
}

fn measure(plan: &CommandPlan, session: &Session, observer: Observer, print: &mut dyn FnMut(&str)) -> Result<Record> {
    let counted_by = counted_by(plan);
    let mut sheet = Sheet::open(session, Source::Cost { command: plan.command.clone(), counted_by })?;
    if let Count::Kernel(counter) = &plan.count {
        counter.read().map_err(|error| Error::Refused(format!("--count {counter}: {error}")))?;
    }
    sheet.watch_background(observer);
    let mut phase = PhaseRecord::default();
    // Processes that the command leaves running stay, also if iotoll is killed.
    let unguarded = Processes::default();
    for number in 0..plan.repeat.max(1) as usize {
        if sheet.has_ended() {
            break;
        }
        let windows = Some(sheet.growing_windows(0));
        let mut surroundings = Surroundings {
            windows,
            meters: &mut sheet.meters,
            interruption: &session.settings.interruption,
            warnings: &mut sheet.record.warnings,
            cpus: session.placing.of(0),
            processes: &unguarded,
        };
        let prepared = session.around.prepare(&Cell::default());
        let executed = prepared.and_then(|()| execute(plan, number, &mut surroundings, observer, print));
        let Executed { execution, failure, elsewhere } = match executed {
            Ok(executed) => executed,
            Err(error) if phase.executions.is_empty() => return Err(error),
            // The cost of the executions before it is known.
            Err(error) => {
                sheet.note_outcome(outcome_of(&error));
                break;
            }
        };
        let ours = of_our_network(plan, &session.settings.probes);
        if let Some(caveat) = network_namespace::caveat(&ours, &plan.command, elsewhere) {
            add_once(&mut sheet.record.warnings, caveat);
        }
        // An interrupted command often ends with a failure of its own.
        if let Some(failure) = failure.filter(|_| !session.interrupted()) {
            sheet.note_outcome(Outcome::Failed(failure));
        }
        sheet.keep_execution(0, &execution);
        phase.executions.push(execution);
    }
    if phase.executions.is_empty() {
        return Err(Error::Interrupted("before the command was started".to_owned()));
    }
    sheet.record.phases.push(phase);
    sheet.watch_background(observer);
    Ok(sheet.close())
}

/// What counts in iotoll's own network namespace.
fn of_our_network(plan: &CommandPlan, probes: &[Probe]) -> Vec<String> {
    let interface = match &plan.count {
        Count::Kernel(counter @ Counter::Probe(name)) if name.starts_with("net.") => Some(format!("--count {counter}")),
        Count::Kernel(counter @ Counter::Net(_)) => Some(format!("--count {counter}")),
        Count::Kernel(Counter::Block(_) | Counter::Probe(_)) | Count::Program | Count::Stated { .. } => None,
    };
    interface.into_iter().chain(network_namespace::flags_of_one(probes)).collect()
}
