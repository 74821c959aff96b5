//! Random reads and writes of contiguous and compact datasets, checked against a plain array.

use proptest::prelude::*;
use pumice::{Context, Dataset, File, Selection};

const FILL: i32 = 9;

#[derive(Clone, Debug)]
enum Cells {
    Block(Vec<(u64, u64)>),
    /// Start, stride, count and block of each axis.
    Slab(Vec<(u64, u64, u64, u64)>),
    Points(Vec<u64>),
}

#[derive(Clone, Debug)]
enum Step {
    Write(Cells, i32),
    WriteConverted(Cells, i32),
    Read(Cells),
    ReadConverted(Cells),
    Erase(Cells),
    Reopen,
}

/// Shapes whose rows are near and far apart, and some of more than one piece.
fn shape() -> impl Strategy<Value = Vec<u64>> {
    prop_oneof![
        (1..60u64, 1..60u64).prop_map(|(rows, columns)| vec![rows, columns]),
        (2..40u64).prop_map(|rows| vec![rows, 3000]),
        Just(vec![700, 500]),
        Just(vec![3, 200, 600]),
        (1..5000u64).prop_map(|length| vec![length]),
    ]
}

fn cells(shape: Vec<u64>) -> impl Strategy<Value = Cells> {
    let total: u64 = shape.iter().product();
    let block = |side: u64| (0..side).prop_flat_map(move |at| (Just(at), 1..=side - at));
    let slab = |side: u64| {
        (0..side).prop_flat_map(move |start| {
            (1..=5u64, 1..=3u64).prop_flat_map(move |(stride, block)| {
                let block = block.min(stride).min(side - start);
                let most = (side - start - block) / stride + 1;
                (Just(start), Just(stride), 1..=most, Just(block))
            })
        })
    };
    let blocks: Vec<_> = shape.iter().map(|&side| block(side)).collect();
    let slabs: Vec<_> = shape.iter().map(|&side| slab(side)).collect();
    prop_oneof![
        blocks.prop_map(Cells::Block),
        slabs.prop_map(Cells::Slab),
        prop::collection::vec(0..total, 1..50).prop_map(Cells::Points),
    ]
}

fn steps(shape: Vec<u64>) -> impl Strategy<Value = Vec<Step>> {
    let cells = || cells(shape.clone());
    let step = prop_oneof![
        3 => (cells(), any::<i32>()).prop_map(|(cells, seed)| Step::Write(cells, seed)),
        2 => (cells(), any::<i32>()).prop_map(|(cells, seed)| Step::WriteConverted(cells, seed)),
        3 => cells().prop_map(Step::Read),
        2 => cells().prop_map(Step::ReadConverted),
        1 => cells().prop_map(Step::Erase),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..10)
}

/// The selection, and its cells in the order of its elements.
fn resolve(cells: &Cells, shape: &[u64]) -> (Selection, Vec<usize>) {
    let axes: Vec<Vec<u64>> = match cells {
        Cells::Block(axes) => axes.iter().map(|&(at, len)| (at..at + len).collect()).collect(),
        Cells::Slab(axes) => axes
            .iter()
            .map(|&(start, stride, count, block)| {
                (0..count).flat_map(|i| (0..block).map(move |j| start + i * stride + j)).collect()
            })
            .collect(),
        Cells::Points(points) => {
            let mut coordinates = Vec::new();
            for &point in points {
                let mut rest = point;
                let mut reversed: Vec<u64> = Vec::new();
                for &side in shape.iter().rev() {
                    reversed.push(rest % side);
                    rest /= side;
                }
                coordinates.extend(reversed.iter().rev());
            }
            let selection = Selection::points(shape.len(), coordinates).unwrap();
            return (selection, points.iter().map(|&point| point as usize).collect());
        }
    };
    let mut found = vec![0u64];
    for (axis, &side) in axes.iter().zip(shape) {
        found = found.iter().flat_map(|&at| axis.iter().map(move |i| at * side + i)).collect();
    }
    let found = found.into_iter().map(|cell| cell as usize).collect();
    let selection = match cells {
        Cells::Slab(axes) => {
            let part = |choose: fn(&(u64, u64, u64, u64)) -> u64| -> Vec<u64> {
                axes.iter().map(choose).collect()
            };
            let (start, stride) = (part(|axis| axis.0), part(|axis| axis.1));
            let (count, block) = (part(|axis| axis.2), part(|axis| axis.3));
            Selection::hyperslab(&start, &stride, &count, &block).unwrap()
        }
        Cells::Block(axes) => {
            let (start, count): (Vec<u64>, Vec<u64>) = axes.iter().copied().unzip();
            Selection::block(&start, &count).unwrap()
        }
        Cells::Points(_) => unreachable!("answered above"),
    };
    (selection, found)
}

