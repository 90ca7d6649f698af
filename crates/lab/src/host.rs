//! The machine as a record describes it: what two runs must share before their numbers are compared.
//!
//! Everything comes from the kernel's files below a root directory, so that a test can fabricate any machine. A fact
//! that no file gives becomes a word ("none", "unknown"), never a guess.

pub mod storage;

use crate::error::{Error, Result};
use crate::proc_files::of_lines;
use crate::sysroot::{Sysroot, listed};
use flate2::read::GzDecoder;
use model::record::Host;
use model::storage::Storage;
use model::unit::Bytes;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const CPU: &str = "sys/devices/system/cpu";
pub(crate) const CLOCKSOURCE: &str = "sys/devices/system/clocksource/clocksource0";

/// The machine whose files are below `root`, `/` for this one. The caller has measured the rate of the reference clock
/// and names its source.
pub fn read(root: &Path, tsc_hertz: f64, tsc_source: &str) -> Host {
    let root = Sysroot::at(root);
    let unknown = || "unknown".to_owned();
    let hypervisor = hypervisor(&root);
    Host {
        kernel: root.text("proc/sys/kernel/osrelease").unwrap_or_else(unknown),
        cpu_model: cpu_model(&root).unwrap_or_else(unknown),
        cpus: cpus(&root),
        tsc_hertz,
        tsc_source: tsc_source.to_owned(),
        clocksource: root.text(&format!("{CLOCKSOURCE}/current_clocksource")).unwrap_or_else(unknown),
        governor: governor(&root, hypervisor.as_deref()),
        hypervisor,
        smt: root.text(&format!("{CPU}/smt/control")).unwrap_or_else(unknown),
        idle_driver: idle_driver(&root),
        mitigations: mitigations(&root),
        memory: memory(&root),
        root: effective_user(&root) == Some(0),
        steal_in_task_clocks: steal_in_task_clocks(&root),
        storage: Vec::new(),
    }
}

/// The same for this machine, with what holds the files of a measurement.
pub fn with_storage(storage: Vec<Storage>, tsc_hertz: f64, tsc_source: &str) -> Host {
    Host { storage, ..read(Path::new("/"), tsc_hertz, tsc_source) }
}

/// Whether the CPU time of tasks includes steal: the kernel does not subtract it, or a boot parameter disables that.
fn steal_in_task_clocks(root: &Sysroot) -> Option<bool> {
    let told = root.text("proc/cmdline").is_some_and(|line| line.split_whitespace().any(|word| word == "no-steal-acc"));
    let config = kernel_config(root)?;
    Some(told || !config.lines().any(|line| line == "CONFIG_PARAVIRT_TIME_ACCOUNTING=y"))
}

/// The running kernel's configuration, from the kernel or from where distributions install it.
pub(crate) fn kernel_config(root: &Sysroot) -> Option<String> {
    /// Upper bound of an unpacked configuration.
    const LARGEST_BYTES: u64 = 4 << 20;
    let own = root.open("proc/config.gz").and_then(|file| {
        let mut text = String::new();
        GzDecoder::new(file).take(LARGEST_BYTES).read_to_string(&mut text).ok()?;
        Some(text)
    });
    let release = || root.text("proc/sys/kernel/osrelease");
    own.or_else(|| root.text(&format!("boot/config-{}", release()?)))
        .or_else(|| root.text(&format!("lib/modules/{}/config", release()?)))
        .filter(|text| text.contains("CONFIG_"))
}

/// Wall-clock time: seconds since 1970.
pub fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// The value of the first line `key : value` of /proc/cpuinfo.
pub(crate) fn cpuinfo(root: &Sysroot, key: &str) -> Option<String> {
    let text = root.text("proc/cpuinfo")?;
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    })
}

/// Whether the CPU has this feature flag; `None` where the kernel has no x86 flag list.
pub(crate) fn cpu_flag(root: &Sysroot, flag: &str) -> Option<bool> {
    cpuinfo(root, "flags").map(|flags| flags.split_whitespace().any(|known| known == flag))
}

/// Name and status of every CPU vulnerability that the kernel knows of.
pub(crate) fn vulnerabilities(root: &Sysroot) -> Vec<(String, String)> {
    let directory = format!("{CPU}/vulnerabilities");
    let status = |name: String| root.text(&format!("{directory}/{name}")).map(|status| (name, status));
    root.names(&directory).into_iter().filter_map(status).collect()
}

