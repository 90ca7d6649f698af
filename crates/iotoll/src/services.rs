//! `--service` of `run` and `cost`: servers from flags, and the texts that refer to them. `compare.rs` handles those of experiments.

use crate::failure::BadInput;
use lab::guardian::Guardian;
use lab::service::{Addresses, ServiceSettings};
use model::plan::service::{Names, Service, ServicePlan, resolve};

/// Services of a command line, with their reserved addresses.
pub struct Services {
    services: Vec<Service>,
    addresses: Addresses,
}

impl Services {
    /// Reserves their addresses, without starting anything.
    pub fn of(plans: &[ServicePlan]) -> anyhow::Result<Self> {
        let addresses = addresses(plans)?;
        let services = resolve(plans, &[], &|name| addresses.of(name));
        let services = services.map_err(|why| BadInput(format!("--service: {why}")))?;
        Ok(Self { services, addresses })
    }

    /// Replaces references to services in the words of a command.
    pub fn fill_in(&self, texts: &[String]) -> anyhow::Result<Vec<String>> {
        Ok(self.names().fill_in_all(texts).map_err(BadInput)?)
    }

    /// Replaces references to services in a text.
    pub fn fill_in_one(&self, text: &str) -> anyhow::Result<String> {
        Ok(self.names().fill_in(text).map_err(BadInput)?)
    }

    /// Replaces references to services in a shell command, if there is one.
    pub fn fill_in_shell(&self, command: Option<&String>) -> anyhow::Result<Option<String>> {
        Ok(self.names().fill_in_shell(command).map_err(BadInput)?)
    }

    /// The settings that start them.
    pub fn settings(self, guardian: &Guardian) -> ServiceSettings {
        settings(self.services, self.addresses, guardian)
    }

    fn names(&self) -> Names<'_> {
        Names { services: &self.services, swept: &[], arm: None }
    }
}

/// Reserves an address for each service.
pub fn addresses(plans: &[ServicePlan]) -> anyhow::Result<Addresses> {
    Ok(Addresses::choose(plans.iter().map(|plan| plan.name.as_str()))?)
}

/// The settings that start services.
pub fn settings(services: Vec<Service>, addresses: Addresses, guardian: &Guardian) -> ServiceSettings {
    // Not the path: another program may replace the file before then.
    ServiceSettings { services, addresses, guardian: guardian.clone(), program: "/proc/self/exe".into() }
}
