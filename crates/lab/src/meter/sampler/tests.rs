//! Samples of planted threads: their calls, owners and windows.

use super::*;
use crate::skipping::{available, note_skipped};
use std::sync::atomic::{AtomicBool, Ordering};

/// `None`, with a printed reason, where stacks may not be sampled.
fn sampling() -> Option<Sampling> {
    match available("sampling", open(&Cpus::online().unwrap()))? {
        Opened::Sampler(sampling) => Some(*sampling),
        _ => unreachable!("the sampler opens as another meter"),
    }
}

#[inline(never)]
fn innermost_planted(stop: &AtomicBool) -> u64 {
    let mut turns = 0;
    while !stop.load(Ordering::Relaxed) {
        turns += 1;
        std::hint::black_box(&mut turns);
    }
    turns
}

#[inline(never)]
fn middle_planted(stop: &AtomicBool) -> u64 {
    innermost_planted(stop) + std::hint::black_box(1)
}

#[inline(never)]
fn outermost_planted(stop: &AtomicBool) -> u64 {
    middle_planted(stop) + std::hint::black_box(1)
}

#[test]
fn the_calls_of_a_thread_are_known_from_its_first_function() {
    let Some(mut sampling) = sampling() else { return };
    let stop = Arc::new(AtomicBool::new(false));
    let (send, receive) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().name("planted".to_owned()).spawn({
        let stop = stop.clone();
        move || {
            send.send(sys::schedule::thread_id().unsigned_abs()).unwrap();
            outermost_planted(&stop)
        }
    });
    let owners = Owners { workers: [receive.recv().unwrap()].into(), ..Owners::default() };
    let none = Relations::default();
    let begun = sampling.read(SAMPLED, &owners, &none);
    assert!(begun.profile.is_none());
    // Without optimization, the tables of this program are checked for longer than a window; later windows know it.
    std::thread::sleep(Duration::from_millis(500));
    sampling.read(Mode::Gap, &owners, &none);
    sampling.read(SAMPLED, &owners, &none);
    std::thread::sleep(Duration::from_millis(500));
    let profile = sampling.read(Mode::Gap, &owners, &none).profile.unwrap();
    stop.store(true, Ordering::Relaxed);
    thread.unwrap().join().unwrap();
    let own: Vec<&Stack> = profile.stacks.iter().filter(|it| it.owner == Some(TaskOwner::Workload)).collect();
    let samples = |stacks: &[&Stack]| stacks.iter().map(|stack| stack.samples).sum::<u64>();
    let names = |stack: &Stack| -> Vec<&str> {
        stack.functions.iter().filter_map(|place| Some(profile.function(*place)?.name.as_str())).collect()
    };
    let planted = |stack: &&&Stack| {
        let planted: Vec<&str> = names(stack).into_iter().filter(|name| name.ends_with("_planted")).collect();
        let called = ["outermost_planted", "middle_planted", "innermost_planted"];
        planted.len() == 3 && planted.iter().zip(called).all(|(name, called)| name.ends_with(called))
    };
    let whole: Vec<&Stack> = own.iter().filter(planted).copied().collect();
    assert!(samples(&own) > 10, "{profile:?}");
    let found: Vec<_> = own.iter().map(|it| (names(it), it.samples)).collect();
    assert!(samples(&whole) * 10 > samples(&own) * 9, "{found:?}");
    // The thread begins in the C library.
    assert!(whole.iter().all(|stack| stack.whole && names(stack).len() > 5), "{:?}", whole.first().map(|it| names(it)));
    assert!(own.iter().all(|stack| stack.name == "planted" && stack.kind == AccountKind::Task));
    // A window after which nothing is sampled has none.
    assert!(sampling.read(Mode::Gap, &owners, &none).profile.is_none());
}

#[test]
fn softirqs_are_known_by_their_handlers() {
    assert!(is_softirq_loop("handle_softirqs") && !is_softirq_loop("handle_softirq"));
    assert_eq!(softirq("tasklet_action.isra.0"), Some("tasklet"));
    assert_eq!(softirq("net_rx_action"), Some("net_rx"));
    assert_eq!(softirq("vfs_read"), None);
}

