//! Sparse matrices of other programs become sparse datasets, as `pumice convert` makes them in the shell.

use crate::create::{NewDataset, built};
use crate::errors::raised;
use crate::file::PyFile;
use pumice::{Dataset, File};
use pumice_formats::{
    Duplicates, Format, Matrix, Progress, copy_attribute, dataset_for, fill, matrices,
    record_origin, thin,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What became of a matrix: the path of the new dataset, the path that it is to get, the group and its arrays, and whether
/// the dataset is to replace the group.
type Made = (String, String, String, Vec<String>, bool);

/// Tells a function of Python how many cells are done, and how many there are.
struct Told {
    callback: Option<Py<PyAny>>,
    done: AtomicU64,
    total: AtomicU64,
    raised: Mutex<Option<PyErr>>,
}

impl Progress for Told {
    fn add(&self, count: u64) {
        let Some(callback) = &self.callback else { return };
        let done = self.done.fetch_add(count, Ordering::Relaxed) + count;
        let total = self.total.load(Ordering::Relaxed);
        if let Err(error) = Python::attach(|py| callback.call1(py, (done, total)).map(drop)) {
            self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }

    fn expect(&self, count: u64) {
        self.total.fetch_add(count, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// Makes sparse datasets for the matrices of the file at a path, and for dense datasets that are named, in another file
/// that has a copy of everything. They get names of their own; who calls puts them in their places.
#[pyfunction]
#[expect(clippy::too_many_arguments)]
pub(crate) fn converted(
    py: Python<'_>,
    source: PathBuf,
    target: &PyFile,
    objects: Vec<String>,
    dense: Vec<String>,
    name: &str,
    options: &Bound<'_, PyDict>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<Made>> {
    let (target, new) = (target.handle()?, NewDataset::parse(options)?);
    let told = Told {
        callback: progress,
        done: AtomicU64::new(0),
        total: AtomicU64::new(0),
        raised: Mutex::default(),
    };
    let work = Work { source: &source, target: &target, name, new: &new, told: &told };
    let made = py.detach(|| work.all(&objects, &dense));
    if let Some(error) = told.raised.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    made.map_err(|error| match error.downcast::<pumice::Error>() {
        Ok(error) => raised(error),
        Err(error) => PyValueError::new_err(format!("{error:#}")),
    })
}

struct Work<'a> {
    source: &'a Path,
    target: &'a File,
    name: &'a str,
    new: &'a NewDataset,
    told: &'a Told,
}

impl Work<'_> {
    fn all(&self, objects: &[String], dense: &[String]) -> anyhow::Result<Vec<Made>> {
        let file = pumice_formats::open(self.source)?;
        let wanted: Vec<&str> = objects.iter().map(|name| name.trim_matches('/')).collect();
        let format = pumice_formats::recognised(self.source).ok();
        let found = match format {
            // Who names dense datasets alone means no matrix.
            Some(format) => matrices(format, self.source, &file, &wanted)?,
            None => Vec::new(),
        };
        anyhow::ensure!(
            !found.is_empty() || !dense.is_empty(),
            "{}: there is no sparse matrix that is known here; dense= makes datasets sparse",
            self.source.display()
        );
        let total = found.iter().map(|matrix| matrix.source.array().entries).sum();
        self.told.total.store(total, Ordering::Relaxed);
        let mut made = Vec::new();
        for matrix in found {
            let Some(format) = format else { break };
            made.push(self.matrix(format, matrix, made.len())?);
        }
        for path in dense {
            let dataset = file.dataset(path)?;
            let name = format!("{}{}", self.name, made.len());
            thin(&dataset, self.target, &name, |builder| built(builder, self.new))?;
            made.push((name, dataset.path().to_owned(), String::new(), Vec::new(), true));
        }
        Ok(made)
    }

    fn matrix(&self, format: &dyn Format, matrix: Matrix, at: usize) -> anyhow::Result<Made> {
        let (name, array) = (format!("{}{at}", self.name), matrix.source.array().clone());
        let builder = built(dataset_for(self.target, &array, None), self.new);
        let dataset: Dataset = builder.create(&name)?;
        let temporary = self.source.with_extension(format!("sorted{}", std::process::id()));
        fill(matrix.source, &dataset, Duplicates::Sum, &temporary, self.told)?;
        record_origin(&dataset, self.source, format, &array)?;
        for attribute in &matrix.attributes {
            copy_attribute(attribute, &dataset)?;
        }
        for (axis, field, strings) in matrix.names {
            dataset.set_attribute(&format!("axis{axis}_{field}"), strings.as_str())?;
        }
        Ok((name, matrix.path, matrix.group, matrix.arrays, matrix.taken.is_some()))
    }
}
