//! Messages: numbers, bytes and what is made of them, one after another.

use crate::CollectiveError;
use pumice_bytes::Reader;
use pumice_comm::CommError;
use pumice_format::index::{ChunkRecord, SectionRecord};
use pumice_space::{Dims, Selection, serial};

type Result<T> = std::result::Result<T, CollectiveError>;

/// A message that grows.
#[derive(Default)]
pub(crate) struct Out(pub(crate) Vec<u8>);

impl Out {
    pub(crate) fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn number(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// How many numbers, and the numbers.
    pub(crate) fn dims(&mut self, dims: &[u64]) {
        self.number(dims.len() as u64);
        dims.iter().for_each(|&axis| self.number(axis));
    }

    pub(crate) fn selection(&mut self, selection: &Selection, dims: &[u64]) -> Result<()> {
        let mut bytes = Vec::new();
        serial::encode_selection(selection, dims, &mut bytes)?;
        self.bytes(&bytes);
        Ok(())
    }

    pub(crate) fn record(&mut self, record: &ChunkRecord) {
        self.number(record.size);
        self.number(u64::from(record.filter_mask));
        self.number(record.sections.len() as u64);
        for section in &record.sections {
            self.number(section.offset);
            self.number(section.unfiltered);
            self.number(u64::from(section.filter_mask));
        }
    }
}

/// A message that is taken apart.
pub(crate) struct In<'a>(pub(crate) &'a [u8]);

fn garbled() -> CollectiveError {
    CollectiveError::Comm(CommError::Garbled)
}

impl<'a> In<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        let (&first, rest) = self.0.split_first().ok_or_else(garbled)?;
        self.0 = rest;
        Ok(first)
    }

    pub(crate) fn number(&mut self) -> Result<u64> {
        let (first, rest) = self.0.split_first_chunk().ok_or_else(garbled)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*first))
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = usize::try_from(self.number()?).map_err(|_| garbled())?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(garbled)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(crate) fn text(&mut self) -> Result<String> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    pub(crate) fn dims(&mut self) -> Result<Dims> {
        let rank = self.number()?;
        (0..rank.min(33)).map(|_| self.number()).collect()
    }

    pub(crate) fn numbers(&mut self) -> Result<Vec<u64>> {
        let count = self.number()?;
        (0..count).map(|_| self.number()).collect()
    }

    pub(crate) fn selection(&mut self, rank: usize) -> Result<Selection> {
        let mut reader = Reader::new("selection", 0, self.bytes()?);
        serial::decode_selection(&mut reader, rank).map_err(|_| garbled())
    }

    pub(crate) fn record(&mut self) -> Result<ChunkRecord> {
        let mask = |number: u64| u32::try_from(number).map_err(|_| garbled());
        let mut record = ChunkRecord::dense(0, self.number()?);
        record.filter_mask = mask(self.number()?)?;
        for _ in 0..self.number()?.min(4) {
            let (offset, unfiltered) = (self.number()?, self.number()?);
            let filter_mask = mask(self.number()?)?;
            record.sections.push(SectionRecord { offset, unfiltered, filter_mask });
        }
        Ok(record)
    }
}
