//! The memory that a decoder may allocate for one input.
//!
//! Counts that are followed by that many bytes are checked against the input with
//! [`Reader::count`](crate::Reader::count). The budget is for the rest: structures that are larger
//! decoded than encoded (compressed data, regular selections, chains of blocks). It is shared by
//! everything that is decoded on behalf of one request, and only ever shrinks.

use crate::{DecodeError, memory};

/// A number of bytes that decoding may still allocate.
///
/// ```
/// let mut budget = pumice_bytes::Budget::new(100);
/// budget.spend(60, "link table", 0)?;
/// assert!(budget.spend(60, "link table", 0).is_err());
/// # Ok::<(), pumice_bytes::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Budget {
    left: u64,
}

impl Budget {
    /// A budget of `bytes`.
    pub fn new(bytes: u64) -> Self {
        Self { left: bytes }
    }

    /// The remaining bytes.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Takes `bytes` from the budget, or fails without taking any. For many bytes the allocator is
    /// asked as well, for twice as many because lists grow so, lest a later allocation end the
    /// program.
    pub fn spend(
        &mut self,
        bytes: u64,
        structure: &'static str,
        address: u64,
    ) -> Result<(), DecodeError> {
        let Some(left) = self.left.checked_sub(bytes) else {
            let expected = format!("at most {} byte(s) once decoded", self.left);
            return Err(DecodeError::new(structure, address, expected, bytes));
        };
        if !memory::is_there(bytes.saturating_mul(2)) {
            let expected = "content that there is memory for";
            return Err(DecodeError::new(structure, address, expected, format!("{bytes} byte(s)")));
        }
        self.left = left;
        Ok(())
    }
}
