//! Services: servers that a measurement starts, fills, pins and ends.
//!
//! [`ServiceSettings`] enter; their folders and `Services` live as long as the measurement. Each service has its own process group,
//! so that Ctrl-C does not reach it, and a mark, so that the guardian kills it if iotoll is killed. A thread per service waits for its
//! exit: a service that exits by itself ends the measurement.

mod output;
mod running;

use crate::error::{Error, Result};
use crate::guardian::{Guardian, OwnFolder};
use crate::interruption::{Interruption, WaitLimit};
use crate::placing;
use model::placement::Place;
use model::plan::service::{Address, Service};
use running::Running;
use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A client may see its connection close before the kernel reports that the server exited.
const DEATH_IS_KNOWN: Duration = Duration::from_millis(200);
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// The services of a measurement, and what starting them needs.
#[derive(Clone, Debug, Default)]
pub struct ServiceSettings {
    pub services: Vec<Service>,
    /// Their reserved addresses.
    pub addresses: Addresses,
    /// Kills them if iotoll is killed.
    pub guardian: Guardian,
    /// This program: `iotoll` as the first word of a command.
    pub program: PathBuf,
}

/// Makes a folder for each service, accessible to this user only, in one that is removed with its contents on drop.
///
/// # Errors
/// When one cannot be made.
pub(crate) fn make_folders(settings: &ServiceSettings) -> Result<Option<OwnFolder>> {
    let folder = settings.addresses.folder.as_ref().filter(|_| !settings.services.is_empty());
    let Some(folder) = folder else { return Ok(None) };
    let folders = OwnFolder::make_at(&settings.guardian, folder.clone())?;
    for service in &settings.services {
        let path = PathBuf::from(&service.directory);
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| Error::file(&path, "making the folder of a service", error))?;
    }
    Ok(Some(folders))
}

/// Running services, ended on drop.
#[derive(Debug, Default)]
pub struct Services {
    running: Vec<Running>,
    /// With the CPUs that they are pinned to.
    pub started: Vec<Service>,
    /// If it is repeated, they get no time to end.
    interruption: Arc<Interruption>,
}

impl Services {
    /// Starts all of them, waits until each is ready, and fills each.
    ///
    /// # Errors
    /// When a service cannot be started or filled, is not ready in time, or exits; none runs then. Refused, when it cannot be pinned.
    pub fn start(
        settings: &ServiceSettings,
        place: Option<&Place>,
        fill_limit: &WaitLimit,
        interruption: &Arc<Interruption>,
        observe: &mut dyn FnMut(&str),
    ) -> Result<Self> {
        let mut services = Self { running: Vec::new(), started: Vec::new(), interruption: interruption.clone() };
        let cpus = placing::of_services(place, &settings.services)?;
        let settled = settings.services.iter().zip(cpus).map(|(service, cpus)| Service { cpus, ..service.clone() });
        for service in settled {
            services.running.push(Running::start(&service, settings)?);
            services.started.push(service);
        }
        for (number, service) in services.started.iter().enumerate() {
            observe(&service.name);
            services.wait_until_ready(number, service, interruption)?;
        }
        for (number, service) in services.started.iter().enumerate() {
            let Some(running) = services.running.get(number) else { continue };
            observe(&service.name);
            running
                .fill(service, settings, fill_limit)
                .map_err(|error| services.death(POLL_INTERVAL).unwrap_or(error))?;
        }
        for running in &mut services.running {
            running.watch(interruption)?;
        }
        Ok(services)
    }

    /// The first process of each.
    pub fn processes(&self) -> impl Iterator<Item = u32> {
        self.running.iter().map(Running::process)
    }

    fn wait_until_ready(&self, number: usize, service: &Service, interruption: &Interruption) -> Result<()> {
        let Some(running) = self.running.get(number) else { return Ok(()) };
        let begun = Instant::now();
        while !running.is_ready(service) {
            if let Some(death) = self.running.iter().find_map(Running::death) {
                return Err(death);
            }
            if interruption.is_requested() {
                return Err(Error::Interrupted(format!("while starting service '{}'", service.name)));
            }
            if begun.elapsed().as_secs_f64() > service.timeout_seconds {
                return Err(running.not_ready(service));
            }
            // To list the sockets may take the kernel milliseconds, which the service needs.
            std::thread::sleep(POLL_INTERVAL.max(begun.elapsed() / 4));
        }
        Ok(())
    }

    /// Ends them, after a measurement that went well or did not.
    ///
    /// # Errors
    /// When one of them exited before, or cannot be ended.
    pub fn conclude(&mut self, well: bool) -> Result<()> {
        let death = self.death(if well { Duration::ZERO } else { DEATH_IS_KNOWN });
        let ended = end(&mut self.running, &self.interruption);
        death.map_or(ended, Err)
    }

    /// The error of a service that has exited by itself, or does so within this time.
    fn death(&self, soon: Duration) -> Option<Error> {
        let begun = Instant::now();
        loop {
            let death = self.running.iter().find_map(Running::death);
            if death.is_some() || self.running.is_empty() || begun.elapsed() >= soon {
                return death;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        // The earlier error is the one to report.
        let _ = end(&mut self.running, &self.interruption);
    }
}

/// Ends all of them at the same time, by SIGTERM first, then by SIGKILL, and empties the list. A user who insists gets SIGKILL at once.
fn end(running: &mut Vec<Running>, interruption: &Interruption) -> Result<()> {
    let mut ending = std::mem::take(running);
    ending.iter().for_each(Running::ask_to_end);
    let begun = Instant::now();
    while ending.iter().any(Running::lives) && begun.elapsed() < GRACE && !interruption.is_repeated() {
        std::thread::sleep(POLL_INTERVAL);
    }
    let mut outcome = Ok(());
    for service in &mut ending {
        outcome = outcome.and(service.clear_away());
    }
    outcome
}

/// Reserved addresses. Each port stays bound until its service starts, so that no other process gets it.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// The parent of all folders.
    folder: Option<PathBuf>,
    chosen: BTreeMap<String, Address>,
    bound: Arc<Mutex<Vec<TcpListener>>>,
}

impl Addresses {
    /// Reserves an address for each name.
    ///
    /// # Errors
    /// When no port is free, or the path of the temporary folder is not UTF-8.
    pub fn choose<'a>(names: impl Iterator<Item = &'a str>) -> Result<Self> {
        let mut addresses = Self::default();
        let mut bound = Vec::new();
        for name in names {
            let folder = match &addresses.folder {
                Some(folder) => folder.clone(),
                None => OwnFolder::path_in(&std::env::temp_dir(), "iotoll-services-")?,
            };
            let directory = folder.join(name);
            let directory = directory.to_str().ok_or_else(|| {
                let why = format!("{}: not UTF-8 text, which a record cannot hold; set TMPDIR", folder.display());
                Error::Refused(why)
            })?;
            let failed = |error| Error::instrument(format!("a free port for service '{name}'"), error);
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
            let port = listener.local_addr().map_err(failed)?.port();
            addresses.chosen.insert(name.to_owned(), Address { port, directory: directory.to_owned() });
            addresses.folder = Some(folder);
            bound.push(listener);
        }
        addresses.bound = Arc::new(Mutex::new(bound));
        Ok(addresses)
    }

    /// The address of a service.
    pub fn of(&self, name: &str) -> Address {
        self.chosen.get(name).cloned().unwrap_or_default()
    }

    /// Frees a port for its service.
    fn release(&self, port: u16) {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        bound.retain(|listener| listener.local_addr().map_or(0, |address| address.port()) != port);
    }
}

#[cfg(test)]
mod tests;
