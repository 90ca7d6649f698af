//! The accounts that the cost is charged to: exact ones where they were kept, otherwise tasks by name and the rest that no task is
//! charged for.

mod exact;

pub(super) use exact::{Total, largest_others, of_the_load, others_part, rates, shared};

use super::net_cost::BackgroundRates;
use super::windows::{own_growth, own_in_interval};
use crate::account::named::{LEAST_SHARE, SOAKER, label};
use crate::finding::AccountFinding;
use crate::record::{Execution, TaskOwner};
use crate::unit::Nanos;
use std::collections::BTreeMap;

/// Splits `net` cycles per I/O. Empty if nothing is known about tasks.
pub(super) fn study(
    executions: &[Execution],
    total: Option<Total>,
    ios: Option<u64>,
    outside: Option<f64>,
    rates: &BackgroundRates,
) -> Vec<AccountFinding> {
    let exact = total.filter(|total| total.net > 0.0).and_then(|total| exact::study(executions, total, rates));
    exact.unwrap_or_else(|| by_tasks(executions, total.map(|total| total.net), ios, outside, rates))
}

fn by_tasks(
    executions: &[Execution],
    net: Option<f64>,
    ios: Option<u64>,
    outside: Option<f64>,
    rates: &BackgroundRates,
) -> Vec<AccountFinding> {
    let (Some(net), Some(ios)) = (net.filter(|net| *net > 0.0), ios) else { return Vec::new() };
    let in_interval = own_in_interval(executions);
    let ios = in_interval.map_or(ios as f64, |own| own.ios);
    let per_io = |nanos: f64| nanos * rates.context.clock.0 / 1e9 / ios;
    let mut sums: BTreeMap<(TaskOwner, String), f64> = BTreeMap::new();
    let mut others = 0.0;
    for execution in executions {
        let Some(tasks) = &execution.stretch.tasks else { return Vec::new() };
        // Tasks were read before and after the whole stretch; if only a part is used, they get a share proportional to
        // time.
        let seconds = tasks.wall_nanos.seconds();
        let part = execution.io_interval.map_or(1.0, |interval| {
            if seconds > 0.0 { interval.end_nanos.since(interval.begin_nanos).seconds() / seconds } else { 1.0 }
        });
        // If the jobs report the CPU time of their threads during I/O, setup and ramps are excluded.
        let io = execution.jobs.iter().map(|job| job.thread_nanos).sum::<Option<Nanos>>();
        let io = io.filter(|nanos| *nanos > Nanos(0)).map(|nanos| nanos.as_f64());
        let io = if in_interval.is_some() { own_growth(execution) } else { io };
        let own = match (io, execution.command_cpu_nanos) {
            (Some(io), None) => Some((io, "the workload's own threads")),
            (Some(io), Some(total)) => {
                // Below 0 too, where the jobs round up what they report: only the sum over all executions is a cost.
                others += per_io(total.as_f64() - io);
                Some((io, "the command's I/O threads"))
            }
            (None, Some(total)) => Some((total.as_f64(), "the command and its children")),
            (None, None) => None,
        };
        if let Some((nanos, name)) = own {
            let name = name.to_owned();
            *sums.entry((TaskOwner::Workload, name)).or_default() += per_io(nanos);
        }
        for task in &tasks.tasks {
            // The workload's tasks are in its own sum, except the kernel's workers for iotoll's own engines. Soakers
            // only use otherwise idle time.
            let helper = task.name.starts_with("iou-") && execution.command_cpu_nanos.is_none();
            let counted = task.owner == TaskOwner::Workload && own.is_some() && !helper;
            if counted || task.name.starts_with(SOAKER) {
                continue;
            }
            let anyway = rates.task_nanos_per_second(task.owner, &task.name) * seconds;
            let anyway = if task.owner == TaskOwner::Workload { 0.0 } else { anyway };
            *sums.entry((task.owner, label(task.owner, &task.name))).or_default() +=
                per_io((task.nanos.as_f64() - anyway) * part);
        }
    }
    // CPU time of the command beyond its I/O threads: its setup, which is not part of the I/O, and helpers that the I/O
    // threads do not know about, such as io_uring's workers.
    let helpers = others - outside.unwrap_or(0.0) / ios;
    if helpers > 0.0 {
        sums.insert(
            (TaskOwner::Workload, "the command's other threads, including io_uring's workers".to_owned()),
            helpers,
        );
    }
    let mut accounts: Vec<AccountFinding> = Vec::new();
    let (mut charged, mut small) = (0.0, 0.0);
    for ((owner, name), cycles) in sums {
        charged += cycles;
        if (cycles / net).abs() < LEAST_SHARE {
            small += cycles;
        } else {
            accounts.push(AccountFinding {
                name,
                owner: Some(owner),
                cycles_per_io: cycles,
                share: cycles / net,
                ..AccountFinding::default()
            });
        }
    }
    accounts.sort_by(|a, b| b.cycles_per_io.total_cmp(&a.cycles_per_io));
    let mut other = |name: &str, cycles: f64| {
        accounts.push(AccountFinding {
            name: name.to_owned(),
            cycles_per_io: cycles,
            share: cycles / net,
            ..AccountFinding::default()
        });
    };
    other("other tasks, each below 1 %", small);
    let rest = net - charged;
    other("no task: interrupts, idle entry and exit, ended tasks", rest);
    accounts
}
