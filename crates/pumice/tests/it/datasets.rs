//! Dense datasets of every layout against a plain array, and what makes them different from sparse.

use pumice::{Context, Dataset, Datatype, File, Selection};

fn every_layout(file: &File) -> Vec<Dataset> {
    let shape = || file.new_dataset::<i32>().shape([7, 9]).fill_value(5i32);
    vec![
        shape().create("contiguous").unwrap(),
        shape().compact().create("compact").unwrap(),
        shape().chunk([3, 4]).create("chunked").unwrap(),
        shape().chunk([7, 9]).deflate(1).create("single").unwrap(),
        shape().chunk([3, 4]).shuffle().deflate(4).fletcher32().create("filtered").unwrap(),
        shape().chunk([2, 5]).max_shape([None, Some(9)]).zstd(1).create("extensible").unwrap(),
        shape().chunk([2, 5]).max_shape([None, None]).create("tree").unwrap(),
    ]
}

#[test]
fn windows_are_written_and_read_in_every_layout_before_and_after_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dense.h5");
    let file = File::create(&path).unwrap();
    let mut model = [[5i32; 9]; 7];
    for (r, row) in model.iter_mut().enumerate().skip(1).take(4) {
        for (c, cell) in row.iter_mut().enumerate().skip(2).take(5) {
            *cell = (10 * r + c) as i32;
        }
    }
    let window: Vec<i64> = (1..5).flat_map(|r| (2..7).map(move |c| 10 * r + c)).collect();
    let check = |dataset: &Dataset| {
        let all: Vec<i32> = dataset.read(..).unwrap();
        assert_eq!(all, model.as_flattened(), "{}", dataset.path());
        let column: Vec<f64> = dataset.read((.., 3)).unwrap();
        let expected: Vec<f64> = model.iter().map(|row| f64::from(row[3])).collect();
        assert_eq!(column, expected, "{}", dataset.path());
        let points = Selection::points(2, vec![6, 8, 1, 2, 6, 8]).unwrap();
        assert_eq!(dataset.read::<i32>(points).unwrap(), [5, 12, 5], "{}", dataset.path());
    };
    for dataset in every_layout(&file) {
        dataset.write((1..5, 2..7), &window).unwrap();
        check(&dataset);
    }
    file.close().unwrap();
    let file = File::open(&path).unwrap();
    for member in file.members().unwrap() {
        check(&file.dataset(&member.name).unwrap());
    }
}

#[test]
fn dense_cells_cannot_be_erased_but_be_reset_to_the_fill_value() {
    let file = File::in_memory().unwrap();
    for dataset in every_layout(&file) {
        dataset.write(.., &[1i32; 63]).unwrap();
        let error = dataset.erase((0..2, ..)).unwrap_err().to_string();
        assert!(error.contains("sparse"), "{error}");
        dataset.reset((0..2, ..)).unwrap();
        let sum: i64 = dataset.read::<i64>(..).unwrap().iter().sum();
        assert_eq!(sum, 18 * 5 + 45, "{}", dataset.path());
    }
}

#[test]
fn cells_that_leave_the_extent_come_back_as_fill() {
    for cache in [0, 1 << 20] {
        let context = Context::builder().cache_bytes(cache).threads(1).build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("resize.h5");
        let file = File::options().context(&context).create(path).unwrap();
        let builder = file.new_dataset::<u8>().shape([5, 5]).max_shape([None, Some(8)]);
        let dataset = builder.chunk([2, 3]).deflate(1).fill_value(9u8).create("d").unwrap();
        dataset.write(.., &[1u8; 25]).unwrap();
        dataset.resize([3, 2]).unwrap();
        dataset.resize([4, 4]).unwrap();
        #[rustfmt::skip]
        let expected = [
            1, 1, 9, 9,
            1, 1, 9, 9,
            1, 1, 9, 9,
            9, 9, 9, 9,
        ];
        assert_eq!(dataset.read::<u8>(..).unwrap(), expected);
    }
}