/// The different governors of all frequency domains; none without a cpufreq driver.
pub(crate) fn governors(root: &Sysroot) -> BTreeSet<String> {
    let policies = root.numbered(&format!("{CPU}/cpufreq"), "policy");
    policies.iter().filter_map(|policy| root.text(&format!("{CPU}/cpufreq/{policy}/scaling_governor"))).collect()
}

fn governor(root: &Sysroot, hypervisor: Option<&str>) -> String {
    let governors = governors(root);
    match (governors.is_empty(), hypervisor) {
        (false, _) => governors.into_iter().collect::<Vec<_>>().join(", "),
        (true, Some(_)) => "none (the guest has no cpufreq driver)".to_owned(),
        (true, None) if root.has(CPU) => "none (no cpufreq driver)".to_owned(),
        (true, None) => "unknown".to_owned(),
    }
}

/// Architectures other than x86 give no model name, only numbers of implementer and part.
fn cpu_model(root: &Sysroot) -> Option<String> {
    cpuinfo(root, "model name").or_else(|| {
        let implementer = cpuinfo(root, "CPU implementer")?;
        let part = cpuinfo(root, "CPU part")?;
        Some(format!("implementer {implementer}, part {part}"))
    })
}

/// 0 when no file says how many.
fn cpus(root: &Sysroot) -> usize {
    let online = root.text(&format!("{CPU}/online")).and_then(|list| listed(&list)).filter(|count| *count > 0);
    let counted = || {
        let text = root.text("proc/cpuinfo").unwrap_or_default();
        text.lines().filter(|line| line.split(':').next().is_some_and(|key| key.trim() == "processor")).count()
    };
    online.unwrap_or_else(counted)
}

/// Driver, governor and states of cpuidle. They differ between machines of one model with other boot options, and
/// decide what a wake-up costs.
fn idle_driver(root: &Sysroot) -> String {
    let Some(driver) = root.text(&format!("{CPU}/cpuidle/current_driver")) else {
        return "unknown".to_owned();
    };
    let governor = ["current_governor", "current_governor_ro"]
        .iter()
        .find_map(|file| root.text(&format!("{CPU}/cpuidle/{file}")))
        .map_or_else(String::new, |governor| format!(", governor {governor}"));
    let directory = format!("{CPU}/cpu0/cpuidle");
    let states: Vec<_> = root
        .numbered(&directory, "state")
        .iter()
        .filter_map(|state| {
            let name = root.text(&format!("{directory}/{state}/name"))?;
            let latency = root.number(&format!("{directory}/{state}/latency"))?;
            Some(format!("{name} {latency} µs"))
        })
        .collect();
    if states.is_empty() { format!("{driver}{governor}") } else { format!("{driver}{governor}: {}", states.join(", ")) }
}

fn mitigations(root: &Sysroot) -> Vec<String> {
    vulnerabilities(root)
        .into_iter()
        .filter_map(|(name, status)| Some(format!("{name}: {}", status.strip_prefix("Mitigation: ")?)))
        .collect()
}

fn memory(root: &Sysroot) -> Bytes {
    let kibibytes = root.text("proc/meminfo").and_then(|text| of_lines(&text, "MemTotal"));
    Bytes(kibibytes.unwrap_or(0).saturating_mul(1024))
}

