//! What resolving a draft depends on besides its text.

use crate::plan::Settings;
use crate::plan::service::Address;

/// What resolving depends on besides the draft.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The environment, the files that job files include, and what jobs may do.
    pub settings: Settings<'a>,
    /// The address that was chosen for a service, by name.
    pub address: &'a dyn Fn(&str) -> Address,
}

/// No environment, no services, and the safe choices.
impl Default for Surroundings<'_> {
    fn default() -> Self {
        Self { settings: Settings::default(), address: &|_| Address::default() }
    }
}
