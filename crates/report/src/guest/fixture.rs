//! Typical measurements of guests, for the tests of every format. Records are made up; the study computes the findings.

use model::envelope::{Envelope, Kind};
use model::guest::draft::{Draft, JobDraft, JobText};
use model::guest::plan::Published;
use model::guest::record::{
    ChainCount, End, FunctionCount, GuestRecord, Header, InstructionCount, KernelIdentity, Measured,
};
use model::guest::{GuestFinding, GuestPlan, study};
use model::record::Outcome;
use model::stats::Estimate;
use model::warning::{Code, Warning};
use std::collections::BTreeMap;

/// All findings with their names.
pub fn all() -> Vec<(&'static str, GuestFinding)> {
    vec![
        ("one", one()),
        ("two_kernels", two_kernels()),
        ("ten_jobs", ten_jobs()),
        ("sweep", sweep()),
        ("sizes", sizes()),
        ("interrupted", interrupted()),
        ("single_replicate", single_replicate()),
        ("empty", empty()),
        ("hostile", hostile(f64::NAN, "\u{1b}[31m読み|<b>\n書き\u{7}")),
        ("hostile_numbers", hostile(1e300, "名")),
    ]
}

/// One job on one kernel, by function and with chains of calls.
pub fn one() -> GuestFinding {
    let draft = Draft {
        functions: true,
        chains: true,
        ..draft(&["debian:6.1"], &[("randread", "tmpfs", "rw=randread bs=4k")])
    };
    measured(&draft, &|point, replicate| Measured {
        instructions: InstructionCount {
            string: 1000 * 512,
            chains: vec![chain(
                "entry_SYSCALL_64_after_hwframe;do_syscall_64;__x64_sys_pread64;vfs_read;shmem_file_read_iter;copy_page_to_iter",
                1_200_000,
            )],
            ..by_function(&[
                ("[programs]", None, 310_000),
                ("shmem_file_read_iter", None, 420_000 + 1000 * replicate),
                ("copy_page_to_iter", None, 1_400_000),
                ("shmem_get_folio_gfp", None, 380_000),
                ("rep_movs_alternative", None, 890_000),
                ("entry_SYSCALL_64", None, 260_000),
                ("vfs_read", None, 190_000),
                ("rw_verify_area", None, 90_000),
                ("ktime_get_coarse_real_ts64", None, 60_000),
                ("__fget_light.isra.0", None, 55_000),
                ("security_file_permission", None, 42_000),
            ])
        },
        ..counted(point, replicate, &[("on_tmpfs", 1)])
    })
}

/// The cost of a kernel's two years for one NFS write over RDMA.
pub fn two_kernels() -> GuestFinding {
    let draft = Draft {
        functions: true,
        ..draft(&["debian:6.1", "debian:6.12"], &[("1k write", "nfs-rdma", "rw=randwrite bs=1k direct=1")])
    };
    let path = [
        ("rpc_sends", 1000),
        ("write_ops", 1000),
        ("read_chunks", 0),
        ("pulled_up_bytes", 1_136_000),
        ("write_rtt_ms", 96),
        ("write_execute_ms", 112),
    ];
    measured(&draft, &|point, replicate| {
        let new = u64::from(point == 1);
        let jitter = [0, 40_000, 15_000, 55_000, 21_000].get(replicate as usize).copied().unwrap_or(0);
        Measured {
            instructions: by_function(&[
                ("[programs]", None, 410_000),
                ("__schedule", None, 9_000_000 + new * 15_700_000 + jitter),
                ("process_one_work", None, 4_000_000 + new * 5_500_000),
                ("rxe_rcv", Some("rdma_rxe"), 31_000_000 - new * 900_000),
                ("rpcrdma_marshal_req", Some("rpcrdma"), 12_000_000 + new * 1_200_000),
                ("svc_rdma_recvfrom", Some("rpcrdma"), 11_000_000),
                ("nfs_direct_write_schedule_iovec", Some("nfs"), 8_500_000 * (1 - new)),
                ("nfs_direct_write_schedule", Some("nfs"), 8_700_000 * new),
                ("tcp_sendmsg", None, 0),
                ("zzz_helper", None, 55_000 + new * 3000),
            ]),
            ..counted(point, replicate, &path)
        }
    })
}

