//! Selections by steps, lists and masks read and write what a naive model of them does.

use proptest::prelude::*;
use pumice::{AxisCells, AxisRange, ErrorKind, File, Mask, Result, Select};

/// One axis of a selection, and the indices that it means.
#[derive(Clone, Debug)]
enum Axis {
    Index(u64),
    Range(u64, u64),
    Steps(u64, u64, usize),
    StepsTo(u64, u64, usize),
    StepsOn(u64, usize),
    List(Vec<u64>),
    Mask(Vec<bool>),
}

impl Axis {
    fn indices(&self, length: u64) -> Vec<u64> {
        match self {
            Self::Index(index) => vec![*index],
            Self::Range(start, end) => (*start..*end).collect(),
            Self::Steps(start, end, step) => (*start..*end).step_by(*step).collect(),
            Self::StepsTo(start, end, step) => (*start..=*end).step_by(*step).collect(),
            Self::StepsOn(start, step) => (*start..length).step_by(*step).collect(),
            Self::List(list) => list.clone(),
            Self::Mask(mask) => {
                let all = mask.iter().enumerate().filter(|(_, chosen)| **chosen);
                all.map(|(at, _)| at as u64).collect()
            }
        }
    }
}

impl AxisRange for Axis {
    fn pick(&self, length: u64) -> Result<AxisCells> {
        match self {
            Self::Index(index) => index.pick(length),
            Self::Range(start, end) => (*start..*end).pick(length),
            Self::Steps(start, end, step) => (*start..*end).step_by(*step).pick(length),
            Self::StepsTo(start, end, step) => (*start..=*end).step_by(*step).pick(length),
            Self::StepsOn(start, step) => (*start..).step_by(*step).pick(length),
            Self::List(list) => list.pick(length),
            Self::Mask(mask) => mask.pick(length),
        }
    }
}

fn axis(length: u64) -> impl Strategy<Value = Axis> {
    let (index, step) = (0..length, 1..5usize);
    let ends = (0..=length, 0..=length).prop_map(|(one, other)| (one.min(other), one.max(other)));
    prop_oneof![
        index.clone().prop_map(Axis::Index),
        ends.clone().prop_map(|(start, end)| Axis::Range(start, end)),
        (ends, step.clone()).prop_map(|((start, end), step)| Axis::Steps(start, end, step)),
        (index.clone(), index.clone(), step.clone()).prop_map(|(one, other, step)| Axis::StepsTo(
            one.min(other),
            one.max(other),
            step
        )),
        (0..length + 2, step).prop_map(|(start, step)| Axis::StepsOn(start, step)),
        prop::collection::btree_set(index, 0..6)
            .prop_map(|list| Axis::List(list.into_iter().collect())),
        prop::collection::vec(any::<bool>(), length as usize).prop_map(Axis::Mask),
    ]
}

const SHAPE: [u64; 3] = [7, 5, 6];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn products_of_axes_are_what_a_model_says(
        (first, second, third) in (axis(SHAPE[0]), axis(SHAPE[1]), axis(SHAPE[2])),
        layout in 0..3u8,
    ) {
        let file = File::in_memory().unwrap();
        let builder = file.new_dataset::<i32>().shape(SHAPE);
        let dataset = match layout {
            0 => builder,
            1 => builder.chunk([3, 2, 4]),
            _ => builder.chunk([3, 2, 4]).sparse(),
        };
        let dataset = dataset.create("d").unwrap();
        let all: Vec<i32> = (0..210).collect();
        dataset.write(.., &all).unwrap();
        let axes = [first, second, third];
        let mut wanted = Vec::new();
        for &i in &axes[0].indices(SHAPE[0]) {
            for &j in &axes[1].indices(SHAPE[1]) {
                for &k in &axes[2].indices(SHAPE[2]) {
                    wanted.push((i * 30 + j * 6 + k) as i32);
                }
            }
        }
        prop_assert_eq!(&dataset.read::<i32>(&axes).unwrap(), &wanted, "{:?}", axes);
        let cells = axes.select(&SHAPE).unwrap();
        let shape = axes.shape(&SHAPE, &cells).unwrap();
        let kept = axes.iter().zip(SHAPE).filter(|(axis, _)| !matches!(axis, Axis::Index(_)));
        let kept: Vec<u64> = kept.map(|(axis, long)| axis.indices(long).len() as u64).collect();
        prop_assert_eq!(shape, kept);

        let new: Vec<i32> = (0..wanted.len() as i32).map(|at| -1 - at).collect();
        dataset.write(&axes, &new).unwrap();
        let mut model = all;
        wanted.iter().zip(&new).for_each(|(&at, &value)| model[at as usize] = value);
        prop_assert_eq!(dataset.read::<i32>(..).unwrap(), model);
    }

    #[test]
    fn masks_of_all_cells_are_what_a_model_says(mask in prop::collection::vec(any::<bool>(), 210)) {
        let file = File::in_memory().unwrap();
        let dataset = file.new_dataset::<i32>().shape(SHAPE).chunk([3, 2, 4]).create("d").unwrap();
        let all: Vec<i32> = (0..210).collect();
        dataset.write(.., &all).unwrap();
        let wanted: Vec<i32> =
            all.iter().zip(&mask).filter(|(_, chosen)| **chosen).map(|(value, _)| *value).collect();
        prop_assert_eq!(dataset.read::<i32>(Mask(&mask)).unwrap(), wanted);
    }
}

#[test]
fn what_lies_outside_or_does_not_ascend_is_refused() {
    let file = File::in_memory().unwrap();
    let dataset = file.new_dataset::<u8>().shape([10, 4]).create("d").unwrap();
    let kind = |selection: &dyn Select| dataset.read::<u8>(selection).unwrap_err().kind();
    for (selection, wanted) in [
        (&((0..11u64).step_by(5), ..) as &dyn Select, ErrorKind::OutOfBounds),
        (&((0..=10u64).step_by(10), ..), ErrorKind::OutOfBounds),
        (&(&[3u64, 10], ..), ErrorKind::OutOfBounds),
        (&(10u64, ..), ErrorKind::OutOfBounds),
        (&(0..11u64, ..), ErrorKind::OutOfBounds),
        (&(vec![5u64, 3], ..), ErrorKind::Invalid),
        (&(vec![3u64, 3], ..), ErrorKind::Invalid),
        (&(.., vec![true; 3]), ErrorKind::RankMismatch),
        (&(.., .., 1u64), ErrorKind::RankMismatch),
        (&3u64, ErrorKind::RankMismatch),
        (&Mask(&[true; 39]), ErrorKind::RankMismatch),
    ] {
        assert_eq!(kind(selection), wanted, "{:?}", dataset.read::<u8>(selection));
    }
    // The last index is what counts, not the end of the range.
    assert_eq!(dataset.read::<u8>(((0..12).step_by(9), 0)).unwrap().len(), 2);
    assert_eq!(dataset.read::<u8>(((20..).step_by(9), 0)).unwrap().len(), 0);
    let none: Vec<u64> = Vec::new();
    assert_eq!(dataset.read::<u8>((none, ..)).unwrap().len(), 0);
}

#[test]
fn steps_of_long_axes_cost_nothing() {
    let file = File::in_memory().unwrap();
    let builder = file.new_dataset::<u8>().shape([1 << 40, 3]).chunk([1 << 20, 3]).sparse();
    let dataset = builder.create("d").unwrap();
    dataset.write((1 << 39, ..), &[1u8, 2, 3]).unwrap();
    assert_eq!(dataset.count_defined(((0..1 << 40).step_by(1 << 38), 1..)).unwrap(), 2);
}
