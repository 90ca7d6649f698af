//! What resolving a draft depends on besides its text.

use crate::plan::service::Address;
use crate::plan::{DeviceWrites, Settings, UnknownOptions};

/// What resolving depends on besides the draft.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The environment, for `${NAME}` in job files.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// The text of a file that a job file includes; `None` if there is no such file.
    pub included: &'a dyn Fn(&str) -> Option<Result<String, String>>,
    /// The address that was chosen for a service, by name.
    pub address: &'a dyn Fn(&str) -> Address,
    /// What to do with unknown job options.
    pub unknown_options: UnknownOptions,
    /// Whether jobs may write to block devices.
    pub device_writes: DeviceWrites,
}

/// No environment, no services, and the safe choices.
impl Default for Surroundings<'_> {
    fn default() -> Self {
        let Settings { environment, included, unknown_options, device_writes, .. } = Settings::default();
        Self { environment, included, address: &|_| Address::default(), unknown_options, device_writes }
    }
}
