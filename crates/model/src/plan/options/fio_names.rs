//! The names that no table of ours has, and why they are refused: the options of fio 3.33 and of its engines, all aliases and its own flags
//! included, as `fio --cmdhelp=all` and `fio --enghelp=ENGINE` list them, and those that nobody has.

use super::{JobOption, all, choice, find};
use crate::plan::job::EngineKind;
use crate::plan::value::{Effect, Wrong, nearest};

/// Options that are refused for one reason.
pub(super) struct Refused {
    /// Whether I/O depends on them.
    pub effect: Effect,
    /// Why, and what to do instead.
    pub why: &'static str,
    /// Their names, with spaces between them.
    names: &'static str,
}

impl Refused {
    /// Their names.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.names.split_whitespace()
    }
}

/// The reason for an option of fio; `None` if fio does not have it either.
pub(super) fn refused(name: &str) -> Option<&'static Refused> {
    REFUSED.iter().find(|group| has(group.names, name))
}

/// Whether a list of names has this one.
pub(super) fn has(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|known| known == name)
}

/// Why `name` is refused when [`find`](super::find) returns `None`.
pub(crate) fn unknown(name: &str) -> Wrong {
    if let Some(group) = refused(name) {
        let harmless = if group.effect == Effect::None { " (no I/O depends on it)" } else { "" };
        let wrong = Wrong::new(format!("known to fio, not supported{harmless}; {}", group.why));
        // No guess: the name is spelled as it should be.
        return Wrong { unsupported: Some(group.effect), ..wrong };
    }
    let known = all().flat_map(JobOption::names);
    Wrong { suggestion: nearest(name, known).map(str::to_owned), ..Wrong::new("unknown") }
}

/// Why there is no help of an option that is not in [`reference()`](super::reference).
pub fn no_such(name: &str) -> String {
    if let Some(option) = find(name) {
        return format!("'{name}' has no effect: {}", option.help);
    }
    let wrong = unknown(name);
    let meant = wrong.suggestion.map(|known| format!("; did you mean '{known}'?")).unwrap_or_default();
    format!("'{name}': no job option: {}{meant}", wrong.reason)
}

