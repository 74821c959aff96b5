//! The stored chunks of a dataset in row-major order, some at a time: all of very many would not fit into memory.
//!
//! Most indexes have them in that order. An extensible array whose axis without end is not the first one has them in
//! another: for it, all of them are listed once, in eight bytes each.

use super::table::ChunkTable;
use pumice_medium::Result;
use pumice_space::{ChunkGrid, Dims};
use std::vec;

/// So many chunks are listed at a time at most.
pub const TOGETHER: usize = 1 << 12;

/// What is left to be listed.
enum Rest {
    /// What is behind a chunk, or all, in the order of the index.
    After(Option<Dims>),
    /// By numbers in the grid, from one of them on.
    Numbers(Vec<u64>, usize),
    /// Where the grid has more chunks than can be numbered.
    Keys(Vec<Dims>, usize),
    Nothing,
}

/// The place of a page, to go back to.
#[derive(Clone)]
pub(crate) struct Place(From);

#[derive(Clone)]
enum From {
    After(Option<Dims>),
    Number(usize),
}

/// Chunks that are listed some at a time. What is stored or removed meanwhile may be seen or not.
pub struct Pages {
    grid: ChunkGrid,
    rest: Rest,
}

impl Pages {
    /// The stored chunks inside a grid.
    pub fn new(table: &ChunkTable, grid: ChunkGrid) -> Result<Self> {
        if table.is_in_order() {
            return Ok(Self { grid, rest: Rest::After(None) });
        }
        let rest = match grid.chunk_count() {
            Some(_) => {
                let mut numbers = Vec::new();
                table.for_each(|some| {
                    numbers.extend(some.iter().filter_map(|(key, _)| number(&grid, key)));
                    Ok(())
                })?;
                numbers.sort_unstable();
                Rest::Numbers(numbers, 0)
            }
            None => {
                let mut keys = Vec::new();
                table.for_each(|some| {
                    let some = some.into_iter().map(|(key, _)| key);
                    keys.extend(some.filter(|key| grid.contains_chunk(key)));
                    Ok(())
                })?;
                keys.sort_unstable();
                Rest::Keys(keys, 0)
            }
        };
        Ok(Self { grid, rest })
    }

    /// The place of the next page.
    pub(crate) fn place(&self) -> Place {
        Place(match &self.rest {
            Rest::After(last) => From::After(last.clone()),
            Rest::Numbers(_, next) | Rest::Keys(_, next) => From::Number(*next),
            Rest::Nothing => From::Number(usize::MAX),
        })
    }

    /// Goes back to a place.
    pub(crate) fn go_to(&mut self, place: &Place) {
        match (&mut self.rest, &place.0) {
            (rest @ (Rest::After(_) | Rest::Nothing), From::After(last)) => {
                *rest = Rest::After(last.clone());
            }
            (Rest::Numbers(_, next) | Rest::Keys(_, next), From::Number(to)) => *next = *to,
            _ => {}
        }
    }

    /// The next of them; `None` behind the last.
    pub fn next(&mut self, table: &ChunkTable) -> Result<Option<Vec<Dims>>> {
        loop {
            let some: Vec<Dims> = match &mut self.rest {
                Rest::Nothing => return Ok(None),
                Rest::After(last) => {
                    let mut after = Some(last.take());
                    let some = table.next_inside(&mut after, &self.grid)?.unwrap_or_default();
                    self.rest = after.map_or(Rest::Nothing, Rest::After);
                    some
                }
                Rest::Numbers(numbers, next) => {
                    let keys = page(numbers, next).iter();
                    keys.filter_map(|&number| self.grid.chunk_at(number)).collect()
                }
                Rest::Keys(keys, next) => page(keys, next).to_vec(),
            };
            if !some.is_empty() {
                return Ok(Some(some));
            }
            if matches!(self.rest, Rest::Numbers(..) | Rest::Keys(..)) {
                return Ok(None);
            }
        }
    }
}

/// The next page of a list.
fn page<'l, T>(all: &'l [T], next: &mut usize) -> &'l [T] {
    let rest = all.get(*next..).unwrap_or_default();
    let some = rest.get(..TOGETHER).unwrap_or(rest);
    *next = next.saturating_add(some.len());
    some
}

fn number(grid: &ChunkGrid, key: &Dims) -> Option<u64> {
    if grid.contains_chunk(key) { grid.linear(key) } else { None }
}

/// Chunks that may hold something, in row-major order: the stored ones, and those that were changed and wait in the
/// cache.
pub struct Filled {
    pages: Pages,
    changed: std::iter::Peekable<vec::IntoIter<Dims>>,
}

impl Filled {
    /// Those inside a grid; `changed` wait in the cache, in any order. To be asked for before what is stored is listed:
    /// whatever is stored meanwhile is named by both.
    pub fn new(table: &ChunkTable, grid: ChunkGrid, mut changed: Vec<Dims>) -> Result<Self> {
        changed.retain(|key| grid.contains_chunk(key));
        changed.sort_unstable();
        let changed = changed.into_iter().peekable();
        Ok(Self { pages: Pages::new(table, grid)?, changed })
    }

    /// The next of them; `None` behind the last.
    pub fn next(&mut self, table: &ChunkTable) -> Result<Option<Vec<Dims>>> {
        let Some(stored) = self.pages.next(table)? else {
            let rest: Vec<Dims> = self.changed.by_ref().take(TOGETHER).collect();
            return Ok((!rest.is_empty()).then_some(rest));
        };
        let mut all = Vec::with_capacity(stored.len());
        for key in stored {
            while let Some(changed) = self.changed.next_if(|changed| *changed < key) {
                all.push(changed);
            }
            // Named by both.
            self.changed.next_if(|changed| *changed == key);
            all.push(key);
        }
        Ok(Some(all))
    }
}
