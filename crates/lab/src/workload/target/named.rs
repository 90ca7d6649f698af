//! Finds or makes the names that operations on names need, and registers those that a job makes.

use super::{LayoutProgress, Share, Span, Target, if_there, make};
use crate::error::{Error, Result};
use crate::workload::target::created::Created;
use model::plan::JobPlan;
use std::fs;
use std::path::PathBuf;

pub(super) fn prepare_name(
    plan: &JobPlan,
    path: PathBuf,
    share: Share,
    created: &Created,
    progress: LayoutProgress,
) -> Result<Target> {
    let engine = plan.engine;
    let refused = |why: String| Err(Error::Refused(format!("job '{}': {} {why}", plan.name, path.display())));
    match if_there(fs::symlink_metadata(&path), &path)? {
        Some(_) if engine.makes_names() => {
            return refused(
                "is there already, and could not be created; remove it, or use another directory=".to_owned(),
            );
        }
        Some(_) if engine.uses_up_names() && !created.has_made(&path) => {
            let why = format!(
                "is not iotoll's, and ioengine={} would remove it; use another name or directory=",
                engine.name()
            );
            return refused(why);
        }
        Some(metadata) if engine.is_about_folders() && !metadata.is_dir() => {
            return refused("is no folder; use another name or directory=".to_owned());
        }
        Some(_) => {}
        None if engine.makes_names() => {
            if engine.is_about_folders() {
                created.will_make_folder(&path)?;
            } else {
                created.will_be_made_by_job(&path)?;
            }
        }
        None if plan.files.making.forbidden => {
            return refused("does not exist, and allow_file_create=0 forbids to make it; make it first".to_owned());
        }
        None if engine.is_about_folders() => created.make_folder(&path)?,
        None => {
            let end = plan.files.each.map_or(0, |size| share.within(size, plan, 1));
            make(plan, &path, (false, 0, end), created, progress)?;
        }
    }
    if plan.unlink {
        created.will_unlink(&path);
    }
    // One request, whatever the size of the file.
    let length = plan.buffer_bytes();
    Ok(Target { path, span: Span { begin: 0, length, beyond: 0 }, to_be_made: engine.makes_names() })
}
