//! What every verb that measures on this machine shares: shell commands around it, and probes. `endings` has what a signal leaves, `services`
//! the servers.

use super::iotoll::{Folder, at_once, items, number, whole};

/// A short measurement of each verb, and how often it prepares; `compare` once for each of its two arms in each round.
const SHORT: [(&str, &str, usize); 5] = [
    ("run --background 200ms", "jobs.fio", 2),
    ("cost --background 200ms --repeat 3", "-- true", 3),
    ("compare --meters thread --budget 1s --slices off", "--aa -- true", 0),
    ("ftq --duration 300ms", "--cpu", 1),
    ("blast --duration 400ms --rounds 2", "", 2),
];

fn folder() -> Folder {
    let folder = Folder::new();
    let job = "ioengine=null\nsize=1m\n";
    folder.write("jobs.fio", format!("[a]\n{job}[b]\nstonewall\n{job}"));
    folder
}

#[test]
fn shell_commands_run_around_every_verb() {
    at_once(SHORT, |(verb, rest, prepares)| {
        let folder = folder();
        let around = ["setup", "prepare", "cleanup"].map(|what| format!("--{what} 'echo {what} >>log'")).join(" ");
        let ended = folder.iotoll(&format!("{verb} --no-save --quiet --format json {around} {rest}")).run();
        let found = ended.found();
        let expected = match prepares {
            0 => 2 * whole(&found["rounds"]) as usize,
            prepares => prepares,
        };
        assert_eq!(folder.text("log"), format!("setup\n{}cleanup\n", "prepare\n".repeat(expected)), "{verb}");
        folder.assert_no_processes();
    });
}

/// A setup or a prepare that fails ends the measurement, with the reason.
#[test]
fn a_shell_command_that_fails_is_named() {
    at_once(
        SHORT.into_iter().flat_map(|short| ["setup", "prepare"].map(|what| (short, what))),
        |((verb, rest, _), what)| {
            let folder = folder();
            let around = format!("--cleanup 'touch cleaned' --{what} 'echo no disk >&2; exit 3'");
            folder.iotoll(&format!("{verb} --no-save --quiet {around} {rest}")).run().refused(1, &[what, "no disk"]);
            assert!(folder.exists("cleaned"), "{verb} --{what}");
        },
    );
}

/// A gauge that the candidate's setup changes, and a counter of seconds, of jobs and of commands.
#[test]
fn a_comparison_reads_probes_in_each_arm() {
    let (jobs, commands) = ("--slice 200ms --ioengine=null --size=1m", "--slices off -- sleep 0.1");
    at_once([jobs, commands], |work| {
        let folder = folder();
        folder.write("level", "2\n");
        let probes = "--probe 'level=gauge:file:level:([0-9]+)' --probe 'ticks=counter:file:/proc/uptime:^([0-9.]+)'";
        let arms = "--candidate-setup 'echo 8 >level' --candidate-cleanup 'echo 2 >level'";
        let words = format!("compare --meters thread --budget 2s --out kept --quiet {probes} {arms} {work}");
        folder.iotoll(&words).run().done();
        let finding = folder.reported("kept");
        let probes = &finding["cells"][0]["probes"];
        let of = |name: &str| items(probes).find(|probe| probe["name"] == name).unwrap_or_else(|| panic!("{finding}"));
        let mean = &of("level")["mean"];
        let values = ["baseline", "candidate"].map(|arm| number(&mean[arm]["value"]));
        assert!(values == [2.0, 8.0] && (number(&mean["change"]["value"]) - 3.0).abs() < 1e-9, "{work}: {mean}");
        // A second has a second.
        let ticks = of("ticks");
        assert!((0.5..2.0).contains(&number(&ticks["per_second"]["candidate"]["value"])), "{work}: {ticks}");
        assert_eq!(ticks["per_io"].is_null(), work == commands, "{work}: {ticks}");
        for format in ["table", "csv", "markdown", "html", "mail"] {
            let shown = folder.iotoll(&format!("report kept --full --format {format}")).run().done();
            assert!(shown.stdout.contains("ticks"), "{format}: {}", shown.stdout);
        }
    });
}
