//! Random steps on a sparse dataset of any fixed-size type, each checked against a dictionary of
//! cells, in which values are the bytes of an element.

use proptest::prelude::*;
use pumice::types::{
    Bitfield, ByteOrder, Complex, Enumeration, Float, Integer, Reference, ReferenceKind, Time,
};
use pumice::{Context, Dataset, Datatype, File, FilterSpec, Points, Selection};
use std::collections::BTreeMap;
use std::path::Path;

type Cells = BTreeMap<Vec<u64>, Vec<u8>>;

/// How the dataset is stored; every chunk index and both kinds of records occur.
#[derive(Clone, Debug)]
struct Setup {
    shape: Vec<u64>,
    chunk: Vec<u64>,
    unlimited: Vec<bool>,
    /// How much further than its shape each limited axis can grow.
    room: Vec<u64>,
    /// Whether partial chunks are stored without filters.
    plain_edges: bool,
    filters: Filters,
    /// A number of [`datatypes`].
    datatype: usize,
    cache: u64,
    threads: usize,
}

/// Every class of fixed-size types.
fn datatypes() -> Vec<Datatype> {
    let mut all = Vec::new();
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for size in [1, 2, 4, 8] {
            all.push(Integer::new(size, order, true).into());
            all.push(Integer::new(size, order, false).into());
        }
        all.extend(
            [Float::half(order), Float::single(order), Float::double(order)].map(Into::into),
        );
    }
    let (small, large) = (Datatype::i32_le(), Datatype::f64_le());
    let text = Datatype::fixed_string(5);
    let record = [("a", small.clone()), ("text", text.clone()), ("b", large.clone())];
    let record = Datatype::compound(record);
    all.push(Datatype::array(record.clone(), [2, 3]));
    all.extend([record, text, Datatype::opaque(7, "tag"), Datatype::array(small, [3])]);
    all.push(Enumeration::new(Integer::new(2, ByteOrder::Big, true)).with("one", &[0, 1]).into());
    let narrow = Integer { precision: 17, bit_offset: 3, ..Integer::new(4, ByteOrder::Big, false) };
    all.push(Datatype::compound([("n", narrow.clone().into()), ("x", Datatype::f64_be())]));
    all.extend([narrow.into(), Float::bfloat16(ByteOrder::Little).into()]);
    all.push(Bitfield::new(3, ByteOrder::Little).into());
    all.push(Time { size: 8, order: ByteOrder::Little, precision: 64 }.into());
    all.extend(
        [(8, ReferenceKind::Object), (12, ReferenceKind::Region)]
            .map(|(size, kind)| Datatype::Reference(Reference { size, kind })),
    );
    all.push(Complex { base: Float::single(ByteOrder::Little) }.into());
    all
}

impl Setup {
    /// Half of the time one that Rust has, so that conversions run too.
    fn datatype(&self) -> Datatype {
        let all = datatypes();
        match self.datatype % 2 {
            0 => Datatype::i32_le(),
            _ => all[self.datatype / 2 % all.len()].clone(),
        }
    }
}

/// The bytes of `count` elements; no two neighbours are equal.
fn elements(seed: i32, count: usize, size: usize) -> Vec<Vec<u8>> {
    let byte = |cell: usize, at: usize| (seed as usize).wrapping_add(cell * 7 + at * 31) as u8;
    (0..count).map(|cell| (0..size).map(|at| byte(cell, at)).collect()).collect()
}

#[derive(Clone, Copy, Debug)]
enum Filters {
    Default,
    None,
    ValuesOnly,
    LocationsOnly,
}

#[derive(Clone, Debug)]
enum Step {
    WriteBlock(Vec<(u64, u64)>, i32),
    WritePoints(Vec<Vec<u64>>, i32),
    EraseBlock(Vec<(u64, u64)>),
    ErasePoints(Vec<Vec<u64>>),
    Resize(Vec<u64>),
    Read(Vec<(u64, u64)>),
    ReadPoints(Vec<Vec<u64>>),
    Defined(Vec<(u64, u64)>),
    DefinedAll,
    /// Every stored chunk is read and written back, section by section.
    Sections,
    Cache(u64),
    Flush,
    Reopen,
}

