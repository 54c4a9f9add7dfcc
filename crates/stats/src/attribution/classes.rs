//! What a stack was doing, by the names in it. The rules are data: the first
//! one that finds one of its names in a stack decides, so the order says what
//! outweighs what: a page that is allocated for a late copy belongs to the
//! late copy, one that is allocated on the receive path in softirq to that.
//!
//! Names are those of Linux 5.10 to 6.18 on x86_64 and arm64; what no rule
//! knows is shown as unattributed, with its name.

use std::sync::LazyLock;

use iolens_model::profile::{SYSCALL_EXIT, Stack};
use serde::Serialize;

iolens_model::words! {
    /// A kind of work that CPU time goes into.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Class {
        /// The program itself, its libraries, and the vDSO.
        User = "user code",
        /// Entering and leaving the kernel, and reading the arguments of a call.
        SyscallEntry = "syscall entry and exit",
        /// Payload from the program's memory into the kernel's.
        CopyFromUser = "copy from user",
        /// Pages of a zero-copy send: found, pinned, accounted, released.
        PagePinning = "page pinning",
        /// The copy that the kernel makes of a zero-copy send after all.
        LateCopy = "late copy",
        /// Sockets and their protocols, outside softirq.
        Socket = "socket and protocol",
        /// Pipes, and moving pages through them.
        Pipe = "pipe and splice",
        /// The receive path, from the device's queue to the socket's.
        SoftirqReceive = "softirq receive",
        /// Payload from the kernel's memory into the program's.
        CopyToUser = "copy to user",
        /// Buffers and their heads: allocated, freed.
        Memory = "memory allocation",
        /// Page faults.
        PageFault = "page faults",
        /// The page cache and file systems, paths among them.
        PageCache = "page cache and file system",
        /// `io_uring` itself, not what it was asked to do.
        IoUring = "io_uring",
        /// Switching, waking, being interrupted by the timer.
        Scheduler = "scheduler and wake-up",
        /// No rule knows it.
        Unattributed = "unattributed",
        /// What ran for the arm and had no samples: threads of the kernel's, by
        /// its accounts.
        Unsampled = "threads not sampled",
    }
}

impl Class {
    /// The class of a stack.
    pub fn of(stack: &Stack) -> Class {
        let mut frames = stack.frames().filter(|frame| frame.kernel).peekable();
        if frames.peek().is_none() {
            return Class::User;
        }
        let symbols: Vec<&str> = frames.map(|frame| frame.symbol).collect();
        let found = RULES.iter().find(|rule| symbols.iter().any(|symbol| rule.knows(symbol)));
        if let Some(rule) = found {
            return rule.class;
        }
        let innermost = symbols.iter().rev().find(|symbol| !THUNKS.knows(symbol));
        let last = innermost.filter(|symbol| ENTRY.knows(symbol));
        last.map_or(Class::Unattributed, |_| ENTRY.class)
    }
}

/// Names that make a stack belong to a class.
struct Rule {
    class: Class,
    names: Vec<&'static str>,
}

impl Rule {
    /// Of names with spaces between them. A `*` at the end of one stands for any ending.
    fn of(class: Class, names: &'static str) -> Rule {
        Rule { class, names: names.split_ascii_whitespace().collect() }
    }

    fn knows(&self, symbol: &str) -> bool {
        self.names.iter().any(|name| match name.strip_suffix('*') {
            Some(beginning) => symbol.starts_with(beginning),
            None => symbol == *name,
        })
    }
}

