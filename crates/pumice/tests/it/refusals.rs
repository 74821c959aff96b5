//! Refusals say what is wrong, and what to do.

use pumice::types::{Bitfield, ByteOrder};
use pumice::{
    BitshuffleCodec, BloscCodec, BloscShuffle, Context, DatasetBuilder, Datatype, File, FilterSpec,
    Keep, MemoryStore, Scaling, Section, SzipCoding,
};
use std::sync::Arc;

fn error(new: DatasetBuilder) -> String {
    new.create("d").expect_err("it is refused").to_string()
}

#[test]
fn sparse_datasets_without_chunks_say_what_is_in_their_way() {
    let file = File::in_memory().unwrap();
    let numbers = || file.new_dataset::<i32>();
    let strings = || file.new_strings();
    let scalars = [numbers().sparse(), strings().sparse(), strings().variable_length()];
    for new in scalars {
        let error = error(new);
        assert!(error.contains("scalar") && error.contains("give it a shape"), "{error}");
    }
    for new in [numbers().null().sparse(), strings().null().sparse()] {
        let error = error(new);
        assert!(error.contains("null dataspace"), "{error}");
    }
    for new in [numbers().shape([4]).compact().sparse(), strings().shape([4]).compact().sparse()] {
        let error = error(new);
        assert!(error.contains("a sparse dataset") && error.contains("compact"), "{error}");
    }
    let error = error(strings().shape([4]).compact().variable_length());
    assert!(error.contains("structured chunks") && error.contains("compact"), "{error}");
}

#[test]
fn chunks_of_references_to_strings_keep_no_checksum() {
    let file = File::in_memory().unwrap();
    let strings = || file.new_strings().shape([4]);
    let error = error(strings().chunk([2]).fletcher32());
    assert!(error.contains("does not suit"), "{error}");
}

#[test]
fn a_vast_shape_is_not_refused_for_chunks_that_nobody_gave() {
    let file = File::in_memory().unwrap();
    let vast = [u64::MAX - 1, u64::MAX - 1];
    for new in [
        file.new_dataset::<i32>().shape(vast).deflate(1),
        file.new_strings().shape(vast).variable_length(),
    ] {
        let error = error(new);
        assert!(error.contains("by default") && error.contains("with `chunk`"), "{error}");
        assert!(error.contains("with `sparse`"), "{error}");
    }
    let error = error(file.new_dataset::<i32>().shape(vast).chunk([1 << 20, 1 << 10]));
    assert!(error.contains("take larger ones") && error.contains("sparse"), "{error}");
}

#[test]
fn more_bytes_than_a_file_can_have_in_one_piece_are_refused_with_what_to_do() {
    let file = File::in_memory().unwrap();
    let vast = u64::MAX - 1;
    // libhdf5 takes 2^32 times 2^32 elements of four bytes, which are none to it, for a dataset of zero bytes.
    for shape in [vec![vast, vast], vec![vast], vec![1 << 32, 1 << 32], vec![1 << 62]] {
        for new in [file.new_dataset::<i32>(), file.new_dataset::<i32>().compact()] {
            let error = error(new.shape(shape.clone()));
            assert!(error.contains("2^64 bytes") && error.contains("with `chunk`"), "{error}");
            assert!(error.contains("with `sparse`"), "{error}");
        }
    }
    let error = error(file.new_dataset::<i32>().shape([(1 << 50) + 1]).chunk([1024]));
    assert!(error.contains("2^40") && error.contains("sparse"), "{error}");
    file.new_dataset::<i32>().shape([1 << 50]).chunk([1024]).create("most").unwrap();
    assert!(!file.contains("d"));
}

#[test]
fn a_point_of_another_rank_is_named() {
    let file = File::in_memory().unwrap();
    let numbers = file.new_dataset::<i32>().shape([4, 4]).sparse().create("numbers").unwrap();
    let strings = file.new_strings().shape([4, 4]).sparse().create("strings").unwrap();
    for point in [&[3][..], &[1, 2, 3], &[0, 1, 2, 3], &[]] {
        let errors = [numbers.write_point(point, 1), strings.write_string_point(point, "a")];
        for error in errors {
            let error = error.unwrap_err().to_string();
            let given = format!("{point:?} has {} coordinate(s)", point.len());
            assert!(error.contains(&given) && error.contains("2 dimension(s)"), "{error}");
        }
    }
    let error = numbers.write_coordinates(&[1, 2, 3], &[1]).unwrap_err().to_string();
    assert!(error.contains("3 coordinate(s)") && error.contains("2 dimension(s)"), "{error}");
}

#[test]
fn elements_that_no_file_could_be_opened_with_are_refused_with_advice() {
    let file = File::in_memory().unwrap();
    let large = Datatype::array(Datatype::u8(), [1000, 1 << 20]);
    let error = error(file.new_dataset_of(large).shape([1]).chunk([1]));
    assert!(
        error.contains("1048576000 bytes") && error.contains("make elements smaller"),
        "{error}"
    );
}

#[test]
fn sides_of_sparse_chunks_have_32_bits() {
    let file = File::in_memory().unwrap();
    let shape = [1 << 40];
    for (name, new) in [("numbers", file.new_dataset::<u8>()), ("texts", file.new_strings())] {
        let new = new.sparse().shape(shape);
        let error = error(new.clone().chunk([1 << 32]));
        assert!(error.contains("a side of 4294967296") && error.contains("4294967295"), "{error}");
        let data = new.chunk([(1 << 32) - 1]).create(name).unwrap();
        assert_eq!(data.count_defined(..).unwrap(), 0);
    }
}

