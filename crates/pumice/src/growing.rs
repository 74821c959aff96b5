//! Datasets that grow: appending along an axis, and writing dense frames to sparse datasets.

use crate::select::Select;
use crate::{Dataset, H5Type};
use pumice_engine::{Error, Result};
use pumice_space::{CoordinateWalker, Dims, Points, Selection, SpaceError};
use pumice_types::plain;
use std::ops::Range;

impl Dataset {
    /// Appends `values` along an axis, which grows accordingly; their number must be a multiple of
    /// the cells of one index of the axis. Returns the range of new indices. Several threads may
    /// append at the same time.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let film = file.new_dataset::<u16>().shape([0, 2, 3]).max_shape([None, Some(2), Some(3)]);
    /// let film = film.create("film")?;
    /// assert_eq!(film.append(0, &[1u16; 6])?, 0..1);
    /// assert_eq!(film.append(0, &[2u16; 12])?, 1..3);
    /// assert_eq!(film.shape(), [3, 2, 3]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn append<T: H5Type>(&self, axis: usize, values: &[T]) -> Result<Range<u64>> {
        let frames = self.frames(axis, values.len() as u64)?;
        self.grown(axis, frames, |part, _| self.write(part, values))
    }

    /// [`append`](Self::append) without the cells that have the value `except`: see
    /// [`write_except`](Self::write_except).
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let film = file.new_dataset::<u16>().shape([0, 2, 3]).max_shape([None, Some(2), Some(3)]);
    /// let film = film.sparse().create("film")?;
    /// film.append_except(0, &[0u16, 0, 7, 0, 0, 0], 0)?;
    /// assert_eq!((film.shape(), film.count_defined(..)?), (vec![1, 2, 3], 1));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn append_except<T: H5Type + PartialEq + Clone>(
        &self,
        axis: usize,
        values: &[T],
        except: T,
    ) -> Result<Range<u64>> {
        let frames = self.frames(axis, values.len() as u64)?;
        self.grown(axis, frames, |part, _| self.write_except(part, values, except.clone()))
    }

    /// Appends `frames` indices along an axis, of which the points have values; they are counted from where the
    /// new part begins.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let film = file.new_dataset::<f32>().shape([0, 512, 512]);
    /// let film = film.max_shape([None, Some(512), Some(512)]).sparse().create("film")?;
    /// film.append_points(0, 1, &[[0, 7, 9], [0, 70, 8]], &[1.5f32, 2.5])?;
    /// film.append_points(0, 1, &[[0, 1, 2]], &[3.5f32])?;
    /// assert_eq!(film.read_defined::<f32>((1, .., ..))?.point(0), [1, 1, 2]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn append_points<T: H5Type, const N: usize>(
        &self,
        axis: usize,
        frames: u64,
        points: &[[u64; N]],
        values: &[T],
    ) -> Result<Range<u64>> {
        if let Some(point) =
            points.iter().find(|point| point.get(axis).is_some_and(|&at| at >= frames))
        {
            let what = format!("the point {point:?} lies beyond the {frames} that are appended");
            return self.at(Err(Error::OutOfBounds(what)));
        }
        self.grown(axis, frames, |_, start| {
            let moved = points.iter().map(|point| {
                let mut point = *point;
                if let Some(at) = point.get_mut(axis) {
                    *at += start;
                }
                point
            });
            self.write_points(&moved.collect::<Vec<_>>(), values)
        })
    }

    /// The number of indices of an axis that this many values fill.
    fn frames(&self, axis: usize, values: u64) -> Result<u64> {
        let shape = self.shape();
        if axis >= shape.len() {
            let what = format!("axis {axis} of a dataset of {} dimension(s)", shape.len());
            return self.at(Err(Error::RankMismatch(what)));
        }
        let others = shape.iter().enumerate().filter(|(at, _)| *at != axis);
        let frame = others.fold(1u64, |cells, (_, &length)| cells.saturating_mul(length));
        match values.is_multiple_of(frame.max(1)) && (frame > 0 || values == 0) {
            true => Ok(values / frame.max(1)),
            false => {
                let file = values.div_ceil(frame.max(1)).saturating_mul(frame);
                self.at(Err(SpaceError::CountMismatch { file, memory: values }.into()))
            }
        }
    }

    /// Extends an axis and does something with the new part. If that fails, the axis gets its old
    /// length again, unless another thread has extended it further.
    fn grown(
        &self,
        axis: usize,
        frames: u64,
        write: impl FnOnce(&Selection, u64) -> Result<()>,
    ) -> Result<Range<u64>> {
        let grow = |from: Option<u64>, by: i128| -> Result<(u64, Vec<u64>)> {
            // No other append comes between reading the shape and changing it.
            let _deciding = self.state.deciding();
            let mut shape = self.shape();
            let rank = shape.len();
            let length = shape.get_mut(axis).ok_or_else(|| {
                Error::RankMismatch(format!("axis {axis} of a dataset of {rank} dimension(s)"))
            })?;
            let start = *length;
            if from.is_none_or(|from| from == start) {
                *length = u64::try_from(i128::from(start) + by)
                    .map_err(|_| SpaceError::Overflow("an axis"))?;
                self.resize(&shape)?;
            }
            Ok((start, shape))
        };
        let (start, shape) = self.at(grow(None, i128::from(frames)))?;
        let (mut first, mut count) = (vec![0; shape.len()], shape.clone());
        (first[axis], count[axis]) = (start, frames);
        let part = match count.contains(&0) {
            true => Selection::none(),
            false => self.at(Selection::block(&first, &count).map_err(Error::from))?,
        };
        let end = start + frames;
        match write(&part, start) {
            Ok(()) => Ok(start..end),
            Err(error) => {
                // The first error says more than one about this.
                let _ = grow(Some(end), -i128::from(frames));
                Err(error)
            }
        }
    }

    /// Writes values to the selected cells of a sparse dataset, except for those that equal
    /// `except`, whose cells become undefined. For dense frames that are mostly background, such as
    /// a camera's, which [`write`](Self::write) would define everywhere. In other layouts no cell
    /// can be undefined: all values are written.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let image = file.new_dataset::<u8>().shape([2, 4]).sparse().create("image")?;
    /// image.write_except(.., &[0u8, 7, 0, 0, 0, 0, 0, 9], 0)?;
    /// assert_eq!(image.count_defined(..)?, 2);
    /// image.write_except((0, ..), &[0u8, 0, 5, 0], 0)?;
    /// assert_eq!(image.read::<u8>(..)?, [0, 0, 5, 0, 0, 0, 0, 9]);
    /// assert_eq!(image.count_defined(..)?, 2, "what became background is undefined again");
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn write_except<T: H5Type + PartialEq + Clone>(
        &self,
        selection: impl Select,
        values: &[T],
        except: T,
    ) -> Result<()> {
        if !self.is_sparse() {
            return self.write(selection, values);
        }
        self.make_room()?;
        self.selected(selection, |selection, dims| {
            selection.check(dims)?;
            let count = selection.count(dims);
            if count != values.len() as u64 {
                let memory = values.len() as u64;
                return Err(SpaceError::CountMismatch { file: count, memory }.into());
            }
            let (columns, kept) = kept(selection, dims, values, &except)?;
            let defined = self.count_defined(selection)? > 0;
            let columns: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
            if kept.is_empty() {
                return if defined { self.state.reset(selection) } else { Ok(()) };
            }
            let points = Points::columns(columns.iter().copied())?;
            if defined {
                let left: Vec<u64> = (0..kept.len())
                    .flat_map(|at| columns.iter().map(move |column| column[at]))
                    .collect();
                let rest = selection.not_b(&Selection::points(dims.len(), left)?, dims)?;
                self.state.reset(&rest)?;
            }
            self.write_at(&points, &kept)
        })
    }
}

