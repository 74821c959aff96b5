//! In place of `wide` where there is no such processor.

use super::cells::{self, Places};
use super::gap_list::{self, Piece};
use crate::location::numbers::{BLOCK, Beside};
use crate::wide::Wide;

/// Nobody has a `Wide` to come here with.
pub(super) fn find_large(_: Wide, block: &[u8; BLOCK], places: &mut Places) -> usize {
    cells::find_large(block, places)
}

/// As above.
pub(super) fn sum(_: Wide, list: &mut [u32; BLOCK], next: u32, beside: &mut impl Beside) -> u32 {
    cells::sum(list, next, beside)
}

/// As above.
pub(super) fn put_gaps(_: Wide, piece: Piece<'_>, small: &mut Vec<u8>, large: &mut Vec<u32>) {
    gap_list::put_gaps(piece, small, large);
}
