//! A system setting that is applied while an arm runs: `sysctl:NAME=VALUE` or `file:/sys/…=VALUE`.

use crate::plan::value::Wrong;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// A kernel file and the value to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Setting {
    /// The name as written: `sysctl:net.ipv4.tcp_autocorking`, `file:/sys/…`.
    pub name: String,
    /// The path of the file.
    pub path: PathBuf,
    /// The value to write.
    pub value: String,
}

/// Longest value, in bytes: the kernel takes a setting in one page.
const LONGEST: usize = 4096;

impl Setting {
    /// Parses `sysctl:NAME=VALUE` or `file:PATH=VALUE`.
    ///
    /// # Errors
    /// If it is neither.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        let expected = || Wrong::new(format!("'{text}': expected sysctl:NAME=VALUE or file:/sys/…=VALUE"));
        let (name, value) = text.split_once('=').ok_or_else(expected)?;
        let path = match name.split_once(':') {
            Some(("sysctl", key)) if is_key(key) => Path::new("/proc/sys").join(key.replace('.', "/")),
            Some(("file", path)) if path.starts_with('/') => PathBuf::from(path),
            _ => return Err(expected()),
        };
        if value.is_empty() {
            return Err(Wrong::new(format!("'{text}': the value after = is missing")));
        }
        if value.len() > LONGEST {
            return Err(Wrong::new(format!(
                "{name}: the value has {} bytes, and a setting at most {LONGEST}",
                value.len()
            )));
        }
        Ok(Self { name: name.to_owned(), path, value: value.to_owned() })
    }
}

/// Accepts the names of sysctl: words separated by dots or slashes. `..` is refused because it would leave /proc/sys.
fn is_key(key: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    !key.is_empty() && key.chars().all(plain) && !key.starts_with(['/', '.']) && !key.contains("..")
}

impl fmt::Display for Setting {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}={}", self.name, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysctls_and_files() {
        let sysctl = Setting::parse("sysctl:vm.dirty_ratio=10").unwrap();
        assert_eq!((sysctl.path.as_path(), sysctl.value.as_str()), (Path::new("/proc/sys/vm/dirty_ratio"), "10"));
        let file = Setting::parse("file:/sys/block/vda/queue/scheduler=none").unwrap();
        assert_eq!(file.path, Path::new("/sys/block/vda/queue/scheduler"));
        assert_eq!(file.to_string(), "file:/sys/block/vda/queue/scheduler=none");
    }

    #[test]
    fn invalid_settings_are_refused() {
        for wrong in ["", "vm.swappiness=1", "sysctl:../etc/passwd=1", "sysctl:=1", "file:relative=1", "sysctl:a"] {
            assert!(Setting::parse(wrong).unwrap_err().to_string().contains("expected sysctl:"), "{wrong}");
        }
        assert!(Setting::parse("sysctl:a.b=").unwrap_err().to_string().contains("is missing"));
    }
}
