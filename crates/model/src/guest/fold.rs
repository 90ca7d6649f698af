//! Names of functions made comparable between two kernels: clones of the compiler folded into their function, functions
//! grouped by subsystem.

/// Marks after which a compiler or a linker names a clone, a part or a copy of a function.
const CLONES: [&str; 6] = [".isra", ".constprop", ".part", ".cold", ".llvm", ".lto_priv"];
/// The end of a name since Linux 6.10: the function itself, behind a macro that profiles allocations.
const BEHIND_MACRO: &str = "_noprof";

/// The function that a clone of the compiler belongs to: `f.isra.0`, `f.constprop.0`, `f.part.0`, `f.cold`, `f.llvm.123` and
/// `f_noprof` are `f`.
pub(super) fn function(symbol: &str) -> &str {
    let begins = |mark: &&str| {
        let mut places = symbol.match_indices(*mark).map(|(place, _)| place);
        // A whole word: `.part` is not in `.partition`.
        let whole = |rest: &str| rest.is_empty() || rest.starts_with('.');
        places.find(|place| symbol.get(place + mark.len()..).is_some_and(whole))
    };
    let end = CLONES.iter().filter_map(begins).min().unwrap_or(symbol.len());
    let name = symbol.get(..end).unwrap_or(symbol);
    let name = name.strip_suffix(BEHIND_MACRO).unwrap_or(name);
    if name.is_empty() { symbol } else { name }
}

