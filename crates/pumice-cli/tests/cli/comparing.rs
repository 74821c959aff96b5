//! `pumice diff` and `pumice stat` of sparse datasets, and why files differ.

use crate::support::{Place, small};
use pumice::File;

#[test]
fn an_emptied_sparse_dataset_differs_from_a_full_one() {
    let place = small();
    std::fs::copy(place.path("small.h5"), place.path("emptied.h5")).unwrap();
    let file = File::edit(place.path("emptied.h5")).unwrap();
    file.dataset("matrix").unwrap().erase(..).unwrap();
    file.close().unwrap();
    std::fs::copy(place.path("emptied.h5"), place.path("again.h5")).unwrap();
    for (one, other) in [("small", "emptied"), ("emptied", "small")] {
        let run = place.pumice(&format!("diff {one}.h5 {other}.h5"));
        // One of the six cells has the fill value.
        assert_eq!(run.code, Some(1), "{}", run.out);
        assert!(run.out.contains("5 differences found"), "{}", run.out);
        let run = place.pumice(&format!("diff --defined {one}.h5 {other}.h5"));
        assert_eq!(run.code, Some(1), "{}", run.out);
        assert!(run.out.contains("6 differences found"), "{}", run.out);
        assert_eq!(place.pumice(&format!("diff {one}.h5 {other}.h5 /matrix")).code, Some(1));
    }
    assert_eq!(place.succeed("diff emptied.h5 again.h5"), "");
    assert_eq!(place.succeed("diff --defined emptied.h5 again.h5"), "");
    // A dense one with the same values is the same, unless it is asked what is defined.
    place.succeed("repack -l CONTI small.h5 dense.h5");
    place.succeed("diff small.h5 dense.h5");
    assert_eq!(place.pumice("diff emptied.h5 dense.h5").code, Some(1));
}

#[test]
fn what_only_one_file_has_is_named() {
    let place = Place::new();
    for (name, groups) in [("one.h5", ["a", "b"]), ("two.h5", ["a", "c"])] {
        let file = File::create(place.path(name)).unwrap();
        groups.iter().for_each(|group| drop(file.create_group(group).unwrap()));
        file.group("a").unwrap().set_attribute(groups[1], 1).unwrap();
        file.close().unwrap();
    }
    let run = place.pumice("diff one.h5 two.h5");
    assert_eq!(run.code, Some(1));
    for line in [
        "</b> is only in <one.h5>",
        "</c> is only in <two.h5>",
        "<b of /a> is only in <one.h5>",
        "<c of /a> is only in <two.h5>",
    ] {
        assert!(run.out.lines().any(|told| told == line), "{line}: {}", run.out);
    }
    assert_eq!(place.pumice("diff -q one.h5 two.h5").out, "");
}

#[test]
fn filters_of_all_sections_count_once_for_a_dataset() {
    let place = Place::new();
    let file = File::create(place.path("filters.h5")).unwrap();
    let sparse = || file.new_dataset::<i32>().shape([20, 20]).sparse().chunk([5, 5]);
    sparse().no_filters().create("none").unwrap();
    // Deflate for both sections, shuffle for values.
    sparse().no_filters().shuffle().deflate(1).create("both").unwrap();
    sparse()
        .no_filters()
        .section_filter(pumice::Section::Selection, pumice::FilterSpec::deflate(9))
        .create("locations")
        .unwrap();
    file.new_dataset::<i32>().shape([20, 20]).chunk([5, 5]).deflate(1).create("dense").unwrap();
    file.close().unwrap();
    let told = place.succeed("stat filters.h5");
    let count = |name: &str| {
        let line =
            told.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{told}"));
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    assert_eq!((count("GZIP filter"), count("NO filter")), (3, 1), "{told}");
    assert_eq!(count("STRUCTURED CHUNK SPARSE"), 3, "{told}");
}
