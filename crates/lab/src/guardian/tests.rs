//! Behaviour without a guardian. The integration tests cover the rest, because they have a program to start.

use super::*;
use std::fs;

#[test]
fn without_a_guardian_entries_are_accepted_and_ignored() {
    let absent = Guardian::default();
    absent.make_sure().unwrap();
    let held = absent.add(Undo::MayBeOn { command: "true".to_owned() }).unwrap();
    held.amend(Undo::MayBeOn { command: "false".to_owned() }).unwrap();
    drop(held);
    let mut command = Command::new("true");
    absent.processes().unwrap().mark(&mut command);
    assert_eq!(command.get_envs().count(), 0);
    assert_eq!(absent.ledger_trouble(), None);
}

#[test]
fn without_a_working_guardian_adding_fails_and_keeps_nothing() {
    let directory = tempfile::tempdir().unwrap();
    for program in [directory.path().join("missing"), "/bin/false".into(), "/bin/true".into()] {
        let guardian = Guardian::of(program.clone(), Vec::new());
        let error = OwnFolder::make(&guardian, directory.path(), "own-").unwrap_err().to_string();
        assert!(error.contains("guardian"), "{program:?}: {error}");
        assert!(guardian.0.unwrap().state().entries.is_empty());
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
