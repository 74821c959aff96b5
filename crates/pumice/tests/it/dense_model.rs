//! Random steps on a dense chunked dataset, each checked against a dictionary of cells.

use proptest::prelude::*;
use pumice::{Context, Dataset, File, Selection};
use std::collections::BTreeMap;
use std::path::Path;

const FILL: i32 = -7;

type Cells = BTreeMap<Vec<u64>, i32>;

/// How the dataset is stored; every chunk index occurs, and chunks in and out of place.
#[derive(Clone, Debug)]
struct Setup {
    shape: Vec<u64>,
    chunk: Vec<u64>,
    unlimited: Vec<bool>,
    filtered: bool,
    dont_filter_partial: bool,
    cache: u64,
    threads: usize,
}

#[derive(Clone, Debug)]
enum Step {
    Write(Vec<(u64, u64)>, i32),
    Erase(Vec<(u64, u64)>),
    Read(Vec<(u64, u64)>),
    Resize(Vec<u64>),
    /// Replaces a stored chunk with the stored bytes of another.
    CopyChunk(usize, usize),
    Flush,
    Reopen,
}

fn setup() -> impl Strategy<Value = Setup> {
    (1usize..=3).prop_flat_map(|rank| {
        let side = match rank {
            1 => 1..=40u64,
            2 => 1..=12,
            _ => 1..=6,
        };
        let axis = (side, 1..=7u64, prop::bool::weighted(0.4));
        let cache = prop_oneof![Just(0u64), Just(300), Just(64 << 20)];
        let flags = (any::<bool>(), any::<bool>(), prop::bool::weighted(0.1));
        (prop::collection::vec(axis, rank), flags, cache, 1..=2usize).prop_map(
            |(axes, (filtered, dont_filter_partial, single), cache, threads)| {
                let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
                let mut chunk: Vec<u64> = axes.iter().map(|axis| axis.1.min(axis.0)).collect();
                let mut unlimited: Vec<bool> = axes.iter().map(|axis| axis.2).collect();
                if single {
                    chunk.clone_from(&shape);
                    unlimited.fill(false);
                }
                Setup { shape, chunk, unlimited, filtered, dont_filter_partial, cache, threads }
            },
        )
    })
}

fn steps(rank: usize) -> impl Strategy<Value = Vec<Step>> {
    let block = || prop::collection::vec((0..50u64, 1..20u64), rank);
    let step = prop_oneof![
        4 => (block(), any::<i32>()).prop_map(|(block, seed)| Step::Write(block, seed)),
        1 => block().prop_map(Step::Erase),
        3 => block().prop_map(Step::Read),
        4 => prop::collection::vec(0..45u64, rank).prop_map(Step::Resize),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(from, to)| Step::CopyChunk(from, to)),
        1 => Just(Step::Flush),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..25)
}

struct Run {
    context: Context,
    setup: Setup,
    cells: Cells,
    shape: Vec<u64>,
}

impl Run {
    fn create(&self, path: &Path) -> (File, Dataset) {
        let file = File::options().context(&self.context).create(path).unwrap();
        let max = self.shape.iter().zip(&self.setup.unlimited);
        let mut builder = file
            .new_dataset::<i32>()
            .shape(self.shape.clone())
            .max_shape(max.map(|(&now, &unlimited)| (!unlimited).then_some(now)))
            .chunk(self.setup.chunk.clone())
            .fill_value(FILL);
        if self.setup.filtered {
            builder = builder.shuffle().deflate(3).fletcher32();
        }
        if self.setup.dont_filter_partial {
            builder = builder.dont_filter_partial_chunks();
        }
        let dataset = builder.create("d").unwrap();
        (file, dataset)
    }

    /// The block, moved and cut so that it lies inside.
    fn clip(&self, block: &[(u64, u64)]) -> Option<(Vec<u64>, Vec<u64>)> {
        if self.shape.contains(&0) {
            return None;
        }
        let start: Vec<u64> =
            block.iter().zip(&self.shape).map(|((start, _), side)| start % side).collect();
        let sides = block.iter().zip(&self.shape).zip(&start);
        let count = sides.map(|(((_, count), side), start)| (*count).min(side - start)).collect();
        Some((start, count))
    }

    fn check(&self, dataset: &Dataset, start: &[u64], count: &[u64]) {
        let selection = Selection::block(start, count).unwrap();
        let found: Vec<i32> = dataset.read(selection).unwrap();
        let wanted: Vec<i32> = points(start, count)
            .map(|point| self.cells.get(&point).copied().unwrap_or(FILL))
            .collect();
        assert_eq!(found, wanted, "{start:?} {count:?} of {:?}", self.shape);
    }

