//! The doctor on fabricated machines.

use super::fixture::{Fixture, amd_metal, container, guest, intel_metal};
use super::*;
use flate2::{Compression, write::GzEncoder};
use model::reading::Reading;
use model::unit::Nanos;
use std::io::Write;

fn quiet() -> Background {
    Background {
        watched_nanos: Nanos::from_millis(300),
        busy_fraction: Reading::Taken(0.01),
        steal_fraction: Reading::Taken(0.0),
        steal_since_boot_fraction: Reading::Taken(0.0),
    }
}

fn diagnose_with(fixture: &Fixture, background: Background, io_uring: io::Result<()>) -> Diagnosis {
    diagnose_beside(fixture, background, io_uring, &[])
}

fn diagnose_beside(fixture: &Fixture, background: Background, io_uring: io::Result<()>, left: &[String]) -> Diagnosis {
    let canaries = Canaries {
        null_system_call_nanos: 90.0,
        context_switch_nanos: Reading::Taken(1_000.0),
        wake_up_nanos: Reading::unavailable("one CPU"),
        clock_read_nanos: 25.0,
        memcpy_gigabytes_per_second: 40.0,
    };
    let host = crate::host::read(fixture.path(), 2.5e9, "measured against CLOCK_MONOTONIC");
    let meters = vec![MeterStatus { meter: Meter::ProcStat, status: Reading::Taken("runs".to_owned()) }];
    diagnose(&Sysroot::at(fixture.path()), host, meters, (background, None), canaries, io_uring, left)
}

fn diagnosed(fixture: &Fixture) -> Diagnosis {
    diagnose_with(fixture, quiet(), Ok(()))
}

fn check(diagnosis: &Diagnosis, topic: Topic) -> &Check {
    diagnosis.checks.iter().find(|check| check.topic == topic).unwrap()
}

fn states(diagnosis: &Diagnosis, state: State) -> Vec<Topic> {
    diagnosis.checks_in(state).map(|check| check.topic).collect()
}

/// Checks the state of a topic and the text of its fix.
fn assert_mend(diagnosis: &Diagnosis, topic: Topic, state: State, mend: &str) {
    let check = check(diagnosis, topic);
    assert_eq!(check.state, state, "{check:?}");
    assert!(check.mend.as_deref().is_some_and(|text| text.contains(mend)), "{check:?}");
}

#[test]
fn every_topic_is_looked_at_once() {
    let diagnosis = diagnosed(&guest());
    let mut topics: Vec<_> = diagnosis.checks.iter().map(|check| check.topic.title()).collect();
    topics.sort_unstable();
    topics.dedup();
    assert_eq!(topics.len(), EXAMINATIONS.len());
}

#[test]
fn metal_with_factory_settings_gets_a_fix_for_each_problem() {
    let diagnosis = diagnose_with(&intel_metal(), quiet(), Err(io::ErrorKind::PermissionDenied.into()));
    let cpu = "/sys/devices/system/cpu";
    assert_mend(&diagnosis, Topic::Governor, State::Poor, "cpupower frequency-set -g performance");
    assert_mend(&diagnosis, Topic::Turbo, State::Poor, &format!("echo 1 > {cpu}/intel_pstate/no_turbo"));
    assert_mend(&diagnosis, Topic::IdleStates, State::Poor, "cpupower idle-set -D 3");
    assert_mend(&diagnosis, Topic::Hyperthreads, State::Poor, &format!("echo off > {cpu}/smt/control"));
    assert_mend(&diagnosis, Topic::PciePower, State::Poor, "echo performance > /sys/module/pcie_aspm");
    assert_mend(&diagnosis, Topic::KernelDebugging, State::Poor, "boot a kernel built without them");
    assert_mend(&diagnosis, Topic::PerfEvents, State::Poor, "sysctl kernel.perf_event_paranoid=0");
    assert_mend(&diagnosis, Topic::IoUring, State::Poor, "sysctl kernel.io_uring_disabled=0");
    assert_eq!(check(&diagnosis, Topic::IdleStates).found, "intel_idle: deep states enabled: C6 (170 µs)");
    assert_eq!(check(&diagnosis, Topic::KernelDebugging).found, "CONFIG_DEBUG_VM");
    assert_eq!(states(&diagnosis, State::Unknown), []);
    assert!(diagnosis.summary.contains("meter"), "{}", diagnosis.summary);
}