fn apply(dataset: &Dataset, shape: &[u64], model: &mut [i32], step: &Step) {
    match step {
        Step::Write(cells, seed) | Step::WriteConverted(cells, seed) => {
            let (selection, places) = resolve(cells, shape);
            let values: Vec<i32> = (0..places.len() as i32).map(|i| seed.wrapping_add(i)).collect();
            if let Step::Write(..) = step {
                dataset.write(selection, &values).unwrap();
            } else {
                let wide: Vec<i64> = values.iter().map(|&value| value.into()).collect();
                dataset.write(selection, &wide).unwrap();
            }
            places.into_iter().zip(values).for_each(|(place, value)| model[place] = value);
        }
        Step::Read(cells) => {
            let (selection, places) = resolve(cells, shape);
            let wanted: Vec<i32> = places.into_iter().map(|place| model[place]).collect();
            assert_eq!(dataset.read::<i32>(selection).unwrap(), wanted);
        }
        Step::ReadConverted(cells) => {
            let (selection, places) = resolve(cells, shape);
            let wanted: Vec<f64> = places.into_iter().map(|place| model[place].into()).collect();
            assert_eq!(dataset.read::<f64>(selection).unwrap(), wanted);
        }
        Step::Erase(cells) => {
            let (selection, places) = resolve(cells, shape);
            let written = dataset.storage_size().unwrap() > 0;
            dataset.reset(selection).unwrap();
            places.into_iter().filter(|_| written).for_each(|place| model[place] = FILL);
        }
        Step::Reopen => {}
    }
}

fn run(shape: &[u64], compact: bool, steps: &[Step]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.h5");
    let context = Context::builder().threads(1).build().unwrap();
    let mut file = File::options().context(&context).create(&path).unwrap();
    let total = shape.iter().product::<u64>() as usize;
    let builder = file.new_dataset::<i32>().shape(shape.to_vec()).fill_value(FILL);
    let builder = if compact && total < 16_000 { builder.compact() } else { builder };
    let mut dataset = builder.create("d").unwrap();
    let mut model = vec![FILL; total];
    for step in steps {
        if matches!(step, Step::Reopen) {
            drop(dataset);
            file.close().unwrap();
            file = File::options().context(&context).edit(&path).unwrap();
            dataset = file.dataset("d").unwrap();
        }
        apply(&dataset, shape, &mut model, step);
    }
    assert!(dataset.read::<i32>(..).unwrap() == model);
    drop(dataset);
    file.close().unwrap();
    assert!(File::open(&path).unwrap().dataset("d").unwrap().read::<i32>(..).unwrap() == model);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_contiguous_dataset_behaves_like_an_array(
        (shape, steps) in shape().prop_flat_map(|shape| (Just(shape.clone()), steps(shape))),
        compact in any::<bool>(),
    ) {
        run(&shape, compact, &steps);
    }
}

/// A file of this length is not written to be read: its holes are zero.
#[test]
fn a_small_write_to_a_large_dataset_is_small() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.h5");
    let file = File::create(&path).unwrap();
    let (rows, columns) = (1u64 << 20, 1u64 << 12);
    let dataset = file.new_dataset::<u8>().shape([rows, columns]).create("d").unwrap();
    dataset.write((5, 7), &[1u8]).unwrap();
    assert_eq!(dataset.read::<u8>((5, 6..9)).unwrap(), [0, 1, 0]);
    assert_eq!(dataset.read::<u8>((rows - 1, columns - 1)).unwrap(), [0], "before any flush");
    drop(dataset);
    file.close().unwrap();
    let metadata = std::fs::metadata(&path).unwrap();
    assert!(metadata.len() > rows * columns);
    let taken = std::os::unix::fs::MetadataExt::blocks(&metadata) * 512;
    assert!(taken < 1 << 20, "{taken} bytes taken");
}

/// Space that was used before is not taken for zero.
#[test]
fn space_that_is_used_again_is_filled() {
    let file = File::in_memory().unwrap();
    for round in 0..4u8 {
        let dataset = file.new_dataset::<u8>().shape([5000]).create("d").unwrap();
        dataset.write(round as u64 * 3, &[7u8]).unwrap();
        let mut wanted = vec![0; 5000];
        wanted[round as usize * 3] = 7;
        assert_eq!(dataset.read::<u8>(..).unwrap(), wanted);
        dataset.write(.., &[0xffu8; 5000]).unwrap();
        file.flush().unwrap();
        drop(dataset);
        file.unlink("d").unwrap();
        file.flush().unwrap();
        // So that the freed space is not simply cut off the end.
        file.new_dataset::<u8>().shape([1]).create(&format!("end{round}")).unwrap();
    }
}
