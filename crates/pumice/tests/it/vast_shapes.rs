//! Sparse arrays as large as HDF5 can say, in chunks that nobody chose: more chunks than 64 bits can count. Cells at
//! the far corners are found, as a map of cells finds them.

use pumice::{Dataset, File, MemoryStore, Points, Selection};
use std::collections::BTreeMap;
use std::sync::Arc;

const SIDE: u64 = u64::MAX - 1;

type Cells = BTreeMap<Vec<u64>, i32>;

/// All corners, and a cell beside each, in no order.
fn corners(rank: usize) -> Vec<Vec<u64>> {
    let side = |bits: usize, axis: usize, step: u64| match bits >> axis & 1 {
        0 => step,
        _ => SIDE - 1 - step,
    };
    let corner = |bits: usize| {
        let beside = move |step| (0..rank).map(move |axis| side(bits, axis, step)).collect();
        [0, 3].map(beside)
    };
    let mut corners: Vec<Vec<u64>> = (0..1 << rank).flat_map(corner).collect();
    corners.rotate_left(3);
    corners.reverse();
    corners
}

fn check(dataset: &Dataset, cells: &Cells) {
    let rank = dataset.shape().len();
    assert_eq!(dataset.count_defined(..).unwrap(), cells.len() as u64);
    let points: Vec<Vec<u64>> = corners(rank);
    let list = points.concat();
    let expected: Vec<i32> =
        points.iter().map(|point| cells.get(point).copied().unwrap_or(0)).collect();
    let selection = Selection::points(rank, list.clone()).unwrap();
    assert_eq!(dataset.read::<i32>(&selection).unwrap(), expected);
    let columns: Vec<Vec<u64>> =
        (0..rank).map(|axis| points.iter().map(|point| point[axis]).collect()).collect();
    let points_at = Points::columns(columns.iter().map(Vec::as_slice)).unwrap();
    assert_eq!(dataset.read_at::<i32>(&points_at).unwrap(), expected);
    for point in &points {
        assert_eq!(dataset.is_defined(point).unwrap(), cells.contains_key(point));
    }
    let found = dataset.read_defined::<i32>(..).unwrap();
    let found: Cells =
        found.coordinates.chunks(rank).map(<[u64]>::to_vec).zip(found.values).collect();
    assert_eq!(&found, cells);
    let columns = dataset.read_columns::<u64, i32>(..).unwrap();
    let place = |at: usize| columns.coordinates.iter().map(|column| column[at]).collect();
    let found: Cells = (0..columns.values.len()).map(place).zip(columns.values.clone()).collect();
    assert_eq!(&found, cells);
    let defined = dataset.defined(..).unwrap();
    assert_eq!(defined.count(&dataset.shape()), cells.len() as u64);
    assert_eq!(dataset.read::<i32>(&defined).unwrap(), cells.values().copied().collect::<Vec<_>>());
}

#[test]
fn cells_at_the_far_corners_of_vast_sparse_arrays_are_written_read_and_erased() {
    for rank in [1, 2, 3, 5] {
        let store = Arc::new(MemoryStore::default());
        let file = File::options().create_in(store.clone()).unwrap();
        let new = file.new_dataset::<i32>().shape(vec![SIDE; rank]).sparse();
        let dataset = new.create("d").unwrap();
        let (mut cells, points) = (Cells::new(), corners(rank));
        check(&dataset, &cells);
        let half = points.len() / 2;
        for (number, point) in points[..half].iter().enumerate() {
            dataset.write_point(point, number as i32 + 1).unwrap();
            cells.insert(point.clone(), number as i32 + 1);
        }
        let values: Vec<i32> = (0..points.len() - half).map(|number| 100 + number as i32).collect();
        dataset.write_coordinates(&points[half..].concat(), &values).unwrap();
        cells.extend(points[half..].iter().cloned().zip(values));
        // A block that ends where the array does.
        let (start, count) = (vec![SIDE - 2; rank], vec![2; rank]);
        let block = Selection::block(&start, &count).unwrap();
        let values: Vec<i32> = (0..1 << rank).map(|number| 1000 + number).collect();
        dataset.write(&block, &values).unwrap();
        assert_eq!(dataset.read::<i32>(&block).unwrap(), values);
        for (number, value) in values.into_iter().enumerate() {
            let cell = |axis| SIDE - 2 + (number >> (rank - 1 - axis) & 1) as u64;
            cells.insert((0..rank).map(cell).collect(), value);
        }
        check(&dataset, &cells);
        drop(dataset);
        file.close().unwrap();

        let file = File::options().edit_in(store.clone()).unwrap();
        let dataset = file.dataset("d").unwrap();
        check(&dataset, &cells);
        let gone = [points[0].clone(), points[half].clone()];
        let columns: Vec<[u64; 2]> = (0..rank).map(|axis| [gone[0][axis], gone[1][axis]]).collect();
        let gone_at = Points::columns(columns.iter().map(|column| &column[..])).unwrap();
        dataset.erase_at(&gone_at).unwrap();
        cells.retain(|point, _| !gone.contains(point));
        check(&dataset, &cells);
        drop(dataset);
        file.close().unwrap();
        check(&File::options().open_in(store).unwrap().dataset("d").unwrap(), &cells);
    }
}

#[test]
fn strings_at_the_far_corners_of_vast_sparse_arrays_are_kept() {
    for rank in [2, 3] {
        let store = Arc::new(MemoryStore::default());
        let file = File::options().create_in(store.clone()).unwrap();
        let new = file.new_strings().shape(vec![SIDE; rank]).sparse();
        let strings = new.create("d").unwrap();
        let points = corners(rank);
        let texts: Vec<String> = (0..points.len()).map(|number| format!("text {number}")).collect();
        let selection = Selection::points(rank, points.concat()).unwrap();
        strings.write_strings(&selection, &texts).unwrap();
        drop(strings);
        file.close().unwrap();
        let file = File::options().open_in(store).unwrap();
        let strings = file.dataset("d").unwrap();
        assert_eq!(strings.read_strings(&selection).unwrap().to_vec(), texts);
        let (coordinates, found) = strings.read_defined_strings(..).unwrap();
        let found: BTreeMap<&[u64], String> =
            coordinates.chunks(rank).zip(found.to_vec()).collect();
        let expected = points.iter().map(Vec::as_slice).zip(texts.clone()).collect();
        assert_eq!(found, expected);
    }
}
