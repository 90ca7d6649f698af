//! Tests of maps and programs in the kernel; they print why they cannot run where the right is missing.

use super::*;
use Register::{R0, R1, R2, R6, R10};
use std::sync::atomic::Ordering;

/// An array, or the printed reason why this machine has none.
fn array(test: &str, words: usize, entries: usize) -> Option<ArrayMap> {
    match ArrayMap::create("test", words, entries) {
        Ok(map) => Some(map),
        Err(error) if error.is_refusal() => {
            use std::io::Write;
            let line = format!("SKIP {test}: {error}\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
            if let Some(path) = std::env::var_os("IOTOLL_SKIP_LOG").filter(|path| !path.is_empty()) {
                let log = std::fs::OpenOptions::new().append(true).create(true).open(path);
                let _ = log.and_then(|mut log| log.write_all(line.as_bytes()));
            }
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Adds its first argument to the first word of a value.
fn adding<'maps>(map: &'maps ArrayMap, value: i32) -> Code<'maps> {
    let mut assembler = Assembler::new();
    let out = assembler.label();
    assembler.copy(R6, R1).store_constant(Width::Four, R10, -4, value).address(R2, R10, -4).map(R1, map);
    assembler.call(Helper::MapLookup).jump_if_constant(R0, Condition::Equal, 0, out);
    assembler.load(Width::Eight, R1, R6, 0).atomic_add(R0, 0, R1).bind(out).set(R0, 0).exit();
    assembler.finish()
}

#[test]
fn a_program_runs_on_a_cpu_and_writes_to_memory() {
    let Some(map) = array("bpf: a program runs on a CPU", 2, 3) else { return };
    let program = Program::load("adding", &adding(&map, 2)).unwrap();
    for cpu in crate::schedule::online_cpus().unwrap() {
        program.run_on(cpu, &[7]).unwrap();
    }
    program.run_here(&[7]).unwrap();
    let cpus = crate::schedule::online_cpus().unwrap().len() as u64;
    let first: Vec<u64> = map.values().map(|value| value.first().unwrap().load(Ordering::Relaxed)).collect();
    assert_eq!(first, [0, 0, 7 * (cpus + 1)]);
    let absent = program.run_on(100_000, &[7]).unwrap_err();
    assert!(absent.is_refusal() || absent.to_string().contains("no CPU 100000"), "{absent}");
}

#[test]
fn a_link_ends_when_it_is_dropped() {
    let Some(map) = array("bpf: a link ends when it is dropped", 1, 1) else { return };
    let program = Program::load("adding", &adding(&map, 0)).unwrap();
    let count = || map.words().first().unwrap().load(Ordering::Relaxed);
    let link = program.attach("sched_switch").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(5));
    drop(link);
    let counted = count();
    std::thread::sleep(std::time::Duration::from_millis(5));
    // The first argument of sched_switch says whether it preempts, so the sum may be 0.
    assert_eq!(count(), counted);
}

#[test]
fn a_rejected_program_says_why() {
    let Some(_map) = array("bpf: a rejected program says why", 1, 1) else { return };
    let mut assembler = Assembler::new();
    assembler.load(Width::Eight, R0, R10, 8).exit();
    let error = Program::load("wrong", &assembler.finish()).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("rejects program wrong") && error.contains("R10"), "{error}");
}

#[test]
fn a_missing_tracepoint_is_named() {
    let Some(map) = array("bpf: a missing tracepoint is named", 1, 1) else { return };
    let program = Program::load("adding", &adding(&map, 0)).unwrap();
    let error = program.attach("no_such_tracepoint").unwrap_err();
    assert!(error.to_string().contains("no raw tracepoint no_such_tracepoint "), "{error}");
}

#[test]
fn what_programs_put_into_a_table_is_drained_once() {
    use Register::{R0, R1, R2, R3, R4, R6, R10};
    const KEY: i16 = -8;
    const VALUE: i16 = -16;
    let Some(_map) = array("bpf: hash tables", 1, 1) else { return };
    // More than one system call reads.
    let table = HashMap::<1>::create("test", 5000).unwrap();
    let mut code = Assembler::new();
    code.copy(R6, R1).load(Width::Eight, R1, R6, 0).store(Width::Eight, R10, KEY, R1);
    code.load(Width::Eight, R1, R6, 8).store(Width::Eight, R10, VALUE, R1);
    code.address(R2, R10, KEY.into()).address(R3, R10, VALUE.into()).set(R4, 0);
    code.map(R1, &table).call(Helper::MapUpdate).set(R0, 0).exit();
    let put = Program::load("test", &code.finish()).unwrap();
    for key in 0..4500 {
        put.run_here(&[key, 2 * key]).unwrap();
    }
    let mut drained = table.drain().unwrap();
    drained.sort_unstable();
    assert_eq!(drained, (0..4500).map(|key| (key, [2 * key])).collect::<Vec<_>>());
    assert!(table.drain().unwrap().is_empty());
}

#[test]
fn names_keep_what_the_kernel_accepts() {
    assert_eq!(&object_name("a b-c_d.e"), b"abc_d.e\0\0\0\0\0\0\0\0\0");
    assert_eq!(&object_name("abcdefghijklmnopqrst"), b"abcdefghijklmno\0");
}