fn setup() -> impl Strategy<Value = Setup> {
    (1usize..=4).prop_flat_map(|rank| {
        let side = match rank {
            1 => 1..=40u64,
            2 => 1..=12,
            3 => 1..=6,
            _ => 1..=4,
        };
        let room = prop_oneof![2 => Just(0u64), 1 => 1..=9u64];
        let axis = (side, 1..=7u64, prop::bool::weighted(0.4), room);
        let filters = prop_oneof![
            Just(Filters::Default),
            Just(Filters::None),
            Just(Filters::ValuesOnly),
            Just(Filters::LocationsOnly)
        ];
        let cache = prop_oneof![Just(0u64), Just(500), Just(64 << 20)];
        let single = prop::bool::weighted(0.1);
        let axes = prop::collection::vec(axis, rank);
        let rest = (any::<usize>(), cache, 1..=2usize, single, prop::bool::weighted(0.25));
        (axes, filters, rest).prop_map(
            |(axes, filters, (datatype, cache, threads, single, plain_edges))| {
                let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
                let unlimited: Vec<bool> = axes.iter().map(|axis| axis.2 && !single).collect();
                let room = axes.iter().map(|axis| if single { 0 } else { axis.3 }).collect();
                let chunk = axes.iter().map(|&(side, chunk, free, room)| match (single, free) {
                    (true, _) => side,
                    (false, true) => chunk,
                    (false, false) => chunk.min(side + room),
                });
                let chunk = chunk.collect();
                Setup {
                    shape,
                    chunk,
                    unlimited,
                    room,
                    plain_edges,
                    filters,
                    datatype,
                    cache,
                    threads,
                }
            },
        )
    })
}

/// Numbers that are fitted to the shape of the moment when a step is carried out.
fn step(rank: usize) -> impl Strategy<Value = Step> {
    let block = || prop::collection::vec((any::<u64>(), any::<u64>()), rank);
    let points = || prop::collection::vec(prop::collection::vec(any::<u64>(), rank), 0..12);
    prop_oneof![
        4 => (block(), any::<i32>()).prop_map(|(block, seed)| Step::WriteBlock(block, seed)),
        4 => (points(), any::<i32>()).prop_map(|(points, seed)| Step::WritePoints(points, seed)),
        2 => block().prop_map(Step::EraseBlock),
        1 => points().prop_map(Step::ErasePoints),
        1 => prop::collection::vec(any::<u64>(), rank).prop_map(Step::Resize),
        2 => block().prop_map(Step::Read),
        1 => points().prop_map(Step::ReadPoints),
        2 => block().prop_map(Step::Defined),
        1 => Just(Step::DefinedAll),
        1 => Just(Step::Sections),
        1 => prop_oneof![Just(0u64), Just(300), Just(2000), Just(64 << 20)].prop_map(Step::Cache),
        1 => Just(Step::Flush),
        1 => Just(Step::Reopen),
    ]
}

fn create(path: &Path, setup: &Setup, context: &Context) -> (File, Dataset) {
    let file = File::options().context(context).create(path).unwrap();
    let max = setup.shape.iter().zip(&setup.room).zip(&setup.unlimited);
    let max: Vec<Option<u64>> =
        max.map(|((&side, &room), &free)| (!free).then_some(side + room)).collect();
    let datatype = setup.datatype();
    let fill = vec![0xFF; datatype.size()];
    let builder = file.new_dataset_of(datatype).shape(setup.shape.clone()).max_shape(max);
    let builder = builder.chunk(setup.chunk.clone()).sparse().fill_bytes(fill);
    let builder = match setup.filters {
        Filters::Default => builder,
        Filters::None => builder.no_filters(),
        Filters::ValuesOnly => {
            builder.location_filters(vec![]).value_filters(vec![FilterSpec::deflate(6)])
        }
        Filters::LocationsOnly => {
            let locations = vec![FilterSpec::shuffle(4), FilterSpec::deflate(1)];
            builder.location_filters(locations).value_filters(vec![])
        }
    };
    let builder = if setup.plain_edges { builder.dont_filter_partial_chunks() } else { builder };
    let dataset = builder.create("group/cells").unwrap();
    (file, dataset)
}

fn columns_of(points: &[Vec<u64>], rank: usize) -> Vec<Vec<u32>> {
    (0..rank).map(|axis| points.iter().map(|point| point[axis] as u32).collect()).collect()
}

/// A block inside `shape`, or nothing where the shape is empty.
fn fit_block(block: &[(u64, u64)], shape: &[u64]) -> Option<(Vec<u64>, Vec<u64>)> {
    let axes = block.iter().zip(shape).map(|(&(start, count), &side)| {
        let start = start.checked_rem(side)?;
        Some((start, count % (side - start) + 1))
    });
    Some(axes.collect::<Option<Vec<_>>>()?.into_iter().unzip())
}

