//! The guardian process: receives orders on standard input, and undoes the remaining entries at end of file.

use super::undo::Undo;
use super::{ledger, path_text};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

/// Name of the process. Not iotoll's, so that `killall iotoll` spares it.
pub(super) const NAME: &str = "undo-guardian";

/// What iotoll sends, one line of JSON each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Order {
    /// Adds this entry, or replaces the one with this number.
    Add(u64, Undo),
    /// Withdraws the entry: the change was undone, or it stays.
    Drop(u64),
    /// The ledger, to be removed when everything is undone.
    Ledger(#[serde(with = "path_text")] PathBuf),
    /// Nothing is left.
    End,
}

/// Takes orders from `orders` until end of file, then undoes the remaining entries. Calls `ready` when signals to
/// iotoll no longer reach this process; the caller has set up its signal handlers.
///
/// # Errors
/// When a user started it.
pub fn serve(orders: impl Read, ready: impl FnOnce() -> std::io::Result<()>) -> Result<()> {
    let foreign = |error: std::io::Error| {
        Error::Refused(format!("this is an internal command that iotoll starts itself: {error}"))
    };
    // The name is optional.
    let _ = rustix::thread::set_name(c"undo-guardian");
    // Detach from the terminal's signals and from signals to the process group.
    rustix::process::setsid().map_err(|error| foreign(error.into()))?;
    // All paths in orders are absolute; do not keep a file system busy.
    let _ = rustix::process::chdir("/");
    ready().map_err(foreign)?;
    let mut held = Entries::default();
    held.read(BufReader::new(orders));
    held.undo();
    Ok(())
}

/// What is to be undone.
#[derive(Debug, Default)]
struct Entries {
    entries: BTreeMap<u64, Undo>,
    ledger: Option<ledger::Watched>,
}

impl Entries {
    /// Follows orders to end of file. An incomplete order was not handed over, so its change was not made.
    fn read(&mut self, mut orders: impl BufRead) {
        let mut line = Vec::new();
        loop {
            line.clear();
            match orders.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            match serde_json::from_slice(&line) {
                Ok(Order::Add(number, undo)) => _ = self.entries.insert(number, undo),
                Ok(Order::Drop(number)) => _ = self.entries.remove(&number),
                Ok(Order::Ledger(path)) => self.ledger = ledger::Watched::open(path),
                Ok(Order::End) => {
                    // iotoll removes its ledger itself.
                    (self.entries, self.ledger) = (BTreeMap::new(), None);
                    return;
                }
                Err(_) => {}
            }
        }
    }

    /// Undoes the remaining entries: processes first, then the newest first. The ledger stays if something could not be
    /// undone.
    fn undo(self) {
        let (first, rest): (Vec<_>, Vec<_>) = self.entries.into_values().rev().partition(Undo::is_first);
        let outcomes: Vec<_> = first.into_iter().chain(rest).map(|undo| undo.perform()).collect();
        if let Some(ledger) = self.ledger
            && outcomes.iter().all(std::result::Result::is_ok)
        {
            ledger.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn line(order: &Order) -> String {
        serde_json::to_string(order).unwrap() + "\n"
    }

    #[test]
    fn complete_orders_are_undone_newest_first_and_incomplete_ones_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let run = |word: &str| Undo::Run {
            command: format!("echo {word} >> log"),
            directory: directory.path().to_owned(),
            longest_seconds: 60.0,
        };
        let orders = [
            line(&Order::Add(0, run("zero"))),
            line(&Order::Add(1, run("one"))),
            "not JSON\n".to_owned(),
            line(&Order::Add(2, run("two"))),
            line(&Order::Add(0, run("zero-again"))),
            line(&Order::Drop(1)),
            line(&Order::Add(3, run("three"))).trim_end().split_at(30).0.to_owned(),
        ];
        let mut held = Entries::default();
        held.read(orders.concat().as_bytes());
        held.undo();
        assert_eq!(fs::read_to_string(directory.path().join("log")).unwrap(), "two\nzero-again\n");
        let mut held = Entries::default();
        held.read((orders.concat() + "\n" + &line(&Order::End)).as_bytes());
        assert!(held.entries.is_empty());
    }
}
