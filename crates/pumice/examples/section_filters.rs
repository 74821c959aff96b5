//! Different filters on the two sections of a sparse chunk, and one filter on both.
//!
//! Run with `cargo run -p pumice --example section_filters`.

use pumice::{File, FilterSpec, Result, Section};

pub(crate) fn main() -> Result<()> {
    let file = File::in_memory()?;
    let shape = || file.new_dataset::<i32>().shape([32, 64]).chunk([5, 9]).sparse();
    let cells: Vec<[u64; 2]> = (0..32).flat_map(|row| [[row, row], [row, 63 - row]]).collect();
    let values: Vec<i32> = (0..64).collect();

    // Deflate on the locations; shuffle and zstd on the values.
    let two = shape()
        .section_filter(Section::Selection, FilterSpec::deflate(9))
        .section_filter(Section::Values, FilterSpec::shuffle(4))
        .section_filter(Section::Values, FilterSpec::zstd(3))
        .create("two")?;

    // A predefined filter goes to every section.
    let one = shape().deflate(9).create("one")?;

    // By default: the location filter and zstd, shuffle and zstd. Or nothing at all.
    let defaults = shape().create("defaults")?;
    let none = shape().no_filters().create("none")?;

    for dataset in [&two, &one, &defaults, &none] {
        dataset.write_points(&cells, &values)?;
        let filters = dataset.section_filters();
        println!("{}: {} bytes", dataset.path(), dataset.storage_size()?);
        for (number, section) in filters.sections().enumerate() {
            let ids: Vec<u16> = filters.of(section).iter().map(|filter| filter.id).collect();
            println!("   section {number} ({section}): filters {ids:?}");
        }
    }
    let filters = two.section_filters();
    assert_eq!(filters.count(Section::Values), 2);
    assert_eq!(filters.get(Section::Selection, 0), Some(&FilterSpec::deflate(9)));
    assert!(filters.by_id(Section::Values, 1).is_none(), "no deflate there");
    assert_eq!(one.section_filters().of(Section::Values), [FilterSpec::deflate(9)]);
    assert_eq!(one.section_filters().of(Section::Selection), [FilterSpec::deflate(9)]);
    Ok(())
}
