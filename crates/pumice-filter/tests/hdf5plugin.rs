//! The plugins of the Python package hdf5plugin that Pumice has nothing of its own for, found through
//! `HDF5_PLUGIN_PATH`. `tests/python/filter_vectors.py` makes the vectors, and says how they are stored.
#![cfg(feature = "plugins")]

use pumice_bytes::Reader;
use pumice_filter::{FilterSpec, Pipeline};
use std::path::{Path, PathBuf};

const VECTORS: &[u8] = include_bytes!("vectors/others.bin");

/// The folder of the package's plugins: the environment's, or that of the tests' Python.
fn folder() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("HDF5_PLUGIN_PATH") {
        return Some(path.into());
    }
    let libraries = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
    let pythons = std::fs::read_dir(libraries).ok()?.flatten();
    pythons
        .map(|python| python.path().join("site-packages/hdf5plugin/plugins"))
        .find(|path| path.is_dir())
}

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

/// One test, because the folder is found through the environment of the process.
#[test]
fn chunks_of_sz_sz3_sperr_and_fcidecomp_are_read_by_their_plugins() {
    let Some(folder) = folder() else {
        println!("skipped: no hdf5plugin");
        return;
    };
    // SAFETY: the only test of its process, and nothing reads the environment meanwhile.
    unsafe { std::env::set_var("HDF5_PLUGIN_PATH", folder) };
    let mut reader = Reader::new("vectors", 0, VECTORS);
    let mut count = 0;
    while !reader.is_empty() {
        let name = reader.u8().unwrap();
        let name = String::from_utf8_lossy(reader.take(usize::from(name)).unwrap()).into_owned();
        let parameters = reader.u8().unwrap();
        let parameters = (0..parameters).map(|_| reader.u32().unwrap()).collect();
        let (length, sum) = (reader.u32().unwrap() as usize, reader.u64().unwrap());
        let stored = reader.u32().unwrap() as usize;
        let stored = reader.take(stored).unwrap();
        let id = name.split(' ').next().unwrap().parse().unwrap();
        let spec = FilterSpec { id, parameters, optional: false, ..FilterSpec::zstd(1) };
        let found = Pipeline::new(vec![spec]).unwrap().decode_slice(stored, 0, length);
        let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((found.len(), fnv(&found)), (length, sum), "{name}");
        count += 1;
    }
    assert_eq!(count, 4);
}
