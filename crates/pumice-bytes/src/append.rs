//! Short parts of long lists, appended to others many times.

use std::ops::Range;

/// Appends a part of a list in blocks of `BLOCK` elements and cuts off the excess, which takes less
/// time than copying a variable number.
///
/// ```
/// let mut some = vec![1];
/// pumice_bytes::append_some::<_, 4>(&mut some, &[2, 3, 4, 5, 6, 7], 1..3);
/// assert_eq!(some, [1, 3, 4]);
/// ```
#[inline(always)]
pub fn append_some<T: Copy, const BLOCK: usize>(to: &mut Vec<T>, from: &[T], range: Range<usize>) {
    let Range { start: mut at, end } = range;
    let len = to.len() + end.saturating_sub(at);
    loop {
        let Some(block) = from.get(at..).and_then(|rest| rest.first_chunk::<BLOCK>()) else {
            // At the end of the list.
            to.extend_from_slice(from.get(at..end).unwrap_or_default());
            break;
        };
        to.extend_from_slice(block);
        at += BLOCK;
        if at >= end {
            break;
        }
    }
    to.truncate(len);
}
