//! Ceph: the kernel's own rbd and libceph, to a monitor and an OSD that run in the same guest. The cluster is made while the
//! guest boots; each measurement maps the image with its own options.

use super::{Counter, Expected, IP, LO_UP, Source, Stack, Step, Target, block, counter, each_io, reported};
use crate::guest::programs::Program;

const CEPH_MON: Program = Program { name: "ceph-mon", package: "ceph-mon" };
const CEPH_OSD: Program = Program { name: "ceph-osd", package: "ceph-osd" };
const MONMAPTOOL: Program = Program { name: "monmaptool", package: "ceph-base" };
const OSDMAPTOOL: Program = Program { name: "osdmaptool", package: "ceph-base" };
const RBD_TOOL: Program = Program { name: "rbd", package: "ceph-common" };

/// The classes of objects that an image needs, loaded by the OSD.
const CLASSES: [Program; 2] = [
    Program { name: "/usr/lib/x86_64-linux-gnu/rados-classes/libcls_rbd.so", package: "ceph-base" },
    Program { name: "/usr/lib/x86_64-linux-gnu/rados-classes/libcls_lock.so", package: "ceph-base" },
];

/// Freed memory stays with the programs. Debian's Ceph is not linked with tcmalloc, and glibc returns the buffer of each large
/// I/O to the kernel: 257 page faults for each MiB.
const ENVIRONMENT: [(&str, &str); 4] = [
    ("MALLOC_ARENA_MAX", "1"),
    ("MALLOC_MMAP_THRESHOLD_", "33554432"),
    ("MALLOC_TOP_PAD_", "67108864"),
    ("MALLOC_TRIM_THRESHOLD_", "1073741824"),
];

/// One monitor and one OSD, without authentication, in memory. One thread of each kind: the guest has one CPU, and figures of
/// two boots differ less. No plugin and no class is loaded that an image does not need, and no command is sent to the monitor
/// at the OSD's start. `rbd create` would need a snapshot of the pool to validate it.
const CONFIGURATION: &str = "[global]
fsid = 6f1b2c1e-7d3a-4b6e-9c55-2d2f0a6b8e01
mon_initial_members = a
mon_host = [v2:127.0.0.1:3300,v1:127.0.0.1:6789]
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
auth_client_required = none
auth_cluster_required = none
auth_service_required = none
keyring = /dev/null
admin_socket =
run_dir = /run/ceph
log_file = /dev/null
log_to_stderr = true
err_to_stderr = true
mon_cluster_log_file = /dev/null
mon_cluster_log_to_file = false
mon_data_avail_warn = 0
mon_data_avail_crit = 0
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 8
osd_crush_chooseleaf_type = 0
osd_crush_update_on_start = false
osd_class_update_on_start = false
osd_class_load_list = rbd lock
osd_erasure_code_plugins =
osd_objectstore = memstore
memstore_device_bytes = 268435456
memstore_page_set = true
osd_op_queue = wpq
osd_op_num_shards = 1
osd_op_num_threads_per_shard = 1
ms_async_op_threads = 1
debug_memstore = 0
debug_rocksdb = 0
rbd_default_features = 1
rbd_validate_pool = false
[osd]
admin_socket = /run/ceph/osd.asok
";

