//! The regions of defined cells: `REGION_TYPE BLOCK  (2,2)-(4,7)` and `REGION_TYPE POINT  (5,9),
//! (11,1)`.

use super::lexer::{Lexer, Token};
use crate::cells;
use crate::formats::Blocks;
use anyhow::{Context, Result, bail, ensure};
use pumice::Selection;

/// Cells that are defined, in the order in which their values are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Region {
    /// The first and the last cell of a block.
    Block(Vec<u64>, Vec<u64>),
    /// The coordinates of cells, one behind the other.
    Points(Vec<u64>),
}

impl Region {
    /// Reads the text behind `REGION_TYPE`: one block, or points on as many lines as they need.
    pub(super) fn read(lexer: &mut Lexer<'_>, rank: usize, found: &mut Vec<Self>) -> Result<()> {
        let kind = lexer.name()?;
        ensure!(kind == "BLOCK" || kind == "POINT", "expected BLOCK or POINT, found {kind}");
        let mut points = Vec::new();
        loop {
            let first = place(lexer, rank)?;
            match kind.as_str() {
                "BLOCK" => {
                    ensure!(lexer.name()? == "-", "expected - between the corners of a block");
                    let last = place(lexer, rank)?;
                    let ordered = first.iter().zip(&last).all(|(first, last)| first <= last);
                    ensure!(ordered, "a block whose last cell is before its first");
                    found.push(Self::Block(first, last));
                }
                _ => points.extend(first),
            }
            lexer.passes(b',')?;
            if lexer.peek()? != Some(&Token::Mark(b'(')) {
                break;
            }
        }
        if !points.is_empty() {
            found.push(Self::Points(points));
        }
        Ok(())
    }

    /// The number of cells.
    pub(super) fn cells(&self, rank: usize) -> u64 {
        match self {
            Self::Block(..) => {
                self.sides().iter().fold(1, |cells, &side| cells.saturating_mul(side))
            }
            Self::Points(points) => (points.len() / rank.max(1)) as u64,
        }
    }

    fn sides(&self) -> Vec<u64> {
        match self {
            Self::Block(first, last) => first
                .iter()
                .zip(last)
                .map(|(first, last)| (last - first).saturating_add(1))
                .collect(),
            Self::Points(_) => Vec::new(),
        }
    }

    /// One of its cells.
    pub(super) fn cell(&self, rank: usize, index: u64) -> Option<Vec<u64>> {
        if index >= self.cells(rank) {
            return None;
        }
        match self {
            Self::Block(first, _) => {
                let mut place = Vec::new();
                cells::coordinates(index, &self.sides(), &mut place);
                Some(first.iter().zip(place).map(|(first, at)| first + at).collect())
            }
            Self::Points(points) => {
                points.chunks_exact(rank.max(1)).nth(index as usize).map(<[u64]>::to_vec)
            }
        }
    }

    /// Parts with a bounded number of cells, in order.
    pub(super) fn parts(
        &self,
        rank: usize,
        element: usize,
    ) -> Box<dyn Iterator<Item = Result<Selection>> + '_> {
        match self {
            Self::Block(first, _) => {
                Box::new(Blocks::new(self.sides(), element).map(move |(start, count)| {
                    let start: Vec<u64> = first.iter().zip(start).map(|(a, b)| a + b).collect();
                    Ok(Selection::block(&start, &count)?)
                }))
            }
            Self::Points(points) => {
                let parts = points.chunks(super::BATCH * rank.max(1));
                Box::new(parts.map(move |part| Ok(Selection::points(rank, part.to_vec())?)))
            }
        }
    }

    /// The cells in the coordinates of a subset.
    pub(super) fn within(&self, subset: &Subset) -> Result<Self> {
        let moved = |cell: &[u64]| subset.place(cell);
        Ok(match self {
            Self::Block(first, last) => Self::Block(moved(first)?, moved(last)?),
            Self::Points(points) => {
                let rank = subset.start.len().max(1);
                let moved: Result<Vec<_>> = points.chunks_exact(rank).map(moved).collect();
                Self::Points(moved?.concat())
            }
        })
    }
}

/// `START ( 1 ); STRIDE ( 1 ); COUNT ( 3 ); BLOCK ( 1 );`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Subset {
    pub(super) start: Vec<u64>,
    pub(super) stride: Vec<u64>,
    pub(super) count: Vec<u64>,
    pub(super) block: Vec<u64>,
}

impl Subset {
    /// The shape of the dumped subset.
    pub(super) fn shape(&self) -> Vec<u64> {
        let block = self.block.iter().copied().chain(std::iter::repeat(1));
        self.count.iter().zip(block).map(|(count, block)| count.saturating_mul(block)).collect()
    }

