//! The help texts of the HDF5 tools, printed under their names. Scripts compare them; our own texts
//! are for `pumice COMMAND --help`. The texts are HDF5's, under its licence (see NOTICE).

/// What `h5diff -h` prints.
pub(crate) const H5DIFF: &str = include_str!("help/h5diff.txt");
/// What `h5ls -h` prints.
pub(crate) const H5LS: &str = include_str!("help/h5ls.txt");
/// What `h5stat -h` prints.
pub(crate) const H5STAT: &str = include_str!("help/h5stat.txt");
/// What `h5repack -h` prints.
pub(crate) const H5REPACK: &str = include_str!("help/h5repack.txt");
/// What `h5copy -h` prints.
pub(crate) const H5COPY: &str = include_str!("help/h5copy.txt");
