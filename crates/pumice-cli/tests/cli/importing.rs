//! `pumice import`.

use crate::support::{Place, SMALL, small};
use flate2::Compression;
use flate2::write::GzEncoder;
use pumice::File;
use std::io::Write;
use std::process::Stdio;

#[test]
fn a_matrix_becomes_a_sparse_dataset() {
    let place = Place::new();
    place.write("small.mtx", SMALL);
    let summary = place.succeed("import small.mtx small.h5");
    assert!(summary.starts_with("/matrix: 5 x 6, 6 entries, density 20 %, "), "{summary}");
    assert!(summary.ends_with(" bytes per entry\n") && summary.lines().count() == 1);
    assert_eq!(place.names(), ["small.h5", "small.mtx"]);

    let file = File::open(place.path("small.h5")).unwrap();
    let matrix = file.dataset("matrix").unwrap();
    assert!(matrix.is_sparse());
    assert_eq!(matrix.shape(), [5, 6]);
    let defined = matrix.read_defined::<f64>(..).unwrap();
    let mut cells: Vec<_> = defined.iter().map(|(at, &value)| (at[0], at[1], value)).collect();
    cells.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let expected =
        [(0, 0, 1.5), (0, 1, -2.0), (1, 3, 1e-7), (2, 2, 0.0), (4, 4, 3.0), (4, 5, 123456789.0)];
    assert_eq!(cells, expected);
    for (name, expected) in [
        ("source_file", "small.mtx"),
        ("source_format", "Matrix Market coordinate"),
        ("source_field", "real"),
        ("source_symmetry", "general"),
    ] {
        assert_eq!(matrix.attribute(name).unwrap().read_string().unwrap(), expected);
    }
}

#[test]
fn the_path_behind_the_file_is_the_dataset_or_the_group_of_several() {
    let place = Place::new();
    place.write("small.mtx", SMALL);
    place.succeed("import small.mtx runs.h5/first/counts");
    place.succeed("import small.mtx -f ./runs.h5 --dataset other");
    let error = place.fail("import small.mtx absent/new.h5");
    assert!(error.contains("absent"), "{error}");
    let error = place.fail("import small.mtx runs.h5/second");
    assert!(error.contains("runs.h5 exists already"), "{error}");
    place.succeed("import small.mtx -f runs.h5/second --dataset counts");
    assert!(File::open(place.path("runs.h5")).unwrap().dataset("second/counts").is_ok());
    place.succeed("export runs.h5/second/counts again.npz");
    place.succeed("import again.npz -f runs.h5/third");
    assert!(File::open(place.path("runs.h5")).unwrap().dataset("third").is_ok());
    assert_eq!(place.names(), ["again.npz", "runs.h5", "small.mtx"]);
}

