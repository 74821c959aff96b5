//! `pumice repack`, `pumice copy` and h5import.

use crate::support::{Place, installed};
use pumice::{File, FixedLength, LayoutKind, Section};

/// The matrix of the RFC: a block, a row with a zero in it, and points.
fn matrix() -> (Place, Vec<i32>) {
    let place = Place::new();
    let mut cells = vec![0; 130];
    for row in 2..5 {
        for column in 2..8 {
            cells[row * 10 + column] = (row * 30 + column * 3) as i32;
        }
    }
    for (row, column, value) in [(6, 0, 100), (6, 2, -100), (5, 9, 2), (11, 1, 1), (12, 8, 3)] {
        cells[row * 10 + column] = value;
    }
    let file = File::create(place.path("dense.h5")).unwrap();
    let dense = file.new_dataset::<i32>().shape([13, 10]).create("Sparse").unwrap();
    dense.write(.., &cells).unwrap();
    // In the header: text of variable length would have a block of its own in the file.
    dense.set_attribute("unit", FixedLength("m")).unwrap();
    file.new_dataset::<u8>().shape([3]).create("group/other").unwrap();
    file.create_soft_link("group/link", "/Sparse").unwrap();
    (place, cells)
}

const LIST: [&str; 8] =
    ["BLOCK", "(2,2)-(4,7),", "(6,0)-(6,2)", "POINT", "(5,9),", "(11,", "1),", "(12,8)"];

#[test]
fn cells_that_are_listed_become_defined() {
    let (place, cells) = matrix();
    let mut words = vec!["repack", "-l", "Sparse:SPARSECHUNK=5x4", "--defined-elements"];
    words.extend(LIST);
    words.extend(["dense.h5", "sparse.h5"]);
    assert_eq!(place.run(&words).code, Some(0));
    let file = File::open(place.path("sparse.h5")).unwrap();
    let sparse = file.dataset("Sparse").unwrap();
    assert_eq!((sparse.chunk(), sparse.count_defined(..).unwrap()), (Some(vec![5, 4]), 24));
    assert!(sparse.is_defined(&[6, 1]).unwrap(), "a zero that somebody wrote");
    assert_eq!(sparse.read::<i32>(..).unwrap(), cells);
    assert_eq!(sparse.attribute("unit").unwrap().read_string().unwrap(), "m");
    assert_eq!(file.dataset("group/link").unwrap().address(), sparse.address());
}

/// A dense file with two datasets of 13 x 10 cells and the numbers of their cells.
fn pair() -> (Place, Vec<i32>) {
    let place = Place::new();
    let cells: Vec<i32> = (0..130).collect();
    let file = File::create(place.path("pair.h5")).unwrap();
    for name in ["A", "B"] {
        let dataset = file.new_dataset::<i32>().shape([13, 10]).create(name).unwrap();
        dataset.write(.., &cells).unwrap();
    }
    file.close().unwrap();
    (place, cells)
}

#[test]
fn a_list_belongs_to_the_layout_before_it() {
    let (place, _) = pair();
    let first = "-l A:SPARSECHUNK=5x4 BLOCK (0,0)-(1,1) -l B:SPARSECHUNK=5x4 BLOCK (2,2)-(3,3)";
    place.succeed(&format!("repack {first} pair.h5 lists.h5"));
    let defined = |file: &str, name: &str| {
        let file = File::open(place.path(file)).unwrap();
        let dataset = file.dataset(name).unwrap();
        let found = dataset.read_defined::<i32>(..).unwrap();
        assert_eq!(found.values.len() as u64, dataset.count_defined(..).unwrap());
        found.values
    };
    assert_eq!(defined("lists.h5", "A"), [0, 1, 10, 11]);
    assert_eq!(defined("lists.h5", "B"), [22, 23, 32, 33]);
    // One excludes a value, the other has a list of two parts.
    let mixed = "-l A:SPARSECHUNK=5x4 --exclude 7 -l B:SPARSECHUNK=5x4 POINT (0,3) --defined-elements \
                 BLOCK (12,8)-(12,9)";
    place.succeed(&format!("repack {mixed} pair.h5 mixed.h5"));
    assert_eq!(defined("mixed.h5", "A").len(), 129);
    assert_eq!(defined("mixed.h5", "B"), [3, 128, 129]);
    // What stands before all layouts is for those without a list of their own.
    let general = "--exclude 9 -l A:SPARSECHUNK=5x4 -l B:SPARSECHUNK=5x4 POINT (0,9)";
    place.succeed(&format!("repack {general} pair.h5 general.h5"));
    assert_eq!((defined("general.h5", "A").len(), defined("general.h5", "B")), (129, vec![9]));
    // Two names share one.
    place.succeed("repack -l A,/B:SPARSECHUNK=5x4 POINT (0,1),(0,5) pair.h5 both.h5");
    assert_eq!((defined("both.h5", "A"), defined("both.h5", "B")), (vec![1, 5], vec![1, 5]));
    // All the same in a file of options.
    place.write("options", first);
    place.succeed("repack -e options pair.h5 read.h5");
    assert_eq!(place.pumice("diff --defined lists.h5 read.h5").code, Some(0));
}

