//! The example programs check what they show.

#[path = "../../examples/cache_hints.rs"]
mod cache_hints;
#[path = "../../examples/convert_matrices.rs"]
mod convert_matrices;
#[path = "../../examples/data_flow.rs"]
mod data_flow;
#[path = "../../examples/erase_and_defined.rs"]
mod erase_and_defined;
#[path = "../../examples/many_datasets.rs"]
mod many_datasets;
#[path = "../../examples/many_threads.rs"]
mod many_threads;
#[path = "../../examples/own_policy.rs"]
mod own_policy;
#[path = "../../examples/section_filters.rs"]
mod section_filters;
#[path = "../../examples/sparse_diagonal.rs"]
mod sparse_diagonal;
#[path = "../../examples/sparse_matrix.rs"]
mod sparse_matrix;
#[path = "../../examples/storage_table.rs"]
mod storage_table;

#[test]
fn the_matrix_of_the_programming_model_is_stored_and_read() {
    sparse_matrix::main().unwrap();
}

#[test]
fn a_diagonal_costs_what_is_defined() {
    sparse_diagonal::main().unwrap();
}

#[test]
fn sections_have_filters_of_their_own() {
    section_filters::main().unwrap();
}

#[test]
fn undefined_zero_and_erased_stay_apart() {
    erase_and_defined::main().unwrap();
}

#[test]
fn matrices_stream_in_and_out() {
    convert_matrices::main().unwrap();
}

#[test]
fn sparse_chunks_are_smaller_than_dense_gzip_in_every_cell_of_the_storage_tables() {
    storage_table::main().unwrap();
}

#[test]
fn two_thousand_datasets_share_a_small_cache() {
    many_datasets::main().unwrap();
}

#[test]
fn reads_beside_a_write_see_all_of_it_or_nothing() {
    many_threads::main().unwrap();
}

#[test]
fn a_scan_leaves_the_table_in_memory() {
    cache_hints::main().unwrap();
}

#[test]
fn the_reads_of_the_data_flow_run() {
    data_flow::main().unwrap();
}

#[test]
fn a_policy_of_ones_own_keeps_a_favourite() {
    own_policy::main().unwrap();
}
