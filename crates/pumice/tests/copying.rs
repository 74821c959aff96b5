//! `copy_as`: between dense and sparse, other chunks and filters, three ways to say what is kept.

use pumice::{Dataset, File, FilterSpec, Keep, Section, Selection};

/// The sparse matrix of the programming model for sparse data, with the zero that is defined.
fn matrix(file: &File) -> Dataset {
    let builder = file.new_dataset::<i32>().shape([13, 10]).chunk([4, 5]).sparse();
    let matrix = builder.create("matrix").unwrap();
    let block: Vec<i32> = (0..18).map(|at| 66 + at / 6 * 30 + at % 6 * 3).collect();
    matrix.write((2..5, 2..8), &block).unwrap();
    matrix.write((6, 0..3), &[100, 0, -100]).unwrap();
    matrix.write_points(&[[5, 9], [11, 1], [12, 8]], &[2, 1, 3]).unwrap();
    matrix.set_attribute("unit", "counts").unwrap();
    matrix.set_attribute("scale", 2.5f64).unwrap();
    matrix
}

fn cells(dataset: &Dataset) -> Vec<(Vec<u64>, i64)> {
    let found = dataset.read_defined::<i64>(..).unwrap();
    let mut cells: Vec<_> = found.iter().map(|(at, &value)| (at.to_vec(), value)).collect();
    cells.sort();
    cells
}

#[test]
fn sparse_to_sparse_keeps_what_is_defined_exactly() {
    let file = File::in_memory().unwrap();
    let matrix = matrix(&file);
    let filters = [FilterSpec::deflate(9)];
    let builder = file.new_dataset_like(&matrix).sparse().chunk([3, 10]).no_filters();
    let builder = builder.section_filter(Section::Values, filters[0].clone());
    let copy = matrix.copy_as(builder, "a/copy", &Keep::Defined).unwrap();
    assert_eq!(cells(&copy), cells(&matrix));
    assert_eq!(copy.count_defined(..).unwrap(), 24);
    assert_eq!(copy.chunk(), Some(vec![3, 10]));
    assert_eq!(copy.section_filters().of(Section::Values), filters);
    assert_eq!(copy.attribute("unit").unwrap().read_string().unwrap(), "counts");
    assert_eq!(copy.attribute("scale").unwrap().read::<f64>().unwrap(), [2.5]);
}

#[test]
fn sparse_to_dense_and_back_by_an_excluded_value_loses_the_defined_zero() {
    let file = File::in_memory().unwrap();
    let matrix = matrix(&file);
    let dense = matrix.copy_as(file.new_dataset_like(&matrix), "dense", &Keep::Defined).unwrap();
    assert!(!dense.is_sparse());
    assert_eq!(dense.read::<i32>(..).unwrap(), matrix.read::<i32>(..).unwrap());

    let sparse = || file.new_dataset_like(&dense).sparse();
    let excluding = dense.copy_as(sparse(), "excluding", &Keep::except(0u8)).unwrap();
    assert_eq!(excluding.count_defined(..).unwrap(), 23, "as the programming model warns");
    assert!(!excluding.is_defined(&[6, 1]).unwrap());

    // By explicit selection nothing is lost.
    let defined = matrix.defined(..).unwrap();
    let selected = dense.copy_as(sparse(), "selected", &Keep::Selected(defined)).unwrap();
    assert_eq!(cells(&selected), cells(&matrix));

    // Every cell of a dense dataset is defined.
    let all = dense.copy_as(sparse(), "all", &Keep::Defined).unwrap();
    assert_eq!(all.count_defined(..).unwrap(), 130);
}

#[test]
fn a_selection_of_a_sparse_dataset_defines_nothing_new() {
    let file = File::in_memory().unwrap();
    let matrix = matrix(&file);
    let builder = file.new_dataset_like(&matrix).sparse();
    let window = Selection::block(&[6, 0], &[7, 5]).unwrap();
    let copy = matrix.copy_as(builder, "copy", &Keep::Selected(window)).unwrap();
    let expected = [(vec![6, 0], 100), (vec![6, 1], 0), (vec![6, 2], -100), (vec![11, 1], 1)];
    assert_eq!(cells(&copy), expected);
}

#[test]
fn an_excluded_value_leaves_a_sparse_dataset_too() {
    let file = File::in_memory().unwrap();
    let matrix = matrix(&file);
    let builder = file.new_dataset_like(&matrix).sparse();
    let copy = matrix.copy_as(builder, "copy", &Keep::except(0)).unwrap();
    assert_eq!(copy.count_defined(..).unwrap(), 23);
}

