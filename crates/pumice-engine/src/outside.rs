//! Other files that a file names: of external links, of virtual datasets, with raw data.
//!
//! libhdf5's rule says where to look: an absolute path as it is; otherwise, or if nothing is there,
//! in the folders of an environment variable (`${ORIGIN}` stands for the file's own folder), in the
//! file's own folder, and then relative to the current one.

use crate::file::File;
use crate::open_files::{Opening, open_path};
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names folders of the targets of external links.
pub(crate) const LINK_FOLDERS: &str = "HDF5_EXT_PREFIX";
/// Names folders of the sources of virtual datasets.
pub(crate) const VIRTUAL_FOLDERS: &str = "HDF5_VDS_PREFIX";
/// Names the folder of external raw data.
const DATA_FOLDER: &str = "HDF5_EXTFILE_PREFIX";

const ORIGIN: &str = "${ORIGIN}";

/// Opens the file that `file` calls `name`, for the same purpose and with the same settings as
/// `file`, as libhdf5 does. A file that cannot be changed is opened for reading. `NotFound` means
/// that there is no such file.
pub(crate) fn open(file: &File, name: &str, variable: &str) -> Result<Arc<File>> {
    let mut failure = Error::NotFound(format!("no file \"{name}\""));
    for path in candidates(file, name, variable) {
        // Pipes and devices may never answer.
        if !path.is_file() {
            continue;
        }
        match open_at(file, &path) {
            Ok(found) => {
                file.note_outside(&found);
                return Ok(found);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn open_at(file: &File, path: &Path) -> Result<Arc<File>> {
    let options = file.options().for_others();
    let open = |opening| open_path(path, opening, file.cache().clone(), file.locking(), &options);
    if !file.writable() {
        return open(Opening::Read);
    }
    open(Opening::Edit).or_else(|error| {
        let found = open(Opening::Read)?;
        // Another handle has it open for reading, and knows why it cannot be changed.
        if !found.writable() && Arc::strong_count(&found) == 1 {
            found.medium().note_refusal(error.to_string());
        }
        Ok(found)
    })
}

fn candidates(file: &File, name: &str, variable: &str) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut name = Path::new(name);
    if name.is_absolute() {
        paths.push(name.to_path_buf());
        // A file that is not where it was may have moved together with this one.
        name = name.file_name().map_or(name, Path::new);
    }
    let folders = std::env::var(variable).unwrap_or_default();
    let folders = folders.split(':').filter(|folder| !folder.is_empty());
    paths.extend(folders.map(|folder| origin(file, folder).join(name)));
    if let Some(own) = file.path().and_then(Path::parent) {
        paths.push(own.join(name));
    }
    paths.push(name.to_path_buf());
    paths
}

fn origin(file: &File, folder: &str) -> PathBuf {
    let Some(rest) = folder.strip_prefix(ORIGIN) else { return folder.into() };
    let own = file.path().and_then(Path::parent).unwrap_or(Path::new(""));
    own.join(rest.trim_start_matches('/'))
}

/// The path of external raw data: as stored, unless the environment names a folder.
pub(crate) fn data_path(file: &File, name: &str) -> PathBuf {
    match std::env::var(DATA_FOLDER) {
        Ok(folder) if !folder.is_empty() && !Path::new(name).is_absolute() => {
            origin(file, &folder).join(name)
        }
        _ => name.into(),
    }
}
