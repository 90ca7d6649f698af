//! Fabricated machines: the kernel's files in a directory.

use std::path::Path;
use tempfile::TempDir;

/// A root directory that is removed on drop.
pub(crate) struct Fixture {
    directory: TempDir,
}

impl Fixture {
    /// A machine without files.
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    /// The root directory.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file and its parent directories.
    pub(crate) fn write(&self, path: &str, contents: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }

    pub(crate) fn write_all(self, files: &[(&str, &str)]) -> Self {
        for (path, contents) in files {
            self.write(path, format!("{contents}\n"));
        }
        self
    }

    /// A cpuidle state of one CPU.
    pub(crate) fn idle_state(&self, cpu: u32, state: u32, name: &str, latency_micros: u32, disable: u32) {
        let directory = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}");
        self.write(&format!("{directory}/name"), format!("{name}\n"));
        self.write(&format!("{directory}/latency"), format!("{latency_micros}\n"));
        self.write(&format!("{directory}/disable"), format!("{disable}\n"));
    }
}

const STAT: &str = "cpu  100 0 100 1000 50 0 0 10 0 0\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5";
const ROOT: &str = "Name:\tiotoll\nUid:\t0\t0\t0\t0";
const USER: &str = "Name:\tiotoll\nUid:\t1000\t1000\t1000\t1000";
const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max locked memory         8388608              8388608              bytes";

fn intel_cpuinfo(flags: &str) -> String {
    let cpu =
        |number| format!("processor\t: {number}\nmodel name\t: Intel(R) Xeon(R) Gold 6346\nflags\t\t: fpu {flags}\n\n");
    (0..2).map(cpu).collect()
}

/// Factory settings: turbo, hyperthreads, powersave, deep C-states, two nodes, an ordinary user.
pub(crate) fn intel_metal() -> Fixture {
    let fixture = Fixture::new().write_all(&[
        ("proc/cpuinfo", &intel_cpuinfo("constant_tsc nonstop_tsc")),
        ("proc/meminfo", "MemTotal:       131072000 kB"),
        ("proc/stat", STAT),
        ("proc/cmdline", "root=/dev/sda1 quiet"),
        ("proc/self/status", USER),
        ("proc/self/limits", LIMITS),
        ("proc/sys/kernel/osrelease", "6.8.0-45-generic"),
        ("proc/sys/kernel/perf_event_paranoid", "4"),
        ("proc/sys/kernel/kptr_restrict", "1"),
        ("proc/sys/kernel/io_uring_disabled", "2"),
        ("proc/812/comm", "irqbalance"),
        (
            "boot/config-6.8.0-45-generic",
            "CONFIG_SMP=y\n# CONFIG_KASAN is not set\nCONFIG_DEBUG_VM=y\nCONFIG_LOCKDEP_SUPPORT=y",
        ),
        ("sys/devices/system/cpu/online", "0-3"),
        ("sys/devices/system/cpu/isolated", "2-3"),
        ("sys/devices/system/cpu/nohz_full", "(null)"),
        ("sys/devices/system/cpu/smt/active", "1"),
        ("sys/devices/system/cpu/smt/control", "on"),
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "0"),
        ("sys/devices/system/cpu/cpufreq/policy0/scaling_driver", "intel_pstate"),
        ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave"),
        ("sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq", "800000"),
        ("sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq", "3600000"),
        ("sys/devices/system/cpu/cpufreq/policy0/base_frequency", "3100000"),
        ("sys/devices/system/cpu/cpuidle/current_driver", "intel_idle"),
        ("sys/devices/system/cpu/cpuidle/current_governor", "menu"),
        ("sys/devices/system/cpu/vulnerabilities/spectre_v2", "Mitigation: Enhanced / Automatic IBRS"),
        ("sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
        ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm"),
        ("sys/devices/system/node/node0/cpulist", "0-1"),
        ("sys/devices/system/node/node1/cpulist", "2-3"),
        ("sys/module/pcie_aspm/parameters/policy", "default performance [powersave] powersupersave"),
    ]);
    for cpu in 0..4 {
        fixture.idle_state(cpu, 0, "POLL", 0, 0);
        fixture.idle_state(cpu, 1, "C1", 1, 0);
        fixture.idle_state(cpu, 2, "C6", 170, 0);
    }
    fixture.write("dev/cpu_dma_latency", 2_000_000_000i32.to_ne_bytes());
    fixture
}