#[test]
fn scalars_and_empty_shapes_work() {
    let file = File::in_memory().unwrap();
    let scalar = file.new_dataset::<f64>().create("scalar").unwrap();
    scalar.write(.., &[2.5f64]).unwrap();
    assert_eq!(scalar.read::<f64>(..).unwrap(), [2.5]);
    scalar.write_point(&[], 3.5f64).unwrap();
    assert_eq!(scalar.read::<f64>(..).unwrap(), [3.5]);
    assert!(scalar.write_point(&[0], 3.5f64).is_err());
    let name = file.new_strings().create("name").unwrap();
    name.write_string_point(&[], "obsidian").unwrap();
    assert_eq!(name.read_strings(..).unwrap().get(0), Some(&b"obsidian"[..]));
    let sequence = Datatype::varlen(Datatype::i32_le(), 16);
    let sequence = file.new_dataset_of(sequence).create("sequence").unwrap();
    sequence.write_sequence_point(&[], &[1i32, 2]).unwrap();
    assert_eq!(&sequence.read_sequences::<i32>(..).unwrap()[0], &[1, 2][..]);
    let nothing = file.new_dataset::<f64>().null().create("nothing").unwrap();
    assert!(nothing.write_point(&[], 1.0f64).is_err());
    let empty = file.new_dataset::<f64>().shape([0, 4]).create("empty").unwrap();
    assert_eq!(empty.read::<f64>(..).unwrap(), []);
    empty.write(.., &[] as &[f64]).unwrap();
}

#[test]
fn a_vast_sparse_array_costs_what_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vast.h5");
    let file = File::create(&path).unwrap();
    let builder = file.new_dataset::<f32>().shape([1 << 40, 1 << 20]).chunk([1000, 1000]);
    let dataset = builder.sparse().create("vast").unwrap();
    let points = [[0, 0], [1 << 39, 7], [(1 << 40) - 1, (1 << 20) - 1]];
    dataset.write_points(&points, &[1.0f32, 2.0, 3.0]).unwrap();
    assert_eq!(dataset.read_defined::<f32>(..).unwrap().values, [1.0, 2.0, 3.0]);
    dataset.erase((1.., ..)).unwrap();
    assert_eq!(dataset.count_defined(..).unwrap(), 1);
    file.close().unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() < 10_000);
    assert_eq!(File::open(&path).unwrap().dataset("vast").unwrap().count_defined(..).unwrap(), 1);
}

#[test]
fn chunked_datasets_may_be_empty() {
    let file = File::in_memory().unwrap();
    for sparse in [false, true] {
        let builder = file.new_dataset::<u8>().shape([0, 4]).chunk([2, 2]);
        let builder = if sparse { builder.sparse() } else { builder };
        let dataset = builder.create(if sparse { "sparse" } else { "dense" }).unwrap();
        assert_eq!(dataset.read::<u8>(..).unwrap(), []);
    }
}

#[test]
fn freed_space_is_reused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reuse.h5");
    let file = File::create(&path).unwrap();
    let builder = file.new_dataset::<u64>().shape([64, 64]).chunk([16, 16]).zstd(1);
    let dataset = builder.create("d").unwrap();
    let (mut first, mut length) = (0, 0);
    for round in 0..20u64 {
        let values: Vec<u64> = (0..4096).map(|i| (i * 2654435761) ^ round).collect();
        dataset.write(.., &values).unwrap();
        file.flush().unwrap();
        let now = std::fs::metadata(&path).unwrap().len();
        first = if round == 0 { now } else { first };
        // Old and new chunks exist side by side until the commit; more than both is a leak.
        assert!(now < first * 5 / 2, "round {round}: {now} after {first}");
        length = now;
    }
    drop(dataset);
    file.unlink("d").unwrap();
    file.flush().unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() < length / 10);
}

#[test]
fn wrong_requests_are_errors_that_name_the_dataset() {
    let file = File::in_memory().unwrap();
    let dataset = file.new_dataset::<i32>().shape([4, 4]).create("a/b").unwrap();
    for error in [
        dataset.read::<i32>((0..5, 0..1)).unwrap_err(),
        dataset.read::<i32>(0..4).unwrap_err(),
        dataset.write(.., &[1i32; 15]).unwrap_err(),
        dataset.resize([8, 8]).unwrap_err(),
        dataset.attribute("none").unwrap_err(),
    ] {
        assert!(error.to_string().starts_with("/a/b: "), "{error}");
    }
    assert!(file.dataset("a/c").is_err());
    assert!(file.new_dataset::<i32>().shape([4]).create("a/b").is_err(), "exists already");
}

#[test]
fn sparse_datasets_keep_undefined_zero_and_erased_apart() {
    let file = File::in_memory().unwrap();
    let dataset = file.new_dataset::<f32>().shape([10, 10]).sparse().create("s").unwrap();
    dataset.write_points(&[[1, 1], [2, 2]], &[0.0f32, 4.0]).unwrap();
    assert!(dataset.is_defined(&[1, 1]).unwrap(), "a zero is defined");
    assert!(!dataset.is_defined(&[0, 0]).unwrap());
    dataset.erase(Selection::point(&[2, 2]).unwrap()).unwrap();
    assert!(!dataset.is_defined(&[2, 2]).unwrap());
    assert_eq!(dataset.read::<f32>((2, 2)).unwrap(), [0.0]);
}

