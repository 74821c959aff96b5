//! Columns of a window from lists of rows: cells are counted by column, and then put down.
//!
//! A column's cells are far apart in the lists, and those of a row far apart in the columns. So some columns are filled
//! at a time, row after row: the places that are written next stay in the processor's caches. Threads fill columns side
//! by side.

use super::{Index, LinesInto, NOWHERE, WindowPlan, reserve};
use crate::{Error, Result};
use pumice_cache::Executor;
use pumice_types::{Conversion, Element};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// So many columns are filled at a time. Of 5 million cells, each took 24 ns with so many, 46 ns with 256, of which a row
/// has few cells, and 48 ns with 5,000, on a busy machine.
const AT_ONCE: usize = 1024;

/// So many cells are worth a thread.
const WORTH_SHARING: usize = 1 << 15;

impl WindowPlan {
    /// Puts columns together, in ascending order; rows, too, have to ascend.
    pub(super) fn put_columns<T: Element>(
        self,
        conversion: &Conversion,
        executor: &dyn Executor,
        into: &mut LinesInto<'_, T>,
    ) -> Result<()> {
        if self.places.is_some() {
            return Err(Error::Internal("columns of rows that do not ascend".into()));
        }
        let LinesInto { pointers, indices, values, .. } = into;
        let width = usize::try_from(self.shape[1]).ok().and_then(|width| width.checked_add(1));
        let width = width.ok_or_else(|| Error::Invalid("no memory for so many columns".into()))?;
        reserve(pointers, width)?;
        pointers.resize(width, 0);
        let threads = executor.threads().min(self.count() / WORTH_SHARING).max(1);
        let shares = self.shares(threads);

        // The cells of each column are counted one place behind, so that sums are where columns begin.
        let mut tasks = Vec::with_capacity(shares.len());
        let mut rest = &mut pointers[1..];
        for share in shares {
            let (counts, later) = rest.split_at_mut(share.width);
            rest = later;
            tasks.push(Mutex::new(Filling { share, counts, indices: &mut [], values: &mut [] }));
        }
        run(executor, &tasks, |task: &mut Filling<'_, T>| task.count(&self));
        let mut tasks: Vec<_> = tasks.into_iter().map(into_inner).collect();
        let sum: u64 = tasks.iter().flat_map(|task| task.counts.iter()).sum();
        let count = sum as usize;
        zeros(indices, count)?;
        zeros(values, count)?;

        let elements = self.converted::<T>(conversion)?;
        let (mut indices, mut values) = (&mut indices[..], &mut values[..]);
        for task in &mut tasks {
            let count = task.counts.iter().sum::<u64>() as usize;
            (task.indices, indices) = std::mem::take(&mut indices).split_at_mut(count);
            (task.values, values) = std::mem::take(&mut values).split_at_mut(count);
        }
        let tasks: Vec<_> = tasks.into_iter().map(Mutex::new).collect();
        run(executor, &tasks, |task: &mut Filling<'_, T>| task.fill(&self, &elements));
        drop(tasks);
        let mut sum = 0;
        for pointer in pointers.iter_mut() {
            sum += *pointer;
            *pointer = sum;
        }
        Ok(())
    }

    /// What was found as elements of memory.
    fn converted<T: Element>(&self, conversion: &Conversion) -> Result<Vec<Cow<'_, [u8]>>> {
        let mut all = Vec::with_capacity(self.found.len());
        for found in &self.found {
            let bytes = found.as_ref().map_or(&[][..], |found| &found.values);
            if conversion.is_noop() {
                all.push(Cow::Borrowed(bytes));
                continue;
            }
            let count = bytes.len() / conversion.source_size();
            let mut elements = crate::buffer::zeroed(count * size_of::<T>())?;
            conversion.convert(bytes, &mut elements)?;
            all.push(Cow::Owned(elements));
        }
        Ok(all)
    }

    /// Divides the columns into shares that have about as many.
    fn shares(&self, threads: usize) -> Vec<Share> {
        let each = (self.shape[1] as usize).div_ceil(threads).max(1);
        // Of equal width, so that threads have equally much to do.
        let at_once = each.div_ceil(each.div_ceil(AT_ONCE)) as u32;
        let mut shares: Vec<Share> = Vec::new();
        for (number, stripe) in self.stripes.iter().enumerate() {
            let mut start = stripe.columns.start;
            while start < stripe.columns.end {
                let end = stripe.columns.end.min(start.saturating_add(at_once));
                let part = Part::new(number, start..end, &stripe.index, stripe.columns.start);
                start = end;
                match shares.last_mut() {
                    Some(share) if share.width + part.width <= each => share.add(part),
                    _ => shares.push(Share { width: part.width, parts: vec![part] }),
                }
            }
        }
        shares
    }
}

/// Columns that one thread fills.
struct Share {
    parts: Vec<Part>,
    /// How many columns of the window they are.
    width: usize,
}

impl Share {
    fn add(&mut self, part: Part) {
        self.width += part.width;
        self.parts.push(part);
    }
}

/// Columns of a stripe that are filled at a time.
struct Part {
    stripe: usize,
    /// The columns, within a chunk.
    columns: Range<u32>,
    /// Where each of them is among those of the part that the window has, if it has not all of them.
    listed: Option<Vec<u32>>,
    /// How many the window has.
    width: usize,
}

impl Part {
    fn new(stripe: usize, columns: Range<u32>, index: &Index, first: u32) -> Self {
        let Index::Listed(all) = index else {
            return Self { stripe, width: columns.len(), columns, listed: None };
        };
        let mut width = 0;
        let within = &all[(columns.start - first) as usize..(columns.end - first) as usize];
        let place = |column: &u64| match *column {
            NOWHERE => u32::MAX,
            _ => {
                width += 1;
                width - 1
            }
        };
        let listed = Some(within.iter().map(place).collect());
        Self { stripe, columns, listed, width: width as usize }
    }