#[test]
fn a_list_may_be_quoted_as_comes_natural() {
    let (place, cells) = matrix();
    let list = "BLOCK (2,2)-(4,7), (6,0)-(6,2) POINT (5,9), (11, 1), (12,8)";
    let printed = "REGION_TYPE BLOCK (2,2)-(4,7)\n    REGION_TYPE BLOCK (6,0) - (6,2)\n\
                   REGION_TYPE POINT (5,9), (11, 1), (12,8)\n";
    let layout = "Sparse:SPARSECHUNK=5x4";
    let inside = [list, printed].map(|list| format!("{layout} {list}"));
    let attached = format!("--defined-elements={list}");
    let loose: Vec<&str> = printed.split_whitespace().collect();
    let mut ways: Vec<Vec<&str>> = vec![
        vec![layout, list],
        vec![layout, printed],
        vec![layout, "--defined-elements", list],
        vec![layout, "-defined-elements", printed],
        vec![layout, &attached],
        vec![&inside[0]],
        vec![&inside[1]],
        vec![layout, "BLOCK (2,2)-(4,7), (6,0)-(6,2)", "POINT (5,9), (11, 1), (12,8)"],
    ];
    ways.push([&[layout], &loose[..]].concat());
    for way in ways {
        let words = [&["repack", "--force", "-l"], &way[..], &["dense.h5", "sparse.h5"]].concat();
        let run = place.run(&words);
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{words:?}");
        let sparse = File::open(place.path("sparse.h5")).unwrap().dataset("Sparse").unwrap();
        assert_eq!(sparse.count_defined(..).unwrap(), 24, "{words:?}");
        assert_eq!(sparse.read::<i32>(..).unwrap(), cells, "{words:?}");
    }
    for wrong in ["BLOCK (2,2)-(4,7) foo", "POINT (20,20)", "BLOCK (2,2)-(4,", "POINT (1)"] {
        let run = place.run(&["repack", "-l", layout, wrong, "dense.h5", "not.h5"]);
        assert_ne!(run.code, Some(0), "{wrong}");
        assert!(!place.path("not.h5").exists(), "{wrong}");
    }
}

#[test]
fn sections_belong_to_the_layout_before_them_by_name_or_number() {
    let (place, cells) = pair();
    let ids = |file: &str, name: &str, section: Section| {
        let dataset = File::open(place.path(file)).unwrap().dataset(name).unwrap();
        assert_eq!(dataset.read::<i32>(..).unwrap(), cells);
        let filters = dataset.section_filters();
        filters.of(section).iter().map(|filter| filter.id).collect::<Vec<_>>()
    };
    let line = "-l A:SPARSECHUNK=5x4 --sections 1 -f GZIP=9 -l B:SPARSECHUNK=5x4 --sections 0 -f SHUF -f GZIP=1";
    place.succeed(&format!("repack {line} pair.h5 out.h5"));
    assert_eq!(ids("out.h5", "A", Section::Values), [1]);
    assert_eq!(ids("out.h5", "B", Section::Selection), [2, 1]);
    place.succeed(&format!(
        "repack {} pair.h5 named.h5",
        line.replace("sections 1", "sections values").replace("sections 0", "sections selection")
    ));
    for (name, section) in
        [("A", Section::Values), ("A", Section::Selection), ("B", Section::Values)]
    {
        assert_eq!(
            ids("named.h5", name, section),
            ids("out.h5", name, section),
            "{name} {section}"
        );
    }
    // One section that is asked for leaves the others as they are by default.
    place.succeed("repack -l SPARSECHUNK=5x4 pair.h5 usual.h5");
    assert_eq!(ids("out.h5", "A", Section::Selection), ids("usual.h5", "A", Section::Selection));
    assert_eq!(ids("out.h5", "B", Section::Values), ids("usual.h5", "B", Section::Values));
}

#[test]
fn sparse_to_dense_and_back_keeps_what_is_defined_if_asked() {
    let (place, cells) = matrix();
    let mut words = vec!["repack", "-l", "Sparse:SPARSECHUNK=5x4"];
    words.extend(LIST);
    words.extend(["dense.h5", "sparse.h5"]);
    assert_eq!(place.run(&words).code, Some(0));
    place.succeed("repack -l CONTI --keep-defined sparse.h5 back.h5");
    let back = File::open(place.path("back.h5")).unwrap();
    assert_eq!(back.dataset("Sparse").unwrap().layout(), LayoutKind::Contiguous);
    assert_eq!(back.dataset("Sparse").unwrap().read::<i32>(..).unwrap(), cells);
    let mask = back.dataset("Sparse.defined").unwrap().read::<u8>(..).unwrap();
    assert_eq!(mask.iter().map(|&flag| u64::from(flag)).sum::<u64>(), 24);
    drop(back);
    place.succeed("repack -l SPARSECHUNK=5x4 --keep-defined back.h5 again.h5");
    assert!(!place.succeed("ls -r again.h5").contains("defined"));
    let equal = place.pumice("diff --defined sparse.h5 again.h5 /Sparse");
    assert_eq!((equal.code, equal.out.as_str()), (Some(0), ""));
    // Without a mask, the zero is lost.
    place.succeed("repack -l Sparse:SPARSECHUNK=5x4 --exclude 0 back.h5 excluded.h5");
    let excluded = File::open(place.path("excluded.h5")).unwrap();
    assert_eq!(excluded.dataset("Sparse").unwrap().count_defined(..).unwrap(), 23);
    let different = place.pumice("diff --defined sparse.h5 excluded.h5 /Sparse");
    assert_eq!(different.code, Some(1), "{}", different.out);
}

