//! The saved state of a guest: QEMU's migration stream, compressed. A guest that waits for an assignment is saved once and
//! restored for each measurement.

use super::qmp::{ASK_INTERVAL, Patience};
use crate::error::{Error, Result};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

/// Receives the stream of one connection into a file.
pub(super) fn store(listener: &UnixListener, path: &Path, patience: &mut Patience) -> Result<()> {
    let failed = |source: io::Error| Error::File {
        path: path.to_owned(),
        what: "saving a guest".to_owned(),
        source,
        mend: "; free some space, or name another folder in XDG_CACHE_HOME".to_owned(),
    };
    listener.set_nonblocking(true).map_err(failed)?;
    let stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                patience()?;
                std::thread::sleep(ASK_INTERVAL);
            }
            Err(error) => return Err(failed(error)),
        }
    };
    let mut stream = Patient { stream, patience, refused: None };
    let mut write = || -> io::Result<()> {
        stream.stream.set_read_timeout(Some(ASK_INTERVAL))?;
        let mut encoder = GzEncoder::new(File::create(path)?, Compression::fast());
        io::copy(&mut stream, &mut encoder)?;
        encoder.finish()?.flush()
    };
    write().map_err(|error| stream.refused.take().unwrap_or_else(|| failed(error)))
}

/// Sends the stream of a file to a QEMU that waits for one.
pub(super) fn feed(path: &Path, stream: UnixStream, patience: &mut Patience) -> Result<()> {
    let failed = |error| Error::file(path, "restoring a guest", error);
    let mut stream = Patient { stream, patience, refused: None };
    let mut feed = || -> io::Result<()> {
        stream.stream.set_write_timeout(Some(ASK_INTERVAL))?;
        let mut decoder = GzDecoder::new(BufReader::with_capacity(1 << 20, File::open(path)?));
        io::copy(&mut decoder, &mut stream)?;
        Ok(())
    };
    feed().map_err(|error| stream.refused.take().unwrap_or_else(|| failed(error)))
}

/// A stream whose other end may hang: before each read and write, and as long as nothing moves, patience is asked for.
struct Patient<'a, 'b> {
    stream: UnixStream,
    patience: &'a mut Patience<'b>,
    /// Why there is none left.
    refused: Option<Error>,
}

impl Patient<'_, '_> {
    fn until_it_moves(&mut self, mut step: impl FnMut(&mut UnixStream) -> io::Result<usize>) -> io::Result<usize> {
        loop {
            if let Err(why) = (self.patience)() {
                self.refused = Some(why);
                return Err(io::Error::other("not waited for any longer"));
            }
            match step(&mut self.stream) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                other => return other,
            }
        }
    }
}

impl Read for Patient<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.until_it_moves(|stream| stream.read(buffer))
    }
}

impl Write for Patient<'_, '_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.until_it_moves(|stream| stream.write(buffer))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
