//! A server's exports: their names, what clients are told about them, and the one storage behind them.

use super::requests::{Requests, Rights};
use crate::backends::Backend;
use crate::handshake::server::{Agreed, ExportInfo};
use crate::handshake::transmission_flag as flag;
use crate::tuning::Tuning;
use crate::wire::MAX_PAYLOAD;

/// Whether clients may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Clients may read and write.
    ReadWrite,
    /// Writes fail with EPERM.
    ReadOnly,
}

/// All exports of a server.
#[derive(Clone, Debug)]
pub struct Exports {
    /// The descriptions that clients get.
    pub(super) infos: Vec<ExportInfo>,
    /// The storage of all exports.
    pub(super) backend: Backend,
    access: Access,
}

impl Exports {
    /// Exports one storage under each of `names`.
    pub fn new(names: Vec<String>, backend: Backend, access: Access) -> Self {
        let mut flags = flag::HAS_FLAGS | flag::SEND_FLUSH | flag::SEND_FUA | flag::SEND_DF | flag::SEND_CACHE;
        // All connections share one storage, so a flush on any of them covers the completed writes of all.
        flags |= flag::CAN_MULTI_CONN;
        flags |= match access {
            Access::ReadWrite => flag::SEND_TRIM | flag::SEND_WRITE_ZEROES | flag::SEND_FAST_ZERO,
            Access::ReadOnly => flag::READ_ONLY,
        };
        let description = match &backend {
            Backend::Memory(_) => "memory, lost when the server exits",
            Backend::File(_) => "a file",
            Backend::Null { .. } => "null: reads return zeros, writes are discarded",
        };
        let info = |name| ExportInfo {
            name,
            description: description.to_owned(),
            size: backend.size(),
            flags,
            preferred_block: 4096,
            max_payload: MAX_PAYLOAD,
        };
        Self { infos: names.into_iter().map(info).collect(), backend, access }
    }

    /// Sets the maximum payload: at least 4096, at most [`MAX_PAYLOAD`].
    pub fn with_max_payload(mut self, bytes: u32) -> Self {
        self.infos.iter_mut().for_each(|info| info.max_payload = bytes.clamp(info.preferred_block, MAX_PAYLOAD));
        self
    }

    /// The transmission phase of a client that negotiated an export.
    pub(super) fn requests(&self, agreed: &Agreed, tuning: Tuning) -> Option<Requests> {
        let max_payload = self.infos.get(agreed.export)?.max_payload;
        let rights = Rights {
            read_only: self.access == Access::ReadOnly,
            structured: agreed.structured,
            base_allocation: agreed.base_allocation,
            checksums: agreed.checksums,
            max_payload,
        };
        Some(Requests::new(self.backend.clone(), rights, tuning))
    }
}
