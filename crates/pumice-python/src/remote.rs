//! Files that are named by addresses of object stores and web servers, if the module was built with them.

use pumice::{Error, File, FileOptions, Result};
use std::path::Path;

/// The file at an address, if the path is one.
pub(crate) fn open(path: &Path, reads: bool, options: &FileOptions) -> Option<Result<File>> {
    const SCHEMES: [&str; 10] =
        ["s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl", "http", "https"];
    let address = path.to_str()?;
    let (scheme, _) = address.split_once("://")?;
    SCHEMES.iter().find(|known| scheme.eq_ignore_ascii_case(known))?;
    if reads {
        return Some(open_address(address, options.clone()));
    }
    let what = "objects in stores are read only: open it with mode \"r\", or write a local file and upload it";
    Some(Err(Error::ReadOnly(what.into()).at(address)))
}

#[cfg(feature = "remote")]
fn open_address(address: &str, options: FileOptions) -> Result<File> {
    pumice_remote::open_with(address, options, &pumice_remote::Options::new())
}

#[cfg(not(feature = "remote"))]
fn open_address(address: &str, _: FileOptions) -> Result<File> {
    let what = "this build of the package has no object stores; that of scripts/wheel has them";
    Err(Error::Invalid(what.into()).at(address))
}
