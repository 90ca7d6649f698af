//! Experiment files of guests: TOML, parsed into a [`Draft`].

use super::draft::{Draft, JobDraft, JobText};
use super::plan::{Published, REPLICATES};
use crate::experiment_kind::ExperimentKind;
use crate::toml_file;
use serde::Deserialize;

/// The contents of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "kind")]
    _kind: String,
    #[serde(default)]
    title: String,
    kernels: Vec<String>,
    #[serde(default)]
    parameters: Vec<String>,
    #[serde(default)]
    sysctls: Vec<String>,
    compare: Option<String>,
    replicates: Option<u32>,
    #[serde(default)]
    by_function: bool,
    #[serde(default)]
    chains: bool,
    margin: Option<String>,
    #[serde(default)]
    job: Vec<Job>,
    #[serde(default)]
    sweep: Vec<Sweep>,
    #[serde(default)]
    published: Vec<Published>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    name: String,
    stack: OneOrMore,
    options: Vec<String>,
    mount: Option<String>,
    /// Sweeps of this job alone, in place of the file's.
    sweep: Option<Vec<Sweep>>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a name, or a list of names")]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sweep {
    name: String,
    values: Vec<String>,
}

/// Whether a text is an experiment of guests: it says so.
pub fn is_experiment(text: &str) -> bool {
    toml_file::kind(text) == Some("guest")
}

/// Parses an experiment.
///
/// # Errors
/// One line, with the file's name and what is wrong.
pub fn parse(name: &str, text: &str) -> Result<Draft, String> {
    ExperimentKind::Guest.require(name, text)?;
    let file: File = toml_file::parse(name, text)?;
    let margin = match &file.margin {
        None => Draft::default().margin,
        Some(text) => {
            margin(text).ok_or_else(|| format!("{name}: margin = \"{text}\": write a percentage such as \"1%\""))?
        }
    };
    let jobs = file.job.into_iter().map(|job| JobDraft {
        name: job.name,
        stacks: match job.stack {
            OneOrMore::One(stack) => vec![stack],
            OneOrMore::More(stacks) => stacks,
        },
        text: JobText::Options(job.options),
        mount_options: job.mount,
        sweeps: job.sweep.map(axes),
    });
    Ok(Draft {
        title: file.title,
        kernels: file.kernels,
        parameters: file.parameters,
        jobs: jobs.collect(),
        sweeps: axes(file.sweep),
        sysctls: file.sysctls,
        compared: file.compare,
        replicates: file.replicates.unwrap_or(REPLICATES),
        functions: file.by_function,
        chains: file.chains,
        margin,
        published: file.published,
    })
}

fn axes(sweeps: Vec<Sweep>) -> Vec<(String, Vec<String>)> {
    sweeps.into_iter().map(|sweep| (sweep.name, sweep.values)).collect()
}

