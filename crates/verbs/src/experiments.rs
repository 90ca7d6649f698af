//! Every experiment of the repository can be run.

use crate::{blast, guest};
use model::experiment::draft::Surroundings;
use model::experiment_kind::ExperimentKind;
use model::plan::Settings;
use model::{experiment, toml_file};

/// The experiment files of the repository: their paths, names and texts.
fn experiments() -> Vec<(String, String, String)> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut folders = vec![root.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                let name = path.strip_prefix(&root).unwrap().display().to_string();
                found.push((path.display().to_string(), name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found
}

#[test]
fn the_experiments_of_the_repository_can_be_run() {
    let mut found = [0; 3];
    for (name, file, text) in experiments() {
        assert!(toml_file::kind(&text).is_some(), "{name}");
        let kind = ExperimentKind::of(&name, &text).unwrap();
        let command = format!("# Run: iotoll {} experiments/{file}", kind.verb().join(" "));
        assert!(text.contains(&command), "{name}");
        match kind {
            ExperimentKind::Compare => {
                let draft = experiment::file::parse(&name, &text).unwrap();
                let experiment = draft.resolve(&Surroundings::default()).unwrap();
                assert!(experiment.arms.len() >= 2 && !experiment.title.is_empty(), "{name}");
                // With what is started and filled before it, it takes less than three minutes.
                assert!(experiment.rules.budget_seconds <= 165.0, "{name}");
            }
            ExperimentKind::Guest => {
                let plan =
                    guest::draft::Draft::parse(&name, &text).and_then(|draft| draft.resolve(&Settings::default()));
                let plan = plan.unwrap_or_else(|error| panic!("{error}"));
                assert!(plan.arms.len() >= 2 && plan.compared.is_some() && !plan.title.is_empty(), "{name}");
            }
            ExperimentKind::Blast => {
                let plan = blast::experiment::parse(&name, &text, blast::experiment::tests::plan()).unwrap();
                assert!(!plan.published.is_empty(), "{name}");
            }
        }
        found[kind as usize] += 1;
    }
    assert!(found.into_iter().zip([7, 5, 1]).all(|(found, least)| found >= least), "{found:?}");
}
