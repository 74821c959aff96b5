//! `pumice spy`, `pumice read` and `pumice erase`.

use crate::support::{Place, small};
use pumice::File;

#[test]
fn pictures_show_defined_cells() {
    let place = small();
    let expected = "\
+------+
|%% %  |
|  %   |
|    @@|
+------+
/matrix: 5 x 6, 6 defined, density 20 %
";
    assert_eq!(place.succeed("spy small.h5 --ascii"), expected);
    let picture = place.succeed("spy small.h5 matrix --width 4");
    assert!(picture.starts_with("┌───┐\n│⠉⠔\u{2800}│\n│\u{2800}\u{2800}⠉│\n└───┘\n"), "{picture}");
    assert_eq!(picture.lines().last(), expected.lines().last());
}

#[test]
fn png_pictures_have_the_size_asked_for() {
    let place = small();
    place.succeed("spy small.h5 --png small.png --size 60");
    let png = std::fs::read(place.path("small.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
    let side = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    // Ten pixels for each cell, and the frame.
    assert_eq!((side(16), side(20)), (62, 52));
    assert!(place.fail("spy small.h5 --png nowhere/a.png").contains("nowhere/a.png"));
}

#[test]
fn pictures_of_dense_datasets_show_what_is_not_fill() {
    let place = Place::new();
    let file = File::create(place.path("d.h5")).unwrap();
    let builder = file.new_dataset::<i32>().shape([2, 4]).fill_value(9);
    builder.create("plain").unwrap().write((.., 0..2), &[1, 9, 9, 1]).unwrap();
    let builder = file.new_dataset::<i32>().shape([1 << 20, 1 << 20]).chunk([4, 4]);
    builder.create("vast").unwrap().write((0..1, 0..1), &[1]).unwrap();
    file.new_dataset::<i32>().shape([8]).create("flat").unwrap();
    file.close().unwrap();
    let caption = |line: &str| place.succeed(line).lines().last().map(String::from).unwrap();
    // Cells that were never written have the fill value.
    let plain = "/plain: 2 x 4, 2 other than the fill value, density 25 %";
    assert_eq!(caption("spy d.h5 plain"), plain);
    assert!(caption("spy d.h5 vast").contains(", 1 other than the fill value,"));
    let error = place.fail("spy d.h5");
    assert!(error.contains("several datasets with two dimensions, name one: /plain, /vast"));
    let error = place.fail("spy d.h5 flat");
    assert!(error.contains("/flat: spy draws datasets with two dimensions, this one has 1"));
}

#[test]
fn tables_mark_undefined_cells() {
    let place = small();
    let expected = "\
/matrix: 5 x 6, window 0:3,0:4
     0   1  2      3
0  1.5  -2  .      .
1    .   .  .  1e-07
2    .   .  0      .
";
    assert_eq!(place.succeed("read small.h5 matrix --window 0:3,0:4"), expected);
    let row = place.succeed("read small.h5 matrix --window 4,4:");
    assert_eq!(row, "/matrix: 5 x 6, window 4:5,4:6\n   4            5\n4  3  1.23457e+08\n");
    assert_eq!(place.succeed("read small.h5 matrix").lines().count(), 1 + 1 + 5);
}

#[test]
fn tables_of_any_rank_are_printed() {
    let place = Place::new();
    let file = File::create(place.path("d.h5")).unwrap();
    file.new_dataset::<i32>().create("scalar").unwrap().write(.., &[7]).unwrap();
    file.new_dataset::<i32>().shape([3]).create("flat").unwrap().write(.., &[7, 8, 9]).unwrap();
    let cube = file.new_dataset::<i32>().shape([2, 2, 2]).create("cube").unwrap();
    cube.write(.., &[0, 1, 2, 3, 4, 5, 6, 7]).unwrap();
    drop(cube);
    file.close().unwrap();
    assert_eq!(place.succeed("read d.h5 scalar"), "/scalar: scalar\n7\n");
    assert_eq!(place.succeed("read d.h5 flat"), "/flat: 3, window 0:3\n0  7\n1  8\n2  9\n");
    let cube = place.succeed("read d.h5 cube --window :,:,1");
    let expected = "/cube: 2 x 2 x 2, window 0:2,0:2,1:2\n(0,:,:)\n   1\n0  1\n1  3\n(1,:,:)\n   1\n0  5\n1  7\n";
    assert_eq!(cube, expected);
}

#[test]
fn erased_cells_are_undefined() {
    let place = small();
    let erased = place.succeed("erase small.h5 matrix --window 0:3,0:4");
    assert!(erased.starts_with("/matrix: 6 cells defined before, 2 after, "), "{erased}");
    assert!(place.succeed("ls -v small.h5").contains("Defined:   2 cells"));
    let again = place.succeed("erase small.h5 matrix --window 0:3,0:4");
    let expected = "/matrix: 2 cells defined before, 2 after, 0 bytes given back, ";
    assert!(again.starts_with(expected), "{again}");
    place.succeed("erase small.h5 matrix --window :,:");
    let listing = place.succeed("ls -v small.h5");
    assert!(listing.contains("0 allocated bytes\n") && listing.contains("0 cells"), "{listing}");
}

#[test]
fn erased_cells_of_dense_datasets_get_the_fill_value() {
    let place = Place::new();
    let file = File::create(place.path("d.h5")).unwrap();
    let dataset = file.new_dataset::<i32>().shape([4]).fill_value(-1).create("d").unwrap();
    dataset.write(.., &[1, 2, 3, 4]).unwrap();
    drop(dataset);
    file.close().unwrap();
    let erased = place.succeed("erase d.h5 d --window 1:3");
    assert!(erased.starts_with("/d: 2 cells have the fill value now, "), "{erased}");
    let file = File::open(place.path("d.h5")).unwrap();
    assert_eq!(file.dataset("d").unwrap().read::<i32>(..).unwrap(), [1, -1, -1, 4]);
}

#[test]
fn any_two_axes_and_slices_of_the_others_are_drawn() {
    let place = Place::new();
    place.write("n.csv", "# shape=4,3,2 type=f64\n0,0,0,1\n3,2,1,1\n3,0,1,1\n");
    place.succeed("import n.csv n.h5");
    // The two longest axes, through the third.
    let told = place.succeed("spy n.h5 --ascii");
    let chosen = "(axis 0 down, axis 1 across, cells counted along axis 2; --axes and --slice choose others)";
    assert!(told.contains("4 x 3 x 2, 3 defined") && told.contains(chosen), "{told}");
    let last = place.succeed("spy n.h5/matrix --ascii --slice 2=-1");
    assert!(last.contains("4 x 3 x 2, 2 defined") && last.contains(", axis 2 at 1; "), "{last}");
    let steps = place.succeed("spy n.h5/matrix --ascii --slice 0=::3");
    assert!(
        steps.contains("3 defined") && steps.contains("axis 0 from 0 to 4 in steps of 3"),
        "{steps}"
    );
    let told = place.succeed("spy n.h5 --axes 0,1 --slice 2=1:2 --ascii");
    assert!(told.contains("4 x 3 x 2, 2 defined"), "{told}");
    assert!(told.contains("axis 0 down, axis 1 across, axis 2 at 1"), "{told}");
}