/// Ten jobs on nine stacks, two kernels.
pub fn ten_jobs() -> GuestFinding {
    const JOBS: [(&str, &str, &str); 10] = [
        ("tmpfs 4k read", "tmpfs", "rw=randread bs=4k"),
        ("tmpfs 4k write", "tmpfs", "rw=randwrite bs=4k"),
        ("tmpfs 4k read, io_uring", "tmpfs", "rw=randread bs=4k ioengine=io_uring"),
        ("ext4-brd 4k fsync", "ext4-brd", "rw=randwrite bs=4k fsync=1"),
        ("ext4-dax 4k write", "ext4-dax", "rw=randwrite bs=4k direct=1"),
        ("null_blk 4k direct read", "null_blk", "rw=randread bs=4k direct=1"),
        ("nbd 4k read", "nbd", "rw=randread bs=4k direct=1"),
        ("nvme-tcp 4k read", "nvme-tcp", "rw=randread bs=4k direct=1"),
        ("nfs-tcp 1k write", "nfs-tcp", "rw=randwrite bs=1k direct=1"),
        ("nfs-rdma 1k write", "nfs-rdma", "rw=randwrite bs=1k direct=1"),
    ];
    // Instructions of one I/O, and what 6.12 adds, in thousandths.
    const COSTS: [(u64, i64); 10] = [
        (5438, -26),
        (5830, 3),
        (2805, 3065),
        (18_311, 44),
        (3445, 0),
        (4408, 92),
        (88_102, 97),
        (50_512, 21),
        (105_004, 38),
        (115_165, 256),
    ];
    let draft = Draft {
        title: "What two years of kernel do to one I/O".to_owned(),
        functions: true,
        ..draft(&["debian:6.1", "debian:6.12"], &JOBS)
    };
    measured(&draft, &|point, replicate| {
        let (cost, change) = COSTS.get(point / 2).copied().unwrap_or((0, 0));
        let added = if point % 2 == 1 { cost as i64 * change } else { 0 };
        let jitter = (replicate * 37 + point as u64 * 11) % 23 * cost / 20;
        let moved = |base: u64, part: i64| (1000 * base).saturating_add_signed(added * part / 10);
        let path = match point / 2 {
            0..3 => vec![("on_tmpfs", 1)],
            3 => vec![("block_writes", 2004 + i64::from(point % 2 == 1)), ("on_ext4", 1)],
            _ => vec![("block_ios", 1000)],
        };
        Measured {
            instructions: by_function(&[
                ("[programs]", None, 290_000),
                ("__schedule", None, moved(cost / 4, 6)),
                ("io_issue_sqe", None, moved(cost / 4, 3)),
                ("vfs_read", None, moved(cost / 2, 1) + jitter),
            ]),
            ..counted(point, replicate, &path)
        }
    })
}

/// Five sizes by five thresholds of the client.
pub fn sweep() -> GuestFinding {
    const SIZES: [u64; 5] = [512, 1024, 2048, 4096, 16384];
    const INLINE: [u64; 5] = [1024, 2048, 4096, 16384, 65536];
    let values = |values: [u64; 5]| values.map(|value| value.to_string()).to_vec();
    let mut draft = draft(&["debian:6.1"], &[("write", "nfs-rdma", "rw=randwrite direct=1")]);
    draft.sweeps =
        vec![("sysctl:sunrpc.rdma_max_inline_write".to_owned(), values(INLINE)), ("bs".to_owned(), values(SIZES))];
    draft.published = vec![Published {
        what: "1 KiB writes: +16 % IOPS without a pull-up".to_owned(),
        source: "xprtrdma: pull up sometimes, linux-nfs, October 2019".to_owned(),
    }];
    measured(&draft, &|point, replicate| {
        let inline = INLINE.get(point / 5).copied().unwrap_or(0);
        let size = SIZES.get(point % 5).copied().unwrap_or(0);
        let chunk = u64::from(size + 300 > inline);
        let total = 1000 * (110_000 + 8 * size + chunk * 20_400) + replicate * 31_000;
        let pulled_up = i64::try_from((1 - chunk) * (size + 112) * 1000 * u64::from(size < 2048)).unwrap_or(0);
        let path = [
            ("rpc_sends", 1000),
            ("read_chunks", 1000 * chunk as i64),
            ("pulled_up_bytes", pulled_up),
            ("reply_chunks", 0),
        ];
        Measured {
            instructions: InstructionCount { total, programs: 300_000, ..InstructionCount::default() },
            ..counted(point, replicate, &path)
        }
    })
}

