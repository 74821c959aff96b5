//! The storage tables of the benchmark that came with the programming model for sparse data: chunks
//! of 1024 x 1024 bytes, three patterns, 1 to 10 % defined, compressible and random values.
//!
//! Each line has a dense chunk with gzip, here and as published, gzip on both sections of a
//! structured chunk as published, and Pumice with default filters. The program fails if the last is
//! not the least of all.
//!
//! Run with `cargo run --release -p pumice --example storage_table`. The published figures are those
//! of "Structured Storage for Sparse and Variable-Length Data. Benchmark results for storage
//! prototype" (Lifeboat, LLC, January 2024), appendix 1.

use pumice::{File, Result, Selection};

const SIDE: u64 = 1024;

#[derive(Clone, Copy)]
enum Pattern {
    /// Random cells, equally many in each row.
    Random,
    /// One rectangle.
    Rectangle,
    /// One run in each row.
    Runs,
}

/// For 1 to 10 %: bytes of dense gzip and of gzip on both sections.
type Published = [(u64, u64); 10];

#[rustfmt::skip]
const TABLES: [(&str, Pattern, bool, Published); 6] = [
    ("random cells, compressible values", Pattern::Random, false, [
        (32184, 25497), (58211, 43728), (82227, 61245), (100718, 78523), (118470, 97374),
        (123656, 114390), (134806, 131631), (146057, 148853), (158131, 167728), (165582, 185066),
    ]),
    ("random cells, random values", Pattern::Random, true, [
        (33287, 35377), (60040, 63815), (82625, 91533), (102831, 118979), (123207, 149079),
        (141821, 176330), (158999, 203826), (175973, 231247), (193669, 261224), (209636, 288753),
    ]),
    ("one rectangle, compressible values", Pattern::Rectangle, false, [
        (1657, 416), (2405, 473), (2626, 519), (1927, 537), (2959, 576),
        (3014, 618), (2589, 658), (2613, 699), (3127, 740), (2715, 780),
    ]),
    ("one rectangle, random values", Pattern::Rectangle, true, [
        (12819, 10458), (23600, 20795), (34237, 31388), (45063, 41680), (54873, 52053),
        (65655, 62569), (76596, 72973), (86900, 83600), (98208, 94328), (108232, 104412),
    ]),
    ("one run per row, compressible values", Pattern::Runs, false, [
        (8167, 7064), (8463, 7155), (4525, 7160), (8982, 7196), (4142, 7245),
        (8909, 7282), (8933, 7343), (8924, 7416), (8870, 7395), (4116, 7456),
    ]),
    ("one run per row, random values", Pattern::Runs, true, [
        (15073, 16944), (25909, 27183), (36511, 37459), (46907, 47683), (58399, 58978),
        (68836, 69188), (79099, 79460), (89446, 89748), (100766, 100940), (111088, 111202),
    ]),
];

pub(crate) fn main() -> Result<()> {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for (title, pattern, random_values, published) in TABLES {
        println!("\n{title}: bytes of a chunk of {SIDE} x {SIDE}");
        println!(
            "   %  dense gzip  (published)  sections gzip (published)    pumice  of dense gzip"
        );
        for (percent, (dense_published, sections_published)) in (1..).zip(published) {
            let cells = pattern.cells(percent, &mut random)?;
            let values = values(cells.count(&[SIDE, SIDE]), random_values, &mut random);
            let [dense, sparse] = sizes(&cells, &values)?;
            println!(
                "{percent:>4} {dense:>11} {dense_published:>12} {sections_published:>26} {sparse:>9} \
                 {:>13.0} %",
                100.0 * sparse as f64 / dense as f64
            );
            let least = dense.min(dense_published).min(sections_published);
            assert!(sparse < least, "{title} at {percent} %: {sparse} is not less than {least}");
        }
    }
    Ok(())
}

/// Bytes that the same cells take as a dense chunk with gzip, and as a sparse one by default.
fn sizes(cells: &Selection, values: &[u8]) -> Result<[u64; 2]> {
    let file = File::in_memory()?;
    let chunk = || file.new_dataset::<u8>().shape([SIDE, SIDE]).chunk([SIDE, SIDE]);
    let dense = chunk().deflate(9).create("dense")?;
    let sparse = chunk().sparse().create("sparse")?;
    for dataset in [&dense, &sparse] {
        dataset.write(cells, values)?;
    }
    Ok([dense.storage_size()?, sparse.storage_size()?])
}

/// 1, 2, ... 255, 1, 2, ... or random numbers other than 0.
fn values(count: u64, at_random: bool, random: &mut Random) -> Vec<u8> {
    let value = |at: u64| if at_random { random.below(255) + 1 } else { at % 255 + 1 };
    (0..count).map(value).map(|value| value as u8).collect()
}

impl Pattern {
    fn cells(self, percent: u64, random: &mut Random) -> Result<Selection> {
        let (dims, row) = ([SIDE, SIDE], SIDE * percent / 100);
        match self {
            Self::Random => {
                let mut coordinates = Vec::new();
                for at in 0..SIDE {
                    let mut columns = std::collections::BTreeSet::new();
                    while (columns.len() as u64) < row {
                        columns.insert(random.below(SIDE));
                    }
                    coordinates.extend(columns.into_iter().flat_map(|column| [at, column]));
                }
                Ok(Selection::points(2, coordinates)?)
            }
            Self::Rectangle => {
                let side = ((SIDE * SIDE * percent / 100) as f64).sqrt() as u64;
                let start = [random.below(SIDE - side), random.below(SIDE - side)];
                Ok(Selection::block(&start, &[side, side])?)
            }
            Self::Runs => {
                let runs = (0..SIDE)
                    .map(|at| Selection::block(&[at, random.below(SIDE - row)], &[1, row]));
                let runs = runs.collect::<std::result::Result<Vec<_>, _>>()?;
                Ok(Selection::union_of(2, runs, &dims)?)
            }
        }
    }
}

/// A small generator, so that every run prints the same table.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}
