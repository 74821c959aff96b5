//! Objects named as FILE/PATH, and selections in Python's manner.

use crate::support::{Place, small};
use pumice::File;

/// A folder with `runs.h5`: a sparse dataset /run1/hits, a dense one /run1/cube, and /vast, of which little is defined.
fn runs() -> Place {
    let place = small();
    place.succeed("import small.mtx runs.h5 --dataset run1/hits");
    let file = File::edit(place.path("runs.h5")).unwrap();
    let cube = file.new_dataset::<i32>().shape([2, 3, 4]).create("run1/cube").unwrap();
    cube.write(.., &(0..24).collect::<Vec<i32>>()).unwrap();
    let vast = file.new_dataset::<i32>().shape([1000, 1000]).sparse().create("vast").unwrap();
    for row in 0..30 {
        vast.write((row..row + 1, 7 * row..7 * row + 1), &[row as i32]).unwrap();
    }
    drop((cube, vast));
    file.close().unwrap();
    place
}

#[test]
fn every_command_takes_an_object_behind_the_file() {
    let place = runs();
    let table = place.succeed("read small.h5 matrix").replace("/matrix", "/run1/hits");
    assert_eq!(place.succeed("read runs.h5/run1/hits"), table);
    assert_eq!(place.succeed("read runs.h5/run1 hits"), table);
    assert_eq!(place.succeed("read runs.h5 run1/hits"), table);
    assert_eq!(place.succeed("spy runs.h5/run1/hits"), place.succeed("spy runs.h5 run1/hits"));
    assert_eq!(
        place.succeed("dump runs.h5/run1/hits"),
        place.succeed("dump -d /run1/hits runs.h5")
    );
    assert_eq!(place.succeed("dump -H runs.h5/run1"), place.succeed("dump -H -g /run1 runs.h5"));
    assert!(place.succeed("ls runs.h5/run1").starts_with("cube "));
    let counted = place.succeed("stat runs.h5/run1");
    assert!(counted.contains("# of unique datasets: 2\n") && !counted.contains("Total space"));
    let checked = place.succeed("check runs.h5/run1");
    assert_eq!(checked.lines().count(), 1, "{checked}");
    assert!(checked.contains("sound; 1 group, 2 datasets"), "{checked}");
    place.succeed("export runs.h5/run1/hits hits.mtx");
    place.succeed("import hits.mtx hits.h5");
    assert_eq!(place.pumice("diff hits.h5/matrix runs.h5/run1/hits -A /matrix").code, Some(0));
    let erased = place.succeed("erase hits.h5/matrix --window=-1");
    assert!(erased.starts_with("/matrix: 6 cells defined before, 4 after"), "{erased}");
    let bench = place.succeed("bench runs.h5/run1/hits --seconds 0.01 --threads 1");
    assert!(bench.starts_with("/run1/hits: 5 x 6"), "{bench}");
}

#[test]
fn arrays_are_imported_by_their_paths() {
    let place = runs();
    place.succeed("export runs.h5 all.npz");
    place.succeed("import all.npz/run1_cube one.h5");
    assert_eq!(place.pumice("diff one.h5/run1_cube runs.h5/run1/cube -A /run1_cube").code, Some(0));
    assert!(!place.succeed("ls -r one.h5").contains("vast"));
    place.succeed("import all.npz both.h5 --object vast");
    assert!(place.pumice("import all.npz/run2 none.h5").err.contains("it has no run2"));
    assert!(place.pumice("import all.npz/run none.h5").err.contains("it has no run"));
}

#[test]
fn objects_are_copied_and_repacked_by_their_paths() {
    let place = runs();
    place.succeed("copy runs.h5/run1/hits new.h5/hits");
    place.succeed("copy -p runs.h5/run1 new.h5/archive/run1");
    place.succeed("copy runs.h5/vast new.h5");
    let listed = place.succeed("ls -r new.h5");
    for path in ["/archive/run1/cube", "/hits", "/vast"] {
        assert!(listed.contains(&format!("\n{path} ")), "{path} of {listed}");
    }
    place.succeed("repack runs.h5/run1 new2.h5 -l CHUNK=2x2 -f GZIP=1");
    let file = File::open(place.path("new2.h5")).unwrap();
    let chunk = |name: &str| file.dataset(name).unwrap().chunk();
    assert_eq!(chunk("run1/hits"), Some(vec![2, 2]));
    assert_eq!(chunk("run1/cube"), None, "two sides do not fit");
    assert!(file.dataset("vast").unwrap().is_sparse());
    let told = place.fail("repack runs.h5/run1 new3.h5");
    assert!(told.contains("nothing is asked for it"), "{told}");
    let told = place.fail("check runs.h5/run1 --repair whole.h5");
    assert!(told.contains("--repair is for whole files"), "{told}");
}

