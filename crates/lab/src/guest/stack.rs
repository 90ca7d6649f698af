//! What a guest sets up for the I/O: modules, programs and steps. One row of [`STACKS`] each.

mod ceph;

use super::programs::Program;
use crate::error::{Error, Result};

#[derive(Debug)]
pub struct Stack {
    /// Its name on the command line.
    pub name: &'static str,
    /// What the I/O goes through, for users.
    pub about: &'static str,
    /// Modules that are loaded in this order, each with its parameters behind a blank; their dependencies come by themselves.
    pub modules: &'static [&'static str],
    /// Modules that a kernel may have built in, under another name, or not at all.
    pub optional_modules: &'static [&'static str],
    /// Programs of the host that it needs.
    pub programs: &'static [Program],
    /// Files that its programs open while they run, and do not name as needed.
    pub opened: &'static [Program],
    /// Packages with libraries whose names do not say it: they are searched before others.
    pub library_packages: &'static [&'static str],
    /// Environment of its programs, beside that of every program.
    pub environment: &'static [(&'static str, &'static str)],
    pub kernel_parameters: &'static str,
    /// Steps at boot, before the guest is saved, in groups.
    pub boot: &'static [&'static [Step]],
    /// Steps of each measurement, after its sysctls are set.
    pub attach: &'static [Step],
    /// Where the I/O goes.
    pub target: Target,
    /// Counters that show which path the I/O took, in groups.
    pub proof: &'static [&'static [Counter]],
}

impl Stack {
    /// What a row leaves out.
    const PLAIN: Self = Self {
        name: "",
        about: "",
        modules: &[],
        optional_modules: &[],
        programs: &[],
        opened: &[],
        library_packages: &[],
        environment: &[],
        kernel_parameters: "",
        boot: &[],
        attach: &[],
        target: Target::Folder("/stack"),
        proof: &[],
    };

    /// The modules with their parameters.
    pub fn modules(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.modules.iter().map(|module| module.split_once(' ').unwrap_or((module, "")))
    }

    /// The counters of all groups.
    pub fn counters(&self) -> impl Iterator<Item = &'static Counter> {
        self.proof.iter().copied().flatten()
    }

    /// Whether a measurement can mount or map it with options of its own.
    pub fn takes_mount_options(&self) -> bool {
        self.attach.iter().any(|step| matches!(step, Step::MountWithOptions(..) | Step::WriteWithOptions { .. }))
    }
}

