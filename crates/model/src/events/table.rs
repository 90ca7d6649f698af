//! The tracepoints that iotoll has words for, and its groups of them. To add one, add a row.

/// A tracepoint of the kernel, or a counter of the hardware.
pub struct Tracepoint {
    /// Its folder in tracefs; [`super::HARDWARE`] for a counter.
    pub subsystem: &'static str,
    pub name: &'static str,
    /// What happens when the kernel passes it.
    pub meaning: &'static str,
    /// The groups that it is in.
    pub groups: &'static [&'static str],
}

/// Events that one word names.
pub struct Group {
    pub name: &'static str,
    /// Whether it has all system calls, by name.
    pub system_calls: bool,
}

const fn group(name: &'static str) -> Group {
    Group { name, system_calls: false }
}

/// The groups. Those that begin with a subsystem's name contain what is most asked for; `SUBSYSTEM:*` is all of it.
pub const GROUPS: &[Group] = &[
    Group { name: super::DEFAULT, system_calls: true },
    Group { name: super::SYSTEM_CALLS, system_calls: true },
    group("sched"),
    group("ipi"),
    group("timer"),
    group("mm"),
    group("alloc"),
    group("block"),
    group("fs"),
    group("io_uring"),
    group("net"),
    group("dma"),
    group(super::HARDWARE),
    group("none"),
];

const fn row(
    subsystem: &'static str,
    name: &'static str,
    groups: &'static [&'static str],
    meaning: &'static str,
) -> Tracepoint {
    Tracepoint { subsystem, name, meaning, groups }
}

