//! Bytes that move between a store and memory for many chunks at once: the caller's memory where
//! nothing is to be decoded, buffers of the cache's own elsewhere.

use crate::access::{Access, Request};
use crate::executor::Executor;
use crate::layout::{ByteStore, Direct, Family, Fetch, Put, Stored, Unchunked};
use crate::request::{Item, Share};
use crate::shield::shield;
use crate::sync::Mutex;

/// A hole of so many bytes between two chunks is read through: that takes less time than another
/// call.
pub(crate) const HOLE: u64 = 4096;
/// So many holes at most are read through in one go.
const HOLES: usize = 256;
/// What each thread should have to read at least, if several share a read.
const SHARE: usize = 2 << 20;

/// Extents of one store that are to be read and written.
pub(crate) struct Moves<'r> {
    pub(crate) reads: Vec<Fetch<'r>>,
    pub(crate) writes: Vec<Put<'r>>,
}

impl<'r> Moves<'r> {
    pub(crate) fn new() -> Self {
        Moves { reads: Vec::new(), writes: Vec::new() }
    }

    /// Adds those of another list.
    pub(crate) fn append(&mut self, mut other: Moves<'r>) {
        self.reads.append(&mut other.reads);
        self.writes.append(&mut other.writes);
    }

    /// How many extents there are, to be given to [`bytes_of`](Self::bytes_of).
    fn mark(&self) -> (usize, usize) {
        (self.reads.len(), self.writes.len())
    }

    /// The bytes that a request has moved, or that will move by the extents that have come since.
    fn bytes_of(&self, passed: Direct, (reads, writes): (usize, usize)) -> u64 {
        if let Direct::Done { bytes } = passed {
            return bytes;
        }
        let read = self.reads[reads..].iter().map(|read| read.buffer.len() as u64);
        read.chain(self.writes[writes..].iter().map(|write| write.bytes.len() as u64)).sum()
    }

    /// Reads and writes in the order of the store.
    ///
    /// A small hole between two extents is read into a buffer of no use, so that the store can read
    /// them in one piece.
    pub(crate) fn carry_out<F: Family>(self, store: &dyn ByteStore<F>) -> Result<(), F::Error> {
        let Moves { mut reads, mut writes } = self;
        if !reads.is_empty() {
            reads.sort_by_key(|read| read.offset);
            // A far store reads together what it finds near.
            let mut holes = if store.is_far() { Vec::new() } else { holes(&reads) };
            let mut reads: Vec<Fetch<'_>> = reads;
            if !holes.is_empty() {
                let between = holes.iter_mut();
                reads.extend(between.map(|(offset, hole)| Fetch { offset: *offset, buffer: hole }));
                reads.sort_by_key(|read| read.offset);
            }
            store.fetch(&mut reads)?;
        }
        if !writes.is_empty() {
            writes.sort_by_key(|write| write.offset);
            store.put(&writes)?;
        }
        Ok(())
    }

    /// As [`carry_out`](Self::carry_out), with large reads divided among the executor's threads.
    pub(crate) fn carry_out_shared<F: Family>(
        self,
        store: &dyn ByteStore<F>,
        executor: &dyn Executor,
    ) -> Result<(), F::Error> {
        let total = self.reads.iter().map(|read| read.buffer.len()).sum::<usize>();
        let count = (total / SHARE).min(executor.threads());
        if count < 2 {
            return self.carry_out(store);
        }
        let Moves { mut reads, writes } = self;
        reads.sort_by_key(|read| read.offset);
        let shares: Vec<_> = divide(reads, total.div_ceil(count))
            .into_iter()
            .map(|reads| Mutex::new((Some(reads), Ok(()))))
            .collect();
        executor.run(shares.len(), &|i| {
            // Each share has its own thread: the lock is for the compiler.
            let (reads, result) = &mut *shares[i].lock();
            let moves = Moves { reads: reads.take().unwrap_or_default(), writes: Vec::new() };
            *result = shield(|| moves.carry_out(store));
        });
        for share in shares {
            share.into_inner().1?;
        }
        Moves { reads: Vec::new(), writes }.carry_out(store)
    }
}

