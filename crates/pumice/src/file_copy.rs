//! Copying a whole file, with datasets stored in other ways where that is wanted.

use crate::copy::Copying;
use crate::file::Owner;
use crate::{CopyOptions, Dataset, DatasetBuilder, File, Keep, Node, ObjectPath, WalkOrder};
use pumice_engine::copy::{self, Remake};
use pumice_engine::dataset::{DatasetSpec, DatasetState};
use pumice_engine::{Error, Result};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The storage of a dataset in the copy of a file.
#[derive(Clone, Debug)]
pub struct Remade {
    /// Its new description, which must have its shape.
    pub builder: DatasetBuilder,
    /// The cells that the copy keeps.
    pub keep: Keep,
}

impl File {
    /// Copies everything into `to`, a new file: groups, datasets, datatypes, links, attributes.
    /// References lead to the copies.
    ///
    /// `choose` returns a dataset's new storage; `None` copies it unchanged, without decoding its
    /// chunks. `progress` gets the bytes of elements that have been copied.
    ///
    /// ```
    /// use pumice::{CopyOptions, File, Keep, Remade};
    ///
    /// let (from, to) = (File::in_memory()?, File::in_memory()?);
    /// let dense = from.new_dataset::<i32>().shape([300, 400]).create("runs/first")?;
    /// dense.write((1, 1..3), &[7, 8])?;
    ///
    /// from.copy_whole(
    ///     &to,
    ///     &CopyOptions::new(),
    ///     |dataset| {
    ///         let builder = to.new_dataset_like(dataset).sparse();
    ///         Ok(Some(Remade { builder, keep: Keep::except(0) }))
    ///     },
    ///     |_, _| {},
    /// )?;
    /// assert_eq!(to.dataset("runs/first")?.count_defined(..)?, 2);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn copy_whole(
        &self,
        to: &File,
        options: &CopyOptions,
        choose: impl FnMut(&Dataset) -> Result<Option<Remade>>,
        progress: impl FnMut(&str, u64),
    ) -> Result<()> {
        to.changing()?;
        let mut paths = HashMap::new();
        let _ = self.walk(WalkOrder::Name, |_, node| {
            if let Ok(Node::Dataset(dataset)) = node {
                paths.insert(dataset.address(), dataset.object_path().clone());
            }
            ControlFlow::<()>::Continue(())
        });
        let owners = [self.owner().clone(), to.owner().clone()];
        let mut remaker =
            Remaker { owners, paths, choose, progress, keep: HashMap::new(), told: 0 };
        copy::copy_whole(&self.owner().0, to.engine(), options.engine(), &mut remaker)
    }
}

impl File {
    /// Copies all that can be copied into `to`, a new file, as [`copy_whole`](Self::copy_whole) does.
    ///
    /// `omit` chooses objects to leave out, by address, with all links to them; references to them
    /// become null. `failed` gets everything else that could not be copied: an attribute, the
    /// members of a group, an object that cannot be opened, with the path of its object.
    ///
    /// ```
    /// use pumice::File;
    ///
    /// let (from, to) = (File::in_memory()?, File::in_memory()?);
    /// from.set_attribute("kind", "a run")?;
    /// from.create_group("sound")?;
    /// let damaged = from.create_group("damaged")?.address();
    ///
    /// from.salvage(&to, |address| address == damaged, |path, error| eprintln!("{path}: {error}"))?;
    /// assert!(to.contains("sound") && !to.contains("damaged"));
    /// assert_eq!(to.attribute("kind")?.read_string()?, "a run");
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn salvage(
        &self,
        to: &File,
        omit: impl Fn(u64) -> bool,
        failed: impl FnMut(&str, Error),
    ) -> Result<()> {
        to.changing()?;
        let mut paths = HashMap::new();
        let _ = self.walk(WalkOrder::Name, |_, node| {
            if let Ok(node) = node {
                paths.entry(node.address()).or_insert_with(|| node.object_path().clone());
            }
            ControlFlow::<()>::Continue(())
        });
        let mut salvager = Salvager { paths, omit, failed };
        let options = CopyOptions::new();
        copy::copy_whole(&self.owner().0, to.engine(), options.engine(), &mut salvager)
    }
}