/// In the order in which they are asked.
const NAMES: &[(Class, &str)] = &[
    // net/core/skbuff.c: skb_orphan_frags_rx() calls skb_copy_ubufs().
    (Class::LateCopy, "skb_copy_ubufs skb_orphan_frags*"),
    // net/core/datagram.c, skbuff.c, lib/iov_iter.c, mm/gup.c.
    (
        Class::PagePinning,
        "\
        __zerocopy_sg_from_iter zerocopy_sg_from_iter zerocopy_fill_skb_from_iter \
        skb_zerocopy_iter_stream io_sg_from_iter* iov_iter_get_pages* __iov_iter_get_pages* \
        iov_iter_extract_pages* get_user_pages* pin_user_pages* unpin_user_page* gup_* \
        internal_get_user_pages_fast try_grab_folio* mm_account_pinned_pages \
        mm_unaccount_pinned_pages msg_zerocopy_* __msg_zerocopy_* sock_zerocopy_* \
        __sock_zerocopy_* skb_zcopy_*",
    ),
    (
        Class::PageFault,
        "\
        asm_exc_page_fault exc_page_fault do_user_addr_fault handle_mm_fault do_page_fault \
        do_mem_abort",
    ),
    // net/socket.c, lib/iov_iter.c: arguments, not payload.
    // kernel/seccomp.c, kernel/entry/common.c: filters and tracers of every call.
    (
        Class::SyscallEntry,
        "\
        copy_msghdr_from_user sendmsg_copy_msghdr recvmsg_copy_msghdr import_iovec \
        __import_iovec import_ubuf iovec_from_user* copy_iovec_from_user move_addr_to_kernel \
        move_addr_to_user __secure_computing __seccomp_filter seccomp_* syscall_trace_*",
    ),
    // kernel/sched: a wake-up in softirq costs an interrupt of another CPU,
    // and belongs to whoever slept.
    (
        Class::Scheduler,
        "\
        schedule __schedule schedule_* preempt_schedule* __cond_resched finish_task_switch* \
        try_to_wake_up default_wake_function autoremove_wake_function woken_wake_function \
        receiver_wake_function __wake_up* wake_up_* ttwu_* sched_* update_process_times \
        sysvec_apic_timer_interrupt asm_sysvec_apic_timer_interrupt sysvec_reschedule_ipi \
        asm_sysvec_reschedule_ipi sysvec_call_function* asm_sysvec_call_function* \
        prepare_to_wait* finish_wait futex_* do_futex x64_sys_sched_* __x64_sys_sched_*",
    ),
    // lib/iov_iter.c, arch/*/lib: the functions that move payload.
    // Its name on 6.18.
    (
        Class::CopyFromUser,
        "\
        _copy_from_iter* __copy_from_iter* copy_page_from_iter* copy_folio_from_iter* \
        copy_from_user_iter* csum_and_copy_from_iter* csum_partial_copy_from_user copyin* \
        __copy_user_nocache* __copy_user_flushcache",
    ),
    // drivers/char/mem.c: zeros, written straight into the reader's memory.
    (
        Class::CopyToUser,
        "\
        _copy_to_iter* __copy_to_iter* copy_page_to_iter* copy_folio_to_iter copy_to_user_iter* \
        simple_copy_to_iter copyout* read_zero read_iter_zero",
    ),
    (
        Class::SoftirqReceive,
        "\
        net_rx_action __do_softirq handle_softirqs do_softirq* run_ksoftirqd process_backlog \
        __napi_poll __netif_receive_skb* napi_* enqueue_to_backlog netif_rx* __netif_rx",
    ),
    (
        Class::Memory,
        "\
        __alloc_skb alloc_skb* __napi_alloc* __netdev_alloc* kmem_cache_* kmalloc* __kmalloc* \
        kfree* __kfree* __slab_* ___slab_* alloc_pages* __alloc_pages* __alloc_frozen_pages* \
        alloc_frozen_pages* get_page_from_freelist free_unref_* free_frozen_* __free_pages* \
        free_pages* __folio_put* page_frag_* skb_page_frag_refill sk_page_frag_refill \
        skb_release_* skb_free_* consume_skb __consume_* page_counter_* obj_cgroup_* __memcg_* \
        try_charge* do_mmap vm_mmap* do_munmap __vm_munmap do_madvise unmap_*",
    ),
    // fs/namei.c, fs/open.c, fs/dcache.c.
    (
        Class::PageCache,
        "\
        filemap_* __filemap_* generic_file_* generic_perform_write iomap_* ext4_* xfs_* btrfs_* \
        shmem_* page_cache_* submit_bio* blk_* getname* link_path_walk* walk_component \
        step_into* lookup_fast path_openat path_lookupat filename_lookup filename_create \
        user_path_at* d_lookup __d_lookup* do_filp_open do_sys_open*",
    ),
    (
        Class::Socket,
        "\
        tcp_* __tcp_* udp_* __udp_* udpv6_* inet_* inet6_* ip_* __ip_* ip6_* sock_* __sock_* \
        sk_* __sk_* skb_* __skb_* dev_* __dev_* neigh_* loopback_xmit veth_* unix_* lock_sock* \
        __lock_sock* release_sock __release_sock __sys_send* ___sys_send* ____sys_send* \
        __sys_recv* ___sys_recv* ____sys_recv* do_sock_setsockopt __sys_setsockopt",
    ),
    // fs/pipe.c, fs/splice.c.
    (
        Class::Pipe,
        "\
        pipe_* anon_pipe_* splice_* __splice_* do_splice* iter_file_splice_write iter_to_pipe \
        vmsplice_* do_sendfile do_tee",
    ),
    (
        Class::IoUring,
        "\
        io_* __io_* iou_* ctx_flush_and_put tctx_task_work* __do_sys_io_uring_* \
        __x64_sys_io_uring_* __arm64_sys_io_uring_*",
    ),
    // fs/read_write.c, fs/file.c: the layer that all files share.
    (
        Class::PageCache,
        "\
        vfs_* ksys_read ksys_write rw_verify_area security_file_* fsnotify* __fget* fdget* fput*",
    ),
];

