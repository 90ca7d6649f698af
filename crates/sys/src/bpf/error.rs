//! Why bpf(2) fails, in words, and what helps.

use std::{fmt, fs, io};

/// A failure of bpf(2), in words.
#[derive(Debug)]
pub struct Error {
    text: String,
    is_refusal: bool,
}

impl Error {
    /// A failure in these words.
    pub fn because(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_refusal: false }
    }

    /// The kernel does not know what was asked for.
    pub fn unsupported(attempt: &str) -> Self {
        let text = format!("the kernel does not support {attempt}: Linux 5.12 or newer is needed");
        Self { text, is_refusal: true }
    }

    /// There is not enough memory.
    pub(super) fn no_memory(attempt: &str) -> Self {
        Self::because(format!("no memory for {attempt}: raise the memory limit of this control group"))
    }

    /// The meaning of an error of bpf(2).
    pub(super) fn new(attempt: &str, error: io::Error) -> Self {
        let refused = |text| Self { text, is_refusal: true };
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                refused(format!("the kernel refuses {attempt}: {}", Process::now().why_refused()))
            }
            Some(libc::ENOSYS) => refused("the kernel was built without bpf(2) (CONFIG_BPF_SYSCALL)".to_owned()),
            Some(libc::EINVAL | libc::EOPNOTSUPP) => Self::unsupported(attempt),
            Some(libc::ENOMEM) => Self::no_memory(attempt),
            _ => Self::because(format!("{attempt} failed: {error}")),
        }
    }

    /// Whether this kernel refuses or lacks what was asked for, whatever the program.
    pub fn is_refusal(&self) -> bool {
        self.is_refusal
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// What the kernel says about the rights of this process.
struct Process {
    /// `/proc/self/status`.
    status: String,
    /// `/proc/self/uid_map`.
    users: String,
    /// `/sys/kernel/security/lockdown`.
    lockdown: String,
}

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

impl Process {
    fn now() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let (status, users) = (read("/proc/self/status"), read("/proc/self/uid_map"));
        Self { status, users, lockdown: read("/sys/kernel/security/lockdown") }
    }

    fn status(&self, key: &str) -> Option<&str> {
        self.status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(str::trim)
    }

    fn why_refused(&self) -> String {
        let effective = self.status("CapEff").and_then(|bits| u64::from_str_radix(bits, 16).ok());
        let has = |capability: u32| effective.is_some_and(|bits| bits >> capability & 1 == 1);
        let enough = has(CAP_SYS_ADMIN) || (has(CAP_BPF) && has(CAP_PERFMON));
        if !enough {
            return "this needs root or CAP_BPF and CAP_PERFMON".to_owned();
        }
        // The map of the initial namespace has all users.
        let all_users = self.users.split_whitespace().nth(2).is_none_or(|count| count == "4294967295");
        if !all_users {
            return "this process is root only inside a user namespace; run it outside (in a container: --privileged, \
                    without user namespaces)"
                .to_owned();
        }
        const FILTERED: &str = "2";
        if self.status("Seccomp") == Some(FILTERED) {
            return "a seccomp filter is installed; the seccomp profile of the container must allow bpf".to_owned();
        }
        if !self.lockdown.is_empty() && !self.lockdown.contains("[none]") {
            return format!(
                "the kernel is locked down ({}); boot without lockdown=, or without Secure Boot",
                self.lockdown.trim()
            );
        }
        "a security module forbids it (SELinux, AppArmor, BPF LSM)".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(capabilities: u64, seccomp: u8, users: &str, lockdown: &str) -> String {
        let status = format!("Name:\tx\nCapEff:\t{capabilities:016x}\nSeccomp:\t{seccomp}\n");
        Process { status, users: users.to_owned(), lockdown: lockdown.to_owned() }.why_refused()
    }

    const ALL: &str = "         0          0 4294967295\n";

    #[test]
    fn a_refusal_says_what_is_missing() {
        let root = (1 << 41) - 1;
        assert!(reason(0, 0, ALL, "").contains("root or CAP_BPF and CAP_PERFMON"));
        assert!(reason(1 << CAP_BPF, 0, ALL, "").contains("CAP_PERFMON"));
        assert!(reason(1 << CAP_BPF | 1 << CAP_PERFMON, 2, ALL, "").contains("seccomp"));
        assert!(reason(root, 2, ALL, "").contains("seccomp"));
        assert!(reason(root, 0, "0 100000 65536\n", "").contains("user namespace"));
        assert!(reason(root, 0, ALL, "none [integrity] confidentiality\n").contains("locked down"));
        assert!(reason(root, 0, ALL, "[none] integrity confidentiality\n").contains("security module"));
    }

    #[test]
    fn kinds_of_errors_are_told_apart() {
        let of = |errno| Error::new("making a map", io::Error::from_raw_os_error(errno));
        assert!(of(libc::EPERM).is_refusal() && !of(libc::EIO).is_refusal());
        assert!(of(libc::EINVAL).to_string().contains("Linux 5.12"));
        assert!(of(libc::ENOSYS).to_string().contains("CONFIG_BPF_SYSCALL"));
        assert!(of(libc::ENOMEM).to_string().contains("making a map"));
        assert!(of(libc::EIO).to_string().contains("Input/output error"));
    }
}
