//! `pumice check`, `recover`, `bench`, `completions` and `man`.

use crate::support::{Place, small};
use pumice::File;

/// A file with a chunk whose checksum will be wrong.
fn damaged(place: &Place) {
    let file = File::create(place.path("d.h5")).unwrap();
    let builder = file.new_dataset::<u32>().shape([64]).chunk([16]).fletcher32();
    let bad = builder.create("runs/bad").unwrap();
    bad.write(.., &[7u32; 64]).unwrap();
    let good = file.new_dataset::<u32>().shape([4]).create("runs/good").unwrap();
    good.write(.., &[1u32, 2, 3, 4]).unwrap();
    let address = bad.chunks().unwrap()[2].address as usize;
    drop((bad, good));
    file.close().unwrap();
    let mut bytes = std::fs::read(place.path("d.h5")).unwrap();
    bytes[address + 5] ^= 1;
    place.write("d.h5", bytes);
}

#[test]
fn sound_files_are_told_to_be_sound() {
    let place = small();
    let told = place.succeed("check small.h5");
    assert!(told.starts_with("small.h5: sound; 1 group, 1 dataset, "), "{told}");
    assert!(place.succeed("recover small.h5").contains("no journal is left"));
}

#[test]
fn damage_is_found_and_the_rest_is_copied() {
    let place = Place::new();
    damaged(&place);
    let run = place.pumice("check d.h5 --repair new.h5");
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(
        run.out.contains("problem: /runs/bad: the chunk at [32] (68 bytes at 0x"),
        "{}",
        run.out
    );
    assert!(run.out.contains("left behind: /runs/bad"), "{}", run.out);
    let file = File::open(place.path("new.h5")).unwrap();
    assert_eq!(file.dataset("runs/good").unwrap().read::<u32>(..).unwrap(), [1, 2, 3, 4]);
    assert!(!file.contains("runs/bad"));
    place.write("text.h5", "this is no HDF5 file\n");
    assert_eq!(place.pumice("check text.h5").code, Some(2));
}

#[test]
fn files_are_measured() {
    let place = small();
    let told = place.succeed("bench small.h5 --seconds 0.01 --threads 2");
    for kind in ["row", "column", "window", "whole"] {
        assert_eq!(told.lines().filter(|line| line.starts_with(kind)).count(), 2, "{told}");
    }
}

#[test]
fn scripts_and_manual_pages_are_made() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(place.succeed(&format!("completions {shell}")).contains("pumice __complete"));
    }
    let made = place.succeed("man pages");
    assert!(made.lines().count() > 15, "{made}");
    let page = std::fs::read_to_string(place.path("pages/pumice-import.1")).unwrap();
    for part in [".TH \"PUMICE-IMPORT\" 1", ".SH SYNOPSIS", ".B \\-\\-duplicates", ".SH EXAMPLES"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let page = std::fs::read_to_string(place.path("pages/pumice-ls.1")).unwrap();
    assert!(page.contains(".B \\-\\-json"), "{page}");
}

#[test]
fn trees_and_json_list_everything() {
    let place = small();
    let tree = place.succeed("ls --tree small.h5");
    assert!(tree.starts_with("small.h5\n└── matrix  f64  5 x 6 sparse  chunk 5 x 6  "), "{tree}");
    let json = place.succeed("ls --json small.h5");
    for part in ["\"path\": \"/matrix\"", "\"defined_cells\": 6", "\"layout\": \"sparse\""] {
        assert!(json.contains(part), "{json}");
    }
}

#[test]
fn any_two_axes_are_drawn() {
    let place = Place::new();
    let file = File::create(place.path("c.h5")).unwrap();
    let cube = file.new_dataset::<u8>().shape([2, 3, 4]).chunk([2, 3, 4]).sparse();
    let cube = cube.create("cube").unwrap();
    cube.write_points(&[[0, 0, 0], [1, 0, 0], [1, 2, 3]], &[1u8, 0, 1]).unwrap();
    drop(cube);
    file.close().unwrap();
    let caption = |line: &str| place.succeed(line).lines().last().map(String::from).unwrap();
    let all = "/cube: 2 x 3 x 4, 3 defined, density 12.5 % (axis 1 down, axis 2 across)";
    assert_eq!(caption("spy c.h5 cube"), all);
    let turned = place.succeed("spy c.h5 cube --axes 2,0 --ascii");
    assert!(turned.starts_with("+--+\n|@@|\n| @|\n+--+\n"), "{turned}");
    let part = "/cube: 2 x 3 x 4, 2 defined, density 16.7 % (axis 1 down, axis 2 across, axis 0 from 1 to 2)";
    assert_eq!(caption("spy c.h5 cube --slice 0=1"), part);
    assert!(place.fail("spy c.h5 cube --axes 0,3").contains("two different numbers below 3"));
    let chunks = place.succeed("spy c.h5 cube --chunks");
    assert!(chunks.contains("chunks of 2 x 3 x 4: 1 stored of 1\n"), "{chunks}");
    assert!(chunks.contains("least 3, median 3, most 3"), "{chunks}");
}