fn fit_points(points: &[Vec<u64>], shape: &[u64]) -> Vec<Vec<u64>> {
    if shape.contains(&0) {
        return Vec::new();
    }
    let fit = |point: &Vec<u64>| point.iter().zip(shape).map(|(&c, &side)| c % side).collect();
    points.iter().map(fit).collect()
}

/// All cells of a block in row-major order.
fn cells_of(start: &[u64], count: &[u64]) -> Vec<Vec<u64>> {
    let mut cells = vec![Vec::new()];
    for (&start, &count) in start.iter().zip(count) {
        cells = cells
            .into_iter()
            .flat_map(|cell: Vec<u64>| {
                (start..start + count).map(move |c| [cell.as_slice(), &[c]].concat())
            })
            .collect();
    }
    cells
}

/// A block, every other cell of it along each axis, or the block and the first cell of all; with the
/// cells in row-major order.
fn selected(start: &[u64], count: &[u64], kind: u64) -> (Selection, Vec<Vec<u64>>) {
    let rank = start.len();
    let block = Selection::block(start, count).unwrap();
    let selection = match kind % 4 {
        1 => {
            let half: Vec<u64> = count.iter().map(|count| count.div_ceil(2)).collect();
            Selection::hyperslab(start, &vec![2; rank], &half, &vec![1; rank]).unwrap()
        }
        2 => {
            let first = Selection::point(&vec![0; rank]).unwrap();
            let ends: Vec<u64> =
                start.iter().zip(count).map(|(start, count)| start + count).collect();
            block.or(&first, &ends).unwrap()
        }
        _ => block,
    };
    let mut cells = cells_of(start, count);
    cells.push(vec![0; rank]);
    cells.retain(|cell| selection.contains(cell));
    cells.sort();
    cells.dedup();
    (selection, cells)
}

fn inside(cells: &Cells, start: &[u64], count: &[u64]) -> Cells {
    let within = |cell: &Vec<u64>| {
        let mut axes = cell.iter().zip(start).zip(count);
        axes.all(|((&c, &start), &count)| c >= start && c < start + count)
    };
    cells.iter().filter(|(cell, _)| within(cell)).map(|(c, v)| (c.clone(), v.clone())).collect()
}

fn defined(dataset: &Dataset, selection: &Selection) -> Cells {
    let found = dataset.read_defined_bytes(selection).unwrap();
    let points = found.coordinates.chunks_exact(found.rank).map(<[u64]>::to_vec);
    points.zip(found.values.chunks_exact(dataset.datatype().size()).map(<[u8]>::to_vec)).collect()
}

/// One column of coordinates per axis, where the dataset has numbers.
fn check_columns(dataset: &Dataset, selection: &Selection, expected: &Cells) {
    if *dataset.datatype() != Datatype::i32_le() {
        return;
    }
    let columns = dataset.read_columns::<u32, i32>(selection).unwrap();
    let coordinates = &columns.coordinates;
    let cell = |at: usize| coordinates.iter().map(|axis| u64::from(axis[at])).collect();
    let values = columns.values.iter().enumerate();
    let found: Cells = values.map(|(at, v)| (cell(at), v.to_le_bytes().to_vec())).collect();
    assert_eq!(&found, expected);
    assert_eq!(columns.values.len(), expected.len(), "each cell once");
    assert_eq!(&dataset.defined_columns::<u32>(selection).unwrap(), coordinates);
    let wide = dataset.read_columns::<u64, i32>(selection).unwrap();
    assert_eq!(wide.values, columns.values);
}

fn check_all(dataset: &Dataset, model: &Cells) {
    assert_eq!(&defined(dataset, &Selection::all()), model);
    assert_eq!(dataset.count_defined(..).unwrap(), model.len() as u64);
}