#[test]
fn metal_set_up_for_measuring_needs_no_fix() {
    let diagnosis = diagnosed(&amd_metal());
    assert_eq!(states(&diagnosis, State::Poor), []);
    assert_eq!(states(&diagnosis, State::Note), []);
    assert_eq!(states(&diagnosis, State::Unknown), []);
    assert_eq!(check(&diagnosis, Topic::Mitigations).found, "none active; not mitigated: spectre_v2");
}

#[test]
fn only_the_host_can_fix_what_a_guest_cannot_see() {
    let diagnosis = diagnosed(&guest());
    for topic in [Topic::Governor, Topic::Turbo] {
        assert_mend(&diagnosis, topic, State::Unknown, "only the host can");
    }
    assert_mend(&diagnosis, Topic::Hyperthreads, State::Note, "only the host can");
    assert_mend(&diagnosis, Topic::KernelDebugging, State::Unknown, "modprobe configs");
    assert_mend(&diagnosis, Topic::Hypervisor, State::Note, "metal");
    assert_eq!(states(&diagnosis, State::Poor), []);
}

#[test]
fn a_container_without_sysfs_is_told_to_mount_it() {
    let diagnosis = diagnosed(&container());
    for topic in [Topic::Governor, Topic::IdleStates, Topic::Hyperthreads, Topic::Clocksource] {
        assert_mend(&diagnosis, topic, State::Unknown, "/sys");
    }
    assert_eq!(check(&diagnosis, Topic::ReferenceClock).state, State::Good);
    assert_eq!(check(&diagnosis, Topic::Hypervisor).state, State::Good);
}

#[test]
fn c_states_are_avoided_by_disabling_or_by_a_latency_limit() {
    let fixture = intel_metal();
    fixture.write("dev/cpu_dma_latency", 0i32.to_ne_bytes());
    assert_eq!(check(&diagnosed(&fixture), Topic::IdleStates).state, State::Good);
    fixture.write("dev/cpu_dma_latency", "odd contents");
    (0..4).for_each(|cpu| fixture.idle_state(cpu, 2, "C6", 170, 1));
    assert_eq!(check(&diagnosed(&fixture), Topic::IdleStates).state, State::Good);
    fixture.idle_state(3, 2, "C6", 170, 0);
    assert_eq!(check(&diagnosed(&fixture), Topic::IdleStates).state, State::Poor);
    fixture.write("proc/cmdline", "quiet idle=poll");
    assert!(check(&diagnosed(&fixture), Topic::IdleStates).found.contains("poll"));
}

#[test]
fn a_guest_that_polls_before_it_halts_is_noted() {
    let fixture = guest();
    fixture.write("sys/module/haltpoll/parameters/guest_halt_poll_ns", "200000\n");
    let diagnosis = diagnosed(&fixture);
    assert_mend(&diagnosis, Topic::IdleStates, State::Note, "guest_halt_poll_ns");
    assert!(check(&diagnosis, Topic::IdleStates).found.contains("200000 ns"));
}