/// Lets a chunk's share of a request go past the cache, or names the bytes that have to move for it. If
/// the layout cannot, it will not be asked again.
pub(crate) fn pass<'r, F: Family, A: Access<F>>(
    item: &'r mut Item<'_, F, A>,
    stored: &Stored<F::Tag>,
    moves: &mut Moves<'r>,
) -> Result<(), F::Error> {
    let Item { member, layout, key, access, refused, .. } = item;
    let mark = moves.mark();
    match access.direct(&***layout, key, stored, moves)? {
        Some(passed) => member.count_passed(A::WRITES, moves.bytes_of(passed, mark)),
        None => *refused = true,
    }
    Ok(())
}

/// Serves a share of a request of data that are not in chunks, or names the bytes that have to move for it.
pub(crate) fn pass_unchunked<'r, F: Family, A: Request<F>>(
    share: &'r mut Share<'_, F, A>,
    data: &dyn Unchunked<F>,
    moves: &mut Moves<'r>,
) -> Result<(), F::Error> {
    let Share { member, key, access, .. } = share;
    let mark = moves.mark();
    let passed = access.unchunked(data, key, moves)?;
    member.count_passed(A::WRITES, moves.bytes_of(passed, mark));
    Ok(())
}

/// What lies between extents and is worth reading.
fn holes(reads: &[Fetch<'_>]) -> Vec<(u64, Vec<u8>)> {
    let between = reads.windows(2).filter_map(|pair| {
        let end = pair[0].offset.checked_add(pair[0].buffer.len() as u64)?;
        let hole = pair[1].offset.checked_sub(end)?;
        (1..=HOLE).contains(&hole).then(|| (end, vec![0; hole as usize]))
    });
    between.take(HOLES).collect()
}

/// Cuts extents into lists of `most` bytes.
fn divide(reads: Vec<Fetch<'_>>, most: usize) -> Vec<Vec<Fetch<'_>>> {
    let mut shares = vec![Vec::new()];
    let mut room = most;
    for Fetch { mut offset, mut buffer } in reads {
        while !buffer.is_empty() {
            if room == 0 {
                shares.push(Vec::new());
                room = most;
            }
            let (now, later) = buffer.split_at_mut(room.min(buffer.len()));
            room -= now.len();
            let next = offset.saturating_add(now.len() as u64);
            if let Some(last) = shares.last_mut() {
                last.push(Fetch { offset, buffer: now });
            }
            (offset, buffer) = (next, later);
        }
    }
    shares
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn small_holes_are_read_through_but_not_any_number_of_them() {
        let mut bytes = vec![0; 3000];
        let pieces = bytes.chunks_mut(10).enumerate();
        let reads: Vec<_> =
            pieces.map(|(i, buffer)| Fetch { offset: 100 * i as u64, buffer }).collect();
        let found = holes(&reads);
        assert_eq!(found.len(), HOLES);
        assert!(
            found
                .iter()
                .enumerate()
                .all(|(i, (at, hole))| { (*at, hole.len()) == (100 * i as u64 + 10, 90) })
        );
        let mut far = [[0; 4]; 4];
        let offsets = [0, 4, 5000, 5000 + 4 + HOLE + 1];
        let reads: Vec<_> = offsets
            .into_iter()
            .zip(&mut far)
            .map(|(offset, buffer)| Fetch { offset, buffer })
            .collect();
        assert!(holes(&reads).is_empty(), "none, and too large ones");
    }

    #[test]
    fn lists_are_cut_anywhere() {
        let mut bytes: Vec<u8> = (0..100).collect();
        let (one, two) = bytes.split_at_mut(30);
        let reads = vec![Fetch { offset: 5, buffer: one }, Fetch { offset: 1000, buffer: two }];
        let shares = divide(reads, 40);
        let extents: Vec<Vec<_>> = shares
            .iter()
            .map(|share| share.iter().map(|read| (read.offset, read.buffer.len())).collect())
            .collect();
        assert_eq!(extents, [vec![(5, 30), (1000, 10)], vec![(1010, 40)], vec![(1050, 20)]]);
        assert_eq!(shares[1][0].buffer[0], 40);
    }
}
