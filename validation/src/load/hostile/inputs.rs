//! Files that others write and iotoll reads: programs that are sampled, traces that are replayed, settings that are edited meanwhile.

use super::{Attempt, fell, fresh, one_of, under, words};
use crate::bench::seeded::Seeded;
use anyhow::{Context, ensure};
use object::{Object, ObjectSection};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// A program whose tables or names are damaged computes while it is sampled. It uses none of them itself.
pub(super) fn program(seeded: &mut Seeded) -> anyhow::Result<Attempt> {
    const PARTS: [&str; 4] = [".eh_frame", ".eh_frame_hdr", ".symtab", ".strtab"];
    let mut bytes = fs::read("/proc/self/exe")?;
    let part = one_of(seeded, &PARTS).context("parts")?;
    let (begin, length) = {
        let file = object::File::parse(&*bytes)?;
        let section = file.section_by_name(part).with_context(|| format!("{part}: build with --release"))?;
        section.file_range().context("a section in the file")?
    };
    let damaged = 1 + seeded.below(20_000);
    for _ in 0..damaged {
        let place = usize::try_from(begin + seeded.below(length))?;
        if let Some(byte) = bytes.get_mut(place) {
            *byte = u8::try_from(seeded.below(256))?;
        }
    }
    let folder = fresh("sampled")?;
    fs::write(folder.join("damaged"), bytes)?;
    fs::set_permissions(folder.join("damaged"), fs::Permissions::from_mode(0o755))?;
    let verb =
        "cost --no-save --quiet --background 200ms --profile --ios 1 --format json -- ./damaged load compute 600";
    let output = under(&words("timeout -k 5 60"), verb, &folder)?;
    let sampled = || {
        let finding: Value = serde_json::from_slice(&output.stdout).ok()?;
        finding.pointer("/phases/0/profile/samples")?.as_u64().filter(|samples| *samples > 0)
    };
    let why = fell(&output).or_else(|| sampled().is_none().then(|| "no sample of it was taken".to_owned()));
    Ok(Attempt { input: format!("{damaged} bytes of {part}"), fell: why, wait_millis: None })
}

/// A trace of lines that resemble fio's, which names a file of another.
pub(super) fn trace(seeded: &mut Seeded) -> anyhow::Result<Attempt> {
    const FIRST: [&str; 4] = ["fio version 2 iolog", "fio version 3 iolog", "fio version 9 iolog", "\0"];
    const FILES: [&str; 5] = ["data", "./data", "../sampled-victim", "data/../../sampled-victim", "\u{1b}[2J"];
    const ACTIONS: [&str; 12] =
        ["add", "open", "close", "read", "write", "trim", "sync", "datasync", "wait", "unlink", "reed", ""];
    let folder = fresh("traced")?;
    let victim = std::path::absolute("sampled-victim")?;
    fs::write(&victim, "mine")?;
    let mut lines = format!("{}\n", one_of(seeded, &FIRST).context("versions")?);
    for _ in 0..=seeded.below(30) {
        if seeded.below(2) == 0 {
            write!(lines, "{} ", seeded.below(1000))?;
        }
        let (file, action) = (one_of(seeded, &FILES).context("files")?, one_of(seeded, &ACTIONS).context("actions")?);
        let bits = 1 + seeded.below(40);
        let (offset, length) = (seeded.below(1 << bits), seeded.below(1 << bits));
        writeln!(lines, "{file} {action} {offset} {length}")?;
    }
    fs::write(folder.join("trace"), &lines)?;
    let verb = "run --no-save --quiet --background 200ms --name=j --ioengine=psync --read_iolog=trace --filename=data";
    let output = under(&words("timeout -k 5 60"), verb, &folder)?;
    let touched = (fs::read(&victim).ok().as_deref() != Some(b"mine")).then(|| "another file was touched".to_owned());
    Ok(Attempt { input: format!("{lines:?}"), fell: fell(&output).or(touched), wait_millis: None })
}

/// A setting that somebody edits while iotoll changes it.
pub(super) fn edited(seeded: &mut Seeded) -> anyhow::Result<Attempt> {
    const EDITS: [&str; 3] = ["written", "renamed", "linked"];
    let folder = fresh("edited")?;
    let (knob, other) = (folder.join("knob"), folder.join("other"));
    fs::write(&knob, "old")?;
    let mut iotoll = std::process::Command::new("iotoll");
    let compare = "compare --no-save --quiet --budget 3s --background 200ms --ioengine=null --size=1m --candidate-set=file:knob=new";
    let running = iotoll.current_dir(&folder).args(compare.split(' ')).stdout(super::Stdio::piped());
    let running = running.stderr(super::Stdio::piped()).spawn()?;
    let delay = Duration::from_millis(seeded.below(3000));
    std::thread::sleep(delay);
    let how = one_of(seeded, &EDITS).context("edits")?;
    fs::write(&other, "mine")?;
    match how {
        "written" => fs::write(&knob, "mine")?,
        "renamed" => fs::rename(&other, &knob)?,
        _ => {
            fs::remove_file(&knob)?;
            std::os::unix::fs::symlink("other", &knob)?;
        }
    }
    let output = running.wait_with_output()?;
    ensure!(output.status.code().is_some(), "iotoll was killed");
    let lost = (fs::read(&knob).ok().as_deref() != Some(b"mine")).then(|| "the edit is lost".to_owned());
    Ok(Attempt {
        input: format!("{how} after {} ms", delay.as_millis()),
        fell: fell(&output).or(lost),
        wait_millis: None,
    })
}