struct Salvager<O, F> {
    /// Paths of objects, by address.
    paths: HashMap<u64, ObjectPath>,
    omit: O,
    failed: F,
}

impl<O, F> Remake for Salvager<O, F>
where
    O: Fn(u64) -> bool,
    F: FnMut(&str, Error),
{
    fn plan(&mut self, _from: &Arc<DatasetState>) -> Result<Option<DatasetSpec>> {
        Ok(None)
    }

    fn fill(&mut self, _from: &Arc<DatasetState>, _to: &Arc<DatasetState>) -> Result<()> {
        Ok(())
    }

    fn omits(&self, address: u64) -> bool {
        (self.omit)(address)
    }

    fn failed(&mut self, address: u64, error: Error) -> Result<()> {
        // A failure of the new file would happen again.
        let lost = [ErrorKind::UnexpectedEof, ErrorKind::NotFound];
        if matches!(error.cause(), Error::Io { source, .. } if !lost.contains(&source.kind())) {
            return Err(error);
        }
        (self.failed)(self.paths.get(&address).map_or("/", |path| path), error);
        Ok(())
    }
}

struct Remaker<C, P> {
    owners: [Arc<Owner>; 2],
    /// Paths of datasets, by address.
    paths: HashMap<u64, ObjectPath>,
    choose: C,
    progress: P,
    /// The cells that copies keep, by the address of the original.
    keep: HashMap<u64, Keep>,
    /// Bytes of the present dataset that were told.
    told: u64,
}

impl<C, P> Remaker<C, P> {
    fn original(&self, state: &Arc<DatasetState>) -> Dataset {
        let path = ObjectPath::from(self.path(state));
        Dataset::new(self.owners[0].clone(), state.clone(), path)
    }

    /// The path of a dataset, built on demand: all paths together may be too long to be kept.
    fn path(&self, state: &DatasetState) -> String {
        let path = self.paths.get(&state.object().address());
        path.map_or(String::new(), |path| path.to_string())
    }
}

impl<C, P> Remake for Remaker<C, P>
where
    C: FnMut(&Dataset) -> Result<Option<Remade>>,
    P: FnMut(&str, u64),
{
    fn plan(&mut self, from: &Arc<DatasetState>) -> Result<Option<DatasetSpec>> {
        let original = self.original(from);
        let Some(Remade { builder, keep }) = (self.choose)(&original)? else { return Ok(None) };
        let spec = builder.spec().map_err(|error| error.at(original.path()))?;
        if spec.extent.dims() != original.shape() {
            let shape = spec.extent.dims();
            let what = format!(
                "a copy of shape {shape:?} does not fit a dataset of shape {:?}",
                original.shape()
            );
            return Err(Error::Invalid(what).at(original.path()));
        }
        self.keep.insert(from.object().address(), keep);
        Ok(Some(spec))
    }

    fn fill(&mut self, from: &Arc<DatasetState>, to: &Arc<DatasetState>) -> Result<()> {
        let original = self.original(from);
        let path = original.object_path().clone();
        let copy = Dataset::new(self.owners[1].clone(), to.clone(), path.clone());
        let keep = self.keep.remove(&from.object().address()).unwrap_or(Keep::Defined);
        let (progress, told) = (&mut self.progress, &mut self.told);
        let copying = Copying::new(&original, &copy, &keep)?;
        copying.cells(&mut |bytes| {
            *told += bytes;
            progress(&path, bytes);
        })?;
        copy.flush()
    }

    fn keeps_all(&self, from: &DatasetState) -> bool {
        matches!(self.keep.get(&from.object().address()), None | Some(Keep::Defined))
    }

    fn done(&mut self, from: &DatasetState) {
        let told = std::mem::take(&mut self.told);
        let cells = from.dims().iter().fold(1u64, |cells, &side| cells.saturating_mul(side));
        let all = cells.saturating_mul(from.datatype().size() as u64);
        let path = self.path(from);
        (self.progress)(&path, all.saturating_sub(told));
    }
}
