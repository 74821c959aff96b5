//! The examples: each is compiled with all warnings as errors, run on a file of its own, and the file is read again.

use crate::support::{built, crate_folder, has, run};
use pumice::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles and runs an example; gives the file that it wrote and what it printed.
fn example(compiler: &str, source: &str, folder: &Path) -> Option<(PathBuf, String)> {
    if !has(compiler) {
        return None;
    }
    let (program, file) = (folder.join("program"), folder.join("file.h5"));
    let standard = if compiler == "g++" { "-std=c++11" } else { "-std=c11" };
    // By its own name the library is found when the program is run.
    for name in ["libpumice.so", "libpumice.so.0"] {
        std::os::unix::fs::symlink(built().join("libpumice_c.so"), folder.join(name)).expect("new");
    }
    run(Command::new(compiler)
        .args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"])
        .arg(crate_folder().join("include"))
        .arg(crate_folder().join("c-examples").join(source))
        .arg("-o")
        .arg(&program)
        .arg(format!("-L{}", folder.display()))
        .arg("-lpumice"));
    let printed = run(Command::new(&program).arg(&file).env("LD_LIBRARY_PATH", folder));
    Some((file, printed))
}

macro_rules! examples {
    ($($name:ident: $compiler:literal $source:literal, |$file:ident, $printed:ident| $check:expr;)+) => {$(
        #[test]
        fn $name() -> pumice::Result<()> {
            let folder = tempfile::tempdir().expect("a folder");
            let Some((path, $printed)) = example($compiler, $source, folder.path()) else { return Ok(()) };
            let $file = File::open(&path)?;
            $check;
            Ok(())
        }
    )+};
}

examples! {
    files_are_made_and_edited: "gcc" "open.c", |file, printed| {
        assert_eq!(printed, concat!("pumice ", env!("CARGO_PKG_VERSION"), "\n"));
        assert_eq!(file.dataset("answer")?.read_scalar::<i32>()?, 42);
    };
    dense_arrays_are_written_and_read: "gcc" "read_write.c", |file, _printed| {
        let images = file.dataset("images")?;
        assert_eq!(images.filters().len(), 3);
        assert_eq!(images.max_shape(), [None, Some(6)]);
        assert_eq!(images.read::<u16>((2, ..))?, [12, 102, 103, 15, 16, 17]);
    };
    cells_are_written_read_and_erased: "gcc" "sparse_cells.c", |file, printed| {
        assert_eq!(printed, "(7, 9) = 1.5\n(7, 10) = 3.5\n");
        let hits = file.dataset("run1/hits")?;
        assert!(hits.is_sparse());
        assert_eq!(hits.read_defined::<f32>(..)?.values, [1.5, 3.5, 2.5]);
    };
    matrices_are_compressed_rows: "gcc" "compressed_rows.c", |file, _printed| {
        let found = file.dataset("matrix")?.read_defined::<f64>(..)?;
        assert_eq!(found.coordinates, [0, 0, 0, 4, 2, 2, 3, 1, 3, 3]);
        assert_eq!(found.values, [1.0, 2.0, 3.0, 4.0, 5.0]);
    };
    attributes_are_numbers_and_texts: "gcc" "attributes.c", |file, _printed| {
        assert_eq!(file.attribute("scale")?.read_scalar::<f64>()?, 0.25);
        let run = file.group("run1")?;
        assert_eq!(run.attribute("ranges")?.read::<i32>()?, [1, 2, 3, 4, 5, 6]);
        assert_eq!(run.attribute("operator")?.read_string()?, "nobody in particular");
        assert_eq!(run.attribute_names()?.len(), 2);
    };
    groups_list_their_members: "gcc" "members.c", |file, printed| {
        assert_eq!(printed, "run1\n  raw\n  times\n");
        assert_eq!(file.dataset("run1/times")?.shape(), [3]);
    };
    errors_have_a_status_and_a_message: "gcc" "errors.c", |file, printed| {
        assert_eq!(printed, "not found\n");
        assert_eq!(file.dataset("x")?.read::<f64>(..)?, [1.0, 2.0, 3.0]);
    };
    the_header_is_one_for_cpp_too: "g++" "header.cpp", |file, _printed| {
        assert_eq!(file.dataset("x")?.read::<f64>((1, ..))?, [4.0, 5.0, 6.0]);
    };
}