#[test]
fn sections_get_filters_of_their_own() {
    let (place, _) = matrix();
    place.succeed(
        "repack -l Sparse:SPARSECHUNK=5x4 --sections values -f Sparse:GZIP=9 \
         --sections selection -f Sparse:GZIP=1 dense.h5 sparse.h5",
    );
    let file = File::open(place.path("sparse.h5")).unwrap();
    let filters = file.dataset("Sparse").unwrap().section_filters();
    assert_eq!(filters.of(Section::Values)[0].parameters, [9]);
    assert_eq!(filters.of(Section::Selection)[0].parameters, [1]);
}

#[test]
fn a_file_is_replaced_at_once_or_not_at_all() {
    let (place, cells) = matrix();
    assert!(place.fail("repack -f nowhere:GZIP=1 dense.h5").contains("nowhere"));
    let before = std::fs::read(place.path("dense.h5")).unwrap();
    place.succeed("repack --dry-run -f SHUF -f GZIP=9 dense.h5");
    assert_eq!(std::fs::read(place.path("dense.h5")).unwrap(), before);
    place.succeed("repack -f SHUF -f GZIP=9 dense.h5");
    assert_eq!(place.names(), ["dense.h5"], "nothing else is left");
    let file = File::open(place.path("dense.h5")).unwrap();
    let dataset = file.dataset("Sparse").unwrap();
    assert_eq!(dataset.filters().iter().map(|filter| filter.id).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(dataset.read::<i32>(..).unwrap(), cells);
}

#[test]
fn objects_are_copied_between_files() {
    let (place, cells) = matrix();
    assert!(place.fail("copy -i dense.h5 -o b.h5 -s Sparse -d /a/b").contains("-p"));
    place.succeed("copy -p -i dense.h5 -o b.h5 -s Sparse -d /a/b");
    place.succeed("copy -f soft -i dense.h5 -o b.h5 -s group -d /group");
    let file = File::open(place.path("b.h5")).unwrap();
    assert_eq!(file.dataset("a/b").unwrap().read::<i32>(..).unwrap(), cells);
    assert_eq!(file.dataset("group/link").unwrap().read::<i32>(..).unwrap(), cells);
}

#[test]
fn arrays_of_text_are_imported_as_configured() {
    let place = Place::new();
    let tool = place.path("h5import");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pumice"), &tool).unwrap();
    place.write("a.txt", "1 2 3\n4 5 6\n");
    place.write(
        "a.conf",
        "PATH g/a\nINPUT-CLASS TEXTIN\nINPUT-SIZE 32\nRANK 2\nDIMENSION-SIZES 2 3\n\
                           OUTPUT-ARCHITECTURE STD\nOUTPUT-BYTE-ORDER BE\nOUTPUT-SIZE 16\n",
    );
    let import = |words: [&str; 5]| place.command(&tool).args(words).output().unwrap();
    let run = import(["a.txt", "-c", "a.conf", "-o", "a.h5"]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let file = File::open(place.path("a.h5")).unwrap();
    let dataset = file.dataset("g/a").unwrap();
    assert_eq!(dataset.datatype(), &pumice::Datatype::i16_be());
    assert_eq!(dataset.read::<i64>(..).unwrap(), [1, 2, 3, 4, 5, 6]);
    place.write("short.txt", "1 2 3");
    let run = import(["short.txt", "-c", "a.conf", "-o", "b.h5"]);
    assert_eq!(run.status.code(), Some(1), "values are missing");
    place.write(
        "outside.conf",
        "PATH a\nINPUT-CLASS TEXTIN\nINPUT-SIZE 16\nRANK 2\nDIMENSION-SIZES 2 3\n\
         OUTPUT-ARCHITECTURE STD\nOUTPUT-BYTE-ORDER BE\nEXTERNAL-STORAGE a.bin\n",
    );
    let run = import(["a.txt", "-c", "outside.conf", "-o", "c.h5"]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let stored: Vec<u8> = [1u16, 2, 3, 4, 5, 6].iter().flat_map(|n| n.to_be_bytes()).collect();
    assert_eq!(std::fs::read(place.path("a.bin")).unwrap(), stored);
}

#[test]
fn strings_are_excluded_like_numbers() {
    let place = Place::new();
    let file = File::create(place.path("words.h5")).unwrap();
    let words = file.new_dataset_of(pumice::Datatype::fixed_string(4)).shape([4]).create("fixed");
    words.unwrap().write_bytes(.., b"\0\0\0\0ab\0\0none\0\0\0\0").unwrap();
    let words = file.new_dataset_of(pumice::Datatype::varlen_string(16)).shape([4]).create("any");
    words.unwrap().write_strings(.., &["", "a longer word", "none", ""]).unwrap();
    file.close().unwrap();
    place.succeed("repack -l SPARSECHUNK --exclude none words.h5 sparse.h5");
    let file = File::open(place.path("sparse.h5")).unwrap();
    for name in ["fixed", "any"] {
        let words = file.dataset(name).unwrap();
        assert_eq!(words.count_defined(..).unwrap(), 3, "{name}");
        assert!(!words.is_defined(&[2]).unwrap());
    }
    let words = file.dataset("any").unwrap().read_strings(..).unwrap();
    assert_eq!(words, ["", "a longer word", "", ""]);
}

#[test]
fn a_dataset_that_cannot_be_sparse_as_asked_is_named() {
    let place = Place::new();
    let file = File::create(place.path("in.h5")).unwrap();
    let numbers = file.new_dataset::<f32>().shape([4, 6]).create("numbers");
    numbers.unwrap().write(.., &[1.0f32; 24]).unwrap();
    file.close().unwrap();
    let options = "-l SPARSECHUNK=2x3 --exclude 0 --sections selection -f FLET";
    let run = place.pumice(&format!("repack {options} in.h5 out.h5"));
    let beginning = "pumice warning: /numbers is copied as it is, not as SPARSECHUNK: ";
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.err.starts_with(beginning) && run.err.contains("Fletcher-32"), "{}", run.err);
    let file = File::open(place.path("out.h5")).unwrap();
    assert!(!file.dataset("numbers").unwrap().is_sparse());
}

#[test]
fn metadata_lies_in_blocks_of_the_size_asked_for() {
    let (place, _) = matrix();
    for (line, expected) in [("-l CONTI -M 8192", 8192), ("-l CONTI --low=0", 2048)] {
        place.succeed(&format!("repack --force {line} dense.h5 blocks.h5"));
        let file = File::open(place.path("blocks.h5")).unwrap();
        assert_eq!(file.dataset("Sparse").unwrap().creation().unwrap().address, Some(expected));
        drop(file);
        assert_eq!(place.pumice("diff dense.h5 blocks.h5").code, Some(0));
    }
    assert!(place.pumice("repack -M 0 dense.h5 blocks.h5").code != Some(0));
}

#[test]
fn a_file_of_pages_remembers_all_that_is_free() {
    let (place, _) = matrix();
    place.succeed("repack -S PAGE -P 1 dense.h5 pages.h5");
    let told = place.succeed("check pages.h5");
    assert!(told.contains(", 0 that nothing refers to\n"), "{told}");
}

#[test]
fn an_estimate_is_near_what_becomes_of_a_file() {
    let place = Place::new();
    let file = File::create(place.path("large.h5")).unwrap();
    let mut random = 1u64;
    let mut draw = || {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 40) as i32
    };
    let values: Vec<i32> = (0..400_000).map(|_| (draw() % 10 == 0) as i32 * draw()).collect();
    file.new_dataset::<i32>().shape([1000, 400]).create("m").unwrap().write(.., &values).unwrap();
    file.close().unwrap();
    for line in ["-f SHUF -f GZIP=6", "-l SPARSECHUNK=250x400 --exclude 0"] {
        let told = place.succeed(&format!("repack --dry-run {line} large.h5"));
        let words: Vec<&str> = told.lines().last().unwrap().split_whitespace().collect();
        assert_eq!((words[1], words[3]), ("MiB", "KiB"), "{told}");
        let about = words[2].parse::<f64>().unwrap() * 1024.0;
        place.succeed(&format!("repack --force {line} large.h5 small.h5"));
        let file = File::open(place.path("small.h5")).unwrap();
        let stored = file.dataset("m").unwrap().storage_size().unwrap() as f64;
        assert!((about / stored - 1.0).abs() < 0.2, "{stored} {told}");
    }
}

#[test]
fn a_run_that_is_killed_leaves_the_file_as_it_was() {
    let place = Place::new();
    let file = File::create(place.path("large.h5")).unwrap();
    let values: Vec<f64> = (0..2_000_000).map(|n| f64::from(n).sin()).collect();
    file.new_dataset::<f64>().shape([2_000_000]).create("d").unwrap().write(.., &values).unwrap();
    file.close().unwrap();
    let before = std::fs::read(place.path("large.h5")).unwrap();
    let mut run = place.command(env!("CARGO_BIN_EXE_pumice"));
    let mut run = run.args(["repack", "-f", "SHUF", "-f", "GZIP=9", "large.h5"]).spawn().unwrap();
    // Until it has begun to write.
    while place.names().len() == 1 && run.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    assert_eq!(std::fs::read(place.path("large.h5")).unwrap(), before);
}

#[test]
fn defined_cells_are_dumped_as_blocks_and_points() {
    let (place, _) = matrix();
    let mut words = vec!["repack", "-l", "Sparse:SPARSECHUNK=5x4"];
    words.extend(LIST);
    words.extend(["dense.h5", "sparse.h5"]);
    assert_eq!(place.run(&words).code, Some(0));
    let text = place.succeed("dump --sparse-locations -d Sparse sparse.h5");
    assert!(text.contains("/ ( 13, 10 ) }\n   REGION_TYPE BLOCK"), "{text}");
    for line in [
        "   REGION_TYPE BLOCK  (2,2)-(4,7)\n   REGION_TYPE BLOCK  (6,0)-(6,2)\n",
        "   REGION_TYPE POINT  (5,9), (11,1), (12,8)\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    // The list can be given back.
    place.write("list.txt", &text[text.find("REGION_TYPE").unwrap()..]);
    place
        .succeed("repack -l Sparse:SPARSECHUNK=5x4 --defined-elements @list.txt dense.h5 again.h5");
    assert_eq!(place.pumice("diff --defined sparse.h5 again.h5").code, Some(0));
    let text = place.succeed("dump --sparse -p -d Sparse sparse.h5");
    for line in [
        "SPARSE_CHUNK ( 5, 4 )",
        "SECTION 0 selection SIZE ",
        "FILTERS SECTION 1 {",
        "\n   REGION_TYPE BLOCK  (2,2)-(4,7)\n   DATA {\n      (2,2)  66, 69, 72, 75, 78, 81,\n      (3,2)  96,",
        "   DATA {\n      (6,0)  100, 0, -100\n   }\n",
        "   DATA {\n      (5,9) 2\n      (11,1) 1\n      (12,8) 3\n   }\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let csv = place.succeed("dump --csv -d Sparse sparse.h5");
    assert!(csv.starts_with("2,2,66\n2,3,69\n") && csv.contains("6,1,0\n"), "{csv}");
    let csv = place.succeed("dump --csv -d Sparse dense.h5");
    assert_eq!(csv.lines().nth(6), Some("100,0,-100,0,0,0,0,0,0,0"));
    let json = place.succeed("dump --json sparse.h5");
    assert!(json.starts_with("{\"file\":\"sparse.h5\",\"root\":{\"kind\":\"group\""), "{json}");
    assert!(json.contains("\"defined\":[[[2, 2],66],[[2, 3],69]"), "{json}");
    assert!(json.contains("\"link\":{\"kind\":\"soft link\",\"target\":\"/Sparse\"}"), "{json}");
}

#[test]
fn dumps_of_sparse_datasets_become_sparse_again() {
    let (place, _) = matrix();
    place.succeed("repack -l Sparse:SPARSECHUNK=5x4 -exclude 0 dense.h5 sparse.h5");
    for options in ["", "-p", "-sparse", "--sparse -p", "--sparse -d /Sparse -s 1,1 -c 11,9"] {
        let text = place.succeed(&format!("dump {options} sparse.h5"));
        place.write("dump.txt", &text);
        place.succeed("import -f dump.txt again.h5");
        let file = pumice::File::open(place.path("again.h5")).unwrap();
        let again = file.dataset("Sparse").unwrap();
        assert!(again.is_sparse(), "{options}");
        if options.contains("-d") {
            assert_eq!(again.count_defined(..).unwrap(), 21, "{text}");
            continue;
        }
        assert_eq!(place.pumice("diff --defined sparse.h5 again.h5 /Sparse").code, Some(0));
        if options.contains("-p") {
            assert_eq!(again.chunk(), Some(vec![5, 4]));
            let old =
                pumice::File::open(place.path("sparse.h5")).unwrap().dataset("Sparse").unwrap();
            assert_eq!(again.section_filters(), old.section_filters());
        }
    }
}

#[test]
fn large_data_is_aligned_if_asked() {
    let (place, _) = matrix();
    place.succeed("repack -l CONTI dense.h5 plain.h5");
    place.succeed("repack -l CONTI -t 16 -a 4096 dense.h5 aligned.h5");
    let address = |name: &str| {
        let file = pumice::File::open(place.path(name)).unwrap();
        file.dataset("Sparse").unwrap().creation().unwrap().address.unwrap()
    };
    assert_ne!(address("plain.h5") % 4096, 0);
    assert_eq!(address("aligned.h5") % 4096, 0);
    assert_eq!(place.pumice("diff plain.h5 aligned.h5").code, Some(0));
}

#[test]
fn values_that_differ_are_told_in_order_by_any_number_of_threads() {
    let place = Place::new();
    let values: Vec<i32> = (0..100_000).collect();
    for (name, more) in [("a.h5", 0), ("b.h5", 1)] {
        let file = pumice::File::create(place.path(name)).unwrap();
        let data = file.new_dataset::<i32>().shape([100, 1000]).create("d").unwrap();
        let values: Vec<i32> = values.iter().map(|value| value + more * (value % 3)).collect();
        data.write(.., &values).unwrap();
        file.close().unwrap();
    }
    let run = place.pumice("diff -r a.h5 b.h5");
    assert_eq!(run.code, Some(1));
    let told: Vec<&str> = run.out.lines().filter(|line| line.starts_with("[ ")).collect();
    let expected: Vec<i32> = values.iter().copied().filter(|value| value % 3 != 0).collect();
    assert_eq!(told.len(), expected.len());
    for (line, value) in told.iter().zip(expected) {
        assert!(line.starts_with(&format!("[ {} {} ]", value / 1000, value % 1000)), "{line}");
    }
    assert_eq!(run.out.matches("position").count(), 1, "one header");
}

#[test]
fn statistics_count_sparse_datasets_and_how_full_their_chunks_are() {
    let (place, _) = matrix();
    place.succeed("repack -l Sparse:SPARSECHUNK=5x4 --exclude 0 dense.h5 sparse.h5");
    let told = place.succeed("stat sparse.h5");
    let counts = "\tDataset layout counts[CHUNKED]: 0\n\tDataset layout counts[STRUCTURED CHUNK \
                  SPARSE]: 1\n\tDataset layout counts[VIRTUAL]: 0\n";
    assert!(told.contains(counts), "{told}");
    assert!(told.contains("\t# of sparse datasets: 1\n"), "{told}");
    // 13 x 10 in chunks of 5 x 4: of nine, six hold something.
    assert!(told.contains("\t# of structured chunks: 6\n"), "{told}");
    assert!(!place.succeed("stat dense.h5").contains("SPARSE"));
}

#[test]
fn what_is_not_there_is_told_with_what_to_try() {
    let (place, _) = matrix();
    for line in ["dump -d /nope dense.h5", "ls dense.h5/nope", "copy -i dense.h5 -o b.h5 -s n -d a"]
    {
        let told = place.fail(line);
        assert!(told.ends_with("; `pumice ls -r` lists what is in a file\n"), "{told}");
    }
}

/// Strings in a grid, of which one has its fill value's text and one none.
fn words(place: &Place) {
    let file = File::create(place.path("words.h5")).unwrap();
    let new = || file.new_strings().shape([16, 12]).fill(pumice::Value::from("none"));
    let plain = new().create("plain").unwrap();
    let chunked = new().chunk([4, 4]).create("chunked").unwrap();
    let sparse = new().chunk([4, 4]).sparse().create("sparse").unwrap();
    let dense = new().chunk([4, 4]).variable_length().create("dense").unwrap();
    for dataset in [plain, chunked, sparse, dense] {
        dataset.write_strings((1, 2..5), &["x", "", "none"]).unwrap();
        dataset.write_strings((15, 0), &["last"]).unwrap();
    }
    file.close().unwrap();
}

#[test]
fn strings_keep_their_fill_value_in_every_layout() {
    let place = Place::new();
    words(&place);
    let before = File::open(place.path("words.h5")).unwrap();
    for options in [
        "-l SPARSECHUNK",
        "-l SPARSECHUNK=8x8 -f GZIP=5",
        "-l CHUNK=8x8",
        "-l CONTI",
        "-f GZIP=5",
        "-f NONE",
    ] {
        place.succeed(&format!("repack --force {options} words.h5 new.h5"));
        let after = File::open(place.path("new.h5")).unwrap();
        for name in ["plain", "chunked", "sparse", "dense"] {
            let (old, new) = (before.dataset(name).unwrap(), after.dataset(name).unwrap());
            let fill = |dataset: &pumice::Dataset| {
                let fill = dataset.fill_heaped().unwrap().unwrap();
                fill.values(dataset.datatype()).unwrap()
            };
            assert_eq!(fill(&new), fill(&old), "{options} {name}");
            let all = |dataset: &pumice::Dataset| dataset.read_strings(..).unwrap().to_vec();
            assert_eq!(all(&new), all(&old), "{options} {name}");
            let stays_sparse = name == "sparse" && new.is_sparse();
            if stays_sparse {
                assert_eq!(new.count_defined(..).unwrap(), 4, "{options}");
            }
        }
        assert_eq!(place.pumice("check new.h5").code, Some(0), "{options}");
    }
}

#[test]
fn filters_leave_the_layout_as_it_is() {
    let place = Place::new();
    words(&place);
    let file = File::edit(place.path("words.h5")).unwrap();
    let edges = file.new_dataset::<i32>().shape([10]).chunk([4]).deflate(1);
    let edges = edges.dont_filter_partial_chunks().create("edges").unwrap();
    edges.write(.., &[7; 10]).unwrap();
    let heaps = file.new_strings().shape([10]).chunk([4]).variable_length();
    let heaps = heaps.dont_filter_partial_chunks().create("heaps").unwrap();
    heaps.write_strings(.., &["a"; 10]).unwrap();
    drop((edges, heaps, file));
    let ids = |filters: &[pumice::FilterSpec]| {
        filters.iter().map(|filter| filter.id).collect::<Vec<u16>>()
    };
    let usual = pumice::SectionFilters::defaults(&[Section::References], 16);
    let usual = ids(usual.of(Section::References));
    for (options, references, heap) in [
        ("-f GZIP=5", vec![1], vec![1]),
        ("--sections heap -f GZIP=5", usual, vec![1]),
        ("-f NONE", vec![], vec![]),
    ] {
        place.succeed(&format!("repack --force {options} words.h5 new.h5"));
        let file = File::open(place.path("new.h5")).unwrap();
        for name in ["dense", "heaps"] {
            let dataset = file.dataset(name).unwrap();
            assert_eq!(dataset.layout(), LayoutKind::VariableLength, "{options}");
            let filters = dataset.section_filters();
            assert_eq!(ids(filters.of(Section::Heap)), heap, "{options}");
            assert_eq!(ids(filters.of(Section::References)), references, "{options}");
        }
        assert_eq!(file.dataset("sparse").unwrap().layout(), LayoutKind::Sparse);
        assert_eq!(file.dataset("chunked").unwrap().layout(), LayoutKind::Chunked);
        for name in ["edges", "heaps"] {
            let creation = file.dataset(name).unwrap().creation().unwrap();
            assert!(creation.dont_filter_partial_chunks, "{options} {name}");
        }
        assert_eq!(file.dataset("edges").unwrap().read::<i32>(..).unwrap(), [7; 10]);
        assert_eq!(file.dataset("heaps").unwrap().read_strings(..).unwrap().to_vec(), ["a"; 10]);
    }
    place.succeed("repack --force -l CHUNK=4 words.h5 new.h5");
    let file = File::open(place.path("new.h5")).unwrap();
    assert_eq!(file.dataset("heaps").unwrap().layout(), LayoutKind::Chunked, "as was asked for");
}

#[test]
fn what_a_number_cannot_be_excluded_from_is_copied_as_it_is() {
    use pumice::types::{ByteOrder, Enumeration, Integer};
    let (place, _) = matrix();
    let file = File::edit(place.path("dense.h5")).unwrap();
    let flags = Enumeration::new(Integer::new(1, ByteOrder::Little, true));
    let flags = pumice::Datatype::Enum(flags.with("FALSE", &[0]).with("TRUE", &[1]));
    file.new_dataset_of(flags).shape([3]).create("flags").unwrap();
    let pair = pumice::Datatype::compound([("r", pumice::Datatype::f64_le())]);
    file.new_dataset_of(pair).shape([3]).create("pairs").unwrap();
    file.close().unwrap();
    let run = place.pumice("repack -l SPARSECHUNK --exclude 0 dense.h5 sparse.h5");
    assert_eq!(run.code, Some(0), "{}", run.err);
    for name in ["flags", "pairs"] {
        let warned =
            format!("/{name} is copied as it is, not as SPARSECHUNK: --exclude 0 does not");
        assert!(run.err.contains(&warned), "{}", run.err);
    }
    let file = File::open(place.path("sparse.h5")).unwrap();
    assert_eq!(file.dataset("flags").unwrap().layout(), LayoutKind::Contiguous);
    assert_eq!(file.dataset("Sparse").unwrap().count_defined(..).unwrap(), 23);
}

#[test]
fn fill_values_with_references_keep_what_means_something_in_another_file() {
    use pumice::{Datatype, Heaped, ReferenceType, Value};
    let place = Place::new();
    let file = File::create(place.path("links.h5")).unwrap();
    file.new_dataset::<u8>().shape([1]).create("target").unwrap();
    let links = file.new_references(ReferenceType::Object).shape([1]).create("links").unwrap();
    links.write_references(.., &[Some(file.reference("target").unwrap())]).unwrap();
    let led = links.read_bytes(..).unwrap();
    let object = file.reference_datatype(ReferenceType::Object);
    let size = object.size();
    let pair = Datatype::compound([("id", Datatype::i32_be()), ("at", object.clone())]);
    let note = Datatype::compound([
        ("text", Datatype::varlen_string(16)),
        ("at", Datatype::varlen(object.clone(), 16)),
    ]);
    let reference = |somewhere: bool| match somewhere {
        false => Value::Reference(vec![0; size]),
        true => Value::Reference(led.clone()),
    };
    let pair_of = |id: i128, led| {
        Value::Compound(vec![("id".into(), Value::Integer(id)), ("at".into(), reference(led))])
    };
    let note_of = |text: &str, led| {
        let at = Value::Sequence(vec![reference(led)]);
        Value::Compound(vec![("text".into(), text.into()), ("at".into(), at)])
    };
    let wanted = |name: &str| match name {
        "null" => reference(false),
        "pair" | "led pair" => pair_of(7, false),
        _ => note_of("none", false),
    };
    let names = ["null", "pair", "led pair", "note", "led note"];
    for name in names {
        let (datatype, fill) = match name {
            "null" => (&object, reference(false)),
            "pair" | "led pair" => (&pair, pair_of(7, name != "pair")),
            _ => (&note, note_of("none", name != "note")),
        };
        let builder = file.new_dataset_of(datatype.clone()).shape([4, 4]).fill(fill);
        builder.create(name).unwrap();
    }
    drop(links);
    file.close().unwrap();
    for options in ["", "-l CHUNK=2x2", "-l SPARSECHUNK", "--native -l CHUNK=2x2"] {
        let run = place.pumice(&format!("repack --force {options} links.h5 new.h5"));
        assert_eq!(run.code, Some(0), "{options}: {}", run.err);
        let after = File::open(place.path("new.h5")).unwrap();
        for name in names {
            let dataset = after.dataset(name).unwrap();
            let fill: Heaped = dataset.fill_heaped().unwrap().expect(name);
            let fill = fill.values(dataset.datatype()).unwrap();
            assert_eq!(fill, [wanted(name)], "{options} {name}");
            assert_eq!(dataset.read_values((3, 3)).unwrap(), fill, "{options} {name}");
            let told = format!("/{name}: references in its fill value are null in the new file");
            assert_eq!(run.err.contains(&told), name.starts_with("led"), "{options}: {}", run.err);
        }
        assert_eq!(place.pumice("check new.h5").code, Some(0), "{options}");
    }
}

#[test]
fn a_sparse_dataset_that_becomes_dense_stays_compressed() {
    let place = Place::new();
    let file = File::create(place.path("sparse.h5")).unwrap();
    let cells: Vec<f64> = (0..10_000).map(|cell| f64::from(cell / 7)).collect();
    for (name, level) in [("usual", None), ("deflated", Some(9))] {
        let builder = file.new_dataset::<f64>().shape([100, 100]).sparse().chunk([50, 50]);
        let builder = match level {
            Some(level) => builder.no_filters().deflate(level),
            None => builder,
        };
        builder.create(name).unwrap().write(.., &cells).unwrap();
    }
    let words = file.new_strings().shape([50]).sparse().chunk([10]).create("words").unwrap();
    words.write_strings(3..5, &["tuff", "basalt"]).unwrap();
    drop(words);
    file.close().unwrap();
    place.succeed("repack -l usual,deflated:CHUNK=20x20 -l words:CHUNK=10 sparse.h5 dense.h5");
    let dense = File::open(place.path("dense.h5")).unwrap();
    let ids = |name: &str| {
        let filters = dense.dataset(name).unwrap().filters().into_iter();
        filters.map(|filter| (filter.id, filter.parameters[0])).collect::<Vec<_>>()
    };
    assert_eq!((ids("usual"), ids("deflated")), (vec![(2, 8), (1, 4)], vec![(1, 9)]));
    for name in ["usual", "deflated"] {
        let dataset = dense.dataset(name).unwrap();
        assert_eq!(dataset.read::<f64>(..).unwrap(), cells);
        assert!(dataset.storage_size().unwrap() < 80_000 / 4);
    }
    assert_eq!(dense.dataset("words").unwrap().read_strings(3..5).unwrap(), ["tuff", "basalt"]);
    drop(dense);
    if installed("h5dump") {
        let dump = place.command("h5dump").args(["-d", "/usual", "dense.h5"]).output().unwrap();
        assert!(dump.status.success(), "other HDF5 programs read it");
    }
    // No filters are asked for, or others.
    place.succeed("repack -l usual:CHUNK=20x20 -f usual:NONE sparse.h5 plain.h5");
    let plain = File::open(place.path("plain.h5")).unwrap();
    assert!(plain.dataset("usual").unwrap().filters().is_empty());
}

#[test]
fn pages_do_without_an_alignment() {
    let (place, cells) = matrix();
    for options in ["", "-G 512", "-P 1", "-l CHUNK=5x4", "-a 513", "-G 8192 -l SPARSECHUNK=5x4"] {
        place.succeed(&format!("repack --force -S PAGE -t 1 -a 512 {options} dense.h5 new.h5"));
        let new = File::open(place.path("new.h5")).unwrap();
        assert_eq!(new.info().unwrap().file_space.strategy, pumice::FileSpaceStrategy::Paged);
        assert_eq!(new.dataset("Sparse").unwrap().read::<i32>(..).unwrap(), cells, "{options}");
        drop(new);
        assert_eq!(place.pumice("check new.h5").code, Some(0), "{options}");
        if installed("h5dump") && !options.contains("SPARSE") {
            let dump = place.command("h5dump").arg("new.h5").output().unwrap();
            assert!(dump.status.success(), "{options}");
        }
    }
}

#[test]
fn what_was_never_written_stays_small() {
    let place = Place::new();
    let file = File::create(place.path("never.h5")).unwrap();
    file.new_dataset::<f64>().shape([1000, 800]).create("never").unwrap();
    file.new_dataset::<f64>().shape([1000, 800]).chunk([100, 100]).create("chunked").unwrap();
    let mostly = file.new_dataset::<f64>().shape([1000, 800]).chunk([100, 100]).create("mostly");
    mostly.unwrap().write((0, 0..2), &[1.5, 2.5]).unwrap();
    file.close().unwrap();
    for options in ["-f GZIP=1", "-f SHUF", "-l CHUNK=50x50", "-l SPARSECHUNK=50x50", "-n"] {
        place.succeed(&format!("repack --force {options} never.h5 new.h5"));
        let size = std::fs::metadata(place.path("new.h5")).unwrap().len();
        assert!(size < 250_000, "{options}: {size} bytes");
        let new = File::open(place.path("new.h5")).unwrap();
        for name in ["never", "chunked"] {
            assert_eq!(new.dataset(name).unwrap().storage_size().unwrap(), 0, "{options} {name}");
        }
        let cells = new.dataset("mostly").unwrap().read::<f64>((0..3, 0..3)).unwrap();
        assert_eq!(cells, [1.5, 2.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "{options}");
    }
}

/// The bytes of a file on the disk, which may be fewer than its length.
#[cfg(unix)]
fn room(path: &std::path::Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).unwrap().blocks() * 512
}

#[cfg(unix)]
#[test]
fn one_piece_of_what_was_hardly_written_is_a_hole() {
    const CELLS: u64 = 1_000_000_000;
    let place = Place::new();
    let file = File::create(place.path("hardly.h5")).unwrap();
    let chunked = || file.new_dataset::<f64>().shape([CELLS]).chunk([100_000]);
    chunked().create("never").unwrap();
    let values: Vec<f64> = (0..100_000).map(f64::from).collect();
    for (name, builder) in [("plain", chunked()), ("deflated", chunked().deflate(1))] {
        let dataset = builder.create(name).unwrap();
        dataset.write(500_000_000..500_100_000, &values).unwrap();
    }
    file.close().unwrap();
    // Compact data has at most 64 KiB: these stay as they are.
    for (options, layout) in
        [("-l CONTI", LayoutKind::Contiguous), ("-l COMPA", LayoutKind::Chunked)]
    {
        place.succeed(&format!("repack --force {options} hardly.h5 new.h5"));
        let taken = room(&place.path("new.h5"));
        assert!(taken < 4_000_000, "{options}: {taken} bytes");
        let new = File::open(place.path("new.h5")).unwrap();
        assert_eq!(new.dataset("never").unwrap().storage_size().unwrap(), 0, "{options}");
        for name in ["plain", "deflated"] {
            let dataset = new.dataset(name).unwrap();
            assert_eq!(dataset.layout(), layout, "{options} {name}");
            let cells = dataset.read::<f64>(499_999_999..500_100_001).unwrap();
            assert_eq!((cells[0], cells[100_001]), (0.0, 0.0), "{options} {name}");
            assert_eq!(cells[1..100_001], values, "{options} {name}");
        }
    }
}
