//! Many compressed rows at once, which are stored while others are encoded, and new values for cells
//! that are stored without filters.

use pumice::{Context, Dataset, File, FilterSpec, MemoryStore, Points, Section};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const EDGE: u32 = 1500;

/// A matrix as a dictionary of cells.
type Model = BTreeMap<(u32, u32), f32>;

struct Rows {
    pointers: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f32>,
}

/// Rows that are irregular, some of them empty; `runs`: cells in runs.
fn rows(lines: u32, seed: u32, runs: bool) -> Rows {
    let mut rows = Rows { pointers: vec![0], columns: Vec::new(), values: Vec::new() };
    let mut state = seed;
    for row in 0..lines {
        let mut column = if row % 7 == 3 { EDGE } else { 0 };
        loop {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (step, len) = if runs { (20, 1 + state % 9) } else { (9, 1) };
            column += (state >> 20) % step;
            if column + len > EDGE {
                break;
            }
            rows.columns.extend(column..column + len);
            column += len + 1;
        }
        rows.pointers.push(rows.columns.len() as u32);
    }
    rows.values.extend((0..rows.columns.len()).map(|at| (at % 4096) as f32 + seed as f32));
    rows
}

fn write(dataset: &Dataset, model: &mut Model, rows: &Rows) {
    let points = Points::compressed_rows(&rows.pointers[..], &rows.columns[..]).unwrap();
    dataset.write_at(&points, &rows.values).unwrap();
    for (row, ends) in rows.pointers.windows(2).enumerate() {
        for at in ends[0] as usize..ends[1] as usize {
            model.insert((row as u32, rows.columns[at]), rows.values[at]);
        }
    }
}

fn check(dataset: &Dataset, model: &Model) {
    let found = dataset.read_columns::<u32, f32>(..).unwrap();
    let cells = found.coordinates[0].iter().zip(&found.coordinates[1]).zip(&found.values);
    let found: Model = cells.map(|((row, column), value)| ((*row, *column), *value)).collect();
    assert!(found == *model, "{} cells, not {}", found.len(), model.len());
}

#[test]
fn many_rows_are_what_was_written() {
    for (plain, runs) in [(false, false), (true, false), (false, true), (true, true)] {
        let store = Arc::new(MemoryStore::default());
        let file = File::options().create_in(store.clone()).unwrap();
        let new = file.new_dataset::<f32>().shape([EDGE.into(), EDGE.into()]).chunk([128, 200]);
        let new = new.sparse();
        let new = if plain { new.clear_filters(Section::Values) } else { new };
        let dataset = new.create("d").unwrap();
        let mut model = Model::new();
        // The last band of chunks is not complete; then all rows, some of them to chunks that are there.
        let part = rows(EDGE - 200, 1, runs);
        assert!(part.values.len() >= 1 << 18, "{} cells are not many", part.values.len());
        write(&dataset, &mut model, &part);
        check(&dataset, &model);
        write(&dataset, &mut model, &rows(EDGE, 2, runs));
        check(&dataset, &model);
        drop(dataset);
        file.close().unwrap();
        check(&File::options().open_in(store).unwrap().dataset("d").unwrap(), &model);
    }
}

#[test]
fn rows_that_do_not_ascend_are_written_all_the_same_and_rows_outside_not_at_all() {
    let file = File::in_memory().unwrap();
    let new =
        file.new_dataset::<f32>().shape([EDGE.into(), EDGE.into()]).chunk([128, 200]).sparse();
    let dataset = new.create("d").unwrap();
    let (mut model, mut rows) = (Model::new(), rows(EDGE, 3, false));
    let last = rows.columns.len() - 1;
    let column = std::mem::replace(&mut rows.columns[last], EDGE);
    let points = Points::compressed_rows(&rows.pointers[..], &rows.columns[..]).unwrap();
    assert!(dataset.write_at(&points, &rows.values).is_err());
    check(&dataset, &model);
    rows.columns[last] = column;
    rows.columns.swap(last - 1, last);
    rows.values.swap(last - 1, last);
    write(&dataset, &mut model, &rows);
    check(&dataset, &model);
}

#[test]
fn new_values_without_filters_take_the_place_of_the_old_ones() {
    let store = Arc::new(MemoryStore::default());
    let mut model = Model::new();
    let file = File::options().create_in(store.clone()).unwrap();
    let new =
        file.new_dataset::<f32>().shape([EDGE.into(), EDGE.into()]).chunk([128, 200]).sparse();
    let dataset = new.clear_filters(Section::Values).create("d").unwrap();
    write(&dataset, &mut model, &rows(EDGE, 4, false));
    drop(dataset);
    file.close().unwrap();
    let length = store.to_vec().len();
    for round in 0..3 {
        let file = File::options().edit_in(store.clone()).unwrap();
        let dataset = file.dataset("d").unwrap();
        let chosen: Vec<_> = model.keys().copied().skip(round).step_by(97).collect();
        let (down, across): (Vec<u32>, Vec<u32>) = chosen.iter().copied().unzip();
        let values: Vec<f32> = chosen.iter().map(|at| (at.0 + at.1) as f32 + 0.5).collect();
        dataset.write_at(&Points::columns([&down[..], &across[..]]).unwrap(), &values).unwrap();
        model.extend(chosen.into_iter().zip(values));
        check(&dataset, &model);
        file.flush().unwrap();
        // Every chunk has some of them.
        let written = dataset.cache_stats().bytes_written;
        assert_eq!(written, 4 * model.len() as u64, "locations need not be written again");
        drop(dataset);
        file.close().unwrap();
        assert_eq!(store.to_vec().len(), length, "round {round}");
        check(&File::options().open_in(store.clone()).unwrap().dataset("d").unwrap(), &model);
    }
    // A cell that comes needs another place.
    let file = File::options().edit_in(store.clone()).unwrap();
    let cell = (0..EDGE).map(|column| (3, column)).find(|cell| !model.contains_key(cell)).unwrap();
    let (row, column) = ([cell.0], [cell.1]);
    let points = Points::columns([&row[..], &column[..]]).unwrap();
    file.dataset("d").unwrap().write_at(&points, &[9.0f32]).unwrap();
    file.close().unwrap();
    model.insert(cell, 9.0);
    check(&File::options().open_in(store).unwrap().dataset("d").unwrap(), &model);
}