#[test]
fn gzip_is_told_by_content_and_input_may_be_a_pipe() {
    let place = Place::new();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(SMALL.as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    place.write("packed.mtx", &packed);
    place.write("plain.mtx.gz", SMALL);
    place.succeed("import packed.mtx a.h5");
    place.succeed("import plain.mtx.gz b.h5");
    let mut command = place.command(env!("CARGO_BIN_EXE_pumice"));
    command.args(["import", "-", "c.h5"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(&packed).unwrap();
    assert!(child.wait().unwrap().success());
    let body = |file: &str| place.succeed(&format!("dump {file} -d matrix -s 0,0 -c 5,6"));
    let data =
        |file: &str| body(file).split_once("DATA").unwrap().1.split('}').next().map(String::from);
    assert_eq!(data("a.h5"), data("b.h5"));
    assert_eq!(data("a.h5"), data("c.h5"));

    place.write("cut.mtx.gz", &packed[..packed.len() - 12]);
    let error = place.fail("import cut.mtx.gz d.h5");
    assert!(error.starts_with("pumice: cut.mtx.gz:"), "{error}");
}

#[test]
fn existing_files_are_kept_unless_forced() {
    let place = small();
    let before = std::fs::read(place.path("small.h5")).unwrap();
    let error = place.fail("import small.mtx small.h5");
    assert_eq!(error, "pumice: small.h5 exists already; --force replaces it\n");
    assert_eq!(std::fs::read(place.path("small.h5")).unwrap(), before);
    place.succeed("import small.mtx small.h5 --force --dataset other/name --no-filters");
    assert!(place.succeed("ls -r small.h5").contains("/other/name "));
    let error = place.fail("import small.mtx small.mtx --force");
    assert!(error.contains("small.mtx is the input"), "{error}");
}

#[test]
fn a_failed_import_leaves_nothing_behind() {
    let place = small();
    let before = std::fs::read(place.path("small.h5")).unwrap();
    place.write("bad.mtx", SMALL.replace("5 5 3", "9 5 3"));
    let error = place.fail("import bad.mtx bad.h5");
    assert_eq!(error, "pumice: bad.mtx:9: expected a row from 1 to 5, found 9\n");
    place.fail("import bad.mtx small.h5 --force");
    assert_eq!(place.names(), ["bad.mtx", "small.h5", "small.mtx"]);
    assert_eq!(std::fs::read(place.path("small.h5")).unwrap(), before);
    assert!(place.fail("import missing.mtx a.h5").contains("open missing.mtx: No such file"));
    assert!(place.fail("import small.mtx nowhere/a.h5").contains("nowhere"));
    assert!(place.fail("import . a.h5").contains("is a folder"));
}

#[test]
fn fields_decide_about_the_type() {
    let place = Place::new();
    for (field, value, expected) in [
        ("integer", "-7", "native long"),
        ("unsigned-integer", "18446744073709551615", "native unsigned long"),
        ("real", "-7", "native double"),
        ("complex", "-7 2.5", "struct {"),
        ("pattern", "", "native unsigned char"),
    ] {
        let header = format!("%%MatrixMarket matrix coordinate {field} general\n");
        place.write("m.mtx", format!("{header}2 2 1\n2 1 {value}\n"));
        place.succeed("import -f m.mtx m.h5");
        let listing = place.succeed("ls -v m.h5");
        assert!(listing.contains(&format!("    Type:      {expected}\n")), "{listing}");
        let shown = if value.is_empty() { "1".to_owned() } else { value.replace(' ', ", ") };
        let shown = shown.replace("-7, 2.5", "{-7, 2.5}");
        let table = place.succeed("read m.h5 matrix");
        let row = table.lines().last().unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>().join(" "), format!("1 {shown} ."));
    }
}

#[test]
fn arrays_become_dense_datasets() {
    let place = Place::new();
    place.write("m.mtx", "%%MatrixMarket matrix array real general\n2 3\n1\n2\n3\n4\n5\n6\n");
    let summary = place.succeed("import m.mtx m.h5");
    assert!(summary.starts_with("/matrix: 2 x 3, 6 entries, density 100 %"), "{summary}");
    let file = File::open(place.path("m.h5")).unwrap();
    let matrix = file.dataset("matrix").unwrap();
    assert!(!matrix.is_sparse());
    assert_eq!(matrix.read::<f64>(..).unwrap(), [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
    place.write("s.mtx", "%%MatrixMarket matrix array integer symmetric\n2 2\n1\n2\n3\n");
    place.succeed("import s.mtx s.h5 --no-filters");
    let file = File::open(place.path("s.h5")).unwrap();
    assert_eq!(file.dataset("matrix").unwrap().read::<i64>(..).unwrap(), [1, 2, 2, 3]);
}

#[test]
fn duplicates_are_summed_unless_told_otherwise() {
    let place = Place::new();
    let header = "%%MatrixMarket matrix coordinate integer general\n";
    place.write("m.mtx", format!("{header}2 2 3\n1 1 5\n2 2 1\n1 1 7\n"));
    for (option, expected) in [("", 12), ("--duplicates first", 5), ("--duplicates last", 7)] {
        let summary = place.succeed(&format!("import -f m.mtx m.h5 {option}"));
        assert!(summary.contains(" 2 entries,"), "{summary}");
        let file = File::open(place.path("m.h5")).unwrap();
        let value = file.dataset("matrix").unwrap().read::<i64>((0, 0)).unwrap();
        assert_eq!(value, [expected], "{option}");
    }
    let error = place.fail("import -f m.mtx m.h5 --duplicates error");
    assert_eq!(error, "pumice: m.mtx:5: row 1, column 1 has an entry on line 3 already\n");
}

#[test]
fn empty_matrices_are_matrices() {
    let place = Place::new();
    for sizes in ["0 0 0", "0 5 0", "3 3 0"] {
        place.write("m.mtx", format!("%%MatrixMarket matrix coordinate real general\n{sizes}\n"));
        let summary = place.succeed("import -f m.mtx m.h5");
        assert!(summary.contains(" 0 entries, density 0 %, "), "{summary}");
        place.succeed("dump m.h5");
        place.succeed("ls -v m.h5");
        place.succeed("spy m.h5");
        place.succeed("read m.h5 matrix");
    }
}

#[test]
fn chunks_may_be_given() {
    let place = Place::new();
    place.write("small.mtx", SMALL);
    place.succeed("import small.mtx small.h5 --chunk 2,100");
    assert!(place.succeed("ls -v small.h5").contains("Sparse Chunks: {2, 6} "));
    assert!(place.fail("import small.mtx b.h5 --chunk 2").contains("--chunk needs two numbers"));
    assert!(place.fail("import small.mtx b.h5 --chunk 2,0").contains("--chunk needs two numbers"));
}

#[test]
fn the_matrix_of_the_demo_is_imported() {
    let place = Place::new();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let matrix = root.join("data/debian-dependencies.mtx.gz");
    if !matrix.exists() {
        println!("skipped: no {}", matrix.display());
        return;
    }
    let run = place.run(&["import", matrix.to_str().unwrap(), "debian.h5"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert!(run.out.starts_with("/matrix: 63,436 x 63,436, 299,188 entries"), "{}", run.out);
    let picture = place.succeed("spy debian.h5 --width 40 --png debian.png --size 300");
    let caption = "/matrix: 63,436 x 63,436, 299,188 defined, density 0.00743 %";
    assert_eq!(picture.lines().last(), Some(caption));
    let erased = place.succeed("erase debian.h5 matrix --window :,:");
    assert!(erased.starts_with("/matrix: 299,188 cells defined before, 0 after, "), "{erased}");
}

#[test]
fn axes_may_be_vast() {
    let place = Place::new();
    let most = u64::MAX - 1;
    for shape in [
        vec![1 << 33],
        vec![1 << 40, 1 << 40],
        vec![most, 3],
        vec![i64::MAX as u64, i64::MAX as u64],
        vec![100_000_000_000; 3],
    ] {
        let list = |place: &[u64]| place.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        let last: Vec<u64> = shape.iter().map(|side| side - 1).collect();
        let first = vec![0; shape.len()];
        let text =
            format!("# shape={} type=i32\n{},7\n{},8\n", list(&shape), list(&last), list(&first));
        place.write("vast.csv", text);
        place.succeed("import -f vast.csv vast.h5");
        let file = File::open(place.path("vast.h5")).unwrap();
        let matrix = file.dataset("matrix").unwrap();
        assert_eq!(matrix.shape(), shape);
        let found = matrix.read_defined::<i32>(..).unwrap();
        let mut found: Vec<_> = found.iter().map(|(at, &value)| (at.to_vec(), value)).collect();
        found.sort();
        assert_eq!(found, [(first, 8), (last, 7)]);
    }
}

#[test]
fn chunks_are_those_that_a_program_would_get() {
    let place = Place::new();
    let mut text = "# shape=3000,3000 type=f64\n".to_owned();
    for row in 0..3000 {
        text += &format!("{row},{0},1\n{row},{1},2\n", row / 2, row / 2 + 1500);
    }
    place.write("m.csv", text);
    for (options, plain) in [("", false), ("--no-filters", true)] {
        place.succeed(&format!("import m.csv m.h5 --force {options}"));
        let chunk = File::open(place.path("m.h5")).unwrap().dataset("matrix").unwrap().chunk();
        let file = File::in_memory().unwrap();
        let builder = file.new_dataset::<f64>().shape([3000, 3000]).sparse();
        let builder = if plain { builder.no_filters() } else { builder };
        let usual = builder.expected_density(6000.0 / 9e6).create("usual").unwrap();
        assert_eq!(chunk, usual.chunk(), "{options}");
    }
    let help = place.succeed("import --help");
    let words: Vec<&str> = help.split_whitespace().collect();
    assert!(words.join(" ").contains("about 16,384 entries each, or 24,576 without"), "{help}");
}

#[test]
fn links_to_a_converted_matrix_stay_or_are_named() {
    let place = Place::new();
    let file = File::create(place.path("a.h5ad")).unwrap();
    let group = file.create_group("X").unwrap();
    group.set_attribute("encoding-type", "csr_matrix").unwrap();
    group.set_attribute("encoding-version", "0.1.0").unwrap();
    group.set_attribute("shape", [2i64, 3].as_slice()).unwrap();
    let array = |name: &str, numbers: &[i32]| {
        let dataset = file.new_dataset::<i32>().shape([numbers.len() as u64]).create(name).unwrap();
        dataset.write(.., numbers).unwrap();
    };
    array("X/data", &[5, 6, 7]);
    array("X/indices", &[0, 2, 1]);
    array("X/indptr", &[0, 2, 3]);
    drop(group);
    file.create_hard_link("before", "X").unwrap();
    file.create_hard_link("zlater", "X").unwrap();
    file.create_hard_link("values", "X/data").unwrap();
    file.create_soft_link("soft", "/X").unwrap();
    file.create_soft_link("softer", "/X/indices").unwrap();
    file.close().unwrap();
    let told = place.succeed("convert --from h5ad a.h5ad a.h5");
    assert!(told.contains("left out: /values (an array of a sparse matrix)\n"), "{told}");
    assert!(told.contains("left out: what /softer leads to, /X/indices: "), "{told}");
    let file = File::open(place.path("a.h5")).unwrap();
    for name in ["X", "before", "zlater", "soft"] {
        let matrix = file.dataset(name).unwrap();
        assert!(matrix.is_sparse(), "{name}");
        assert_eq!(matrix.read::<i32>(..).unwrap(), [5, 0, 6, 0, 7, 0], "{name}");
    }
    assert_eq!(file.dataset("X").unwrap().link_count(), 3);
    drop(file);
    place.succeed("convert --from h5ad a.h5ad/X b.h5");
    assert!(File::open(place.path("b.h5")).unwrap().dataset("X").unwrap().is_sparse());
    let missing = place.pumice("convert --from h5ad a.h5ad/Y c.h5");
    assert!(missing.err.contains("a.h5ad: it has no sparse matrix Y"), "{}", missing.err);
}