/// Where the I/O goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To files of the job in this folder.
    Folder(&'static str),
    Device(&'static str),
    /// To a device that has a block only once it was written: its blocks are written first.
    Sparse(&'static str),
}

impl Target {
    /// Its folder or device.
    pub fn path(self) -> &'static str {
        match self {
            Self::Folder(path) | Self::Device(path) | Self::Sparse(path) => path,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// Makes a folder and those above it.
    Folder(&'static str),
    /// mount(2): type, source, folder, options. `noatime` among the options becomes a flag.
    Mount(&'static str, &'static str, &'static str, &'static str),
    /// The same with the assignment's mount options appended.
    MountWithOptions(&'static str, &'static str, &'static str, &'static str),
    /// Writes text to a file.
    Write(&'static str, &'static str),
    /// Writes text to a file, with the assignment's mount options, after a comma, in the middle.
    WriteWithOptions { path: &'static str, before: &'static str, after: &'static str },
    /// Makes a symbolic link: to, at.
    Link(&'static str, &'static str),
    /// Runs a program to its end.
    Run(&'static str),
    /// Runs a program to its end, which comes within these seconds unless something else is wrong: what.
    RunWithin(&'static str, u64, &'static str),
    /// Starts a program that stays: if it ends, the guest fails.
    Start(&'static str),
    /// Marks the pool of this map of a Ceph cluster as being created.
    CreatePool(&'static str),
    /// Waits these seconds, for what programs do after their start.
    Settle(u64),
    /// Waits until this path exists.
    Await(&'static str),
    /// Waits until a TCP server of the guest listens at this port.
    AwaitPort(u16),
}

/// A counter that shows the path.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// Its name in the report.
    pub name: &'static str,
    /// Where it is read.
    pub source: Source,
    /// What its increase must be.
    pub expected: Expected,
}

/// Where a counter is read.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// A field of /sys/block/DEVICE/stat, from 0.
    Block(&'static str, usize),
    /// The sum of these counts of KiB in /proc/vmstat, in sectors: what was submitted to block devices.
    Sectors(&'static [&'static str]),
    /// A field of the line `xprt: TRANSPORT …` in /proc/self/mountstats, from 0 after the transport's name.
    Transport(&'static str, usize),
    /// The number that follows this word in /proc/self/mountstats, at the operation of this name: a field from 0.
    Operation(&'static str, usize),
    /// A file with one number.
    File(&'static str),
    /// Bytes that a network interface has sent.
    BytesSent(&'static str),
    /// A counter of a program of Ceph: the socket of its administration, sections that begin so (their sum), the name.
    Ceph(&'static str, &'static str, &'static str),
    /// Whether a file of the job has the DAX attribute: 1 or 0. A state, not an increase.
    Dax,
    /// Whether the job's files are on a file system of this type: 1 or 0. A state, not an increase.
    FileSystem(u64),
}

/// What an increase must be, if the I/O took the path that the stack says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// At least one for each I/O that is not served from the page cache.
    EachDirectIo,
    /// At least one for each byte that is not served from the page cache.
    EachDirectByte,
    /// More than nothing.
    Some,
    /// Nothing.
    None,
    /// Anything: it is reported.
    Any,
}

const fn counter(name: &'static str, source: Source, expected: Expected) -> Counter {
    Counter { name, source, expected }
}

const fn reported(name: &'static str, source: Source) -> Counter {
    counter(name, source, Expected::Any)
}

const fn each_io(name: &'static str, source: Source) -> Counter {
    counter(name, source, Expected::EachDirectIo)
}

/// Those of a block device.
const fn block(device: &'static str) -> [Counter; 3] {
    [
        reported("block_reads", Source::Block(device, READS)),
        reported("block_writes", Source::Block(device, WRITES)),
        each_io("block_ios", Source::Block(device, usize::MAX)),
    ]
}

/// The shell to look around with, and its commands.
pub(super) const BUSYBOX: Program = Program { name: "busybox", package: "busybox-static" };
const MKFS_EXT4: Program = Program { name: "mkfs.ext4", package: "e2fsprogs" };
const IP: Program = Program { name: "ip", package: "iproute2" };
const RDMA: Program = Program { name: "rdma", package: "iproute2" };
const NBD_CLIENT: Program = Program { name: "nbd-client", package: "nbd-client" };
const RPCBIND: Program = Program { name: "rpcbind", package: "rpcbind" };
const EXPORTFS: Program = Program { name: "exportfs", package: "nfs-kernel-server" };
const MOUNTD: Program = Program { name: "rpc.mountd", package: "nfs-kernel-server" };

/// Fields of /sys/block/DEVICE/stat.
const READS: usize = 0;
const WRITES: usize = 4;

const TMPFS_MAGIC: u64 = 0x0102_1994;
const EXT4_MAGIC: u64 = 0xef53;

/// `-E lazy…=0`: nothing is initialised in the background later.
const FORMAT_RAM: Step = Step::Run("mkfs.ext4 -q -F -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 /dev/ram0");

/// RDMA does not work over `lo`.
const DEVICE: [Step; 3] = [
    Step::Run("ip link add iotoll0 type dummy"),
    Step::Run("ip addr add 10.9.0.1/24 dev iotoll0"),
    Step::Run("ip link set iotoll0 up"),
];
const RXE: Step = Step::Run("rdma link add rxe0 type rxe netdev iotoll0");
const LO_UP: Step = Step::Run("ip link set lo up");

/// A target of NVMe over fabrics with null_blk behind it.
macro_rules! nvme_target {
    ($transport:literal, $address:literal) => {
        [
            Step::Mount("configfs", "configfs", "/sys/kernel/config", ""),
            Step::Folder("/sys/kernel/config/nvmet/subsystems/iotoll/namespaces/1"),
            Step::Write("/sys/kernel/config/nvmet/subsystems/iotoll/attr_allow_any_host", "1"),
            Step::Write("/sys/kernel/config/nvmet/subsystems/iotoll/namespaces/1/device_path", "/dev/nullb0"),
            Step::Write("/sys/kernel/config/nvmet/subsystems/iotoll/namespaces/1/enable", "1"),
            Step::Folder("/sys/kernel/config/nvmet/ports/1"),
            Step::Write("/sys/kernel/config/nvmet/ports/1/addr_trtype", $transport),
            Step::Write("/sys/kernel/config/nvmet/ports/1/addr_adrfam", "ipv4"),
            Step::Write("/sys/kernel/config/nvmet/ports/1/addr_traddr", $address),
            Step::Write("/sys/kernel/config/nvmet/ports/1/addr_trsvcid", "4420"),
            Step::Link(
                "/sys/kernel/config/nvmet/subsystems/iotoll",
                "/sys/kernel/config/nvmet/ports/1/subsystems/iotoll",
            ),
            Step::Write(
                "/dev/nvme-fabrics",
                concat!(
                    "transport=",
                    $transport,
                    ",traddr=",
                    $address,
                    ",trsvcid=4420,nqn=iotoll,hostnqn=nqn.2014-08.org.nvmexpress:uuid:",
                    "0f01fb42-9f7f-4856-b0b3-51e60b8de349,hostid=0f01fb42-9f7f-4856-b0b3-51e60b8de349,nr_io_queues=1"
                ),
            ),
            Step::Await("/dev/nvme0n1"),
            Step::Write("/sys/block/nvme0n1/queue/scheduler", "none"),
        ]
    };
}

/// A server of NFS version 3 over tmpfs, as in the seed.
const NFS_SERVER: [Step; 17] = [
    Step::Folder("/export"),
    Step::Folder("/stack"),
    Step::Mount("tmpfs", "tmpfs", "/export", "size=200m"),
    Step::Mount("nfsd", "nfsd", "/proc/fs/nfsd", ""),
    Step::Folder("/var/lib/nfs/rpc_pipefs"),
    Step::Folder("/var/lib/nfs/sm"),
    Step::Write("/var/lib/nfs/etab", ""),
    Step::Write("/var/lib/nfs/rmtab", ""),
    Step::Folder("/run/rpcbind"),
    Step::Run("rpcbind -i"),
    Step::AwaitPort(111),
    Step::Write("/etc/exports", "/export *(rw,sync,no_root_squash,insecure,no_subtree_check,fsid=0)\n"),
    Step::Run("exportfs -ra"),
    Step::Write("/proc/fs/nfsd/versions", "+3 -4\n"),
    // What a server with 4 GiB of memory or more offers by itself; in a guest it would be 128 KiB.
    Step::Write("/proc/fs/nfsd/max_block_size", "1048576\n"),
    Step::Run("rpc.mountd -p 20048"),
    Step::AwaitPort(20048),
];
const NFSD_THREADS: Step = Step::Write("/proc/fs/nfsd/threads", "4\n");
const NFS_OVER_TCP: [Step; 2] = [Step::Write("/proc/fs/nfsd/portlist", "tcp 2049\n"), NFSD_THREADS];
const NFS_OVER_RDMA: [Step; 1] = [Step::Write("/proc/fs/nfsd/portlist", "rdma 20049\n")];

/// A RAM disk has no statistics of its own.
const RAM_DISK: [Counter; 3] = [
    each_io("block_sectors", Source::Sectors(&["pgpgin", "pgpgout"])),
    reported("block_sectors_read", Source::Sectors(&["pgpgin"])),
    reported("block_sectors_written", Source::Sectors(&["pgpgout"])),
];

/// mountstats' line of an operation. Its times are of the guest's clock: instructions, and idle time.
const NFS_OPERATIONS: [Counter; 8] = [
    reported("write_ops", Source::Operation("WRITE", 0)),
    reported("write_queue_ms", Source::Operation("WRITE", 5)),
    reported("write_rtt_ms", Source::Operation("WRITE", 6)),
    reported("write_execute_ms", Source::Operation("WRITE", 7)),
    reported("read_ops", Source::Operation("READ", 0)),
    reported("read_queue_ms", Source::Operation("READ", 5)),
    reported("read_rtt_ms", Source::Operation("READ", 6)),
    reported("read_execute_ms", Source::Operation("READ", 7)),
];

/// Commands of NVMe, and the I/Os of the device behind its target.
const NVME: [Counter; 2] = [
    each_io("nvme_commands", Source::Block("nvme0n1", usize::MAX)),
    each_io("target_block_ios", Source::Block("nullb0", usize::MAX)),
];
const NULL_BLK: &str = "null_blk nr_devices=1 queue_mode=2 irqmode=0 gb=1";

pub static STACKS: [Stack; 11] = [
    Stack {
        name: "tmpfs",
        about: "files in memory: system call, VFS and page cache",
        boot: &[&[Step::Folder("/stack"), Step::Mount("tmpfs", "tmpfs", "/stack", "size=128m")]],
        proof: &[&[counter("on_tmpfs", Source::FileSystem(TMPFS_MAGIC), Expected::Some)]],
        ..Stack::PLAIN
    },
    Stack {
        name: "ext4-brd",
        about: "ext4 on a RAM disk",
        modules: &["ext4", "brd rd_nr=1 rd_size=98304"],
        optional_modules: &["crc32c_intel", "crc32c_generic"],
        programs: &[MKFS_EXT4],
        boot: &[&[Step::Folder("/stack"), FORMAT_RAM]],
        attach: &[Step::MountWithOptions("ext4", "/dev/ram0", "/stack", "noatime")],
        proof: &[
            &RAM_DISK,
            &[
                Counter { name: "on_ext4", source: Source::FileSystem(EXT4_MAGIC), expected: Expected::Some },
                counter("dax", Source::Dax, Expected::None),
            ],
        ],
        ..Stack::PLAIN
    },
    Stack {
        name: "ext4-dax",
        about: "ext4 with DAX on emulated persistent memory",
        modules: &["ext4", "nd_e820", "nd_pmem"],
        optional_modules: &["crc32c_intel", "crc32c_generic"],
        programs: &[MKFS_EXT4],
        kernel_parameters: "memmap=128M!256M",
        boot: &[&[
            Step::Folder("/stack"),
            Step::Await("/dev/pmem0"),
            Step::Run("mkfs.ext4 -q -F -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 /dev/pmem0"),
        ]],
        attach: &[Step::MountWithOptions("ext4", "/dev/pmem0", "/stack", "noatime,dax=always")],
        proof: &[&[
            counter("dax", Source::Dax, Expected::Some),
            reported("block_reads", Source::Block("pmem0", READS)),
            reported("block_writes", Source::Block("pmem0", WRITES)),
        ]],
        ..Stack::PLAIN
    },
    Stack {
        name: "null_blk",
        about: "a block device that completes at once: the block layer alone",
        modules: &[NULL_BLK],
        boot: &[&[Step::Write("/sys/block/nullb0/queue/scheduler", "none")]],
        target: Target::Device("/dev/nullb0"),
        proof: &[&block("nullb0")],
        ..Stack::PLAIN
    },
    Stack {
        name: "nbd",
        about: "the kernel's NBD client to `iotoll serve` over loopback TCP",
        modules: &["nbd nbds_max=1"],
        programs: &[IP, NBD_CLIENT],
        boot: &[&[
            LO_UP,
            Step::Start("/init serve --backend memory:64m --listen 127.0.0.1:10809"),
            Step::AwaitPort(10809),
            Step::Run("nbd-client 127.0.0.1 10809 /dev/nbd0 -b 512"),
        ]],
        target: Target::Device("/dev/nbd0"),
        proof: &[&block("nbd0")],
        ..Stack::PLAIN
    },
    Stack {
        name: "nvme-tcp",
        about: "NVMe over TCP on loopback to null_blk",
        modules: &[NULL_BLK, "nvme_core multipath=N", "nvmet_tcp", "nvme_tcp"],
        optional_modules: &["configfs", "crc32c_intel", "crc32c_generic"],
        programs: &[IP],
        boot: &[&[LO_UP], &nvme_target!("tcp", "127.0.0.1")],
        target: Target::Device("/dev/nvme0n1"),
        proof: &[&NVME],
        ..Stack::PLAIN
    },
    Stack {
        name: "nvme-rdma",
        about: "NVMe over RDMA (soft RoCE) to null_blk",
        modules: &[NULL_BLK, "dummy numdummies=0", "rdma_rxe", "nvme_core multipath=N", "nvmet_rdma", "nvme_rdma"],
        optional_modules: &["configfs", "crc32_generic", "crc32_pclmul", "crc32c_intel", "crc32c_generic"],
        programs: &[IP, RDMA],
        boot: &[&[LO_UP], &DEVICE, &[RXE], &nvme_target!("rdma", "10.9.0.1")],
        target: Target::Device("/dev/nvme0n1"),
        proof: &[
            &NVME,
            &[each_io("rxe_packets_sent", Source::File("/sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts"))],
        ],
        ..Stack::PLAIN
    },
    Stack {
        name: "nfs-tcp",
        about: "NFS version 3 over TCP to a tmpfs export of the same kernel",
        modules: &["dummy numdummies=0", "nfsd", "nfs", "nfsv3"],
        optional_modules: &["auth_rpcgss"],
        programs: &[IP, RPCBIND, EXPORTFS, MOUNTD],
        boot: &[&[LO_UP], &DEVICE, &NFS_SERVER, &NFS_OVER_TCP],
        attach: &[Step::MountWithOptions(
            "nfs",
            "10.9.0.1:/export",
            "/stack",
            "addr=10.9.0.1,proto=tcp,port=2049,vers=3,sec=sys,nolock,mountaddr=10.9.0.1,mountproto=tcp,mountport=20048,mountvers=3",
        )],
        proof: &[&[each_io("rpc_sends", Source::Transport("tcp", 5))], &NFS_OPERATIONS],
        ..Stack::PLAIN
    },
    Stack {
        name: "nfs-rdma",
        about: "NFS version 3 over RDMA (soft RoCE) to a tmpfs export of the same kernel",
        modules: &["dummy numdummies=0", "rdma_rxe", "rpcrdma", "nfsd", "nfs", "nfsv3"],
        optional_modules: &["rdma_ucm", "auth_rpcgss", "crc32_generic", "crc32_pclmul"],
        programs: &[IP, RDMA, RPCBIND, EXPORTFS, MOUNTD],
        boot: &[&[LO_UP], &DEVICE, &[RXE], &NFS_SERVER, &NFS_OVER_TCP, &NFS_OVER_RDMA],
        attach: &[Step::MountWithOptions(
            "nfs",
            "10.9.0.1:/export",
            "/stack",
            "addr=10.9.0.1,proto=rdma,port=20049,vers=3,sec=sys,nolock,mountaddr=10.9.0.1,mountproto=tcp,mountport=20048,mountvers=3",
        )],
        proof: &[
            &[each_io("rpc_sends", Source::Transport("rdma", 5))],
            &NFS_OPERATIONS,
            &[
                reported("read_chunks", Source::Transport("rdma", 10)),
                reported("write_chunks", Source::Transport("rdma", 11)),
                reported("reply_chunks", Source::Transport("rdma", 12)),
                reported("pulled_up_bytes", Source::Transport("rdma", 15)),
                reported("fixed_up_bytes", Source::Transport("rdma", 16)),
                reported("registrations", Source::Transport("rdma", 17)),
            ],
        ],
        ..Stack::PLAIN
    },
    ceph::RBD,
    ceph::RBD_V2,
];

/// The stack of this name.
///
/// # Errors
/// When there is none.
pub fn named(name: &str) -> Result<&'static Stack> {
    STACKS.iter().find(|stack| stack.name == name).ok_or_else(|| {
        let names: Vec<_> = STACKS.iter().map(|stack| stack.name).collect();
        Error::Refused(format!("stack '{name}': there is no such stack; there are {}", names.join(", ")))
    })
}