#[test]
fn a_chunk_of_more_cells_than_the_location_filter_takes_is_read_again() {
    let context = Context::builder().build().unwrap();
    let store = Arc::new(MemoryStore::default());
    let file = File::options().context(&context).create_in(store).unwrap();
    let new = file.new_dataset::<u8>().shape([4000, 4000]).chunk([4000, 4000]).sparse();
    let dataset = new.create("d").unwrap();
    // More than 2^22 cells without neighbours, in no pattern.
    let columns = (0..4000).flat_map(|row| (0..1200).map(move |at| 3 * at + (row * at) % 2));
    let columns: Vec<u32> = columns.collect();
    let pointers: Vec<u32> = (0..=4000).map(|row| row * 1200).collect();
    let points = Points::compressed_rows(&pointers[..], &columns[..]).unwrap();
    dataset.write_at(&points, &vec![7u8; columns.len()]).unwrap();
    file.flush().unwrap();
    context.evict().unwrap();
    assert_eq!(dataset.count_defined(..).unwrap(), columns.len() as u64);
    let found = dataset.read_columns::<u32, u8>((1234, ..)).unwrap();
    assert_eq!(found.coordinates[1], columns[1234 * 1200..1235 * 1200]);
}

#[test]
fn nobody_sees_some_rows_of_a_write_and_not_the_others() {
    for plain in [false, true] {
        let file = File::options().create_in(Arc::new(MemoryStore::default())).unwrap();
        let new = file.new_dataset::<f32>().shape([64, 64]).chunk([8, 64]).sparse();
        let new = if plain { new.clear_filters(Section::Values) } else { new };
        let dataset = new.create("d").unwrap();
        let pointers: Vec<u32> = (0..=64).map(|row| row * 8).collect();
        let columns: Vec<u32> = (0..64 * 8).map(|at| at % 8 * 7 + 1).collect();
        let points = Points::compressed_rows(&pointers[..], &columns[..]).unwrap();
        let write = |value: u32| dataset.write_at(&points, &[value as f32; 64 * 8]).unwrap();
        write(0);
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (1..400).for_each(write);
                ended.store(true, Ordering::Relaxed);
            });
            while !ended.load(Ordering::Relaxed) {
                let values = dataset.read_columns::<u32, f32>(..).unwrap().values;
                assert_eq!(values.len(), 64 * 8);
                assert!(values.iter().all(|value| *value == values[0]), "parts of two writes");
            }
        });
    }
}

#[test]
fn rows_of_an_array_without_columns_are_written() {
    let file = File::in_memory().unwrap();
    let new = file.new_dataset::<f32>().shape([3, 0]).max_shape([Some(3), None]).chunk([2, 2]);
    let dataset = new.sparse().create("d").unwrap();
    let points = Points::compressed_rows(&[0u32; 4][..], &[0u32; 0][..]).unwrap();
    dataset.write_at(&points, &[] as &[f32]).unwrap();
    assert_eq!(dataset.count_defined(..).unwrap(), 0);
}

#[test]
fn a_column_outside_leaves_everything_as_it_was() {
    let file = File::in_memory().unwrap();
    let new = file.new_dataset::<f32>().shape([u64::from(EDGE); 2]).chunk([100, 300]).sparse();
    let dataset = new.clear_filters(Section::Values).create("d").unwrap();
    for ascending in [true, false] {
        let mut wrong = rows(EDGE, 5, false);
        let last = wrong.columns.len() - 1;
        wrong.columns[if ascending { last } else { last / 2 }] = EDGE;
        let points = Points::compressed_rows(&wrong.pointers[..], &wrong.columns[..]).unwrap();
        assert!(dataset.write_at(&points, &wrong.values).is_err());
        assert_eq!(dataset.count_defined(..).unwrap(), 0);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_takes_no_more_room_than_it_has_bytes() {
    use std::os::unix::fs::MetadataExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("room.h5");
    let room = || {
        let facts = std::fs::metadata(&path).unwrap();
        (facts.blocks() * 512, facts.len())
    };
    let file = File::create(&path).unwrap();
    let new = file.new_dataset::<f32>().shape([u64::from(EDGE); 2]).chunk([100, 300]).sparse();
    let new = new.value_filters(vec![]).location_filters(vec![FilterSpec::location()]);
    let dataset = new.create("d").unwrap();
    let (mut model, mut rows) = (Model::new(), rows(EDGE, 1, false));
    assert!(rows.values.len() > 1 << 18, "enough for room to be made");
    write(&dataset, &mut model, &rows);
    drop(dataset);
    file.close().unwrap();
    let (first, length) = room();
    assert!(first <= length + (1 << 16), "{first} for {length}");
    // Other values for the same cells take the same place.
    let file = File::edit(&path).unwrap();
    let dataset = file.dataset("d").unwrap();
    rows.values.iter_mut().for_each(|value| *value += 1.0);
    write(&dataset, &mut model, &rows);
    check(&dataset, &model);
    drop(dataset);
    file.close().unwrap();
    let (again, length) = room();
    assert!(again <= length + (1 << 16), "{again} for {length}, {first} before");
    check(&File::open(&path).unwrap().dataset("d").unwrap(), &model);
}