#[test]
fn undefined_cells_keep_their_value_where_fill_or_type_differ() {
    let file = File::in_memory().unwrap();
    let builder = file.new_dataset::<i16>().shape([7, 5]).chunk([3, 2]).fill_value(-9i16).sparse();
    let from = builder.create("from").unwrap();
    from.write((1..3, 1..4), &[1i16, 2, 3, 4, 5, 6]).unwrap();
    let other_fill = file.new_dataset::<i16>().shape([7, 5]).fill_value(4i16);
    let other_type = file.new_dataset::<f64>().shape([7, 5]).chunk([2, 5]).deflate(1);
    for (name, builder) in [("fill", other_fill), ("type", other_type)] {
        let copy = from.copy_as(builder, name, &Keep::Defined).unwrap();
        assert_eq!(copy.read::<f64>(..).unwrap(), from.read::<f64>(..).unwrap(), "{name}");
    }
}

#[test]
fn scalars_empty_shapes_and_other_ranks_are_copied() {
    let file = File::in_memory().unwrap();
    let scalar = file.new_dataset::<u8>().create("scalar").unwrap();
    scalar.write(.., &[7u8]).unwrap();
    let copy = scalar.copy_as(file.new_dataset_like(&scalar), "scalar2", &Keep::Defined).unwrap();
    assert_eq!(copy.read::<u8>(..).unwrap(), [7]);
    let empty = file.new_dataset::<u8>().shape([0, 3]).max_shape([None, None]).chunk([2, 2]);
    let empty = empty.sparse().create("empty").unwrap();
    let builder = file.new_dataset_like(&empty).sparse();
    let copy = empty.copy_as(builder, "empty2", &Keep::Defined).unwrap();
    assert_eq!((copy.shape(), copy.max_shape()), (vec![0, 3], vec![None, None]));
    let cube = file.new_dataset::<u16>().shape([5, 6, 7]).create("cube").unwrap();
    let values: Vec<u16> = (0..210).map(|at| at % 3).collect();
    cube.write(.., &values).unwrap();
    let builder = file.new_dataset_like(&cube).sparse().chunk([2, 3, 4]);
    let sparse = cube.copy_as(builder, "cube2", &Keep::except(0)).unwrap();
    assert_eq!(sparse.count_defined(..).unwrap(), 140);
    let back = sparse.copy_as(file.new_dataset_like(&sparse), "cube3", &Keep::Defined).unwrap();
    assert_eq!(back.read::<u16>(..).unwrap(), values);
}

#[test]
fn a_copy_that_cannot_be_leaves_nothing_behind() {
    let file = File::in_memory().unwrap();
    let matrix = matrix(&file);
    let builder = file.new_dataset::<i32>().shape([13, 11]);
    assert!(matrix.copy_as(builder, "copy", &Keep::Defined).is_err());
    assert!(!file.contains("copy"));
}

#[test]
fn a_vast_array_is_copied_by_what_is_stored() {
    let file = File::in_memory().unwrap();
    let builder = file.new_dataset::<f32>().shape([1 << 40, 1 << 20]).chunk([1000, 1000]);
    let vast = builder.sparse().create("vast").unwrap();
    let points = [[0, 0], [1 << 39, 7], [(1 << 40) - 1, (1 << 20) - 1]];
    vast.write_points(&points, &[1.0f32, 0.0, 3.0]).unwrap();
    let builder = file.new_dataset_like(&vast).sparse().chunk([4096, 256]);
    let copy = vast.copy_as(builder, "copy", &Keep::Defined).unwrap();
    assert_eq!(cells(&copy), cells(&vast));
}

#[test]
fn full_chunks_larger_than_a_block_are_copied_in_parts() {
    let file = File::in_memory().unwrap();
    let builder = file.new_dataset::<u8>().shape([1500, 1500]).sparse();
    let from = builder.create("from").unwrap();
    let values: Vec<u8> = (0..1500u32 * 1500).map(|at| (at % 251) as u8).collect();
    from.write(.., &values).unwrap();
    let builder = file.new_dataset_like(&from).sparse().chunk([400, 300]);
    let copy = from.copy_as(builder, "copy", &Keep::except(7u8)).unwrap();
    let left = values.iter().filter(|&&value| value != 7).count() as u64;
    assert_eq!(copy.count_defined(..).unwrap(), left);
    let dense = copy
        .copy_as(file.new_dataset::<u8>().shape([1500, 1500]).fill_value(7u8), "d", &Keep::Defined)
        .unwrap();
    let filled: Vec<u8> = values.iter().map(|&value| if value == 7 { 0 } else { value }).collect();
    assert_eq!(dense.read::<u8>(..).unwrap(), filled);
}
