//! Files that are named by addresses of object stores and web servers.
//!
//! They can be opened if the command was built with the feature `remote`.

use pumice::{File, FileOptions, Result};
use std::path::Path;

/// The beginnings of addresses.
const SCHEMES: [&str; 10] =
    ["s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl", "http", "https"];

/// Endings of files in which objects can be: in FILE/PATH the file ends behind the first of them.
const ENDINGS: [&str; 22] = [
    "h5", "hdf5", "hdf", "he5", "h5ad", "h5mu", "h5s", "hd5", "nc", "nc4", "cdf", "loom", "cool",
    "mcool", "scool", "fast5", "mat", "nxs", "nx5", "biom", "hx5", "keras",
];

/// Whether a name is an address.
pub(crate) fn is_address(name: &str) -> bool {
    name.split_once("://")
        .is_some_and(|(scheme, _)| SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known)))
}

/// Splits `ADDRESS/path` behind the name of the file, which is told by its ending: to ask the server would take
/// a request for each part of the path.
pub(crate) fn split(address: &str) -> (&str, &str) {
    let host = address.find("://").map_or(0, |at| at + 3);
    // What follows a question mark belongs to the address.
    let path = address[host..].find('?').map_or(address.len(), |at| host + at);
    let mut ends = address[host..path].match_indices('/').map(|(at, _)| host + at);
    // The first slash ends the bucket, or the host.
    ends.next();
    let is_file = |end: &usize| {
        let name = address[host..*end].rsplit('/').next().unwrap_or_default();
        let ending = name.rsplit_once('.').map(|(_, ending)| ending);
        ending.is_some_and(|ending| ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)))
    };
    let end = ends.find(is_file).unwrap_or(address.len());
    (&address[..end], &address[end..])
}

/// Opens a file for reading, wherever it is.
pub(crate) fn open(options: FileOptions, path: &Path) -> Result<File> {
    match path.to_str().filter(|name| is_address(name)) {
        Some(address) => open_address(options, address),
        None => pumice_formats::open_with(options, path),
    }
}

#[cfg(feature = "remote")]
fn open_address(options: FileOptions, address: &str) -> Result<File> {
    pumice_remote::open_with(address, options, &pumice_remote::Options::new())
}

#[cfg(not(feature = "remote"))]
fn open_address(_: FileOptions, address: &str) -> Result<File> {
    Err(missing(address))
}

/// Sends a file to an object store.
#[cfg(feature = "remote")]
pub(crate) fn upload(file: &Path, address: &str, replace: bool) -> Result<()> {
    pumice_remote::upload(file, address, replace)
}

/// Sends a file to an object store.
#[cfg(not(feature = "remote"))]
pub(crate) fn upload(_: &Path, address: &str, _: bool) -> Result<()> {
    Err(missing(address))
}

#[cfg(not(feature = "remote"))]
fn missing(address: &str) -> pumice::Error {
    let what = "this command was built without object stores; install one that has them: cargo install --path \
                crates/pumice-cli --features remote";
    pumice::Error::Invalid(what.into()).at(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_an_address_is_told_by_its_ending() {
        for (address, file, inside) in [
            ("s3://b/a.h5", "s3://b/a.h5", ""),
            ("s3://b/v1.0/a.h5/run1/x.h5", "s3://b/v1.0/a.h5", "/run1/x.h5"),
            ("s3://bucket.h5/a.H5AD/X", "s3://bucket.h5/a.H5AD", "/X"),
            ("https://host/name/without", "https://host/name/without", ""),
            ("https://host/a.h5?key=a.h5/b", "https://host/a.h5?key=a.h5/b", ""),
            ("http://host:1/a.h5/", "http://host:1/a.h5", "/"),
        ] {
            assert_eq!(split(address), (file, inside), "{address}");
        }
    }

    #[test]
    fn paths_are_no_addresses() {
        assert!(is_address("S3://b/a.h5") && is_address("https://b/a.h5"));
        assert!(!is_address("a/b.h5") && !is_address("c:/a.h5") && !is_address("other://a"));
    }
}
