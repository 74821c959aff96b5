//! How many of the moments are tried at which a program may end, or a call may fail.
//!
//! With `PUMICE_THOROUGH` set, as `scripts/test --long` does, all are; else one half, spread evenly.

/// Whether half of the write that follows `count` changes reaches the store: both, or one of the two.
///
/// ```
/// # use pumice_testkit::moments::torn;
/// assert!((1..=torn(7).count()).contains(&1));
/// ```
pub fn torn(count: usize) -> impl Iterator<Item = bool> {
    let both = is_thorough();
    [false, true].into_iter().filter(move |&torn| both || torn == half(count))
}

/// Whether the moment with this number is tried: all, or every other on the average.
///
/// ```
/// # use pumice_testkit::moments::is_tried;
/// assert!((0..100).filter(|&number| is_tried(number)).count() > 30);
/// ```
pub fn is_tried(number: usize) -> bool {
    is_thorough() || half(number)
}

/// So many of `all` drawings: all, or half of them.
///
/// ```
/// # use pumice_testkit::moments::share;
/// assert!((3..=6).contains(&share(6)));
/// ```
pub fn share(all: usize) -> usize {
    if is_thorough() { all } else { all.div_ceil(2) }
}

fn is_thorough() -> bool {
    std::env::var_os("PUMICE_THOROUGH").is_some()
}

/// One half of the numbers, without a period.
fn half(number: usize) -> bool {
    (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 63 == 0
}
