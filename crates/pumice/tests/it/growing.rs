//! Appending, and dense frames in sparse datasets: what is there afterwards is what a naive model has.

use proptest::prelude::*;
use pumice::{ErrorKind, File};
use std::collections::BTreeMap;

#[test]
fn frames_are_appended_along_any_axis_of_every_layout() {
    let file = File::in_memory().unwrap();
    for axis in 0..3 {
        for sparse in [false, true] {
            let mut shape = [3, 3, 3];
            shape[axis] = 0;
            let max = std::array::from_fn::<_, 3, _>(|at| (at != axis).then_some(3));
            let builder = file.new_dataset::<i32>().shape(shape).max_shape(max).chunk([2, 2, 2]);
            let builder = if sparse { builder.sparse() } else { builder };
            let dataset = builder.create(&format!("{axis}{sparse}")).unwrap();
            let mut values = 0..;
            for frames in [1, 3, 0, 2] {
                let new: Vec<i32> = values.by_ref().take(9 * frames).collect();
                let start = dataset.shape()[axis];
                let end = start + frames as u64;
                assert_eq!(dataset.append(axis, &new).unwrap(), start..end);
                let mut part = [0..3, 0..3, 0..3];
                part[axis] = start..end;
                assert_eq!(dataset.read::<i32>(part).unwrap(), new, "{axis}, {sparse}");
            }
            assert_eq!(dataset.shape()[axis], 6);
            let error = dataset.append(axis, &[1; 10]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::CountMismatch, "{error}");
            assert_eq!(dataset.append(3, &[1; 9]).unwrap_err().kind(), ErrorKind::RankMismatch);
            assert!(dataset.append(axis, &["text"; 9]).is_err());
            assert_eq!(dataset.shape()[axis], 6, "nothing is left of what failed");
        }
    }
}

#[test]
fn several_threads_append_side_by_side() {
    let file = File::in_memory().unwrap();
    let log = file.new_dataset::<u64>().shape([0, 4]).max_shape([None, Some(4)]).chunk([16, 4]);
    let log = log.create("log").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let log = &log;
            scope.spawn(move || {
                for _ in 0..50 {
                    log.append(0, &[thread; 4]).unwrap();
                }
            });
        }
    });
    let rows = log.read::<u64>(..).unwrap();
    assert_eq!(log.shape(), [200, 4]);
    for thread in 0..4 {
        assert_eq!(rows.iter().filter(|&&value| value == thread).count(), 200);
    }
    assert!(rows.chunks(4).all(|row| row.iter().all(|value| value == &row[0])));
}

#[test]
fn strings_and_structs_are_appended_too() {
    let file = File::in_memory().unwrap();
    let names = file.new_dataset::<String>().shape([0]).max_shape([None]).create("names").unwrap();
    names.append(0, &["tuff"]).unwrap();
    assert_eq!(names.append(0, &["basalt", "sand"]).unwrap(), 1..3);
    assert_eq!(names.read::<String>(..).unwrap(), ["tuff", "basalt", "sand"]);
}

#[test]
fn points_of_new_frames_are_counted_from_their_beginning() {
    let file = File::in_memory().unwrap();
    let film = file.new_dataset::<u8>().shape([2, 4, 4]).max_shape([None, Some(4), Some(4)]);
    let film = film.sparse().create("film").unwrap();
    assert_eq!(film.append_points(0, 2, &[[1, 2, 3], [0, 0, 0]], &[7u8, 8]).unwrap(), 2..4);
    assert_eq!(film.read::<u8>((3, 2, 3)).unwrap(), [7]);
    assert_eq!(film.read::<u8>((2, 0, 0)).unwrap(), [8]);
    let error = film.append_points(0, 2, &[[2, 0, 0]], &[1u8]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfBounds);
    assert_eq!(film.shape(), [4, 4, 4]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn cells_with_the_value_are_undefined_and_others_are_defined(
        writes in prop::collection::vec(
            ((0..6u64, 0..6u64), (0..6u64, 0..6u64), prop::collection::vec(0..3u8, 36)), 1..5),
    ) {
        let file = File::in_memory().unwrap();
        let dataset = file.new_dataset::<u8>().shape([6, 6]).chunk([4, 3]).sparse().fill_value(9u8);
        let dataset = dataset.create("d").unwrap();
        let mut model = BTreeMap::new();
        for ((one, other), (left, right), values) in writes {
            let (rows, columns) = (one.min(other)..one.max(other) + 1, left.min(right)..left.max(right) + 1);
            let mut given = values.into_iter();
            let mut new = Vec::new();
            for row in rows.clone() {
                for column in columns.clone() {
                    let value = given.next().unwrap();
                    new.push(value);
                    match value {
                        1 => model.remove(&(row, column)),
                        value => model.insert((row, column), value),
                    };
                }
            }
            dataset.write_except((rows, columns), &new, 1).unwrap();
            let found = dataset.read_defined::<u8>(..).unwrap();
            let found: BTreeMap<_, _> =
                found.iter().map(|(point, value)| ((point[0], point[1]), *value)).collect();
            prop_assert_eq!(&found, &model);
        }
        let wrong = dataset.write_except(.., &[0u8; 35], 1).unwrap_err();
        prop_assert_eq!(wrong.kind(), ErrorKind::CountMismatch);
    }
}

#[test]
fn values_that_are_no_numbers_equal_themselves() {
    let file = File::in_memory().unwrap();
    let dataset = file.new_dataset::<f32>().shape([4]).sparse().create("d").unwrap();
    dataset.write_except(.., &[f32::NAN, 0.0, f32::NAN, 1.5], f32::NAN).unwrap();
    assert_eq!(dataset.read_defined::<f32>(..).unwrap().coordinates, [1, 3]);
    let dense = file.new_dataset::<f32>().shape([2]).create("dense").unwrap();
    dense.write_except(.., &[0.0f32, 2.0], 0.0).unwrap();
    assert_eq!(dense.read::<f32>(..).unwrap(), [0.0, 2.0]);
}