/// A fraction from a percentage: "1%", "0.5 %".
pub fn margin(text: &str) -> Option<f64> {
    let number: f64 = text.trim().strip_suffix('%')?.trim().parse().ok()?;
    (0.0..=100.0).contains(&number).then_some(number / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
        kind = "guest"
        title = "Writes"
        kernels = ["debian:6.1", "debian:6.12"]
        parameters = ["", "mitigations=auto"]
        sysctls = ["vm.swappiness=0"]
        compare = "kernel"
        replicates = 3
        by_function = true
        chains = true
        margin = "0.5 %"
        [[job]]
        name = "a"
        stack = "tmpfs"
        options = ["rw=randwrite", "bs=1k"]
        [[job]]
        name = "b"
        stack = ["nfs-tcp", "nfs-rdma"]
        options = ["rw=read"]
        mount = "wsize=4096"
        [[sweep]]
        name = "bs"
        values = ["1k", "2k"]
        [[published]]
        what = "+9 %"
        source = "a mail"
    "#;

    fn resolved(text: &str) -> crate::guest::GuestPlan {
        parse("x.toml", text).unwrap().resolve(&crate::plan::Settings::default()).unwrap()
    }

    #[test]
    fn a_job_may_have_sweeps_of_its_own() {
        let text = r#"
            kind = "guest"
            kernels = ["a"]
            [[job]]
            name = "all/sizes"
            stack = "tmpfs"
            options = ["rw=randread"]
            [[job]]
            name = "one size"
            stack = "tmpfs"
            options = ["rw=randread", "bs=1k"]
            sweep = [{ name = "iodepth", values = ["1", "2"] }]
            [[sweep]]
            name = "bs"
            values = ["4k", "8k", "16k"]
        "#;
        let plan = resolved(text);
        let cells: Vec<_> = plan.points.iter().map(|point| (point.job.as_str(), point.cell.len())).collect();
        assert_eq!(cells, [("all/sizes", 1), ("all/sizes", 1), ("all/sizes", 1), ("one size", 1), ("one size", 1)]);
        // A slash would put the job's file into a folder that does not exist.
        assert_eq!(plan.points[0].phase.jobs[0].name, "all-sizes");
    }

    #[test]
    fn every_key_is_read() {
        let draft = parse("x.toml", WHOLE).unwrap();
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let job = |name: &str, stacks: &[&str], options: &[&str], mount: Option<&str>| JobDraft {
            name: name.to_owned(),
            stacks: words(stacks),
            text: JobText::Options(words(options)),
            mount_options: mount.map(str::to_owned),
            sweeps: None,
        };
        let expected = Draft {
            title: "Writes".to_owned(),
            kernels: words(&["debian:6.1", "debian:6.12"]),
            parameters: words(&["", "mitigations=auto"]),
            jobs: vec![
                job("a", &["tmpfs"], &["rw=randwrite", "bs=1k"], None),
                job("b", &["nfs-tcp", "nfs-rdma"], &["rw=read"], Some("wsize=4096")),
            ],
            sweeps: vec![("bs".to_owned(), words(&["1k", "2k"]))],
            sysctls: words(&["vm.swappiness=0"]),
            compared: Some("kernel".to_owned()),
            replicates: 3,
            functions: true,
            chains: true,
            margin: 0.005,
            published: vec![Published { what: "+9 %".to_owned(), source: "a mail".to_owned() }],
        };
        assert_eq!(draft, expected);
    }

    #[test]
    fn what_is_not_written_has_the_defaults_of_the_command_line() {
        let draft = parse("x.toml", "kind = \"guest\"\nkernels = [\"debian:6.1\"]").unwrap();
        assert_eq!(draft, Draft { kernels: vec!["debian:6.1".to_owned()], ..Draft::default() });
    }

    #[test]
    fn an_error_names_the_file_the_line_and_the_mend() {
        for (text, error) in [
            ("kind = \"guest\"\n", "x.toml:1: missing field `kernels`"),
            (
                "kind = \"compare\"\nkernels = []",
                "x.toml: is an experiment of kind \"compare\"; run it with: iotoll compare x.toml",
            ),
            (
                "kind = \"guest\"\nkernels = []\nmargin = \"1\"",
                "x.toml: margin = \"1\": write a percentage such as \"1%\"",
            ),
            ("kind = \"guest\"\nkernels = 6.1", "x.toml:2: invalid type: floating point `6.1`, expected a sequence"),
            ("kind = \"guest\"\nkernels = []\nreplicates = -1", "x.toml:3: invalid value: integer `-1`, expected u32"),
        ] {
            assert_eq!(parse("x.toml", text).unwrap_err(), error);
        }
        let job = "kind = \"guest\"\nkernels = []\n[[job]]\nname = \"a\"\noptions = []\nstack = ";
        let stack = parse("x.toml", &format!("{job}1")).unwrap_err();
        assert_eq!(stack, "x.toml:6: a name, or a list of names");
        let unknown = parse("x.toml", "kind = \"guest\"\nkernels = []\nkernel = 1").unwrap_err();
        assert!(unknown.starts_with("x.toml:3: unknown field `kernel`, expected one of `kind`, "), "{unknown}");
        assert!(parse("x.toml", "kind = ").unwrap_err().starts_with("x.toml:1: "));
    }

    #[test]
    fn the_experiments_of_the_repository_can_be_run() {
        let mut found = 0;
        for (name, file, text) in toml_file::experiments() {
            if !is_experiment(&text) {
                continue;
            }
            let command = format!("iotoll guest run experiments/{file}\n");
            assert!(text.contains(&command), "{name}");
            let plan = parse(&name, &text).and_then(|draft| draft.resolve(&crate::plan::Settings::default()));
            let plan = plan.unwrap_or_else(|error| panic!("{error}"));
            assert!(plan.arms.len() >= 2 && plan.compared.is_some() && !plan.title.is_empty(), "{name}");
            found += 1;
        }
        assert!(found >= 5, "{found}");
    }

    #[test]
    fn an_experiment_of_guests_says_so() {
        for (text, is) in [
            ("kind = \"guest\"", true),
            ("# a comment\n  kind=\"guest\"  ", true),
            ("kind = \"compare\"", false),
            ("[global]\nrw=read\nkind", false),
        ] {
            assert_eq!(is_experiment(text), is, "{text}");
        }
    }

    #[test]
    fn a_margin_is_a_percentage() {
        for (text, value) in [
            ("1%", Some(0.01)),
            (" 0.5 % ", Some(0.005)),
            ("0%", Some(0.0)),
            ("1", None),
            ("-1%", None),
            ("x%", None),
            ("nan%", None),
        ] {
            assert_eq!(margin(text), value, "{text}");
        }
    }
}
