//! How much of what is alike is tried: `scripts/test --long` tries all of it.

/// Whether everything is to be tried (`PUMICE_THOROUGH`), however long it takes.
pub(crate) fn thorough() -> bool {
    std::env::var_os("PUMICE_THOROUGH").is_some()
}

/// The larger of two amounts in a thorough run, the smaller in any other.
pub(crate) fn amount<T>(usual: T, all: T) -> T {
    if thorough() { all } else { usual }
}
