//! Windows: start, count and stride along each dimension.

use crate::fault::invalid;
use crate::memory::array;
use pumice::{Result, Selection};

/// `pumice_window`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Window {
    rank: usize,
    start: *const u64,
    count: *const u64,
    stride: *const u64,
}

/// The cells that a window names; all if it is null.
///
/// # Safety
/// `window` is null or leads to a window, the lists of which have `rank` numbers or are null.
pub(crate) unsafe fn selection(window: *const Window) -> Result<Selection> {
    if window.is_null() {
        return Ok(Selection::all());
    }
    if !window.is_aligned() {
        return Err(invalid("the window is not aligned"));
    }
    // SAFETY: not null and aligned; the rest is the caller's promise.
    let (start, count, stride) = unsafe {
        let Window { rank, start, count, stride } = &*window;
        let start = array(*start, *rank, "a window's start")?;
        let count = array(*count, *rank, "a window's count")?;
        let stride = (!stride.is_null()).then(|| array(*stride, *rank, "a window's stride"));
        (start, count, stride.transpose()?)
    };
    let steps = |axis: usize| stride.map_or(1, |stride| stride[axis]);
    let mut lists: [Vec<u64>; 4] = Default::default();
    for (axis, (&start, &count)) in start.iter().zip(count).enumerate() {
        // Cells side by side are one block.
        let row = match steps(axis) {
            0 if count > 1 => return Err(invalid("a window's stride is 0")),
            0 | 1 => [start, count.max(1), 1, count],
            step => [start, step, count, 1],
        };
        lists.iter_mut().zip(row).for_each(|(list, number)| list.push(number));
    }
    if count.contains(&0) {
        return Ok(Selection::none());
    }
    let [start, stride, count, block] = lists;
    Ok(Selection::hyperslab(&start, &stride, &count, &block)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(start: &[u64], count: &[u64], stride: Option<&[u64]>) -> Result<Selection> {
        let stride = stride.map_or(std::ptr::null(), <[u64]>::as_ptr);
        let (start, count) = (start.as_ptr(), count.as_ptr());
        // SAFETY: the lists have two numbers.
        unsafe { selection(&Window { rank: 2, start, count, stride }) }
    }

    #[test]
    fn a_window_is_start_count_and_stride() {
        let window = cells(&[1, 2], &[2, 3], Some(&[4, 1])).unwrap();
        assert_eq!(window.count(&[9, 9]), 6);
        assert!(window.contains(&[5, 4]) && !window.contains(&[2, 2]));
        assert_eq!(cells(&[0, 0], &[3, 0], None).unwrap().count(&[9, 9]), 0);
        assert!(cells(&[0, 0], &[3, 3], Some(&[0, 1])).is_err());
        // SAFETY: a null window has no lists.
        assert!(unsafe { selection(std::ptr::null()) }.unwrap().contains(&[3]));
    }
}
