//! Validates a request before anything is executed. Pure.

use crate::backends::Outcome;
use crate::wire::{Command, Request, WireError, command_flag};

/// What a connection is allowed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether replies to reads are structured.
    pub structured: bool,
    /// Whether block status may be requested.
    pub base_allocation: bool,
    /// Whether checksums follow payloads.
    pub checksums: bool,
    /// Maximum payload in bytes; longer ones are refused.
    pub max_payload: u32,
}

/// Whether an export of `size` bytes can execute this request for a client with these rights; if not, the error to
/// reply.
pub(super) fn check(request: &Request, rights: &Rights, size: u64) -> Outcome {
    use command_flag::{DF, FAST_ZERO, FUA, NO_HOLE, REQ_ONE};
    let known = match request.command {
        Command::Read if rights.structured => DF,
        Command::WriteZeroes => NO_HOLE | FAST_ZERO,
        Command::BlockStatus => REQ_ONE,
        Command::Unknown(_) => return Err(WireError::EINVAL),
        _ => 0,
    };
    // FUA is allowed with every command and affects those that write.
    if request.flags & !(known | FUA) != 0 {
        return Err(WireError::EINVAL);
    }
    let writes = matches!(request.command, Command::Write | Command::Trim | Command::WriteZeroes);
    if writes && rights.read_only {
        return Err(WireError::EPERM);
    }
    if matches!(request.command, Command::Flush | Command::Disconnect) {
        return Ok(());
    }
    let end = request.offset.checked_add(u64::from(request.length));
    if end.is_none_or(|end| end > size) {
        // Trimming stores nothing, so it cannot run out of space.
        let stores = matches!(request.command, Command::Write | Command::WriteZeroes);
        return Err(if stores { WireError::ENOSPC } else { WireError::EINVAL });
    }
    let moves = matches!(request.command, Command::Read | Command::Write);
    let too_large = moves && request.length > rights.max_payload;
    let unasked = request.command == Command::BlockStatus && !rights.base_allocation;
    if request.length == 0 || too_large || unasked { Err(WireError::EINVAL) } else { Ok(()) }
}
