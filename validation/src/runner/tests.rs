//! An experiment in a string, and the plans of all files.

use super::*;

const FILE: &str = r#"
shows = "a test"
seconds = 1
rounds = 2
[set]
floor = 3
[[part]]
axes = [["size", 1, 2], ["kind", { name = "one", bound = 5 }, { name = "two" }]]
tables = [[["size", "{size}"], ["net", "mean", "load.x - null.x - floor", 1]]]
[part.arm.load]
run = "load {size} {2 * size} {kind} {print $1} {server.port}"
values = { x = "/x" }
[part.arm.null]
run = "null"
values = { x = "/{kind}" }
most_rounds = 1
[[part.claim]]
says = "{size}"
of = "load.x"
at_most = "{bound} - 1"
only = "bound"
per = "{size}"
[[part.claim]]
says = "half"
of = "load.x - null.x"
by = "mean"
at_least = 0
share = 0.5
"#;

fn found(cells: &[Cell]) -> Vec<Vec<Found>> {
    let of = |cell: &Cell, value: f64| Some(cell.paths.iter().map(|path| (path.clone(), value)).collect());
    let rounds = |cell: &Cell| match cell.run.starts_with("load 1") {
        _ if cell.run == "null" => vec![of(cell, 1.0), None],
        true => vec![of(cell, 4.0), of(cell, 4.0)],
        false => vec![of(cell, 0.5), of(cell, 6.0)],
    };
    cells.iter().map(rounds).collect()
}

#[test]
fn equal_commands_are_measured_once_and_claims_are_judged() {
    let experiment: Experiment = toml::from_str(FILE).unwrap();
    let part = &experiment.part[0];
    let names = Names::from([("floor".to_owned(), "3".to_owned())]);
    let (rows, cells) = part.plan(&names).unwrap();
    let runs: Vec<&str> = cells.iter().map(|cell| cell.run.as_str()).collect();
    assert_eq!((rows.len(), cells.len()), (4, 5), "{runs:?}");
    assert_eq!(runs[0], "load 1 2 one {print $1} {server.port}");
    let found = found(&cells);
    let line = |row: &Row| part.tables[0].iter().map(|column| column.cell(row, &found).unwrap()).collect::<Vec<_>>();
    assert_eq!((line(&rows[0]), line(&rows[2])), (vec!["1".into(), "0.0".into()], vec!["2".into(), "-3.5".into()]));
    assert!(rows[0].values("load.y", &found).is_err() && rows[0].values("other.x", &found).is_err());
    let mut evidence = Evidence::default();
    part.claim.iter().for_each(|claim| claim.judge(&rows, &found, &mut evidence).unwrap());
    let lines: Vec<String> = evidence.body().lines().map(str::to_owned).collect();
    assert_eq!(lines[0], "- shown: 1: 2 of 2; worst 4.00, at most 4.00");
    assert_eq!(lines[1], "- NOT SHOWN: 2: 1 of 2; worst 6.00, at most 4.00");
    assert_eq!(lines[2], "- shown: half: 2 of 4 (at least 2 must); worst -0.50, at least 0.00");
}

#[test]
fn every_experiment_can_be_planned_and_its_formulas_evaluated() {
    let names = Experiment::names();
    assert!(!names.is_empty());
    for name in names {
        let experiment = Experiment::load(&name).unwrap_or_else(|error| panic!("{error:#}"));
        let options = crate::bench::Options { seconds: 1.0, rounds: 1, seed: 1, ..Default::default() };
        let bench = Bench::without_iotoll(&name, options).unwrap();
        let mut names = experiment.names_of(&bench).unwrap();
        names.extend(experiment.serve.keys().map(|server| (server.clone(), "127.0.0.1:1".to_owned())));
        for part in &experiment.part {
            let (rows, cells) = part.plan(&names).unwrap();
            let of = |cell: &Cell| {
                let read = readers::values_of(&cell.read);
                let paths = cell.paths.iter().cloned().chain(read).chain(["wall_seconds".to_owned()]);
                vec![Some(paths.map(|path| (path, 1.0)).collect())]
            };
            let found: Vec<Vec<Found>> = cells.iter().map(of).collect();
            for row in &rows {
                let cells = part.tables.iter().flatten().map(|column| column.cell(row, &found));
                cells.collect::<anyhow::Result<Vec<_>>>().unwrap_or_else(|error| panic!("{name}: {error:#}"));
            }
            for claim in &part.claim {
                let judged = claim.judge(&rows, &found, &mut Evidence::default());
                judged.unwrap_or_else(|error| panic!("{name}: {error:#}"));
            }
        }
    }
}