#[test]
fn references_of_another_size_are_refused_with_the_right_one() {
    let file = File::in_memory().unwrap();
    let strings = || file.new_dataset_of(Datatype::varlen_string(12)).shape([4]).chunk([2]);
    for new in [strings().sparse(), strings().variable_length()] {
        let error = error(new);
        assert!(
            error.contains("has 12 bytes") && error.contains("references of 16 bytes"),
            "{error}"
        );
    }
}

#[test]
fn filters_that_are_not_for_a_datatype_are_refused_unless_they_are_optional() {
    let context = Context::builder().build().unwrap();
    let store = Arc::new(MemoryStore::default());
    let file = File::options().context(&context).create_in(store).unwrap();
    let point = Datatype::compound([("x", Datatype::f64_le()), ("y", Datatype::i32_le())]);
    let filters =
        [FilterSpec::szip(SzipCoding::Entropy, 8), FilterSpec::scale_offset(Scaling::Integer)];
    for (number, filter) in filters.into_iter().enumerate() {
        for sparse in [false, true] {
            let new = |filter: FilterSpec| {
                let new = file.new_dataset_of(point.clone()).shape([8]).chunk([8]);
                match sparse {
                    true => new.sparse().no_filters().section_filter(Section::Values, filter),
                    false => new.filter(filter),
                }
            };
            let needed = FilterSpec { optional: false, ..filter.clone() };
            let error = error(new(needed));
            assert!(error.contains("expected"), "{error}");
            let data = new(filter.clone()).create(&format!("{number} {sparse}")).unwrap();
            let bytes: Vec<u8> = (0..96).collect();
            data.write_bytes(.., &bytes).unwrap();
            context.evict().unwrap();
            assert_eq!(data.read_bytes(..).unwrap(), bytes);
        }
    }
    // What a filter has recorded of another dataset is not for this one: it would round what are no numbers.
    let floats = file.new_dataset::<f32>().shape([8]).chunk([8]);
    let floats = floats.filter(FilterSpec::scale_offset(Scaling::Decimal(1)));
    let floats = floats.create("floats").unwrap();
    let recorded = floats.filters().remove(0);
    assert!(recorded.parameters.len() > 2);
    for sparse in [false, true] {
        let new = file.new_dataset_of(Datatype::opaque(4, "")).shape([8]).chunk([8]);
        let new = match sparse {
            true => new.sparse().value_filters(vec![recorded.clone()]),
            false => new.filter(recorded.clone()),
        };
        let name = format!("opaque {sparse}");
        let data = new.create(&name).unwrap();
        let bytes: Vec<u8> = (0..8).flat_map(|at| (at as f32 / 7.0).to_le_bytes()).collect();
        data.write_bytes(.., &bytes).unwrap();
        context.evict().unwrap();
        assert_eq!(data.read_bytes(..).unwrap(), bytes, "{name}");
    }
    // Parameters that no dataset has are refused all the same.
    let odd = file.new_dataset::<i32>().shape([8]).chunk([8]);
    error(odd.filter(FilterSpec::szip(SzipCoding::Entropy, 7)));
}

#[test]
fn a_mask_that_has_no_numbers_is_named() {
    let file = File::in_memory().unwrap();
    let data = file.new_dataset::<i32>().shape([4]).create("data").unwrap();
    let flags = Datatype::Bitfield(Bitfield::new(1, ByteOrder::Little));
    let mask = file.new_dataset_of(flags).shape([4]).create("mask").unwrap();
    let new = file.new_dataset::<i32>().shape([4]).sparse();
    let error = data.copy_as(new, "copy", &Keep::Where(mask)).err().unwrap().to_string();
    assert!(error.contains("a mask has to be of numbers"), "{error}");
}

#[test]
fn parameters_that_a_filter_cannot_use_are_refused_at_once() {
    let file = File::in_memory().unwrap();
    let blosc = |level| FilterSpec::blosc(BloscCodec::Lz4, level, BloscShuffle::Bytes);
    for (spec, expected) in [
        (FilterSpec::deflate(12), "deflate, parameters: expected a level of 0 to 9, found 12"),
        (FilterSpec::bzip2(0), "a block size of 1 to 9, found 0"),
        (FilterSpec::bzip2(10), "a block size of 1 to 9, found 10"),
        (FilterSpec::zstd(23), "a level of at most 22, found 23"),
        (FilterSpec::bitshuffle(BitshuffleCodec::Zstd(99)), "a level of at most 22, found 99"),
        (blosc(10), "blosc"),
        (FilterSpec::lz4(u32::MAX), "lz4"),
    ] {
        for optional in [true, false] {
            let spec = FilterSpec { optional, ..spec.clone() };
            let dense = || file.new_dataset::<i32>().shape([64]).chunk([64]);
            assert!(dense().filter(spec.clone()).check().is_err(), "{spec:?}");
            let text = error(dense().filter(spec.clone()));
            assert!(text.contains(expected), "{text}");
            let text = error(dense().sparse().value_filters(vec![spec.clone()]));
            assert!(text.contains(expected), "{text}");
        }
    }
    assert!(!file.contains("d"));
    let fine = file.new_dataset::<i32>().shape([64]).chunk([64]).deflate(9);
    fine.create("fine").unwrap().write(.., &[5i32; 64]).unwrap();
}