/// A compiler was interrupted while it read: neither its functions nor those of the interrupt have called the softirq.
#[test]
fn the_stack_of_a_softirq_begins_at_its_handler() {
    let function = |name: &str| Function { name: name.to_owned(), kernel: true, ..Function::default() };
    let mut kernel: Vec<Function> =
        ["tcp_v4_rcv", "net_rx_action", "handle_softirqs", "irq_exit_rcu", "vfs_read"].map(function).to_vec();
    begin_at_softirq(&mut kernel);
    let names: Vec<&str> = kernel.iter().map(|function| function.name.as_str()).collect();
    assert_eq!(names, ["tcp_v4_rcv", "net_rx_action"]);
}

/// Linked without the C library: `-nostdlib` needs no more than the compiler.
fn built(folder: &std::path::Path, source: &str) -> Option<std::path::PathBuf> {
    let (text, program) = (folder.join("loops.s"), folder.join("loops"));
    std::fs::write(&text, source).unwrap();
    let mut compiler = std::process::Command::new("cc");
    let built = compiler.args(["-nostdlib", "-static", "-o"]).args([&program, &text]).output();
    match built {
        Ok(output) if output.status.success() => Some(program),
        other => {
            note_skipped("a program with a table that loops", &format!("cc: {other:?}"));
            None
        }
    }
}

/// The profile of a program that runs for a while.
fn profiled(sampling: &mut Sampling, program: &std::path::Path, meanwhile: impl FnOnce()) -> Profile {
    let mut child = std::process::Command::new(program).spawn().unwrap();
    let owners = Owners { command: Some(child.id()), ..Owners::default() };
    meanwhile();
    let none = Relations::default();
    let begun = std::time::Instant::now();
    sampling.read(SAMPLED, &owners, &none);
    std::thread::sleep(Duration::from_millis(300));
    let profile = sampling.read(Mode::Gap, &owners, &none).profile.unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    *profile
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_program_whose_unwind_table_loops_is_sampled_and_named() {
    let Some(mut sampling) = sampling() else { return };
    let folder = tempfile::tempdir().unwrap();
    // DW_CFA_def_cfa_expression of three bytes: DW_OP_skip -3.
    let source = ".globl _start\n.type _start,@function\n_start: .cfi_startproc\n.cfi_escape 0x0f,0x03,0x2f,0xfd,0xff\n\
                  call turns\n.cfi_endproc\n.size _start,.-_start\n.type turns,@function\nturns: .cfi_startproc\n\
                  .cfi_escape 0x0f,0x03,0x2f,0xfd,0xff\n1: jmp 1b\n.cfi_endproc\n.size turns,.-turns\n";
    let Some(program) = built(folder.path(), source) else { return };
    let profile = profiled(&mut sampling, &program, || {});
    assert!(profile.functions.iter().any(|function| function.name == "turns"), "{:?}", profile.functions);
    assert!(profile.refused.iter().any(|why| why.starts_with("loops: its unwind tables")), "{:?}", profile.refused);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_file_that_is_too_long_or_became_a_pipe_is_not_read() {
    let Some(mut sampling) = sampling() else { return };
    let folder = tempfile::tempdir().unwrap();
    let source = ".globl _start\n_start: jmp _start\n";
    let Some(program) = built(folder.path(), source) else { return };
    let copy = folder.path().join("pipe");
    std::fs::copy(&program, &copy).unwrap();
    profiled(&mut sampling, &copy, || {
        std::fs::remove_file(&copy).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &copy, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    });
    let long = folder.path().join("long");
    std::fs::copy(&program, &long).unwrap();
    std::fs::File::options().write(true).open(&long).unwrap().set_len(15_000 << 30).unwrap();
    let profile = profiled(&mut sampling, &long, || {});
    assert!(profile.refused.iter().any(|why| why == "long: longer than 1024 MiB"), "{:?}", profile.refused);
}
