//! Saves a recording: `record.jsonl`, written about once a second.

use super::Saving;
use lab::ftq::Writer;
use model::ftq::record::{Chunk, End, Header};

impl Writer for Saving {
    fn header(&mut self, header: &Header) -> lab::Result<()> {
        let Some(file) = self.file() else { return Ok(()) };
        file.begin(&header.envelope)?;
        file.append("header", header)
    }

    fn chunk(&mut self, chunk: &Chunk) -> lab::Result<()> {
        self.file().map_or(Ok(()), |file| file.append_unsynced("chunk", chunk))
    }

    fn end(&mut self, end: &End) -> lab::Result<()> {
        self.file().map_or(Ok(()), |file| file.append("end", end))
    }
}