/// Daemons take no configuration from the monitor: `--mkfs` would wait for one that does not run yet.
const CLUSTER: [Step; 11] = [
    Step::Folder("/run/ceph/mon"),
    Step::Folder("/run/ceph/osd"),
    Step::Write("/etc/ceph/ceph.conf", CONFIGURATION),
    Step::Run(
        "monmaptool --create --clobber --fsid 6f1b2c1e-7d3a-4b6e-9c55-2d2f0a6b8e01 --addv a \
         [v2:127.0.0.1:3300,v1:127.0.0.1:6789] /run/ceph/monmap",
    ),
    Step::Run(
        "osdmaptool -c /etc/ceph/ceph.conf --createsimple 1 --with-default-pool --pg-bits 3 --clobber /run/ceph/osdmap",
    ),
    Step::CreatePool("/run/ceph/osdmap"),
    Step::RunWithin(
        "ceph-mon --no-mon-config -i a --mkfs --mon-data /run/ceph/mon --monmap /run/ceph/monmap --osdmap /run/ceph/osdmap",
        LONGEST_SECONDS,
        "the monitor does not make its store",
    ),
    Step::Start("ceph-mon --no-mon-config -i a --mon-data /run/ceph/mon -f"),
    Step::RunWithin(
        "ceph-osd --no-mon-config -i 0 --mkfs --osd-data /run/ceph/osd --osd-uuid 1b0d8a53-0a5c-4f38-8d2e-4e1f6a7c9d02 \
         --monmap /run/ceph/monmap",
        LONGEST_SECONDS,
        "the OSD does not make its store",
    ),
    Step::Start("ceph-osd --no-mon-config -i 0 --osd-data /run/ceph/osd -f"),
    // Its first I/O waits until the pool is active.
    Step::RunWithin(
        "rbd create -p rbd --size 64 --image-feature layering iotoll",
        LONGEST_SECONDS,
        "the pool 'rbd' does not become active",
    ),
];
/// Of the guest's clock, for a step of the cluster. Each takes a few seconds.
const LONGEST_SECONDS: u64 = 120;

/// The daemons work for some seconds after their start.
const SETTLED: Step = Step::Settle(15);

const NO_SCHEDULER: [Step; 2] = [Step::Await("/dev/rbd0"), Step::Write("/sys/block/rbd0/queue/scheduler", "none")];

macro_rules! map {
    ($port:literal, $options:literal) => {
        [
            Step::WriteWithOptions {
                path: "/sys/bus/rbd/add_single_major",
                before: concat!("127.0.0.1:", $port, " name=admin", $options),
                after: " rbd iotoll",
            },
            NO_SCHEDULER[0],
            NO_SCHEDULER[1],
        ]
    };
}

/// Requests of the block device, operations and messages at the OSD, bytes on the wire between them.
const PROOF: [Counter; 5] = [
    counter("loopback_bytes", Source::BytesSent("lo"), Expected::EachDirectByte),
    each_io("osd_ops", Source::Ceph(OSD_SOCKET, "osd", "op")),
    each_io("osd_messages_received", Source::Ceph(OSD_SOCKET, MESSENGER, "msgr_recv_messages")),
    each_io("osd_messages_sent", Source::Ceph(OSD_SOCKET, MESSENGER, "msgr_send_messages")),
    reported("osd_bytes_received", Source::Ceph(OSD_SOCKET, MESSENGER, "msgr_recv_bytes")),
];
const OSD_SOCKET: &str = "/run/ceph/osd.asok";
const MESSENGER: &str = "AsyncMessenger::Worker";

const CEPH: Stack = Stack {
    modules: &["libceph", "rbd"],
    optional_modules: &["crc32c_intel", "crc32c_generic"],
    programs: &[IP, CEPH_MON, CEPH_OSD, MONMAPTOOL, OSDMAPTOOL, RBD_TOOL],
    opened: &CLASSES,
    library_packages: &["librados2", "librbd1"],
    environment: &ENVIRONMENT,
    boot: &[&[LO_UP], &CLUSTER, &[SETTLED]],
    target: Target::Sparse("/dev/rbd0"),
    proof: &[&block("rbd0"), &PROOF],
    ..Stack::PLAIN
};

pub(super) const RBD: Stack = Stack {
    name: "rbd",
    about: "the kernel's rbd over loopback TCP (messenger 1) to a Ceph OSD in memory",
    attach: &map!("6789", ""),
    ..CEPH
};

pub(super) const RBD_V2: Stack = Stack {
    name: "rbd-v2",
    about: "the same by messenger 2, from kernel 5.11",
    attach: &map!("3300", ",ms_mode=crc"),
    ..CEPH
};