/// Sizes, and nothing else: they are the arms.
pub fn sizes() -> GuestFinding {
    let mut draft = draft(&["debian:6.1"], &[("read", "null_blk", "rw=randread direct=1")]);
    draft.sweeps = vec![("bs".to_owned(), ["4k", "8k", "64k"].map(str::to_owned).to_vec())];
    measured(&draft, &|point, replicate| {
        let total = 1000 * [4408, 4420, 5391].get(point).copied().unwrap_or(0) + replicate * 1700;
        let instructions = InstructionCount { total, ..InstructionCount::default() };
        let bytes = 1000 * 4096 * [1, 2, 16].get(point).copied().unwrap_or(0);
        Measured { instructions, bytes, ..counted(point, replicate, &[("block_ios", 1000)]) }
    })
}

/// The last kernel was not measured, and the others once or twice.
pub fn interrupted() -> GuestFinding {
    let draft = draft(&["debian:6.1", "debian:6.6", "/home/me/linux"], &[("read", "tmpfs", "rw=randread bs=4k")]);
    let mut record = record(&draft, &|point, replicate| {
        let instructions = InstructionCount { total: 5_400_000 + point as u64 * 3000, ..InstructionCount::default() };
        Measured { instructions, clock_nanos: 9_000_000, ..counted(point, replicate, &[]) }
    });
    record.measured.retain(|measured| {
        measured.point == 0 && measured.replicate < 2 || measured.point == 1 && measured.replicate < 1
    });
    record.end = None;
    study(&record)
}

/// Two kernels measured once: no interval, no verdict.
pub fn single_replicate() -> GuestFinding {
    let draft = Draft {
        replicates: 1,
        ..draft(
            &["debian:6.1", "debian:6.12"],
            &[("read", "tmpfs", "rw=randread bs=4k"), ("write", "tmpfs", "rw=randwrite bs=4k")],
        )
    };
    measured(&draft, &|point, replicate| {
        let instructions = InstructionCount { total: 5_400_000 + point as u64 * 3000, ..InstructionCount::default() };
        Measured { instructions, ..counted(point, replicate, &[("on_tmpfs", 1)]) }
    })
}

/// Nothing was planned.
pub fn empty() -> GuestFinding {
    study(&GuestRecord { header: header(GuestPlan::default()), measured: Vec::new(), end: None })
}

/// Every number is this, every name this text.
pub fn hostile(number: f64, text: &str) -> GuestFinding {
    let mut finding = two_kernels();
    let all = Estimate { value: number, low: Some(number), high: Some(-number) };
    finding.title = text.to_owned();
    finding.limits = crate::limits::hostile(number, text);
    finding.compared = Some(text.to_owned());
    finding.arms = vec![text.to_owned(), format!("{text}={text}")];
    finding.margin = number;
    finding.emulator = text.to_owned();
    finding.seconds = Some(number);
    finding.outcome = Outcome::Failed(text.to_owned());
    finding.warnings = vec![Warning::new(Code::JobFailed, text)];
    finding.published = vec![Published { what: text.to_owned(), source: text.to_owned() }];
    finding.kernels = [(text.to_owned(), KernelIdentity { release: text.to_owned(), hash: text.to_owned() })].into();
    for point in &mut finding.points {
        point.job = text.to_owned();
        point.arm = text.to_owned();
        point.cell = [(text.to_owned(), text.to_owned())].into();
        point.path_proof = [(text.to_owned(), i64::MIN)].into();
        point.instructions_per_io = Some(all);
        for function in &mut point.functions {
            function.name = text.to_owned();
            function.instructions_per_io = number;
            function.change = Some(number);
            function.called_from = vec![text.to_owned()];
        }
        if let Some(change) = &mut point.change {
            change.change = all;
            change.difference = number;
            for moved in &mut change.moved {
                moved.name = text.to_owned();
                moved.candidate = number;
            }
        }
    }
    finding
}

