//! Addresses of services: a free port for each, and a folder.

use crate::error::{Error, Result};
use crate::guardian::OwnFolder;
use model::plan::service::Address;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Reserved addresses. Each port stays bound until its service starts, so that no other process gets it.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
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

    /// The parent of all folders.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Frees a port for its service.
    pub(super) fn release(&self, port: u16) {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        bound.retain(|listener| listener.local_addr().map_or(0, |address| address.port()) != port);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_has_its_own_port_reserved() {
        let addresses = Addresses::choose(["a", "b"].into_iter()).unwrap();
        let (a, b) = (addresses.of("a"), addresses.of("b"));
        assert_ne!(a.port, b.port);
        assert!(a.directory.ends_with("/a") && Path::new(&a.directory).parent() == Path::new(&b.directory).parent());
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, a.port)).is_err());
        addresses.release(a.port);
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, a.port)).is_ok());
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, b.port)).is_err());
        assert!(!Path::new(&a.directory).exists());
    }
}
