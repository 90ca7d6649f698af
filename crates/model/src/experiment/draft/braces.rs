//! Words in braces in a draft: references to services, and in commands the names of a sweep.

use super::{DraftError, Surroundings, wrong};
use crate::experiment::{ArmPlan, Around, Cell};
use crate::plan::service::{self, Names, Service, ServicePlan};

/// Resolves the services of an experiment.
pub(super) fn services(
    plans: &[ServicePlan],
    arms: &[ArmPlan],
    swept: &[String],
    surroundings: &Surroundings,
) -> Result<Vec<Service>, DraftError> {
    let owned = |plan: &&ServicePlan| plan.arm.as_ref().is_some_and(|owner| arms.iter().all(|arm| arm.name != *owner));
    if let Some(ServicePlan { name, arm: Some(owner), .. }) = plans.iter().find(owned) {
        return wrong(format!("service '{name}': there is no arm '{owner}'"));
    }
    service::resolve(plans, swept, surroundings.address).or_else(wrong)
}

/// Replaces references in the shell commands of an arm. Its options and command stay as written, because reports show them; the
/// cases contain the addresses.
pub(super) fn arm(arm: ArmPlan, names: &Names) -> Result<ArmPlan, DraftError> {
    let [setup, cleanup] =
        [&arm.setup, &arm.cleanup].map(|command| names.fill_in_shell(command.as_ref()).or_else(wrong));
    Ok(ArmPlan { setup: setup?, cleanup: cleanup?, ..arm })
}

pub(super) fn around(around: &Around, names: &Names) -> Result<Around, DraftError> {
    let filled = |command: &Option<String>| names.fill_in_shell(command.as_ref()).or_else(wrong);
    let Around { setup, prepare, cleanup } = around;
    Ok(Around { setup: filled(setup)?, prepare: filled(prepare)?, cleanup: filled(cleanup)? })
}

