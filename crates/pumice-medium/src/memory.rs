//! Memory of a size that a file or a caller dictates, or an error.

use crate::{Error, Result};

/// Zeroed memory for a result, or an error if there is not enough.
///
/// The system decides about the size of pages. Asking for large ones is a gain where the machine has
/// them at hand and a loss where a virtual machine must first get them from its host: the first touch
/// of 256 MiB took 170 to 440 ms in small pages and 850 to 880 ms in large ones there
/// (`python bench/pages.py`).
///
/// ```
/// assert_eq!(pumice_medium::zeroed::<u16>(3)?, [0, 0, 0]);
/// # Ok::<(), pumice_medium::Error>(())
/// ```
pub fn zeroed<T: bytemuck::Pod>(count: usize) -> Result<Vec<T>> {
    let memory = bytemuck::allocation::try_zeroed_vec(count);
    memory.map_err(|()| Error::NoMemory(format!("no memory for {count} cells")))
}

/// An empty list with room for `count` elements, or an error if there is not enough memory.
///
/// ```
/// assert!(pumice_medium::reserved::<u64>(1 << 60).is_err());
/// ```
pub fn reserved<T>(count: usize) -> Result<Vec<T>> {
    let mut memory = Vec::new();
    let none = |_| Error::NoMemory(format!("no memory for {count} elements"));
    memory.try_reserve_exact(count).map_err(none)?;
    Ok(memory)
}