#[test]
fn a_clock_that_varies_or_needs_a_device_is_poor() {
    let fixture = guest();
    fixture.write("proc/cpuinfo", "flags : constant_tsc hypervisor\n");
    fixture.write("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
    let diagnosis = diagnosed(&fixture);
    assert_mend(&diagnosis, Topic::ReferenceClock, State::Poor, "only the host can");
    assert_mend(&diagnosis, Topic::Clocksource, State::Poor, "echo tsc > /sys");
}

#[test]
fn the_running_kernels_own_configuration_is_unpacked() {
    let fixture = guest();
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(b"CONFIG_SMP=y\nCONFIG_PROVE_LOCKING=y\nCONFIG_KASAN_SHADOW_OFFSET=0\n").unwrap();
    fixture.write("proc/config.gz", packed.finish().unwrap());
    fixture.write("proc/cmdline", "slub_debug=FZ");
    let found = diagnosed(&fixture);
    assert_eq!(check(&found, Topic::KernelDebugging).found, "CONFIG_PROVE_LOCKING, slub_debug");
    fixture.write("proc/config.gz", b"\x1f\x8bnot really");
    fixture.write("proc/cmdline", "");
    assert_eq!(check(&diagnosed(&fixture), Topic::KernelDebugging).state, State::Unknown);
}

#[test]
fn a_busy_machine_and_steal_are_poor_and_give_warnings() {
    let background =
        Background { busy_fraction: Reading::Taken(0.4), steal_since_boot_fraction: Reading::Taken(0.02), ..quiet() };
    let diagnosis = diagnose_with(&guest(), background, Ok(()));
    assert_eq!(states(&diagnosis, State::Poor), [Topic::Steal, Topic::Background]);
    let codes: Vec<_> = diagnosis.warnings.iter().map(|warning| warning.code).collect();
    assert_eq!(codes, [Code::Steal, Code::BusyBackground]);
    assert_eq!(check(&diagnosis, Topic::Background).found, "the machine was 40 % busy over 300 ms");
}

#[test]
fn leftovers_of_killed_processes_are_named_with_their_fix() {
    let left = ["/proc/sys/vm/swappiness is '1', it was '60'".to_owned(), "may still be on: run `tc`".to_owned()];
    let diagnosis = diagnose_beside(&guest(), quiet(), Ok(()), &left);
    assert_mend(&diagnosis, Topic::LeftBehind, State::Poor, "iotoll demo");
    assert_eq!(check(&diagnosis, Topic::LeftBehind).found, left.join("; "));
    assert_eq!(check(&diagnosed(&guest()), Topic::LeftBehind).state, State::Good);
}

#[test]
fn odd_contents_do_no_harm() {
    let fixture = intel_metal();
    let mut directories = vec![fixture.path().to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            if entry.path().is_dir() {
                directories.push(entry.path());
            } else {
                std::fs::write(entry.path(), b"\xff\x00[-99999999999999999999\n:::,-]").unwrap();
            }
        }
    }
    assert_eq!(diagnosed(&fixture).checks.len(), EXAMINATIONS.len());
    assert_eq!(diagnosed(&Fixture::new()).checks.len(), EXAMINATIONS.len());
}

#[test]
fn limits_of_control_groups_are_named() {
    let files = [("proc/self/cgroup", "0::/job\n")];
    let mounts = [("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")];
    let memory = [("sys/fs/cgroup/job/memory.max", "67108864\n"), ("sys/fs/cgroup/job/memory.events", "max 0\n")];
    let cpu = [
        ("sys/fs/cgroup/job/cpu.max", "30000 100000\n"),
        ("sys/fs/cgroup/job/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"),
    ];
    let topic = Topic::ControlGroups;
    assert_mend(&diagnosed(&amd_metal().write_all(&files)), topic, State::Unknown, "mount it");
    assert_eq!(check(&diagnosed(&amd_metal().write_all(&files).write_all(&mounts)), topic).state, State::Good);
    let limited = amd_metal().write_all(&files).write_all(&mounts).write_all(&memory);
    assert_mend(&diagnosed(&limited), topic, State::Note, "outside the cgroup");
    let found = diagnosed(&limited.write_all(&cpu));
    assert_mend(&found, topic, State::Poor, "raise them");
    let words = "a CPU quota of 0.30 CPUs (cgroup /job, cpu.max); a memory limit of 64 MiB (cgroup /job, memory.max)";
    assert_eq!(check(&found, topic).found, words);
}