/// What iotoll makes of an option of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfFio {
    /// It means the same, under this name.
    Supported(&'static str),
    /// It has no effect, for this reason; its name here.
    Accepted(&'static str, &'static str),
    /// It is refused, for this reason.
    Refused(&'static str),
}

/// All options of fio 3.33 with their other names, in alphabetical order.
pub fn of_fio() -> Vec<(&'static str, OfFio)> {
    let ours = all().filter(|option| !has(OWN, option.name)).flat_map(|option| {
        let what =
            if option.has_effect() { OfFio::Supported(option.name) } else { OfFio::Accepted(option.name, option.help) };
        option.names().map(move |name| (name, what))
    });
    let refused = REFUSED.iter();
    let refused = refused.flat_map(|group| group.names().map(|name| (name, OfFio::Refused(group.why))));
    let mut options: Vec<_> = ours.chain(refused).collect();
    options.sort_unstable_by_key(|(name, _)| *name);
    options
}

/// Parses `ioengine`: an engine of fio that is not ours is no misspelling.
pub(super) fn engine(text: &str) -> Result<EngineKind, Wrong> {
    // fio's other names for it.
    let text = if ["aio", "linuxaio"].contains(&text) { "libaio" } else { text };
    let known = choice(text);
    if known.is_ok() || !has(ENGINES, text) {
        return known;
    }
    let near = match text {
        "exec" => "; iotoll cost -- COMMAND measures a program",
        "libzbc" => "; ioengine=psync with direct=1 comes nearest",
        "libpmem" | "dev-dax" | "pmemblk" => "; mem comes nearest",
        "vsync" => "; ioengine=pvsync comes nearest",
        "net" | "netsplice" => "; engines nbd and rr, and iotoll blast, use networks",
        "rados" | "rbd" => "; iotoll guest run --stack rbd measures the kernel's",
        _ => "",
    };
    let wrong = Wrong::because(text, format_args!("is an engine of fio that is not supported{near}"));
    Err(Wrong { unsupported: Some(Effect::Work), ..wrong })
}

/// On these I/O depends.
const fn work(why: &'static str, names: &'static str) -> Refused {
    Refused { effect: Effect::Work, why, names }
}

/// On these none does.
const fn harmless(why: &'static str, names: &'static str) -> Refused {
    Refused { effect: Effect::None, why, names }
}

pub(super) static REFUSED: &[Refused] = &[
    work(
        "an option of an engine for networks; iotoll measures other networks with engines nbd and rr, and with blast",
        "bindname hostname interface listen mss nodelay pingpong port proto protocol ttl verb window_size",
    ),
    work(
        "iotoll does not divide files and devices into zones",
        "ignore_zone_limits job_max_open_zones max_open_zones read_beyond_wp zone_reset_frequency \
         zone_reset_threshold zonecapacity zonemode zonerange zonesize zoneskip",
    ),
    work(
        "iotoll searches for no queue depth; iotoll compare --sweep iodepth=1,2,4,8 shows what each costs",
        "latency_percentile latency_run latency_target latency_window",
    ),
    work("jobs of iotoll do not share I/Os by weight; rate_iops limits each", "flow flow_id flow_sleep flow_watermark"),
    work("the thread of a job submits its I/Os in their order", "io_submit_mode serialize_overlap"),
    work(
        "iotoll saves and loads no states of verify, and trims no blocks that it verifies",
        "trim_backlog trim_backlog_batch trim_percentage trim_verify_zero verify_state_load",
    ),
    work(
        "an option of engine exec; iotoll cost -- COMMAND measures a command",
        "arguments grace_time program std_redirect",
    ),
    work(
        "an option of an engine that iotoll does not have",
        "brick busy_poll clientname clustername cmd_type conf donorname inplace pool rbdname readfua sg_write_mode single-instance \
         skip_bad stat_type stream_id thp touch_objects volume writefua",
    ),
    work(
        "traces are not merged; read_iolog replays one in each copy of a job",
        "merge_blktrace_file merge_blktrace_iters merge_blktrace_scalars",
    ),
    harmless("each direction of each job is reported", "stats unified_rw_reporting"),
    work("all I/Os of a job are polled, or none; use hipri", "hipri_percentage"),
    harmless(
        "run the command before or after iotoll, or with --setup, --prepare and --cleanup",
        "exec_postrun exec_prerun",
    ),
    work("start iotoll as that user, or in that control group", "cgroup cgroup_nodelete cgroup_weight gid uid"),
    work("jobs are written out, not made by a profile", "profile"),
    work(
        "iotoll takes rate as an upper limit, spaces I/Os evenly, and lets a slower job go on",
        "rate_process rate_min ratemin rate_iops_min rate_cycle ratecycle rate_ignore_thinktime max_latency",
    ),
    work("a job sleeps through its pauses", "thinktime_blocks_type thinktime_iotime thinktime_spin"),
    work(
        "iotoll keeps all files of a job open from its first I/O to its last; name them with filename",
        "opendir unlink_each_loop",
    ),
    work(
        "iotoll makes files before the measurement, and a job writes within size",
        "file_append create_only fill_device fill_fs",
    ),
    work("use fsync or fdatasync", "sync_file_range"),
    work("no engine of iotoll passes such a flag to the kernel", "atomic write_barrier write_hint"),
    work(
        "iotoll writes one header, at the front of a block, lets the thread that read the block check it, and ends the job at the first error",
        "verify_interval verify_offset verify_backlog_batch verify_only verify_async_cpus continue_on_error ignore_error",
    ),
    work(
        "iotoll sets neither NUMA nodes nor priorities: start it under numactl, nice or ionice, which its threads inherit",
        "cmdprio cmdprio_bssplit cmdprio_class cmdprio_percentage numa_cpu_nodes numa_mem_policy nice prio prioclass",
    ),
    work("iotoll lets each thread use all of cpus_allowed; write a job for each CPU", "cpus_allowed_policy"),
    work("iotoll draws the blocks of a run in ascending order", "rw_sequencer"),
    work("iotoll chooses sizes by direction", "bs_is_seq_rand"),
    work("iotoll repeats only the last new block", "dedupe_global dedupe_mode dedupe_working_set_percentage"),
    work("the kernel chooses the CPU of its thread", "sqthread_poll_cpu"),
    work("an option of engine cpuio; engine spin or work burns CPU time", "cpuchunks cpuload cpumode exit_on_io_done"),
    work("stonewall waits for all jobs before it", "wait_for"),
    work(
        "iotoll compare --candidate-set file:/sys/block/DEVICE/queue/scheduler=NAME compares schedulers; --setup and --cleanup set one",
        "ioscheduler",
    ),
    work("iotoll replays a trace as it is; edit the trace", "replay_align replay_scale replay_skip replay_time_scale"),
    harmless(
        "leave it out: it would change no I/O here",
        "allrandrepeat create_fsync hugepage-size iomem_align mem_align lockfile nonvectored read_iolog_chunked softrandommap unique_filename",
    ),
    harmless(
        "iotoll writes the time since the job's start, means of windows, no offsets, and all bins of a histogram",
        "log_alternate_epoch log_alternate_epoch_clock_id log_hist_coarseness log_max_value log_offset log_prio log_unix_epoch",
    ),
    harmless("completions are always taken by the system call", "userspace_reap"),
    harmless(
        "leave it out: percentiles and rates are always reported, errors always said, and figures have the digits of their intervals",
        "block_error_percentiles bwavgtime error_dump experimental_verify iopsavgtime significant_figures slat_percentiles unit_base",
    ),
    harmless(
        "leave it out: logs are text in memory that is taken before the first I/O, and each thread reads the clock itself",
        "gtod_cpu log_compression log_compression_cpus log_entries log_store_compressed",
    ),
    work("k, m and g are powers of 1024", "kb_base"),
    // Flags of its command line.
    harmless(
        "run iotoll on that machine, for example by ssh, and save its record with --out",
        "client remote-config server",
    ),
    harmless("start iotoll in the background with the shell's &, or with systemd-run", "daemonize"),
    harmless(
        "progress is shown only on a terminal, and the result comes once; --probe and the record show the run over time",
        "eta eta-interval eta-newline status-interval",
    ),
    harmless("run the command with --setup or --cleanup", "trigger trigger-file trigger-remote trigger-timeout"),
    harmless("iotoll measures the cycles of the whole machine; --meters idle reads its idle time", "idle-prof"),
    harmless("--parse-only shows the resolved job, and strace -f its system calls", "debug"),
    harmless("write_bw_log with log_avg_msec logs the bandwidth of each job", "bandwidth-log"),
    harmless("--format fio-json has all numbers", "append-terse terse-version"),
    harmless(
        "leave it out: iotoll has no such table or pool, and no such warnings",
        "alloc-size max-jobs warnings-fatal",
    ),
    harmless(
        "run fio --crctest or fio --showcmd JOB.fio; iotoll doctor checks the clocks",
        "cpuclock-test crctest showcmd",
    ),
];

/// Options of ours that fio does not have.
pub(super) const OWN: &str = "inject_every inject_ns mem_copy mem_in_flight path_busy_poll path_coalesce path_copy path_crc \
     path_framing path_in_flight path_max_payload path_null path_receive path_segment path_send path_tx_queue \
     rr_connect rr_peer spin_cycles submitters tx_task_cpus work_steps";

/// The engines of fio 3.33, ours among them or not.
pub(super) const ENGINES: &str = "cpuio dev-dax e4defrag exec external falloc filecreate filedelete filestat ftruncate gfapi gfapi_async http \
     io_uring_cmd libhdfs libiscsi libpmem libzbc mmap mtd net netsplice nfs pmemblk posixaio pvsync pvsync2 rados \
     rbd rdma sg splice sync vsync";
