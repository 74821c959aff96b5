//! `pumice dump` of sparse datasets: parts of them, and where their cells are.

use crate::support::{Place, installed, small};
use pumice::{Datatype, File, Selection};

#[test]
fn a_part_of_a_sparse_dataset_has_fill_values_where_nothing_is_defined() {
    let place = small();
    let part = place.succeed("dump small.h5 -d matrix -s 0,1 -c 2,1 -S 4,1 -k 1,5");
    let expected = "   SPARSE { DEFINED 3 OF 10 }\n   SUBSET {\n      START ( 0, 1 );\n";
    assert!(part.contains(expected), "{part}");
    let expected = "      DATA {\n      (0,1): -2, 0, 0, 0, 0,\n      (4,1): 0, 0, 0, 3, 1.23457e+08\n      }\n   }\n";
    assert!(part.contains(expected), "{part}");
    let defined = place.succeed("dump --sparse small.h5 -d matrix -s 0,1 -c 2,1 -S 4,1 -k 1,5");
    let expected = "   REGION_TYPE BLOCK  (4,4)-(4,5)\n   DATA {\n      (4,4)  3, 1.23457e+08\n   }\n   \
                    REGION_TYPE POINT  (0,1)\n   DATA {\n      (0,1) -2\n   }\n";
    assert!(defined.contains(expected), "{defined}");
}

/// Debian's h5dump prints the part of a dense dataset with equal values.
#[test]
fn a_part_of_a_sparse_dataset_is_printed_as_that_of_a_dense_one() {
    let place = small();
    place.succeed("repack -l CONTI small.h5 dense.h5");
    for part in ["-s 0,1 -c 2,1 -S 4,1 -k 1,5", "-s 1,2 -c 3,3", "-s 4,5"] {
        let data = |text: &str| text.split_once("SUBSET").expect("a part").1.to_owned();
        let ours = data(&place.succeed(&format!("dump -A 0 -d matrix {part} small.h5")));
        if installed("h5dump") {
            let line = format!("-A 0 -d matrix {part} dense.h5");
            let theirs = place.command("h5dump").args(line.split(' ')).output().unwrap();
            assert_eq!(ours, data(&String::from_utf8(theirs.stdout).unwrap()), "{part}");
        }
    }
}

#[test]
fn blocks_are_merged_over_all_axes_and_points_wrapped() {
    let place = Place::new();
    let file = File::create(place.path("three.h5")).unwrap();
    let builder = file.new_dataset::<u8>().shape([6, 7, 8]).chunk([2, 3, 3]).sparse();
    let sparse = builder.create("sparse").unwrap();
    sparse.write((1..5, 2..6, 1..7), &[1u8; 96]).unwrap();
    let points: Vec<[u64; 3]> = (0..7).map(|at| [5, at, at]).collect();
    sparse.write_points(&points, &[2u8; 7]).unwrap();
    file.new_dataset::<u8>().shape([6, 7, 8]).create("dense").unwrap();
    file.new_dataset::<u8>().create("scalar").unwrap();
    drop(sparse);
    file.close().unwrap();
    let told = place.succeed("dump --sparse-locations -w 60 three.h5");
    assert_eq!(told.matches("REGION_TYPE BLOCK").count(), 2, "{told}");
    assert!(told.contains("      REGION_TYPE BLOCK  (0,0,0)-(5,6,7)\n"), "{told}");
    let expected = "      REGION_TYPE BLOCK  (1,2,1)-(4,5,6)\n      \
                    REGION_TYPE POINT  (5,0,0), (5,1,1), (5,2,2),\n       (5,3,3), (5,4,4), (5,5,5), \
                    (5,6,6)\n   }\n";
    assert!(told.contains(expected), "{told}");
    place.write("told.txt", place.succeed("dump --sparse -d sparse -w 60 three.h5"));
    place.succeed("import told.txt again.h5");
    place.succeed("diff --defined three.h5 again.h5 sparse sparse");
}

#[test]
fn values_of_regions_are_written_as_bytes_if_asked_for() {
    let place = small();
    place.succeed("dump --sparse -d matrix -b LE -o values.bin -O described.txt small.h5");
    let bytes = std::fs::read(place.path("values.bin")).unwrap();
    // Blocks first, points behind them.
    let numbers = [1.5, -2.0, 3.0, 123_456_789.0, 1e-7, 0.0f64];
    assert_eq!(bytes, numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>());
    let text = std::fs::read_to_string(place.path("described.txt")).unwrap();
    assert_eq!(text.matches("REGION_TYPE BLOCK").count(), 2, "{text}");
}

#[test]
fn xml_names_structured_chunks() {
    let place = small();
    let told = place.succeed("dump -x small.h5");
    assert!(told.contains("<hdf5:SparseChunkLayout Ndims=\"2\">"), "{told}");
    assert!(told.contains("<hdf5:Section Number=\"1\" Name=\"values\" Size=\""), "{told}");
    assert!(!told.contains("ChunkedLayout"), "{told}");
    let file = File::create(place.path("text.h5")).unwrap();
    let builder = file.new_dataset_of(Datatype::varlen_string(16)).shape([4]).chunk([2]);
    builder.sparse().create("words").unwrap();
    file.close().unwrap();
    assert!(place.succeed("dump -x text.h5").contains("Name=\"heap\""));
}

#[test]
fn references_inside_of_elements_are_printed() {
    use pumice::types::{Reference, ReferenceKind};
    let place = Place::new();
    let options = File::options().library_version(pumice::LibraryVersion::Earliest);
    let file = options.create(place.path("r.h5")).unwrap();
    file.new_dataset::<i32>().shape([3, 4]).create("data").unwrap();
    let region = Datatype::Reference(Reference { size: 12, kind: ReferenceKind::Region });
    let bare = file.new_dataset_of(region.clone()).shape([2]).create("bare").unwrap();
    let block = file.region_reference("data", (0..2, 1..3)).unwrap();
    bare.write_references(.., &[Some(block), None]).unwrap();
    let elements = bare.read_bytes(..).unwrap();
    let pair = Datatype::compound([("n", Datatype::u8()), ("region", region)]);
    let inside = file.new_dataset_of(pair).shape([2]).create("inside").unwrap();
    let mut bytes = vec![7];
    bytes.extend_from_slice(&elements[..12]);
    bytes.push(8);
    bytes.extend_from_slice(&elements[12..]);
    inside.write_bytes(Selection::all(), &bytes).unwrap();
    drop((bare, inside));
    file.close().unwrap();
    let told = place.succeed("dump -d inside r.h5");
    assert!(told.contains("         7,\n         DATASET \"/data\"\n"), "{told}");
    assert!(told.contains("         8,\n         NULL\n"), "{told}");
    let listed = place.succeed("ls -l -d r.h5/inside");
    assert!(listed.contains("{n=7, region=DATASET \"/data\"}, {n=8, region=NULL}"), "{listed}");
    if installed("h5dump") {
        let theirs = place.command("h5dump").args(["-d", "inside", "r.h5"]).output().unwrap();
        assert_eq!(told, String::from_utf8(theirs.stdout).unwrap());
    }
}