fn draft(kernels: &[&str], jobs: &[(&str, &str, &str)]) -> Draft {
    let job = |(name, stack, options): &(&str, &str, &str)| JobDraft {
        name: (*name).to_owned(),
        stacks: vec![(*stack).to_owned()],
        text: JobText::Options(options.split_whitespace().map(str::to_owned).collect()),
        ..JobDraft::default()
    };
    Draft {
        kernels: kernels.iter().map(|kernel| (*kernel).to_owned()).collect(),
        jobs: jobs.iter().map(job).collect(),
        ..Draft::default()
    }
}

/// What a replicate of a point counts, by their numbers.
type Count<'a> = &'a dyn Fn(usize, u64) -> Measured;

fn measured(draft: &Draft, count: Count) -> GuestFinding {
    study(&record(draft, count))
}

fn record(draft: &Draft, count: Count) -> GuestRecord {
    let plan = draft.resolve(&model::plan::Settings::default()).expect("a plan");
    let points = 0..plan.points.len();
    let measured =
        points.flat_map(|point| (0..u64::from(plan.replicates)).map(move |replicate| count(point, replicate)));
    let measured = measured.collect();
    let end = End { outcome: Outcome::Completed, warnings: Vec::new(), seconds: 41.5 };
    GuestRecord { header: header(plan), measured, end: Some(end) }
}

fn header(plan: GuestPlan) -> Header {
    let release = |name: &str| match name {
        "debian:6.1" => "6.1.0-50-amd64",
        "debian:6.12" => "6.12.74+deb12-amd64",
        _ => "6.6.0",
    };
    let names: BTreeMap<_, _> = plan.points.iter().map(|point| (point.kernel.clone(), ())).collect();
    let kernels = names.into_keys().map(|name| {
        let hash = "0123456789abcdef0123456789abcdef".to_owned();
        (name.clone(), KernelIdentity { release: release(&name).to_owned(), hash })
    });
    let command_line = "iotoll guest run --kernel debian:6.1 --kernel debian:6.12 --by-function";
    let command_line: Vec<String> = command_line.split_whitespace().map(str::to_owned).collect();
    Header {
        envelope: Envelope::new(Kind::Guest, 1_760_000_000.0, command_line),
        emulator: "QEMU 7.2.22".to_owned(),
        cpu: "max,-erms,-fsrm".to_owned(),
        memory_mib: 640,
        kernels: kernels.collect(),
        modules: BTreeMap::new(),
        host: Some(crate::cost::fixture::host()),
        plan,
    }
}

fn counted(point: usize, replicate: u64, path: &[(&str, i64)]) -> Measured {
    Measured {
        point,
        replicate: u32::try_from(replicate).unwrap_or(0),
        ios: 1000,
        bytes: 4_096_000,
        counters: path.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        guest: format!("{point:08x}{replicate:08x}"),
        ..Measured::default()
    }
}

/// Functions, which sum to the total.
fn by_function(functions: &[(&str, Option<&str>, u64)]) -> InstructionCount {
    let function = |(name, module, count): &(&str, Option<&str>, u64)| FunctionCount {
        name: (*name).to_owned(),
        module: module.map(str::to_owned),
        count: *count,
        entries: if *name == "[programs]" { 0 } else { *count / 250 },
        ..FunctionCount::default()
    };
    let programs = functions.iter().filter(|(name, ..)| *name == "[programs]").map(|(.., count)| count).sum();
    InstructionCount {
        total: functions.iter().map(|(.., count)| count).sum(),
        programs,
        functions: functions.iter().map(function).collect(),
        ..InstructionCount::default()
    }
}

fn chain(calls: &str, count: u64) -> ChainCount {
    ChainCount { calls: calls.to_owned(), count }
}