fn apply(dataset: &Dataset, model: &mut Cells, setup: &Setup, step: &Step) {
    let (shape, size) = (dataset.shape(), dataset.datatype().size());
    let value_of = |model: &Cells, cell| model.get(cell).cloned().unwrap_or(vec![0xFF; size]);
    match step {
        Step::WriteBlock(block, seed) => {
            let Some((start, count)) = fit_block(block, &shape) else { return };
            let (selection, cells) = selected(&start, &count, *seed as u64);
            let values = elements(*seed, cells.len(), size);
            dataset.write_bytes(selection, &values.concat()).unwrap();
            model.extend(cells.into_iter().zip(values));
        }
        Step::WritePoints(points, seed) => {
            let points = fit_points(points, &shape);
            let values = elements(*seed, points.len(), size);
            let list = points.concat();
            let list = Points::list(shape.len(), &list).unwrap();
            dataset.write_bytes_at(&list, &values.concat()).unwrap();
            model.extend(points.into_iter().zip(values));
        }
        Step::EraseBlock(block) => {
            let Some((start, count)) = fit_block(block, &shape) else { return };
            let (selection, cells) = selected(&start, &count, block[0].0);
            dataset.erase(selection).unwrap();
            for cell in cells {
                model.remove(&cell);
            }
        }
        Step::ErasePoints(points) => {
            let points = fit_points(points, &shape);
            if points.len().is_multiple_of(2) {
                let selection = Selection::points(shape.len(), points.concat()).unwrap();
                dataset.erase(selection).unwrap();
            } else {
                let columns = columns_of(&points, shape.len());
                dataset.erase_at(&Points::columns(&columns).unwrap()).unwrap();
            }
            for point in &points {
                model.remove(point);
            }
        }
        Step::Resize(sides) => {
            let limits = setup.shape.iter().zip(&setup.room).zip(&setup.unlimited);
            let limits =
                limits.map(|((&side, &room), &free)| if free { 2 * side } else { side + room });
            let sides: Vec<u64> =
                sides.iter().zip(limits).map(|(&new, limit)| new % (limit + 1)).collect();
            dataset.resize(&sides).unwrap();
            model.retain(|cell, _| cell.iter().zip(&sides).all(|(c, side)| c < side));
        }
        Step::Read(block) => {
            let Some((start, count)) = fit_block(block, &shape) else { return };
            let (selection, cells) = selected(&start, &count, block[0].1);
            let expected = cells.iter().flat_map(|cell| value_of(model, cell));
            let found = dataset.read_bytes(selection).unwrap();
            assert_eq!(found, expected.collect::<Vec<_>>());
        }
        Step::ReadPoints(points) => {
            let points = fit_points(points, &shape);
            let expected = points.iter().flat_map(|cell| value_of(model, cell));
            let expected: Vec<u8> = expected.collect();
            let selection = Selection::points(shape.len(), points.concat()).unwrap();
            assert_eq!(dataset.read_bytes(selection).unwrap(), expected);
            if *dataset.datatype() == Datatype::i32_le() {
                let columns = columns_of(&points, shape.len());
                let columns = Points::columns(&columns).unwrap();
                let found = dataset.read_at::<i32>(&columns).unwrap();
                let found: Vec<u8> = found.iter().flat_map(|value| value.to_le_bytes()).collect();
                assert_eq!(found, expected);
            }
        }
        Step::Defined(block) => {
            let Some((start, count)) = fit_block(block, &shape) else { return };
            let expected = inside(model, &start, &count);
            let selection = Selection::block(&start, &count).unwrap();
            let defined = dataset.defined(&selection).unwrap();
            assert_eq!(defined.count(&shape), expected.len() as u64);
            assert!(expected.keys().all(|cell| defined.contains(cell)));
            assert_eq!(self::defined(dataset, &selection), expected);
            check_columns(dataset, &selection, &expected);
        }
        Step::DefinedAll => check_columns(dataset, &Selection::all(), model),
        Step::Sections => {
            for chunk in dataset.structured_chunks().unwrap().list().unwrap() {
                let sections = dataset.read_structured_chunk(&chunk.offset).unwrap().unwrap();
                dataset.write_structured_chunk(&chunk.offset, &sections).unwrap();
            }
        }
        Step::Flush => dataset.flush().unwrap(),
        Step::Reopen | Step::Cache(_) => unreachable!("handled by the caller"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, max_shrink_iters: 4000, ..Default::default() })]

    #[test]
    fn a_sparse_dataset_behaves_like_a_dictionary_of_cells(
        (setup, steps) in setup().prop_flat_map(|setup| {
            let rank = setup.shape.len();
            (Just(setup), prop::collection::vec(step(rank), 1..60))
        })
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.h5");
        let context =
            Context::builder().cache_bytes(setup.cache).threads(setup.threads).build().unwrap();
        let (mut file, mut dataset) = create(&path, &setup, &context);
        let mut model = Cells::new();
        for step in &steps {
            if let Step::Cache(bytes) = step {
                context.set_cache_bytes(*bytes).unwrap();
            } else if matches!(step, Step::Reopen) {
                drop(dataset);
                file.close().unwrap();
                file = File::options().context(&context).edit(&path).unwrap();
                dataset = file.dataset("group/cells").unwrap();
                check_all(&dataset, &model);
            } else {
                apply(&dataset, &mut model, &setup, step);
            }
        }
        check_all(&dataset, &model);
        drop(dataset);
        file.close().unwrap();
        let file = File::open(&path).unwrap();
        check_all(&file.dataset("group/cells").unwrap(), &model);
    }
}
