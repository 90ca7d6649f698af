//! Makes files as large as a job needs, with data where it reads.

use super::LayoutProgress;
use crate::demand::amount_of;
use crate::workload::permutation;
use lab::error::{Error, Result};
use model::plan::{Fallocate, JobPlan};
use rustix::fs::FallocateFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Refuses to lay out more than the file system has room for, before anything is written.
pub(super) fn refuse_without_room(plan: &JobPlan, path: &Path, file: &File, bytes: u64) -> Result<()> {
    let allocates = plan.files.fallocate != Fallocate::None;
    let Ok(held) = rustix::fs::fstatvfs(file) else { return Ok(()) };
    let room = held.f_bavail.saturating_mul(held.f_frsize);
    if bytes <= room || !(allocates || plan.access.reads() || plan.files.making.overwrite) {
        return Ok(());
    }
    let (needs, room) = (amount_of(bytes), amount_of(room));
    let mend = "use a smaller size=, or another directory=";
    let why = format_args!("needs {needs} more, but its file system has {room} free; {mend}");
    Err(Error::refused_file(plan, path, why))
}
/// Opens a file that is to be made or lengthened. A missing file must really be created here: through a dangling link,
/// a file elsewhere would be made, and the link removed afterwards.
pub(super) fn open_to_lay_out(plan: &JobPlan, path: &Path, exists: bool) -> Result<File> {
    let what = if exists { "opening the file to lengthen it" } else { "creating the file" };
    let file = OpenOptions::new().write(true).create_new(!exists).open(path);
    file.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Error::refused_file(plan, path, match path.is_symlink() {
            true => "is a link to a file that does not exist; remove the link, or make that file",
            false => "was made by another process just now; give each measurement files of its own, or start one after the other",
        }),
        _ => Error::file(path, what, error),
    })
}

/// Makes the file as large as the job needs. Data that the job reads is written first, because reading a hole never
/// reaches the device; so is data that it is to overwrite.
pub(super) fn lay_out(
    plan: &JobPlan,
    mut file: File,
    path: &Path,
    length: u64,
    end: u64,
    progress: LayoutProgress,
) -> Result<()> {
    let failed = |what: &'static str| move |error: io::Error| Error::file(path, what, error);
    allocate(&file, plan.files.fallocate, length, end).map_err(failed("allocating the file"))?;
    if plan.access.reads() || plan.files.making.overwrite {
        write_noise(&mut file, path, length, end, progress)?;
        file.sync_all().map_err(failed("syncing the file"))?;
    }
    Ok(())
}

fn allocate(file: &File, how: Fallocate, length: u64, end: u64) -> io::Result<()> {
    if how == Fallocate::None {
        return Ok(());
    }
    match rustix::fs::fallocate(file, FallocateFlags::empty(), length, end - length) {
        // Without allocation the file system assigns blocks when they are written.
        Err(rustix::io::Errno::OPNOTSUPP) => file.set_len(end),
        other => Ok(other?),
    }
}

fn write_noise(file: &mut File, path: &Path, begin: u64, end: u64, progress: LayoutProgress) -> Result<()> {
    use std::io::Seek;
    const CHUNK: usize = 1 << 20;
    let failed = |error| Error::file(path, "laying out the file", error);
    let mut chunk = vec![0; CHUNK];
    let mut seed = 0x6e01_5e00 ^ begin;
    file.seek(io::SeekFrom::Start(begin)).map_err(failed)?;
    let mut done = begin;
    while done < end {
        if !progress(path, done - begin, end - begin) {
            return Err(Error::Interrupted(format!("while laying out {}", path.display())));
        }
        fill_with_noise(&mut chunk, &mut seed);
        let length = (end - done).min(CHUNK as u64) as usize;
        file.write_all(chunk.get(..length).unwrap_or(&chunk)).map_err(failed)?;
        done += length as u64;
    }
    Ok(())
}

/// Fills memory with bytes that neither compress nor repeat.
pub fn fill_with_noise(memory: &mut [u8], seed: &mut u64) {
    for word in memory.chunks_mut(8) {
        let noise = permutation::split_mix(seed).to_le_bytes();
        for (byte, noise) in word.iter_mut().zip(noise) {
            *byte = noise;
        }
    }
}