    /// Where a column is among those that the window has; beyond all of them if it is not.
    #[inline]
    fn place(&self, column: u32) -> usize {
        match &self.listed {
            None => column as usize,
            Some(listed) => listed[column as usize] as usize,
        }
    }
}

/// Visits what rows have of the parts of a share, one part after another.
struct Walk<'a> {
    plan: &'a WindowPlan,
    stripe: Option<usize>,
    /// Up to which of its cells each row has been visited.
    done: Vec<usize>,
}

/// Cells of a row that lie in a part.
struct Piece<'a> {
    /// The number of the chunk among those that were asked.
    chunk: usize,
    /// The row, counted in the window.
    row: u64,
    /// Where the first of them is among those of the chunk.
    position: usize,
    cells: &'a [u32],
    /// The cell of the row in the first column of the part.
    first: u32,
}

impl<'a> Walk<'a> {
    fn new(plan: &'a WindowPlan) -> Self {
        Self { plan, stripe: None, done: Vec::new() }
    }

    /// Visits a part, which lies behind the one before.
    fn visit(&mut self, part: &Part, mut visit: impl FnMut(Piece<'a>)) {
        let plan = self.plan;
        let begins = self.stripe != Some(part.stripe);
        if begins {
            (self.stripe, self.done) = (Some(part.stripe), vec![0; plan.rows.len()]);
        }
        let numbers = (part.stripe..).step_by(plan.stripes.len());
        for (band, chunk) in plan.bands.iter().zip(numbers) {
            let Some(found) = &plan.found[chunk] else { continue };
            let rows = plan.rows[band.rows.clone()].iter().zip(&mut self.done[band.rows.clone()]);
            for (at, (&row, done)) in rows.enumerate() {
                // Chunks have fewer than 2^32 cells.
                let first = (u64::from(row) * plan.side) as u32 + part.columns.start;
                let cells = &found.cells[..found.starts[at + 1]];
                if begins {
                    let start = found.starts[at];
                    *done = start + cells[start..].partition_point(|cell| *cell < first);
                }
                let (position, behind) = (*done, part.columns.len() as u32);
                let mut end = position;
                while end < cells.len() && cells[end] - first < behind {
                    end += 1;
                }
                *done = end;
                let (cells, row) = (&cells[position..end], (band.rows.start + at) as u64);
                visit(Piece { chunk, row, position, cells, first });
            }
        }
    }
}

/// A share that is being filled.
struct Filling<'a, T> {
    share: Share,
    /// How many cells each column has.
    counts: &'a mut [u64],
    indices: &'a mut [u64],
    values: &'a mut [T],
}

impl<T: Element> Filling<'_, T> {
    fn count(&mut self, plan: &WindowPlan) {
        let (mut walk, mut counts) = (Walk::new(plan), &mut self.counts[..]);
        for part in &self.share.parts {
            let (these, later) = std::mem::take(&mut counts).split_at_mut(part.width);
            counts = later;
            walk.visit(part, |piece| {
                for cell in piece.cells {
                    if let Some(count) = these.get_mut(part.place(cell - piece.first)) {
                        *count += 1;
                    }
                }
            });
        }
    }

    fn fill(&mut self, plan: &WindowPlan, elements: &[Cow<'_, [u8]>]) {
        let Self { share, counts, indices, values } = self;
        let (mut walk, mut counts, mut begin) = (Walk::new(plan), &counts[..], 0);
        for part in &share.parts {
            let (these, later) = counts.split_at(part.width);
            counts = later;
            let mut next: Vec<usize> = Vec::with_capacity(part.width);
            for count in these {
                next.push(begin);
                begin += *count as usize;
            }
            walk.visit(part, |Piece { chunk, row, position, cells, first }| {
                let size = size_of::<T>();
                let elements = &elements[chunk][position * size..(position + cells.len()) * size];
                for (at, cell) in cells.iter().enumerate() {
                    // Columns that the window has not have no place.
                    let Some(place) = next.get_mut(part.place(cell - first)) else { continue };
                    indices[*place] = row;
                    let element = &elements[at * size..(at + 1) * size];
                    values[*place] = bytemuck::pod_read_unaligned(element);
                    *place += 1;
                }
            });
        }
    }
}

/// Does some work for each task, on several threads if there are several tasks.
fn run<F: Send>(executor: &dyn Executor, tasks: &[Mutex<F>], work: impl Fn(&mut F) + Sync) {
    let work =
        |number: usize| work(&mut tasks[number].lock().unwrap_or_else(PoisonError::into_inner));
    match tasks.len() {
        1 => work(0),
        count => executor.run(count, &work),
    }
}

fn into_inner<F>(task: Mutex<F>) -> F {
    task.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a list one of so many zeros. Memory that is fresh from the system is zero, and left to whoever fills it first.
fn zeros<E: bytemuck::Pod>(list: &mut Vec<E>, count: usize) -> Result<()> {
    if list.capacity() < count {
        *list = crate::buffer::zeroed(count)?;
        return Ok(());
    }
    list.clear();
    list.resize(count, E::zeroed());
    Ok(())
}
