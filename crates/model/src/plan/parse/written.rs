//! A job file as the command line that means the same: fio's `--showcmd`.

use super::{Kind, Refused, Settings, file};

/// The options of a job file as flags, `--name=JOB` before those of each job.
///
/// # Errors
/// The lines that are no options.
pub fn as_flags(file_name: &str, text: &str, settings: &Settings) -> Result<Vec<String>, Refused> {
    let mut lines = file::Lines::new(settings);
    lines.read(file_name, text);
    let file::Lines { sections, refusals, names, .. } = lines;
    let errors = refusals.into_iter().map(|refusal| refusal.placed(&names)).collect();
    if let Some(refused) = Refused::of(errors) {
        return Err(refused);
    }
    let mut flags = Vec::new();
    for section in sections {
        match section.kind {
            Kind::Job(name) if !settings.sections.is_empty() && !settings.sections.contains(&name) => continue,
            Kind::Job(name) => flags.push(format!("--name={name}")),
            // The first options are those of all jobs anyway.
            Kind::Global if flags.is_empty() => {}
            Kind::Global => flags.push("--name=global".to_owned()),
        }
        flags.extend(section.assignments.into_iter().map(|assignment| match assignment.value {
            Some(value) => format!("--{}={value}", assignment.name),
            None => format!("--{}", assignment.name),
        }));
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::parse::{flags, job_file};

    #[test]
    fn the_flags_of_a_file_mean_the_same_jobs() {
        let text = "[global]\nbs=8k\n[a]\nrw=randread\nsize=1m\nthread\n[global]\niodepth=1\n[b]\nstonewall\nsize=2m\n";
        let settings = Settings::default();
        let words = as_flags("f", text, &settings).expect("no error in it");
        assert_eq!(
            words.join(" "),
            "--bs=8k --name=a --rw=randread --size=1m --thread --name=global --iodepth=1 --name=b --stonewall --size=2m"
        );
        assert_eq!(flags(&words, &settings), job_file("f", text, &settings));
        let sections = ["b".to_owned()];
        let words = as_flags("f", text, &Settings { sections: &sections, ..settings }).expect("no error in it");
        assert_eq!(words.join(" "), "--bs=8k --name=global --iodepth=1 --name=b --stonewall --size=2m");
    }
}