/// The coordinates, one column per axis, and the values of the cells that do not have the value `except`.
fn kept<T: H5Type + PartialEq + Clone>(
    selection: &Selection,
    dims: &Dims,
    values: &[T],
    except: &T,
) -> Result<(Vec<Vec<u64>>, Vec<T>)> {
    let background = plain::bytes(std::slice::from_ref(except));
    // Not a number equals itself here.
    let is_background = |value: &T| {
        value == except
            || background
                .is_some_and(|bytes| plain::bytes(std::slice::from_ref(value)) == Some(bytes))
    };
    let mut columns: Vec<Vec<u64>> = vec![Vec::new(); dims.len()];
    let (mut found, mut rest) = (Vec::new(), values);
    let mut walker = CoordinateWalker::new(dims);
    for run in selection.runs(dims) {
        walker.for_each_row(run, |start, length| {
            let (now, later) = rest.split_at((length as usize).min(rest.len()));
            rest = later;
            for (step, value) in now.iter().enumerate().filter(|(_, value)| !is_background(value)) {
                found.push(value.clone());
                for (axis, (column, &at)) in columns.iter_mut().zip(start).enumerate() {
                    column.push(if axis + 1 == start.len() { at + step as u64 } else { at });
                }
            }
        });
    }
    Ok((columns, found))
}
