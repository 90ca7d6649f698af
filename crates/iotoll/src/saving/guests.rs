//! Saves a measurement of guests: `record.jsonl`, written guest by guest.

use super::Saving;
use lab::guest::run::Writer;
use model::guest::record::{End, Header, Measured};

impl Writer for Saving {
    fn header(&mut self, header: &Header) -> lab::Result<()> {
        let Some(file) = self.file() else { return Ok(()) };
        file.begin(&header.envelope)?;
        file.append("header", header)
    }

    fn measured(&mut self, measured: &Measured) -> lab::Result<()> {
        self.file().map_or(Ok(()), |file| file.append("measured", measured))
    }

    fn end(&mut self, end: &End) -> lab::Result<()> {
        self.file().map_or(Ok(()), |file| file.append("end", end))
    }
}
