//! Matrices of others: each good one is imported with as many cells as SciPy finds, each bad one
//! is refused with an error.

use crate::support::{Place, corpus};
use pumice::File;

/// One matrix of the index.
#[derive(Default)]
struct Listed {
    file: String,
    rows: u64,
    columns: u64,
    cells: u64,
}

/// Reads the index, which has one field a line.
fn index(text: &str) -> Vec<Listed> {
    let mut all: Vec<Listed> = Vec::new();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(": ") else { continue };
        let value = value.trim_end_matches(',').trim_matches('"');
        let number = || value.parse().expect("a number");
        if name == "\"file\"" {
            all.push(Listed { file: value.to_owned(), ..Listed::default() });
        } else if let Some(last) = all.last_mut() {
            match name {
                "\"rows\"" => last.rows = number(),
                "\"cols\"" => last.columns = number(),
                "\"nnz\"" => last.cells = number(),
                _ => {}
            }
        }
    }
    all
}

#[test]
fn matrices_of_others_have_the_cells_that_scipy_finds() {
    let (Some(folder), Some(list)) = (corpus("sparse"), corpus("sparse_index.json")) else {
        return;
    };
    let place = Place::new();
    let listed = index(&std::fs::read_to_string(list).unwrap());
    assert!(!listed.is_empty());
    for matrix in listed.iter().filter(|matrix| !matrix.file.ends_with(".npz")) {
        let path = folder.join(&matrix.file);
        let run = place.run(&["import", "--force", path.to_str().unwrap(), "m.h5"]);
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{}", matrix.file);
        let file = File::open(place.path("m.h5")).unwrap();
        let dataset = file.dataset("matrix").unwrap();
        assert_eq!(dataset.shape(), [matrix.rows, matrix.columns], "{}", matrix.file);
        assert_eq!(dataset.count_defined(..).unwrap(), matrix.cells, "{}", matrix.file);
    }
}

#[test]
fn malformed_matrices_are_refused() {
    let Some(folder) = corpus("sparse/mm_bad") else { return };
    let place = Place::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let run = place.run(&["import", path.to_str().unwrap(), "m.h5"]);
        assert_eq!(run.code, Some(1), "{}", path.display());
        let expected = format!("pumice: {}:", path.display());
        assert!(run.err.starts_with(&expected) && run.err.lines().count() == 1, "{}", run.err);
        assert_eq!(place.names(), [""; 0]);
    }
}

#[test]
fn hdf5_files_of_others_are_listed_and_dumped_or_refused() {
    for folder in ["sparse/h5", "bad"] {
        let Some(folder) = corpus(folder) else { continue };
        let place = Place::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let Some(path) = path.to_str().filter(|_| path.is_file()) else { continue };
            for arguments in [["ls", "-rv", path], ["dump", "-H", path]] {
                let run = place.run(&arguments);
                assert!(matches!(run.code, Some(0 | 1)), "{path}: {:?} {}", run.code, run.err);
                assert!(!run.err.contains("panicked"), "{path}: {}", run.err);
            }
        }
    }
}