/// A command with `{name}` replaced by the values of a cell. Each name must be in it, or in the command that prepares it.
pub(super) fn cell(command: &[String], prepare: Option<&String>, cell: &Cell) -> Result<Vec<String>, DraftError> {
    for name in cell.values.keys() {
        let braced = format!("{{{name}}}");
        if !command.iter().chain(prepare).any(|word| word.contains(&braced)) {
            return wrong(format!(
                "{name} is swept, but the command does not contain {braced}; add it where the value belongs"
            ));
        }
    }
    if let Some(prepare) = prepare {
        // So that a value that cannot be quoted is refused before anything runs.
        cell.fill_in_shell(prepare).or_else(wrong)?;
    }
    cell.fill_in_all(command).or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::draft::Draft;
    use crate::experiment::{Work, file};
    use crate::plan::service::Address;

    fn read(text: &str) -> Result<crate::experiment::Experiment, String> {
        let address = |name: &str| Address { port: name.len() as u16 + 1000, directory: format!("/tmp/{name}") };
        let surroundings = Surroundings { address: &address, ..Surroundings::default() };
        let draft: Result<Draft, _> = file::parse("x.toml", text);
        draft.and_then(|draft| draft.resolve(&surroundings)).map_err(|error| error.to_string())
    }

    const JOB: &str = r#"
        job = "[a]\nioengine=nbd\nuri={one.uri}"
        setup = "touch {one.dir}/x"
        [[service]]
        name = "one"
        command = "iotoll serve --listen 127.0.0.1:{port}"
        cpus = "0,2-3"
        timeout = "3s"
        [[service]]
        name = "other"
        command = ["iotoll", "serve", "--unix", "{socket}"]
        [[arm]]
        name = "tcp"
        [[arm]]
        name = "unix"
        options = ["uri={other.uri}"]
        setup = "cat {other.dir}"
        cleanup = "rm {one.socket}"
    "#;

    #[test]
    fn jobs_options_and_shell_commands_refer_to_services() {
        let experiment = read(JOB).unwrap();
        let uri = |case: &crate::experiment::Case| case.work.phase().unwrap().jobs[0].path.uri.clone().unwrap();
        let uris: Vec<_> = experiment.cases.iter().map(uri).collect();
        assert_eq!(uris, ["nbd://127.0.0.1:1003", "nbd+unix:///?socket=/tmp/other/socket"]);
        assert_eq!(experiment.around.setup.as_deref(), Some("touch /tmp/one/x"));
        let [tcp, unix] = experiment.arms.as_slice() else { panic!("{:?}", experiment.arms) };
        assert_eq!(unix.options, ["uri={other.uri}"], "an arm is shown as it was written");
        assert_eq!(
            (unix.setup.as_deref(), unix.cleanup.as_deref(), tcp.setup.as_deref()),
            (Some("cat /tmp/other"), Some("rm /tmp/one/socket"), None)
        );
        let [one, other] = experiment.services.as_slice() else { panic!("{:?}", experiment.services) };
        assert_eq!((one.cpus.as_slice(), one.timeout_seconds), ([0, 2, 3].as_slice(), 3.0));
        assert_eq!(other.command, ["iotoll", "serve", "--unix", "/tmp/other/socket"]);
    }

    #[test]
    fn commands_have_values_of_services_and_of_the_sweep() {
        let text = r#"
            command = "fio --uri={s.uri} --iodepth={depth} --numjobs={s.port}"
            aa = true
            service = [{ name = "s", command = "nbdkit -f -p {port} memory 1g" }]
            arm = [{ name = "a" }]
            sweep = [{ name = "depth", values = ["4"] }]
        "#;
        let experiment = read(text).unwrap();
        let Work::Command(words) = &experiment.cases[1].work else { panic!("no command") };
        assert_eq!(words, &["fio", "--uri=nbd://127.0.0.1:1001", "--iodepth=4", "--numjobs=1001"]);
        let owned = text.replace("name = \"s\"", "name = \"s\", arm = \"a\"");
        assert!(read(&owned).is_ok(), "the arm against itself is one arm");
        let refusal = read(&text.replace("{s.uri}", "{t.uri}")).unwrap_err();
        assert_eq!(refusal, "x.toml: {t.uri}: no service is called 't'; there is s");
    }

    #[test]
    fn a_swept_value_may_be_in_prepare_alone() {
        let text = r#"
            command = "fio j.fio"
            prepare = "head -c {bytes} /dev/zero > data"
            aa = true
            arm = [{ name = "a" }]
            sweep = [{ name = "bytes", values = ["4", "8"] }]
        "#;
        let experiment = read(text).unwrap();
        let prepare = experiment.around.prepare.as_deref().unwrap();
        assert_eq!(experiment.cells[1].fill_in_shell(prepare).unwrap(), "head -c 8 /dev/zero > data");
        let refusal = read(&text.replace("{bytes}", "4")).unwrap_err();
        assert!(refusal.contains("the command does not contain {bytes}"), "{refusal}");
    }

    #[test]
    fn a_command_in_one_arm_needs_one_in_the_other() {
        let refusal = read("arm = [{ name = \"a\" }, { name = \"b\", command = [\"true\"] }]").unwrap_err();
        assert_eq!(refusal, "x.toml: arm 'a' has no command, but another arm has one; add command = … to the arm");
    }

    #[test]
    fn services_that_cannot_be_are_refused_with_the_file_s_name() {
        let says = |from: &str, to: &str| {
            let refusal = read(&JOB.replacen(from, to, 1)).unwrap_err();
            assert!(refusal.starts_with("x.toml") && !refusal.contains('\n'), "{refusal}");
            refusal
        };
        assert!(says("{port}", "{prot}").contains("service 'one': unknown {prot}"));
        assert!(says("[[service]]", "[[sevrice]]").contains("unknown field `sevrice`"));
        assert!(says("timeout = \"3s\"", "arm = \"ucp\"").contains("service 'one': there is no arm 'ucp'"));
        let owned = says("timeout = \"3s\"", "arm = \"tcp\"");
        assert!(owned.contains("'one' belongs to arm 'tcp', and arm 'unix' uses it"), "{owned}");
        assert!(says("0,2-3", "3-0").contains("service 'one': cpus = \"3-0\""));
        assert!(says("{one.uri}", "{one.url}").contains("unknown {one.url}"));
    }
}
