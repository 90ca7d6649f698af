//! Checks of a job that replays a trace.

use super::Complaint;
use crate::plan::job::{JobPlan, Medium};

/// What cannot be replayed, or cannot be added to it.
pub(super) fn complaint(job: &JobPlan) -> Option<Complaint> {
    if !job.replay.is_in_force() {
        return None;
    }
    let refused = |why: String| Some(("read_iolog", why));
    if job.replay.traces.iter().any(|trace| trace == "-") {
        return refused("'-' means standard input to fio; use a file".to_owned());
    }
    if job.engine.medium() != Medium::Files {
        let engine = job.engine.name();
        return refused(format!("ioengine={engine} has no files whose requests it could replay; use another engine"));
    }
    if job.verify.method.is_some() {
        return refused("what a trace writes is not read back; leave verify out".to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::plan::{Settings, parse};

    #[test]
    fn a_trace_is_replayed_on_files() {
        let complaint = |options: &str| {
            let text = format!("[a]\nread_iolog=t\nsize=1m\n{options}\n");
            parse::job_files(&[("x.fio", &text)], &Settings::default()).err().map(|refused| refused.to_string())
        };
        assert_eq!(complaint("ioengine=libaio"), None);
        for (options, expected) in [
            ("ioengine=null", "ioengine=null has no files"),
            ("rw=write\nverify=md5", "leave verify out"),
            ("read_iolog=-", "standard input"),
        ] {
            let found = complaint(options).unwrap();
            assert!(found.contains("read_iolog") && found.contains(expected), "{found}");
        }
    }
}