static RULES: LazyLock<Vec<Rule>> =
    LazyLock::new(|| NAMES.iter().map(|(class, names)| Rule::of(*class, names)).collect());

/// Of every system call's stack these are the outermost functions, so they say something of the
/// innermost only.
static ENTRY: LazyLock<Rule> = LazyLock::new(|| {
    let mut entry = Rule::of(
        Class::SyscallEntry,
        "entry_SYSCALL* syscall_* do_syscall_64 x64_sys_call el0_svc* el0t_64_sync* \
         invoke_syscall do_el0_svc exit_to_user_mode* irqentry_exit_to_user_mode __x64_sys_* \
         __arm64_sys_* entry_*",
    );
    entry.names.push(SYSCALL_EXIT);
    entry
});

/// Every function may return or jump through these: they do what the one before them does.
static THUNKS: LazyLock<Rule> = LazyLock::new(|| {
    Rule::of(Class::Unattributed, "srso_* retbleed_* __x86_return_thunk __x86_indirect_*")
});

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(folded: &str, expected: Class) {
        let stack = Stack { folded: folded.to_owned(), samples: 1 };
        assert_eq!(Class::of(&stack), expected, "{folded}");
    }

    const SEND: &str = "send;entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k];\
                        __x64_sys_sendto_[k];__sys_sendto_[k];tcp_sendmsg_[k];\
                        tcp_sendmsg_locked_[k]";
    const SOFTIRQ: &str = "__tcp_push_pending_frames_[k];tcp_write_xmit_[k];ip_queue_xmit_[k];\
                           __dev_queue_xmit_[k];__local_bh_enable_ip_[k];do_softirq_[k];\
                           net_rx_action_[k];process_backlog_[k];__netif_receive_skb_one_core_[k]";

    #[test]
    fn what_outweighs_what() {
        check("main;memcpy", Class::User);
        check(&format!("{SEND};_copy_from_iter_[k];rep_movs_alternative_[k]"), Class::CopyFromUser);
        check(&format!("{SEND};sk_page_frag_refill_[k];__alloc_pages_[k]"), Class::Memory);
        check(SEND, Class::Socket);
        check(&format!("{SEND};{SOFTIRQ};tcp_v4_rcv_[k]"), Class::SoftirqReceive);
        check(&format!("{SEND};{SOFTIRQ};kmem_cache_free_[k]"), Class::SoftirqReceive);
        check(
            &format!("{SEND};{SOFTIRQ};ip_local_deliver_finish_[k];skb_copy_ubufs_[k];memcpy_[k]"),
            Class::LateCopy,
        );
        check(
            &format!(
                "{SEND};{SOFTIRQ};sock_def_readable_[k];__wake_up_sync_key_[k];ttwu_queue_[k]"
            ),
            Class::Scheduler,
        );
        check(
            &format!("{SEND};skb_zerocopy_iter_stream_[k];iov_iter_get_pages2_[k];gup_fast_[k]"),
            Class::PagePinning,
        );
        check("recv;do_syscall_64_[k];tcp_recvmsg_[k];_copy_to_iter_[k]", Class::CopyToUser);
        check("read;ksys_read_[k];vfs_read_[k];read_zero_[k];rep_stos_[k]", Class::CopyToUser);
        check("read;ksys_read_[k];vfs_read_[k];rw_verify_area_[k]", Class::PageCache);
        check("write;ksys_write_[k];vfs_write_[k];sock_write_iter_[k]", Class::Socket);
        check("read;do_syscall_64_[k];__secure_computing_[k]", Class::SyscallEntry);
        check("recv;do_syscall_64_[k];tcp_recvmsg_[k];schedule_timeout_[k]", Class::Scheduler);
        check("main;entry_SYSCALL_64_[k]", Class::SyscallEntry);
        check(
            "sendmsg;do_syscall_64_[k];__sys_sendmsg_[k];copy_msghdr_from_user_[k];\
             import_iovec_[k]",
            Class::SyscallEntry,
        );
        check("main;asm_exc_page_fault_[k];clear_page_erms_[k]", Class::PageFault);
        const ENTER: &str = "syscall;entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k];\
                             __do_sys_io_uring_enter_[k]";
        const SEND_ZC: &str = "io_submit_sqes_[k];io_issue_sqe_[k];io_send_zc_[k];\
                               sock_sendmsg_[k];tcp_sendmsg_locked_[k]";
        check(ENTER, Class::IoUring);
        check(&format!("{ENTER};io_submit_sqes_[k];io_init_req_[k]"), Class::IoUring);
        check(&format!("{ENTER};{SEND_ZC}"), Class::Socket);
        check(
            &format!("{ENTER};{SEND_ZC};skb_copy_to_page_nocache_[k];_copy_from_iter_[k]"),
            Class::CopyFromUser,
        );
        check(
            &format!("{ENTER};{SEND_ZC};skb_zerocopy_iter_stream_[k];io_sg_from_iter_iovec_[k]"),
            Class::PagePinning,
        );
        check(
            &format!("{ENTER};io_cqring_wait_[k];io_run_local_work_[k];io_notif_tw_complete_[k]"),
            Class::IoUring,
        );
        check(&format!("{ENTER};io_cqring_wait_[k];schedule_hrtimeout_[k]"), Class::Scheduler);
        check("main;something_new_[k]", Class::Unattributed);
    }

    #[test]
    fn a_system_call_that_no_rule_knows_is_not_its_entry() {
        const CALL: &str = "call;entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k]";
        check(&format!("{CALL};__do_sys_getrandom_[k];chacha_block_[k]"), Class::Unattributed);
        check("call;el0_svc_[k];invoke_syscall_[k];chacha_block_[k]", Class::Unattributed);
        let thunk = "srso_alias_return_thunk_[k];srso_alias_safe_ret_[k]";
        check(&format!("{CALL};chacha_block_[k];{thunk}"), Class::Unattributed);
        check(&format!("{CALL};chacha_block_[k];__x86_return_thunk_[k]"), Class::Unattributed);
        check(&format!("{CALL};x64_sys_call_[k];{thunk}"), Class::SyscallEntry);
        check(&format!("{CALL};__x64_sys_getppid_[k]"), Class::SyscallEntry);
        check(&format!("{CALL};syscall_exit_to_user_mode_[k]"), Class::SyscallEntry);
        check("run;getppid;[syscall_exit]_[k]", Class::SyscallEntry);
    }

    #[test]
    fn newer_names_are_known() {
        const WRITE: &str = "write;do_syscall_64_[k];ksys_write_[k];vfs_write_[k];\
                             ext4_buffered_write_iter_[k];generic_perform_write_[k]";
        check(&format!("{WRITE};copy_folio_from_iter_atomic_[k]"), Class::CopyFromUser);
        let fault = "copy_folio_from_iter_atomic_[k];asm_exc_page_fault_[k]";
        check(&format!("{WRITE};{fault}"), Class::PageFault);
        check("write;do_syscall_64_[k];__filemap_get_folio_[k]", Class::PageCache);
    }

    #[test]
    fn paths_are_file_systems_and_pipes_no_sockets() {
        const CALL: &str = "call;entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k]";
        let open = format!("{CALL};__x64_sys_openat_[k];do_sys_openat2_[k]");
        check(&format!("{open};getname_flags_[k];strncpy_from_user_[k]"), Class::PageCache);
        check(&format!("{open};path_openat_[k];link_path_walk_[k]"), Class::PageCache);
        check(&format!("{CALL};vfs_statx_[k];filename_lookup_[k]"), Class::PageCache);
        check(&format!("{CALL};ksys_read_[k];vfs_read_[k];anon_pipe_read_[k]"), Class::Pipe);
        let splice = format!("{CALL};__x64_sys_sendfile64_[k];do_sendfile_[k]");
        check(&format!("{splice};splice_direct_to_actor_[k]"), Class::Pipe);
        check(&format!("{splice};filemap_splice_read_[k]"), Class::PageCache);
        let socket = "splice_to_socket_[k];sock_sendmsg_[k];tcp_sendmsg_locked_[k]";
        check(&format!("{splice};{socket}"), Class::Socket);
    }

    #[test]
    fn every_class_has_its_place_and_words() {
        for rule in RULES.iter().chain([&*ENTRY, &*THUNKS]) {
            assert!(Class::ALL.contains(&rule.class));
            assert!(rule.names.iter().all(|name| !name.is_empty() && *name != "*"));
        }
        let mut words: Vec<&str> = Class::ALL.iter().map(|class| class.word()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Class::ALL.len());
    }

    proptest! {
        #[test]
        fn any_stack_has_a_class(folded in "[a-z_;\\[\\]]{0,60}") {
            let _ = Class::of(&Stack { folded, samples: 1 });
        }
    }
}