    fn step(&mut self, dataset: &Dataset, step: &Step) {
        match step {
            Step::Write(block, seed) => {
                let Some((start, count)) = self.clip(block) else { return };
                let all: Vec<_> = points(&start, &count).collect();
                let values: Vec<i32> =
                    (0..all.len() as i32).map(|i| seed.wrapping_add(i)).collect();
                dataset.write(Selection::block(&start, &count).unwrap(), &values).unwrap();
                self.cells.extend(all.into_iter().zip(values));
            }
            Step::Erase(block) => {
                let Some((start, count)) = self.clip(block) else { return };
                dataset.reset(Selection::block(&start, &count).unwrap()).unwrap();
                self.cells.retain(|point, _| {
                    let axes = point.iter().zip(&start).zip(&count);
                    axes.into_iter().any(|((at, start), count)| at < start || at - start >= *count)
                });
            }
            Step::Read(block) => {
                if let Some((start, count)) = self.clip(block) {
                    self.check(dataset, &start, &count);
                }
            }
            Step::Resize(shape) => {
                let most = self.setup.shape.iter().zip(&self.setup.unlimited);
                let shape: Vec<u64> = shape
                    .iter()
                    .zip(most)
                    .map(|(&new, (&most, &unlimited))| if unlimited { new } else { new.min(most) })
                    .collect();
                dataset.resize(&shape).unwrap();
                self.cells.retain(|point, _| point.iter().zip(&shape).all(|(at, side)| at < side));
                self.shape = shape;
            }
            Step::CopyChunk(from, to) => self.copy_chunk(dataset, *from, *to),
            Step::Flush => dataset.flush().unwrap(),
            Step::Reopen => {}
        }
    }

    fn copy_chunk(&mut self, dataset: &Dataset, from: usize, to: usize) {
        let chunks = dataset.chunks().unwrap().list().unwrap();
        if chunks.is_empty() {
            return;
        }
        let partial = |offset: &[u64]| {
            let axes = offset.iter().zip(&self.setup.chunk).zip(&self.shape);
            axes.into_iter().any(|((at, side), extent)| at + side > *extent)
        };
        let (from, to) = (&chunks[from % chunks.len()], &chunks[to % chunks.len()]);
        // Cells beyond the edge must not come to light, and edge chunks may have a form of their own.
        if partial(&from.offset) || partial(&to.offset) {
            return;
        }
        let (bytes, mask) = dataset.read_chunk(&from.offset).unwrap().unwrap();
        assert_eq!((bytes.len() as u64, mask), (from.size, from.filter_mask));
        dataset.write_chunk(&to.offset, &bytes, mask).unwrap();
        for point in points(&vec![0; self.shape.len()], &self.setup.chunk) {
            let at = |offset: &[u64]| -> Vec<u64> {
                point.iter().zip(offset).map(|(cell, first)| cell + first).collect()
            };
            match self.cells.get(&at(&from.offset)).copied() {
                Some(value) => self.cells.insert(at(&to.offset), value),
                None => self.cells.remove(&at(&to.offset)),
            };
        }
    }

    /// Chunks at the edge are stored as they are in memory if that was asked for.
    fn check_forms(&self, dataset: &Dataset) {
        for chunk in dataset.chunks().unwrap().list().unwrap() {
            let axes = chunk.offset.iter().zip(&self.setup.chunk).zip(&self.shape);
            let partial = axes.into_iter().any(|((at, side), extent)| at + side > *extent);
            let plain: Vec<u8> = points(&chunk.offset, &self.setup.chunk)
                .flat_map(|point| self.cells.get(&point).copied().unwrap_or(FILL).to_le_bytes())
                .collect();
            let filtered = self.setup.filtered && !(partial && self.setup.dont_filter_partial);
            let (stored, _) = dataset.read_chunk(&chunk.offset).unwrap().unwrap();
            assert_eq!(stored != plain, filtered, "{:?}", chunk.offset);
        }
    }
}

fn points(start: &[u64], count: &[u64]) -> impl Iterator<Item = Vec<u64>> {
    let (start, count) = (start.to_vec(), count.to_vec());
    (0..count.iter().product::<u64>()).map(move |mut number| {
        let mut point = start.clone();
        for axis in (0..count.len()).rev() {
            point[axis] += number % count[axis];
            number /= count[axis];
        }
        point
    })
}

fn run(setup: Setup, steps: &[Step]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.h5");
    let context = Context::builder().cache_bytes(setup.cache).threads(setup.threads);
    let context = context.build().unwrap();
    let shape = setup.shape.clone();
    let mut run = Run { context, setup, cells: Cells::new(), shape };
    let (mut file, mut dataset) = run.create(&path);
    for step in steps {
        if matches!(step, Step::Reopen) {
            drop(dataset);
            file.close().unwrap();
            file = File::options().context(&run.context).edit(&path).unwrap();
            dataset = file.dataset("d").unwrap();
        }
        run.step(&dataset, step);
    }
    let origin = vec![0; run.shape.len()];
    run.check(&dataset, &origin, &run.shape);
    run.check_forms(&dataset);
    drop(dataset);
    file.close().unwrap();
    let file = File::open(&path).unwrap();
    run.check(&file.dataset("d").unwrap(), &origin, &run.shape);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_dense_dataset_behaves_like_a_dictionary_of_cells(
        (setup, steps) in setup().prop_flat_map(|setup| {
            let rank = setup.shape.len();
            (Just(setup), steps(rank))
        })
    ) {
        run(setup, &steps);
    }
}