/// Whether a symbol is a part of a function that the function itself enters: its entries are no calls of the function.
pub(super) fn is_part(symbol: &str) -> bool {
    [".part", ".cold"].iter().any(|mark| {
        let rest = symbol.split_once(mark).map(|(_, rest)| rest);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// A subsystem, and how its functions begin, with blanks between. The first row that matches counts.
type Row = (&'static str, &'static str);

const ROWS: [Row; 25] = [
    (
        "memory copies",
        "page_copy_sane fault_in_ __check_object check_stack_object __virt_addr_valid __get_user __put_user \
         copy_user _copy_ copy_to_ copy_from_ rep_movs rep_stos __memcpy memcpy memset __memset \
         clear_page_rep clear_page_erms clear_page_orig clear_user clear_huge copyin copyout copy_page \
         __copy_user memmove __memmove",
    ),
    ("io_uring", "io_ __io_ task_work_ tctx_"),
    (
        "rxe (soft RoCE)",
        "rxe_ __rxe_ do_task do_work next_opcode check_ack get_req send_ack do_complete update_wqe init_req \
         finish_packet",
    ),
    ("RDMA core", "ib_ rdma_ __ib_ cma_ frwr_ rpcrdma_ svc_rdma_ uverbs_"),
    ("NFS and SunRPC", "nfs rpc_ __rpc xprt_ xdr_ svc_ xs_ svcauth gss_"),
    ("NVMe", "nvme __nvme nvmet"),
    ("NBD", "nbd_ __nbd sock_xmit"),
    (
        "network",
        "do_tcp_sendpages release_sock lock_sock raw_local cubictcp __inet __xfrm __sys_send ___sys_send \
         ____sys_send __sys_recv ___sys_recv ____sys_recv copy_msghdr __copy_msghdr sockfd_ __kfree_skb \
         __copy_skb __build_skb netdev_ tomoyo_socket hook_socket tcp_ __tcp_ ip_ __ip_ skb_ __skb_ sock_ \
         __sock dev_ __dev_ net_ __net netif_ napi_ __napi udp_ __udp loopback_ inet_ fib_ sk_ __sk_ \
         kfree_skb alloc_skb __alloc_skb consume_skb neigh_ ipv4_ dst_ qdisc validate_xmit __local_bh \
         process_backlog enqueue_to_backlog bpf_ nf_ csum_ ipt_ kernel_send kernel_recv eth_ dummy_xmit \
         simple_copy_to_iter",
    ),
    (
        "scheduler",
        "native_tss native_load_tls fpregs_ save_fpregs restore_fpregs xfd_validate __rdgsbase __wrgsbase \
         load_new_mm mm_cid __rseq complete __wait_for_common wait_for_completion wait_woken add_wait_queue \
         remove_wait_queue kthread_ __task_rq __set_next __calc_delta update_deadline update_entity \
         record_times hrtick check_cfs arch_scale_cpu cr4_update amd_clear __schedule schedule try_to_wake \
         ttwu_ pick_ enqueue_task enqueue_entity enqueue_push enqueue_dl dequeue_ update_curr update_load \
         update_rq update_cfs update_min_vr place_entity put_prev set_next check_preempt wakeup_preempt \
         select_task switch_ __switch_to finish_task prepare_task avg_vruntime vruntime_ entity_ __pick_ \
         __update_load __enqueue __dequeue sched_ resched_ psi_ wake_ __wake_up default_wake autoremove_wake \
         prepare_to_wait finish_wait activate_task deactivate_task task_ cpuacct dl_ reweight calc_delta \
         native_sched need_resched cpu_util preempt_ raw_spin_rq yield_ __cond_resched wq_worker_ \
         min_vruntime min_deadline min_slice requeue_delayed delayed_ update_se prev_balance newidle_balance \
         sched_balance",
    ),
    (
        "workqueue",
        "queue_work __queue_work process_one_work process_scheduled worker_ kick_pool insert_work pwq_ \
         queue_delayed __queue_delayed assign_work move_linked kworker flush_work __flush_work set_work \
         get_work pool_ mod_delayed",
    ),
    (
        "page allocator and slab",
        "cache_from_obj __rmqueue free_pcp should_failslab policy_node get_pfnblock cond_accept kmem_ kmalloc \
         __kmalloc kfree __kmem slab_ __slab ___slab ___cache alloc_pages __alloc_pages __alloc_frozen \
         get_page_from rmqueue free_unref free_pages __free_ prep_new post_alloc mempool_ refill_ get_partial \
         free_frozen cache_free page_frag vmalloc setup_object",
    ),
    (
        "block layer",
        "__submit_bio bvec_ deadline_ __dd_ sgl_ sg_ I_BDEV should_fail_bio blk_ __blk bio_ __bio submit_bio \
         sbitmap_ __sbitmap null_ blkdev_ __blkdev elv_ dd_ wbt_ rq_ __rq brd_ bdev_ part_ update_io_ticks \
         block_ __block blkcg iomap_ dio_",
    ),
    ("ext4 and jbd2", "ext4 __ext4 jbd2 __jbd2 mb_ es_ start_this_handle add_transaction"),
    ("DAX", "dax_ pmem_ nd_ nvdimm __dax arch_wb_cache __copy_user_nocache copy_mc"),
    (
        "page cache",
        "clear_page_dirty next_uptodate __generic_file __radix_tree radix_tree unlock_page lock_page \
         tag_pages wbc_ do_writepages mark_buffer __pagevec release_pages folios_ PageHead try_get_folio \
         errseq __fprop end_page_write set_page_write wait_on_page wait_for_stable page_mapping mlock_ \
         filemap_ __filemap xas_ xa_ __xa folio_ __folio shmem_ find_get mark_page pagecache_ lru_ mapping_ \
         generic_file generic_perform generic_write balance_dirty set_page_dirty truncate_ unmap_ readahead \
         page_cache write_cache writeback_ wb_ __set_page simple_write noop_dirty workingset",
    ),
    (
        "page tables and pinned pages",
        "__pte_ is_valid_gup want_pages pmd_ pud_ set_pte gup_ get_user_pages pin_user unpin_user \
         internal_get_user iov_iter_extract try_grab follow_ handle_mm __handle_mm do_user_addr lookup_fast \
         walk_ pte_ flush_tlb internal_fast",
    ),
    (
        "locks",
        "_raw_spin __raw_spin _raw_read _raw_write native_queued queued_ mutex_ __mutex down_ up_ __down __up \
         rwsem __rwsem percpu_ __percpu lockref osq_ rt_mutex",
    ),
    ("RCU", "rcu_ __rcu call_rcu __call_rcu srcu __srcu"),
    (
        "timers and interrupts",
        "__timer_delete __usecs_to jiffies_to usecs_to hrtimer __hrtimer timer_ mod_timer __mod_timer tick_ \
         ktime_ clockevents run_timer irq __irq handle_irq do_softirq __do_softirq handle_softirqs softirq \
         raise_softirq sysvec_ asm_sysvec scheduler_tick update_process calc_ read_tsc apic lapic x2apic \
         idle_ cpuidle do_idle tasklet native_apic add_timer detach_if enqueue_timer internal_add lock_timer \
         del_timer try_to_del common_interrupt note_interrupt __tasklet ktime timekeeping update_wall \
         account_system account_process account_idle call_timer cpu_startup nohz get_next_timer",
    ),
    (
        "system call entry and exit",
        "arch_exit_to_user entry_ do_syscall x64_sys __x64_sys syscall_ exit_to_user __do_sys __se_sys ksys_ \
         __x86_ srso_ common_ sync_regs error_",
    ),
    (
        "VFS",
        "atime_ make_vfs __get_task_ioprio do_fsync __fdget __import iovec_from copy_iovec strnlen strscpy \
         sized_strscpy override_creds revert_creds ep_ do_epoll vfs_ __vfs rw_verify fget __fget fput __fput \
         file_ __file inode_ __inode dput path_ kiocb iov_iter __iov import_ security_ apparmor_ fsnotify \
         __fsnotify mnt_ __mnt touch_ current_time ktime_get_coarse do_iter do_readv do_writev new_sync \
         call_write fdget timestamp_ sb_ aa_ common_file xfs_ generic_update mark_inode __mark_inode evm_ \
         ima_",
    ),
    (
        "memory accounting",
        "__mod_ mod_ lruvec_ __lruvec memcg_ __memcg obj_cgroup charge_ try_charge uncharge mem_cgroup \
         __mem_cgroup __cgroup_rstat cgroup_rstat",
    ),
    ("list checks", "__list_"),
    ("red-black trees", "rb_ __rb_"),
    ("CRC", "crc __crc chksum crypto_"),
];

/// Subsystems whose modules are known: names of all functions of these.
const MODULES: [Row; 9] = [
    ("rxe (soft RoCE)", "rdma_rxe"),
    ("RDMA core", "rpcrdma ib_core rdma_cm ib_cm iw_cm ib_uverbs"),
    ("NFS and SunRPC", "nfs nfsd nfsv3 nfsv4 sunrpc lockd auth_rpcgss nfs_acl"),
    ("NBD", "nbd"),
    ("ext4 and jbd2", "ext4 jbd2 mbcache"),
    ("NVMe", "nvme nvme_core nvme_tcp nvme_rdma nvme_fabrics nvmet nvmet_tcp nvmet_rdma"),
    ("block layer", "null_blk brd"),
    ("CRC", "crc32_pclmul crc32_generic crc32c_intel crc32c_generic"),
    ("DAX", "nd_pmem libnvdimm nd_e820"),
];

/// The subsystem of a function, if it is one that is grouped.
pub(super) fn subsystem(function: &str, module: Option<&str>) -> Option<&'static str> {
    let named = |(_, names): &&Row| names.split(' ').any(|name| Some(name) == module);
    let begins = |(_, starts): &&Row| starts.split(' ').any(|start| function.starts_with(start));
    MODULES.iter().find(named).or_else(|| ROWS.iter().find(begins)).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_of_the_compiler_are_folded() {
        for (symbol, name) in [
            ("tcp_sendmsg", "tcp_sendmsg"),
            ("tcp_v4_rcv.isra.0", "tcp_v4_rcv"),
            ("f.constprop.0.isra.3", "f"),
            ("blk_mq_submit_bio.cold", "blk_mq_submit_bio"),
            (".cold", ".cold"),
            ("submit.llvm.8213412", "submit"),
            ("find_slot.part.0.isra.0.cold", "find_slot"),
            ("kmem_cache_alloc_noprof", "kmem_cache_alloc"),
            ("__kmalloc_noprof.constprop.0", "__kmalloc"),
            ("disk.partition", "disk.partition"),
            ("_noprof", "_noprof"),
        ] {
            assert_eq!(function(symbol), name);
        }
    }

    #[test]
    fn functions_belong_to_subsystems_by_module_first() {
        assert_eq!(subsystem("do_task", Some("rdma_rxe")), Some("rxe (soft RoCE)"));
        assert_eq!(subsystem("tcp_sendmsg", None), Some("network"));
        assert_eq!(subsystem("tcp_sendmsg", Some("nvme_tcp")), Some("NVMe"));
        assert_eq!(subsystem("__schedule", None), Some("scheduler"));
        assert_eq!(subsystem("zzz", None), None);
    }
}