/// The second field of `Uid:` is the effective one (proc_pid_status(5)).
fn effective_user(root: &Sysroot) -> Option<u32> {
    let text = root.text("proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The name of the hypervisor; `None` on bare metal. Its own interface is the best source, then the clock that it
/// offers, then the maker of the board: clouds use one name for metal and guests.
fn hypervisor(root: &Sysroot) -> Option<String> {
    let announced = root.text("sys/hypervisor/type").filter(|name| !name.is_empty());
    let clock = root.text(&format!("{CLOCKSOURCE}/available_clocksource")).and_then(|clocks| {
        const CLOCKS: [(&str, &str); 3] = [("kvm-clock", "KVM"), ("hyperv_clocksource", "Hyper-V"), ("xen", "Xen")];
        CLOCKS.iter().find(|(clock, _)| clocks.contains(clock)).map(|(_, name)| (*name).to_owned())
    });
    let board = board(root);
    let virtual_board = board.as_deref().and_then(|board| {
        const BOARDS: [(&str, &str); 8] = [
            ("QEMU", "QEMU"),
            ("KVM", "KVM"),
            ("VMware", "VMware"),
            ("VirtualBox", "VirtualBox"),
            ("Microsoft Corporation Virtual Machine", "Hyper-V"),
            ("HVM domU", "Xen"),
            ("Bochs", "Bochs"),
            ("Parallels", "Parallels"),
        ];
        BOARDS.iter().find(|(mark, _)| board.contains(mark)).map(|(_, name)| (*name).to_owned())
    });
    let name = announced.or(clock).or(virtual_board);
    let name = match (name, cpu_flag(root, "hypervisor")) {
        (Some(name), _) => name,
        (None, Some(true)) => "a hypervisor without a name".to_owned(),
        (None, _) => return None,
    };
    Some(match board {
        Some(board) if !board.contains(&name) => format!("{name} ({board})"),
        _ => name,
    })
}

/// Maker and product of the board.
fn board(root: &Sysroot) -> Option<String> {
    let words: Vec<_> = ["sys_vendor", "product_name"]
        .iter()
        .filter_map(|file| root.text(&format!("sys/class/dmi/id/{file}")))
        .filter(|word| !word.is_empty())
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The kernel's name for this boot.
///
/// # Errors
/// When the file cannot be read.
pub fn boot_id() -> Result<String> {
    const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
    let text = std::fs::read_to_string(BOOT_ID).map_err(|error| Error::instrument(BOOT_ID, error))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::fixture::{Fixture, amd_metal, container, guest, intel_metal};

    fn host(fixture: &Fixture) -> Host {
        read(fixture.path(), 2.5e9, "measured")
    }

    #[test]
    fn the_clock_of_a_guest_names_its_hypervisor() {
        let host = host(&guest());
        assert_eq!(host.hypervisor.as_deref(), Some("KVM"));
        assert_eq!(host.governor, "none (the guest has no cpufreq driver)");
        assert_eq!(host.idle_driver, "haltpoll, governor haltpoll: POLL 0 µs, haltpoll idle 1 µs");
        assert_eq!((host.cpus, host.memory, host.root), (2, Bytes(24_684_084 * 1024), true));
        assert_eq!(host.cpu_model, "AMD EPYC");
    }

    #[test]
    fn metal_has_no_hypervisor_and_says_how_it_saves_power() {
        let host = host(&intel_metal());
        assert_eq!(host.hypervisor, None);
        assert_eq!((host.governor.as_str(), host.smt.as_str()), ("powersave", "on"));
        assert_eq!(host.cpus, 4);
        assert_eq!(host.mitigations, ["spectre_v2: Enhanced / Automatic IBRS"]);
        assert_eq!(super::governor(&Sysroot::at(amd_metal().path()), None), "performance");
    }

    #[test]
    fn a_container_without_sysfs_still_counts_its_cpus() {
        let host = host(&container());
        assert_eq!((host.cpus, host.governor.as_str(), host.root), (2, "unknown", false));
        assert_eq!(host.clocksource, "unknown");
    }

    #[test]
    fn a_cloud_name_alone_is_not_a_hypervisor() {
        let fixture = intel_metal();
        fixture.write("sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
        assert_eq!(host(&fixture).hypervisor, None);
        fixture.write("sys/hypervisor/type", "xen\n");
        assert_eq!(host(&fixture).hypervisor.as_deref(), Some("xen (Amazon EC2)"));
    }

    #[test]
    fn the_kernel_configuration_says_whether_task_clocks_include_steal() {
        let fixture = guest();
        let config = |text: &str| {
            let release = Sysroot::at(fixture.path()).text("proc/sys/kernel/osrelease").unwrap();
            fixture.write(&format!("boot/config-{release}"), text);
            host(&fixture).steal_in_task_clocks
        };
        assert_eq!(config("nothing"), None);
        assert_eq!(config("CONFIG_SMP=y\n# CONFIG_PARAVIRT_TIME_ACCOUNTING is not set\n"), Some(true));
        assert_eq!(config("CONFIG_SMP=y\nCONFIG_PARAVIRT_TIME_ACCOUNTING=y\n"), Some(false));
        fixture.write("proc/cmdline", "quiet no-steal-acc");
        assert_eq!(config("CONFIG_PARAVIRT_TIME_ACCOUNTING=y\n"), Some(true));
    }

    #[test]
    fn an_empty_root_gives_words_not_guesses() {
        let host = host(&Fixture::new());
        assert_eq!((host.kernel.as_str(), host.cpus, host.hypervisor), ("unknown", 0, None));
    }

    #[test]
    fn this_machine_can_be_read() {
        let host = read(Path::new("/"), 1e9, "test");
        assert!(host.cpus > 0 && host.memory > Bytes(0), "{host:?}");
    }
}