    /// Rows of blocks that are several planes thick, in the order in which h5dump prints them: row
    /// by row of all planes of a block. `None` if that is the order of the array.
    pub(super) fn thick(&self) -> Option<impl Iterator<Item = (Vec<u64>, Vec<u64>)> + '_> {
        let shape = self.shape();
        let outer = shape.len().checked_sub(2)?;
        if self.block.len() < outer || self.block[..outer].iter().all(|&block| block <= 1) {
            return None;
        }
        let mut counts = self.count[..outer].to_vec();
        counts.push(shape[outer]);
        let total = counts.iter().fold(1u64, |all, &count| all.saturating_mul(count));
        Some((0..total).map(move |number| {
            let mut start = Vec::new();
            cells::coordinates(number, &counts, &mut start);
            start.iter_mut().zip(&self.block[..outer]).for_each(|(at, block)| *at *= block);
            start.push(0);
            let mut count = self.block[..outer].to_vec();
            count.extend([1, shape[outer + 1]]);
            (start, count)
        }))
    }

    /// The position of a cell in the dumped subset.
    fn place(&self, cell: &[u64]) -> Result<Vec<u64>> {
        let one = |list: &[u64], axis: usize| list.get(axis).copied().unwrap_or(1).max(1);
        let outside = || format!("the cell {cell:?} is not in the subset");
        let axes = cell.iter().zip(&self.start).enumerate();
        axes.map(|(axis, (&at, &start))| {
            let (stride, block) = (one(&self.stride, axis), one(&self.block, axis));
            let from = at.checked_sub(start).with_context(outside)?;
            ensure!(from % stride < block, outside());
            Ok(from / stride * block + from % stride)
        })
        .collect()
    }
}

/// `(2,2)`.
fn place(lexer: &mut Lexer<'_>, rank: usize) -> Result<Vec<u64>> {
    lexer.expect(b'(')?;
    let mut place = Vec::with_capacity(rank);
    while !lexer.passes(b')')? {
        let word = lexer.name()?;
        place.push(word.parse().with_context(|| format!("not a coordinate: {word}"))?);
        lexer.passes(b',')?;
        if place.len() > rank {
            bail!("a cell of {rank} axes has more coordinates");
        }
    }
    ensure!(place.len() == rank, "a cell of {rank} axes has {} coordinates", place.len());
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str, rank: usize) -> Result<Vec<Region>> {
        let mut lexer = Lexer::new(Box::new(text.as_bytes()));
        let mut found = Vec::new();
        while let Some(token) = lexer.next()? {
            ensure!(token == Token::Word("REGION_TYPE".into()), "found {token:?}");
            Region::read(&mut lexer, rank, &mut found)?;
        }
        Ok(found)
    }

    #[test]
    fn blocks_and_points_are_read() {
        let text = "REGION_TYPE BLOCK  (2,2)-(4,7)\n REGION_TYPE BLOCK (6,0) - (6,2), (8,0)-(8,1)\n\
                    REGION_TYPE POINT  (5,9), (11, 1),\n  (12,8)\n";
        let found = read(text, 2).unwrap();
        let block = |a: [u64; 2], b: [u64; 2]| Region::Block(a.to_vec(), b.to_vec());
        let points = Region::Points(vec![5, 9, 11, 1, 12, 8]);
        let expected =
            [block([2, 2], [4, 7]), block([6, 0], [6, 2]), block([8, 0], [8, 1]), points];
        assert_eq!(found, expected);
        assert_eq!(found.iter().map(|region| region.cells(2)).collect::<Vec<_>>(), [18, 3, 2, 3]);
        for wrong in [
            "REGION_TYPE LINE (1,2)",
            "REGION_TYPE POINT (1)",
            "REGION_TYPE POINT (1,2,3)",
            "REGION_TYPE BLOCK (1,2)",
            "REGION_TYPE BLOCK (1,2)-(0,9)",
            "REGION_TYPE POINT (1,-2)",
            "REGION_TYPE POINT (1,",
        ] {
            assert!(read(wrong, 2).is_err(), "{wrong}");
        }
    }

    #[test]
    fn cells_are_found_in_what_a_subset_took() {
        let subset =
            Subset { start: vec![1, 2], stride: vec![1, 5], count: vec![3, 2], block: vec![1, 3] };
        assert_eq!(subset.shape(), [3, 6]);
        let block = Region::Block(vec![2, 7], vec![3, 9]);
        assert_eq!(block.within(&subset).unwrap(), Region::Block(vec![1, 3], vec![2, 5]));
        assert!(Region::Points(vec![1, 5]).within(&subset).is_err());
        assert!(Region::Points(vec![0, 2]).within(&subset).is_err());
    }
}
