//! Replaces `wide` on other architectures.

use super::cells::{self, Places, Plane};
use crate::location::numbers::{BLOCK, Beside};
use pumice_wide::Wide;

/// Never called: no `Wide` exists here.
pub(super) fn find_large(_: Wide, block: &[u8; BLOCK], places: &mut Places) -> usize {
    cells::find_large(block, places)
}

/// Never called: no `Wide` exists here.
pub(super) fn add_up(
    _: Wide,
    block: &[u8; BLOCK],
    planes: [&Plane; 2],
    next: u32,
    list: &mut [u32; BLOCK],
    beside: &mut impl Beside,
) -> (u32, usize) {
    cells::add_up(block, planes, next, list, beside)
}
