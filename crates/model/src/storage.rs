//! What holds the files of a measurement: the file system and the device below it.

use serde::{Deserialize, Serialize};

/// A file system or a device that holds files of the measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// The files, directories or devices on it, as the measurement names them.
    pub files: Vec<String>,
    /// Type of the file system; `null` for a device that is used without one.
    pub file_system: Option<String>,
    /// Where the file system is mounted.
    pub mount_point: Option<String>,
    /// Its mount options.
    pub mount_options: Option<String>,
    /// What is mounted, as the kernel names it: a device, an export of a server, a word.
    pub source: Option<String>,
    /// Name of the block device; `null` if there is none or it is not known.
    pub device: Option<String>,
    /// Model of the device; `null` if the kernel does not say it.
    pub model: Option<String>,
    /// The block layer's scheduler of the device; `null` if the kernel does not say it.
    pub scheduler: Option<String>,
}
