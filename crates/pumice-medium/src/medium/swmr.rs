//! One writer, many readers (SWMR): the rules for writing while readers look at the file.
//!
//! Readers have no lock, and go through blocks one by one while the writer goes on. So the writer
//!
//! - gives no space back that a commit has named: a reader may be on its way there;
//! - writes children before parents: elements, new blocks, then blocks that replace others, from
//!   the data blocks of chunk indexes up to object headers. A reader who follows an address finds
//!   its block written;
//! - replaces a block only by one that says the same of what was there before, and more. Nodes of
//!   B-trees, which lose records when they are split, get a new place
//!   ([`MetadataIo::place_anew`](crate::metadata::MetadataIo)).
//!
//! A reader may read a block while it is being replaced. Its checksum is wrong then, and it is read again
//! ([`Medium::steady`]).

use super::Medium;
use crate::{Error, Result};
use pumice_store::{Renewal, WriteOp};
use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The attempts to read a block that makes no sense, and the longest wait between two: half a
/// second in all.
const ATTEMPTS: u32 = 28;
const LONGEST_WAIT: Duration = Duration::from_millis(25);

/// The SWMR mode of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Swmr {
    /// No SWMR.
    Off,
    /// The file is read here, and may be written by another program.
    Reading,
    /// The file is written here, and may be read by other programs.
    Writing,
}

impl Medium {
    /// Sets the SWMR mode.
    pub fn set_swmr(&self, swmr: Swmr) {
        self.swmr.store(swmr as u8, Ordering::Release);
    }

    /// Whether another program may be writing what is read here.
    pub fn reads_swmr(&self) -> bool {
        self.swmr.load(Ordering::Acquire) == Swmr::Reading as u8
    }

    /// Whether other programs may be reading what is written here.
    pub fn writes_swmr(&self) -> bool {
        self.swmr.load(Ordering::Acquire) == Swmr::Writing as u8
    }

    /// Fails for changes that readers could not follow.
    pub fn refuse_in_swmr(&self, what: &str) -> Result<()> {
        if !self.writes_swmr() {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "{what} while other programs may be reading the file (SWMR): elements can be written and datasets can \
             grow; do all else before SWMR is started, or after the file is closed"
        )))
    }

    /// Whether another program may change the file, so that reads fail after a change.
    pub fn is_unlocked(&self) -> bool {
        self.store.is_unlocked()
    }

    /// Takes the present state of the file, which another program may have written.
    pub fn renew(&self, step: Renewal) -> Result<()> {
        self.store.renew(step).map_err(|source| self.failed("look at the file again", source))?;
        match step {
            Renewal::Look => self.store_length().map(drop),
            Renewal::Stop | Renewal::Done => Ok(()),
        }
    }

    /// Reads metadata, once more where it makes no sense because another program was writing it.
    pub fn steady<T>(&self, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
        if self.reads_swmr() { again(attempt) } else { attempt() }
    }
}

/// Reads metadata, once more where it makes no sense.
pub fn again<T>(mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    let (mut result, mut wait) = (attempt(), Duration::from_micros(50));
    for _ in 1..ATTEMPTS {
        match result {
            Err(error) if is_torn(&error) => {}
            done => return done,
        }
        std::thread::sleep(wait);
        wait = (wait * 2).min(LONGEST_WAIT);
        result = attempt();
    }
    result
}

/// Whether an error may come from a block that was read while it was written.
fn is_torn(error: &Error) -> bool {
    match error.cause() {
        Error::Decode(_) | Error::Damaged(_) => true,
        Error::Io { source, .. } => source.kind() == ErrorKind::UnexpectedEof,
        _ => false,
    }
}

/// Brings blocks into the order in which readers may find them: children before parents.
pub(super) fn order(blocks: &mut [WriteOp<'_>]) {
    blocks.sort_by_key(|block| (height(block.bytes), block.offset));
}

/// The level of a block: how many kinds of blocks may lead to one.
fn height(block: &[u8]) -> u8 {
    match block.get(..4) {
        Some(b"EADB" | b"FADB" | b"BTLF") => 1,
        Some(b"EASB" | b"BTIN") => 2,
        Some(b"EAIB") => 3,
        Some(b"EAHD" | b"FAHD" | b"BTHD") => 4,
        Some(b"OCHK") => 5,
        Some(b"OHDR") => 6,
        // Pages of data blocks, which have no signature, and blocks to which no dataset leads.
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_come_before_parents() {
        let blocks: [&[u8]; 8] =
            [b"OHDR", b"EAHD", b"pages", b"EAIB", b"OCHK", b"EASB", b"", b"EADB"];
        let mut ops: Vec<_> =
            (0..).zip(blocks).map(|(offset, bytes)| WriteOp { offset, bytes }).collect();
        order(&mut ops);
        let found: Vec<_> = ops.iter().map(|op| op.bytes).collect();
        let expected: [&[u8]; 8] =
            [b"pages", b"", b"EADB", b"EASB", b"EAIB", b"EAHD", b"OCHK", b"OHDR"];
        assert_eq!(found, expected);
    }
}