#[test]
fn windows_are_those_of_python() {
    let place = runs();
    let read = |window: &str| place.succeed(&format!("read runs.h5/run1/cube --window {window}"));
    let last = "/run1/cube: 2 x 3 x 4, window 1:2,2:3,0:4\n(1,:,:)\n    0   1   2   3\n2  20  21  22  23\n";
    assert_eq!(read("-1,-1"), last);
    assert_eq!(read("-1,-1:,..."), last);
    let steps =
        "/run1/cube: 2 x 3 x 4, window 0:1,0:3:2,1:4:2\n(0,:,:)\n   1   3\n0  1   3\n2  9  11\n";
    assert_eq!(read("0,::2,1::2"), steps);
    assert_eq!(read("0,::2,1:99:2"), steps, "a range ends with its axis");
    assert_eq!(read("0,2:1"), "/run1/cube: 2 x 3 x 4, window 0:1,2:2,0:4\n");
    let told = place.fail("read runs.h5/run1/cube --window 2");
    assert!(told.contains("the index 2 is beyond axis 0, which has 2 cell(s)"), "{told}");
    let subset = place.succeed("dump runs.h5/run1/cube[-1,1:,::3]");
    assert!(subset.contains("START ( 1, 1, 0 );") && subset.contains("STRIDE ( 1, 1, 3 );"));
    assert!(subset.contains("(1,1,0): 16, 19,"), "{subset}");
    let old = place.succeed("dump -d run1/cube -s -1,1,0 -S 1,1,3 -c 1,2,2 runs.h5");
    assert_eq!(old.replace("\"run1/", "\"/run1/"), subset);
    let same = place.pumice("diff runs.h5 runs.h5 /run1/cube[0,-1] /run1/cube[0,2:]");
    assert_eq!(same.code, Some(0), "{}", same.out);
}

#[test]
fn defined_cells_are_listed_with_their_coordinates() {
    let place = runs();
    let expected = "/run1/hits: 5 x 6, defined cells of window 0:3,0:6\n(0,0)  1.5\n(0,1)  -2\n(1,3)  1e-07\n(2,2)  0\n";
    assert_eq!(place.succeed("read runs.h5/run1/hits --window :3 --defined"), expected);
    let all = place.succeed("read runs.h5/vast --defined");
    assert_eq!(all.lines().count(), 31);
    assert_eq!(all.lines().last(), Some("(29,203)  29"));
    // No screen of dots, unless it is asked for.
    let first = place.succeed("read runs.h5/vast");
    assert!(first.starts_with("/vast: 1,000 x 1,000, the first 20 defined cells; "), "{first}");
    assert_eq!(first.lines().count(), 21);
    assert_eq!(
        first.lines().skip(1).collect::<Vec<_>>(),
        all.lines().skip(1).take(20).collect::<Vec<_>>()
    );
    let window = place.succeed("read runs.h5/vast --window 20:22");
    assert_eq!(window.lines().skip(1).collect::<Vec<_>>(), ["(20,140)  20", "(21,147)  21"]);
    let none = place.succeed("read runs.h5/vast --window 500:,500:");
    assert_eq!(none.lines().last(), Some("no cell is defined"));
    let table = place.succeed("read runs.h5/vast --window 0:2,0:2 --table");
    assert_eq!(table.lines().skip(1).collect::<Vec<_>>(), ["   0  1", "0  0  .", "1  .  ."]);
    let cube = place.succeed("read runs.h5/run1/cube --window 0,0,-2: --defined");
    assert_eq!(cube.lines().skip(1).collect::<Vec<_>>(), ["(0,0,2)  2", "(0,0,3)  3"]);
}
