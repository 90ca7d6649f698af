//! `--service`: servers from flags, and the texts that refer to them. `compare.rs` handles those of experiments, whose arms may have services of their own.

use crate::arguments::{AroundArguments, ServiceArguments};
use crate::failure::BadInput;
use lab::guardian::Guardian;
use lab::service::{Addresses, ServiceSettings};
use model::experiment::Around;
use model::plan::service::{Names, Service, ServicePlan, resolve};

/// Services of a command line, with their reserved addresses.
pub struct Services {
    services: Vec<Service>,
    addresses: Addresses,
}

impl Services {
    /// Reserves their addresses, without starting anything.
    pub fn of(arguments: &ServiceArguments) -> anyhow::Result<Self> {
        let plans = &arguments.service;
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

    /// The shell commands around a measurement, with references to services replaced.
    pub fn around(&self, arguments: &AroundArguments) -> anyhow::Result<Around> {
        let shell = |command: Option<String>| self.names().fill_in_shell(command.as_ref()).map_err(BadInput);
        let Around { setup, prepare, cleanup } = arguments.around();
        Ok(Around { setup: shell(setup)?, prepare: shell(prepare)?, cleanup: shell(cleanup)? })
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