#[test]
fn an_erased_chunk_leaves_the_file() {
    let file = File::in_memory().unwrap();
    let builder = file.new_dataset::<f32>().shape([100, 100]).chunk([10, 10]).sparse();
    let dataset = builder.create("s").unwrap();
    dataset.write((0..30, 0..30), &[1.0f32; 900]).unwrap();
    assert_eq!(dataset.chunk_count().unwrap(), 9);
    dataset.erase((0..10, ..)).unwrap();
    assert_eq!(dataset.chunk_count().unwrap(), 6);
    dataset.erase(..).unwrap();
    assert_eq!((dataset.chunk_count().unwrap(), dataset.storage_size().unwrap()), (0, 0));
}

#[test]
fn many_threads_read_what_one_wrote() {
    let file = File::in_memory().unwrap();
    let builder = file.new_dataset::<u32>().shape([256, 256]).chunk([32, 32]).sparse();
    let dataset = builder.create("s").unwrap();
    let points: Vec<[u64; 2]> = (0..256).flat_map(|r| [[r, r], [r, 255 - r]]).collect();
    let values: Vec<u32> = points.iter().map(|p| (p[0] * 1000 + p[1] + 1) as u32).collect();
    dataset.write_points(&points, &values).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let dataset = &dataset;
            scope.spawn(move || {
                for row in (thread..256).step_by(8) {
                    let line: Vec<u32> = dataset.read((row, ..)).unwrap();
                    assert_eq!(line[row as usize], (row * 1001 + 1) as u32);
                    assert_eq!(line.iter().filter(|&&v| v != 0).count(), 2);
                }
            });
        }
    });
}

#[test]
fn a_buffer_that_cannot_exist_is_an_error() {
    let file = File::in_memory().unwrap();
    let builder = file.new_dataset::<u8>().shape([1 << 31, 1 << 31]).chunk([1024, 1024]).sparse();
    let dataset = builder.create("vast").unwrap();
    assert!(dataset.read::<u8>(..).is_err());
    assert!(dataset.read_bytes(..).is_err());
}

#[test]
fn resetting_what_was_never_written_stores_nothing() {
    let file = File::in_memory().unwrap();
    for dataset in every_layout(&file).iter().filter(|dataset| dataset.path() != "/compact") {
        dataset.reset(..).unwrap();
        assert_eq!(dataset.storage_size().unwrap(), 0, "{}", dataset.path());
    }
}

#[test]
fn every_cell_of_a_dense_dataset_is_defined() {
    let file = File::in_memory().unwrap();
    for dataset in every_layout(&file) {
        dataset.write((1, 1..3), &[7i32, 8]).unwrap();
        let window = Selection::block(&[1, 0], &[2, 3]).unwrap();
        assert!(dataset.defined(&window).unwrap().same_cells(&window, &[7, 9]).unwrap());
        assert_eq!(dataset.count_defined(..).unwrap(), 63);
        assert!(dataset.is_defined(&[6, 8]).unwrap());
        assert!(dataset.is_defined(&[7, 0]).is_err(), "there is no such cell");
        let found = dataset.read_defined::<i32>(&window).unwrap();
        assert_eq!(found.values, [5, 7, 8, 5, 5, 5], "{}", dataset.path());
        assert_eq!(found.coordinates, [1, 0, 1, 1, 1, 2, 2, 0, 2, 1, 2, 2]);
        let points = vec![[6, 8], [1, 2]];
        let found = dataset.read_defined::<i32>(&points).unwrap();
        assert_eq!((found.values, found.coordinates), (vec![5, 8], vec![6, 8, 1, 2]));
    }
}

#[test]
fn points_far_out_keep_their_coordinates() {
    let file = File::in_memory().unwrap();
    let far = (1u64 << 63) + 5;
    let builder =
        file.new_dataset::<u8>().shape([u64::MAX - 1]).chunk([u64::from(u32::MAX)]).sparse();
    let dataset = builder.create("far").unwrap();
    dataset.write_points(&[[far], [3]], &[1u8, 2]).unwrap();
    let defined = dataset.read_defined::<u8>(..).unwrap();
    assert_eq!((defined.coordinates, defined.values), (vec![3, far], vec![2, 1]));
    assert_eq!(dataset.defined(..).unwrap().count(&[u64::MAX - 1]), 2);
}

