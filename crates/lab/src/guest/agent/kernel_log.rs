//! What the guest's kernel logged about a failure: an error number alone does not say which of many reasons it was.

use crate::error::Error;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

/// Longest record of /dev/kmsg.
const RECORD_BYTES: usize = 8 << 10;

/// The error with the kernel's last message about one of these names, if there is one.
pub(super) fn explained(error: Error, about: &[&str]) -> Error {
    match last_about(&records(), about) {
        Some(message) => Error::Failed(format!("{error}; the kernel says: {message}")),
        None => error,
    }
}

/// The records of the kernel's log, one read(2) each.
fn records() -> Vec<String> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().try_into().unwrap_or_default();
    let Ok(mut log) = OpenOptions::new().read(true).custom_flags(nonblocking).open("/dev/kmsg") else {
        return Vec::new();
    };
    let mut records = Vec::new();
    let mut buffer = vec![0; RECORD_BYTES];
    while let Ok(length) = log.read(&mut buffer)
        && length > 0
    {
        records.push(String::from_utf8_lossy(buffer.get(..length).unwrap_or_default()).into_owned());
    }
    records
}

/// The last message that begins with one of the names: `6,1234,5678,-;MESSAGE`, then lines of properties.
fn last_about(records: &[String], about: &[&str]) -> Option<String> {
    let messages = records.iter().rev().filter_map(|record| record.split_once(';')?.1.lines().next());
    let mut own = messages.filter(|message| about.iter().any(|name| message.starts_with(name)));
    own.next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_about_a_name_explains() {
        let records = [
            "6,1,2,-;libceph: bad option at 'x'\n SUBSYSTEM=ceph\n".to_owned(),
            "6,2,3,-;rbd: Unknown parameter 'y'\n".to_owned(),
            "6,3,4,-;eth0: up\n".to_owned(),
        ];
        assert_eq!(last_about(&records, &["libceph", "rbd"]).as_deref(), Some("rbd: Unknown parameter 'y'"));
        assert_eq!(last_about(&records, &["libceph"]).as_deref(), Some("libceph: bad option at 'x'"));
        assert_eq!(last_about(&records, &["nfs"]), None);
    }
}