/// The tracepoints. Softirqs, interrupts and idle states are not among the default ones, because the accounts count them.
pub const TRACEPOINTS: &[Tracepoint] = &[
    row("sched", "sched_switch", &["default", "sched"], "context switches"),
    row("sched", "sched_waking", &["default", "sched"], "wake-ups of tasks"),
    row("sched", "sched_migrate_task", &["default", "sched"], "moves of a task to another CPU"),
    row("sched", "sched_process_fork", &["sched"], "tasks that began"),
    row("sched", "sched_process_exec", &["sched"], "programs that began"),
    row("sched", "sched_process_exit", &["sched"], "tasks that ended"),
    row("lock", "contention_begin", &["default", "sched"], "waits for a lock of the kernel"),
    row("workqueue", "workqueue_queue_work", &["sched"], "work handed to the kernel's workers"),
    row("workqueue", "workqueue_execute_start", &["default", "sched"], "work that the kernel's workers did"),
    row("ipi", "ipi_send_cpu", &["ipi"], "interrupts sent to one CPU"),
    row("ipi", "ipi_send_cpumask", &["ipi"], "interrupts sent to several CPUs at once"),
    row("tlb", "tlb_flush", &["ipi"], "flushes of address translations"),
    row("timer", "hrtimer_start", &["default", "timer"], "high-resolution timers started"),
    row("timer", "hrtimer_expire_entry", &["timer"], "high-resolution timers that expired"),
    row("timer", "hrtimer_cancel", &["timer"], "high-resolution timers cancelled"),
    row("timer", "timer_start", &["default", "timer"], "coarse timers started"),
    row("timer", "timer_expire_entry", &["timer"], "coarse timers that expired"),
    row("timer", "tick_stop", &["timer"], "idle CPUs that stopped their tick"),
    row("exceptions", "page_fault_user", &["default", "mm"], "page faults in user mode"),
    row("exceptions", "page_fault_kernel", &["default", "mm"], "page faults in the kernel"),
    row("filemap", "mm_filemap_add_to_page_cache", &["default", "mm"], "additions to the page cache"),
    row("filemap", "mm_filemap_delete_from_page_cache", &["mm"], "removals from the page cache"),
    row("mmap_lock", "mmap_lock_acquire_returned", &["mm"], "locks of an address space taken"),
    row("vmscan", "mm_vmscan_direct_reclaim_begin", &["mm"], "tasks that had to free memory"),
    row("compaction", "mm_compaction_begin", &["mm"], "compactions of memory"),
    row("kmem", "mm_page_alloc", &["default", "mm", "alloc"], "allocations of pages"),
    row("kmem", "mm_page_free", &["alloc"], "pages freed"),
    row("kmem", "kmalloc", &["alloc"], "allocations by kmalloc"),
    row("kmem", "kfree", &["alloc"], "memory freed by kfree"),
    row("kmem", "kmem_cache_alloc", &["alloc"], "allocations from a slab cache"),
    row("kmem", "kmem_cache_free", &["alloc"], "objects returned to a slab cache"),
    row("block", "block_bio_queue", &["default", "block"], "bios submitted"),
    row("block", "block_rq_issue", &["default", "block"], "requests sent to a driver"),
    row("block", "block_rq_insert", &["block"], "requests given to an I/O scheduler"),
    row("block", "block_rq_complete", &["block"], "requests completed, or parts of them"),
    row("block", "block_rq_requeue", &["block"], "requests that a driver gave back"),
    row("block", "block_bio_backmerge", &["block"], "bios appended to a request"),
    row("block", "block_bio_frontmerge", &["block"], "bios put in front of a request"),
    row("block", "block_rq_merge", &["block"], "requests merged with another"),
    row("block", "block_split", &["block"], "bios that were split"),
    row("block", "block_unplug", &["block"], "batches of requests released"),
    row("jbd2", "jbd2_handle_start", &["fs"], "handles of an ext4 journal"),
    row("jbd2", "jbd2_start_commit", &["fs"], "commits of an ext4 journal"),
    row("ext4", "ext4_da_write_begin", &["fs"], "buffered writes to ext4"),
    row("ext4", "ext4_sync_file_enter", &["fs"], "fsyncs on ext4"),
    row("xfs", "xfs_file_direct_read", &["fs"], "direct reads on XFS"),
    row("xfs", "xfs_file_direct_write", &["fs"], "direct writes on XFS"),
    row("xfs", "xfs_log_force", &["fs"], "forced writes of the log of XFS"),
    row("iomap", "iomap_iter", &["fs"], "steps through extents of a file"),
    row("nfs", "nfs_initiate_read", &["fs"], "reads sent to an NFS server"),
    row("nfs", "nfs_initiate_write", &["fs"], "writes sent to an NFS server"),
    row("sunrpc", "rpc_task_begin", &["fs"], "RPC calls that began"),
    row("writeback", "writeback_written", &["fs"], "turns of writeback"),
    row("writeback", "balance_dirty_pages", &["fs"], "writers that were throttled"),
    row("io_uring", "io_uring_submit_req", &["io_uring"], "io_uring requests submitted"),
    row("io_uring", "io_uring_complete", &["io_uring"], "io_uring completions"),
    row("io_uring", "io_uring_queue_async_work", &["io_uring"], "io_uring requests left to a worker"),
    row("io_uring", "io_uring_poll_arm", &["io_uring"], "io_uring requests that wait to be ready"),
    row("io_uring", "io_uring_task_work_run", &["io_uring"], "batches of io_uring task work"),
    row("io_uring", "io_uring_local_work_run", &["io_uring"], "batches of io_uring local work"),
    row("io_uring", "io_uring_cqring_wait", &["io_uring"], "waits for io_uring completions"),
    row("net", "net_dev_xmit", &["default", "net"], "packets given to a network driver"),
    row("net", "netif_receive_skb", &["default", "net"], "packets received"),
    row("net", "netif_rx", &["net"], "packets queued for a softirq"),
    row("napi", "napi_poll", &["default", "net"], "polls of a network driver"),
    row("skb", "consume_skb", &["net"], "packets used up"),
    row("skb", "kfree_skb", &["default", "net"], "packets dropped"),
    row("sock", "sk_data_ready", &["net"], "sockets told that data came"),
    row("tcp", "tcp_retransmit_skb", &["default", "net"], "TCP segments sent again"),
    row("tcp", "tcp_probe", &["net"], "TCP segments received on a connection"),
    row("udp", "udp_fail_queue_rcv_skb", &["net"], "datagrams that found a full socket"),
    row("dma", "dma_map_phys", &["dma"], "DMA mappings of one range"),
    row("dma", "dma_map_sg", &["dma"], "DMA mappings of a list of pages"),
    row("dma", "dma_unmap_phys", &["dma"], "DMA mappings of one range ended"),
    row("dma", "dma_unmap_sg", &["dma"], "DMA mappings of a list ended"),
    row("iommu", "map", &["dma"], "mappings of an IOMMU"),
    row("iommu", "unmap", &["dma"], "mappings of an IOMMU ended"),
    row("hw", "cycles", &["hw"], "cycles of the cores, without halted time"),
    row("hw", "instructions", &["hw"], "instructions completed"),
    row("hw", "cache-misses", &["hw"], "misses of the last level of caches"),
    row("hw", "branch-misses", &["hw"], "branches predicted wrongly"),
    row("hw", "dTLB-load-misses", &["hw"], "loads without a translation at hand"),
    row("swiotlb", "swiotlb_bounced", &["dma"], "copies through a bounce buffer"),
];