#[test]
fn elements_of_no_bytes_are_refused() {
    use pumice::types::{CharacterSet, FixedString, StringPadding};
    let (padding, charset) = (StringPadding::NullPad, CharacterSet::Ascii);
    let datatype = pumice::Datatype::String(FixedString { size: 0, padding, charset });
    let file = File::in_memory().unwrap();
    assert!(file.new_dataset_of(datatype).shape([3]).compact().create("d").is_err());
}

#[test]
fn ranges_of_one_dimension_stand_alone_and_vectors_are_attributes() {
    let file = File::in_memory().unwrap();
    let dataset = file.new_dataset::<u8>().shape([5]).create("d").unwrap();
    dataset.write(.., &[0u8, 1, 2, 3, 4]).unwrap();
    assert_eq!(dataset.read::<u8>(3..).unwrap(), [3, 4]);
    assert_eq!(dataset.read::<u8>(..2).unwrap(), [0, 1]);
    assert_eq!(dataset.read::<u8>(1..=2).unwrap(), [1, 2]);
    assert_eq!(dataset.read::<u8>(4).unwrap(), [4]);
    dataset.set_attribute("text", String::from("long")).unwrap();
    dataset.set_attribute("list", vec![1i32, 2]).unwrap();
    assert_eq!(dataset.attribute("list").unwrap().read::<i32>().unwrap(), [1, 2]);
}

/// Has 10^8 chunks: a walk over them, or over them for each point, would not end.
#[test]
fn asking_for_many_points_costs_by_the_point() {
    let file = File::in_memory().unwrap();
    let side = 200_000;
    let builder = file.new_dataset::<u8>().shape([side, side]).chunk([20, 20]).sparse();
    let dataset = builder.no_filters().create("d").unwrap();
    let mixed = (0..5_000u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let points: Vec<u64> = mixed.flat_map(|h| [(h >> 20) % side, (h >> 42) % side]).collect();
    dataset.write_coordinates(&points, &[1u8; 5_000]).unwrap();
    let all = dataset.count_defined(..).unwrap();
    let points = Selection::points(2, points).unwrap();
    assert_eq!(dataset.count_defined(&points).unwrap(), all);
    dataset.erase(&points).unwrap();
    assert_eq!(dataset.count_defined(..).unwrap(), 0);
}

/// Has 6 x 10^11 chunks: a walk over those of the union would not end.
#[test]
fn asking_for_a_vast_union_costs_by_what_is_stored() {
    let file = File::in_memory().unwrap();
    let (side, half) = (80_000_000u64, 40_000_000u64);
    let builder = file.new_dataset::<u8>().shape([side, side]).chunk([100, 100]).sparse();
    let dataset = builder.create("d").unwrap();
    dataset.write_points(&[[1, 1], [side - 1, side - 1], [1, side - 1]], &[1u8, 2, 3]).unwrap();
    let blocks = [0, half].map(|at| Selection::block(&[at, at], &[half, half]).unwrap());
    let union = Selection::union_of(2, blocks, &[side, side]).unwrap();
    assert_eq!(dataset.count_defined(&union).unwrap(), 2);
    assert_eq!(dataset.read_defined::<u8>(&union).unwrap().values, [1, 2]);
}

/// Chunks larger than the cache, without filters: only what is asked for is read and written.
#[test]
fn chunks_too_large_for_the_cache_are_read_and_written_in_part() {
    let context = pumice::Context::builder().cache_bytes(10_000).threads(1).build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let options = File::options().context(&context);
    let file = options.create(folder.path().join("large.h5")).unwrap();
    let builder = file.new_dataset::<i32>().shape([300, 200]).chunk([150, 200]).fill_value(4i32);
    let dataset = builder.create("d").unwrap();
    let mut model = vec![4; 300 * 200];
    dataset.write(.., &model).unwrap();
    for round in 0..20 {
        let (row, column) = (round * 13 % 280, round * 29 % 180);
        let values: Vec<i32> = (0..300).map(|i| i + round as i32 * 1000).collect();
        dataset.write((row..row + 20, column..column + 15), &values).unwrap();
        for (i, value) in values.iter().enumerate() {
            model[(row as usize + i / 15) * 200 + column as usize + i % 15] = *value;
        }
        let line: Vec<i32> = (0..300).map(|row| model[row * 200 + column as usize]).collect();
        assert_eq!(dataset.read::<i32>((.., column..column + 1)).unwrap(), line);
    }
    assert_eq!(dataset.read::<i32>(..).unwrap(), model);
    let stats = context.stats();
    assert!(stats.direct >= 60, "{stats:?}");
    assert!(stats.bytes_fetched < 100 * 120_000, "{stats:?}");
}
