//! The error of filters.

use std::borrow::Cow;
use std::fmt;

/// Any failure of this crate. Every variant names the filter.
///
/// ```
/// use pumice_filter::{FilterSpec, Pipeline};
///
/// let sz = FilterSpec { id: 32017, optional: false, name: None, config: None, parameters: vec![] };
/// let error = Pipeline::new(vec![sz])?.decode(vec![1, 2, 3], 0, 100).unwrap_err();
/// assert!(error.to_string().starts_with("filter 32017 (sz) is not available"));
/// # Ok::<(), pumice_filter::FilterError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// The data went through a filter that this build does not have.
    #[error(
        "filter {id} ({name}) is not available: {}, or rewrite the dataset where the filter is \
         installed, for example with `h5repack -f NONE old.h5 new.h5`",
        way_to_a_plugin(*id)
    )]
    Missing {
        /// The filter's id.
        id: u16,
        /// The name in the file, the name registered for the id, or "unregistered".
        name: Cow<'static, str>,
    },
    /// The parameters of a filter in the file or from the caller make no sense.
    #[error("filter {filter}, parameters: expected {expected}, found {found}")]
    Parameters {
        /// The filter.
        filter: &'static str,
        /// The values that make sense.
        expected: &'static str,
        /// The given value.
        found: String,
    },
    /// Bytes that the filter did not write, or that were damaged since.
    #[error("filter {filter}, decoding: expected {expected}, found {found}")]
    Corrupt {
        /// The filter.
        filter: &'static str,
        /// The bytes of valid data.
        expected: Cow<'static, str>,
        /// The bytes of this data.
        found: String,
    },
    /// Decoding would give more bytes than the chunk can have.
    #[error("filter {filter}, decoding: expected at most {limit} byte(s), found {found}")]
    TooLarge {
        /// The filter.
        filter: &'static str,
        /// The most that was acceptable.
        limit: usize,
        /// The announcement or content of the bytes.
        found: String,
    },
    /// There is no memory for the output of a filter.
    #[error("filter {filter}: no memory for {bytes} byte(s)")]
    Memory {
        /// The filter.
        filter: &'static str,
        /// The number of bytes.
        bytes: usize,
    },
    /// The filter could not encode its input.
    #[error("filter {filter}, encoding: {reason}")]
    Encode {
        /// The filter.
        filter: &'static str,
        /// The reason.
        reason: String,
    },
    /// Another filter has the number already.
    #[error("filter {id} is {name} already: choose another number, 256 to 511 to try things out")]
    Taken {
        /// The number.
        id: u16,
        /// The filter that has it.
        name: &'static str,
    },
    /// More filters than a filter mask has bits.
    #[error("filter pipeline: expected at most 32 filters, found {0}")]
    TooMany(usize),
}

impl FilterError {
    pub(crate) fn corrupt(
        filter: &'static str,
        expected: impl Into<Cow<'static, str>>,
        found: impl fmt::Display,
    ) -> Self {
        Self::Corrupt { filter, expected: expected.into(), found: found.to_string() }
    }

    pub(crate) fn too_large(filter: &'static str, limit: usize, found: impl fmt::Display) -> Self {
        Self::TooLarge { filter, limit, found: found.to_string() }
    }

    pub(crate) fn encode(filter: &'static str, reason: impl fmt::Display) -> Self {
        Self::Encode { filter, reason: reason.to_string() }
    }
}

/// Filters of which the Python package hdf5plugin has plugins.
const IN_HDF5PLUGIN: [u16; 12] =
    [307, 32001, 32004, 32008, 32013, 32015, 32017, 32018, 32024, 32026, 32028, 32033];

/// Advice for finding a plugin.
fn way_to_a_plugin(id: u16) -> String {
    let disabled = std::env::var_os("HDF5_PLUGIN_PRELOAD").is_some_and(|value| value == "::");
    let build = match (cfg!(feature = "plugins"), disabled) {
        (true, true) => return "filter plugins disabled by HDF5_PLUGIN_PRELOAD; allow them".into(),
        (true, false) => "",
        (false, _) => "build with the feature `plugins` and ",
    };
    let package = match IN_HDF5PLUGIN.contains(&id) {
        true => ", for example that of the Python package hdf5plugin (`hdf5plugin.PLUGIN_PATH`)",
        false => "",
    };
    format!("{build}put its HDF5 plugin into a folder of HDF5_PLUGIN_PATH{package}")
}
