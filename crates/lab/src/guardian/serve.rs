//! The inside of the guardian process: orders come in by its standard input; when that ends, what is left is undone.

use super::undo::Undo;
use super::{ledger, path_text};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

/// The process's name, which is not iotoll's: whoever kills all that is called so leaves it alone.
pub(super) const NAME: &str = "undo-guardian";

/// What iotoll tells it, a line of JSON each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Order {
    /// Holds this entry, in place of the one with this number if there is one.
    Add(u64, Undo),
    /// The entry was undone, or what it would undo stays.
    Drop(u64),
    /// The ledger, which goes when all is undone.
    Ledger(#[serde(with = "path_text")] PathBuf),
    /// There is nothing left.
    End,
}

/// Takes orders from `orders` until they end, then does what is left. `ready` is called when nothing that ends iotoll ends this process
/// any more; the caller has seen to signals.
///
/// # Errors
/// When a person called it.
pub fn serve(orders: impl Read, ready: impl FnOnce() -> std::io::Result<()>) -> Result<()> {
    let foreign = |error: std::io::Error| {
        Error::Refused(format!("this is iotoll's own guardian, which it starts for itself, not for people: {error}"))
    };
    // A name that cannot be had is no reason not to guard.
    let _ = rustix::thread::set_name(c"undo-guardian");
    // Out of reach of the terminal's signals and of a kill of the process group.
    rustix::process::setsid().map_err(|error| foreign(error.into()))?;
    // All that it is told is absolute; no file system is kept busy.
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
    /// Follows orders to their end. What was cut off was not handed over, so it was not done either.
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

    /// Undoes what is left: processes first, then the newest first. The ledger stays if something could not be undone.
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
    fn what_is_left_at_the_end_is_undone_the_newest_first_and_what_was_cut_off_is_not() {
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