/// Set up for measuring, as root.
pub(crate) fn amd_metal() -> Fixture {
    let fixture = Fixture::new().write_all(&[
        ("proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9354\nflags\t\t: constant_tsc nonstop_tsc"),
        ("proc/meminfo", "MemTotal:       131072000 kB"),
        ("proc/stat", "cpu  100 0 100 1000 50 0 0 0 0 0\ncpu0 1 2 3"),
        ("proc/cmdline", "mitigations=off"),
        ("proc/self/status", ROOT),
        ("proc/self/limits", "Max locked memory         unlimited            unlimited            bytes"),
        ("proc/sys/kernel/osrelease", "6.12.9"),
        ("proc/sys/kernel/perf_event_paranoid", "2"),
        ("proc/sys/kernel/kptr_restrict", "1"),
        ("lib/modules/6.12.9/config", "CONFIG_SMP=y"),
        ("sys/devices/system/cpu/online", "0"),
        ("sys/devices/system/cpu/isolated", ""),
        ("sys/devices/system/cpu/smt/active", "0"),
        ("sys/devices/system/cpu/smt/control", "off"),
        ("sys/devices/system/cpu/cpufreq/boost", "0"),
        ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance"),
        ("sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq", "1500000"),
        ("sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq", "3250000"),
        ("sys/devices/system/cpu/cpuidle/current_driver", "acpi_idle"),
        ("sys/devices/system/cpu/vulnerabilities/spectre_v2", "Vulnerable"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
        ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet"),
        ("sys/devices/system/node/node0/cpulist", "0"),
        ("sys/module/pcie_aspm/parameters/policy", "default [performance] powersave powersupersave"),
    ]);
    fixture.idle_state(0, 1, "C1", 1, 0);
    fixture.idle_state(0, 2, "C2", 18, 1);
    fixture
}

/// A small cloud guest, as root.
pub(crate) fn guest() -> Fixture {
    let fixture = Fixture::new().write_all(&[
        (
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: constant_tsc nonstop_tsc hypervisor\n\nprocessor\t: 1",
        ),
        ("proc/meminfo", "MemTotal:       24684084 kB\nMemFree: 1 kB"),
        ("proc/stat", STAT),
        ("proc/cmdline", "quiet cpuidle_haltpoll.force=1"),
        ("proc/self/status", ROOT),
        ("proc/self/limits", LIMITS),
        ("proc/sys/kernel/osrelease", "6.18.44"),
        ("proc/sys/kernel/perf_event_paranoid", "2"),
        ("proc/sys/kernel/kptr_restrict", "0"),
        ("sys/devices/system/cpu/online", "0-1"),
        ("sys/devices/system/cpu/smt/active", "0"),
        ("sys/devices/system/cpu/smt/control", "notsupported"),
        ("sys/devices/system/cpu/cpuidle/current_driver", "haltpoll"),
        ("sys/devices/system/cpu/cpuidle/current_governor", "haltpoll"),
        ("sys/module/haltpoll/parameters/guest_halt_poll_ns", "0"),
        ("sys/devices/system/cpu/vulnerabilities/spectre_v2", "Mitigation: Retpolines"),
        ("sys/devices/system/cpu/vulnerabilities/spec_store_bypass", "Vulnerable"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
        ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc kvm-clock"),
        ("sys/devices/system/node/node0/cpulist", "0-1"),
    ]);
    fixture.idle_state(0, 0, "POLL", 0, 0);
    fixture.idle_state(0, 1, "haltpoll idle", 1, 0);
    fixture
}

/// An ordinary user in a container that shows /proc but not /sys.
pub(crate) fn container() -> Fixture {
    Fixture::new().write_all(&[
        ("proc/cpuinfo", &intel_cpuinfo("constant_tsc nonstop_tsc")),
        ("proc/meminfo", "MemTotal:       131072000 kB"),
        ("proc/stat", STAT),
        ("proc/self/status", USER),
        ("proc/self/limits", LIMITS),
        ("proc/sys/kernel/osrelease", "6.8.0-45-generic"),
        ("proc/sys/kernel/perf_event_paranoid", "2"),
    ])
}
