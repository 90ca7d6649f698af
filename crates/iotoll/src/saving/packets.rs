//! Saves a blast of packets: `record.jsonl`, written round by round.

use super::Saving;
use lab::blast::Writer;
use model::blast::record::{End, Header, Round};

impl Writer for Saving {
    fn header(&mut self, header: &Header) -> lab::Result<()> {
        let Some(file) = self.file() else { return Ok(()) };
        file.begin(&header.envelope)?;
        file.append("header", header)
    }

    fn round(&mut self, round: &Round) -> lab::Result<()> {
        self.file().map_or(Ok(()), |file| file.append_unsynced("round", round))
    }

    fn end(&mut self, end: &End) -> lab::Result<()> {
        self.file().map_or(Ok(()), |file| file.append("end", end))
    }
}
