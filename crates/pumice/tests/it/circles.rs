//! Files that lead to each other in a circle, or to themselves, are closed and unlocked with their last handle.

use pumice::{File, Node, Selection};
use std::path::{Path, PathBuf};

fn all(cells: u64) -> Selection {
    Selection::block(&[0], &[cells]).unwrap()
}

/// A file with numbers, and a dataset that has them of each of `sources`: files and paths in them.
fn make(path: &Path, sources: &[(&str, &str)]) {
    let file = File::create(path).unwrap();
    let numbers = file.new_dataset::<i32>().shape([4]).create("numbers").unwrap();
    numbers.write(.., &[1, 2, 3, 4]).unwrap();
    for (index, (name, path)) in sources.iter().enumerate() {
        let view = file.new_dataset::<i32>().shape([4]);
        let view = view.virtual_part(all(4), name, path, all(4));
        view.create(&format!("view{index}")).unwrap();
    }
    file.close().unwrap();
}

/// Nothing in a folder is open in this process, and nothing is locked.
#[track_caller]
fn assert_closed(folder: &Path) {
    #[cfg(target_os = "linux")]
    {
        let open = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| {
            let target = std::fs::read_link(entry.ok()?.path()).ok()?;
            target.starts_with(folder).then_some(target)
        });
        assert_eq!(open.collect::<Vec<_>>(), Vec::<PathBuf>::new(), "still open");
    }
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let file = std::fs::File::open(&path).unwrap();
        file.try_lock().unwrap_or_else(|error| panic!("{} is locked: {error}", path.display()));
    }
}

/// Reads, and writes if it can, every view of a file.
fn use_views(file: &File) {
    let writable = file.group("/").unwrap().set_attribute("touched", 1i32).is_ok();
    for index in 0.. {
        let Ok(view) = file.dataset(&format!("view{index}")) else { break };
        assert_eq!(view.read::<i32>(..).unwrap(), [1, 2, 3, 4]);
        if writable {
            view.write(1..3, &[2, 3]).unwrap();
            assert_eq!(view.read::<i32>(..).unwrap(), [1, 2, 3, 4]);
        }
    }
}

#[test]
fn a_file_that_is_its_own_source_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    std::fs::create_dir(folder.join("in")).unwrap();
    for number in 0..300 {
        let name = format!("f{number}.h5");
        let path = folder.join("in").join(&name);
        let whole = path.to_str().unwrap();
        let around = format!("../in/{name}");
        make(
            &path,
            &[(".", "numbers"), (&name, "numbers"), (whole, "numbers"), (&around, "view0")],
        );
        let file = if number % 2 == 0 { File::open(&path) } else { File::edit(&path) }.unwrap();
        use_views(&file);
        file.close().unwrap();
    }
    assert_closed(&folder.join("in"));
}

#[test]
fn files_whose_virtual_datasets_reach_each_other_are_closed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    for number in 0..100 {
        let names = ["a", "b", "c"].map(|part| format!("{part}{number}.h5"));
        for (index, name) in names.iter().enumerate() {
            let [next, last] = [1, 2].map(|step| names[(index + step) % 3].as_str());
            make(&folder.join(name), &[(next, "numbers"), (last, "view0"), (next, "view1")]);
        }
        let edit = number % 2 == 0;
        let open = |name: &String| {
            let path = folder.join(name);
            if edit { File::edit(path) } else { File::open(path) }.unwrap()
        };
        if number % 3 == 0 {
            // Only the first, which leads to the others.
            let file = open(&names[0]);
            use_views(&file);
            file.close().unwrap();
        } else {
            let files = [0, 1, 2].map(|index| open(&names[index]));
            files.iter().for_each(use_views);
            // In another order than they were opened in.
            let [a, b, c] = files;
            [b, a, c].into_iter().for_each(|file| file.close().unwrap());
        }
    }
    assert_closed(&folder);
}

#[test]
fn what_is_written_around_a_circle_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let [a, b] = ["a.h5", "b.h5"].map(|name| folder.join(name));
    make(&a, &[("b.h5", "view0")]);
    make(&b, &[("a.h5", "numbers"), ("a.h5", "view0")]);
    let file = File::edit(&b).unwrap();
    file.dataset("view1").unwrap().write(.., &[5, 6, 7, 8]).unwrap();
    assert_eq!(file.dataset("view0").unwrap().read::<i32>(..).unwrap(), [5, 6, 7, 8]);
    file.close().unwrap();
    assert_closed(&folder);
    let file = File::open(&a).unwrap();
    assert_eq!(file.dataset("numbers").unwrap().read::<i32>(..).unwrap(), [5, 6, 7, 8]);
}

#[test]
fn external_links_in_circles_keep_nothing_open() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    for number in 0..100 {
        let names = ["a", "b"].map(|part| format!("{part}{number}.h5"));
        for (own, other) in [(&names[0], &names[1]), (&names[1], &names[0])] {
            // The view's source is behind a link that leads back.
            make(&folder.join(own), &[(other, "back/numbers"), (".", "to/back/to/numbers")]);
            let file = File::edit(folder.join(own)).unwrap();
            file.create_external_link("to", other, "/").unwrap();
            file.create_external_link("back", other, "/").unwrap();
            file.create_external_link("self", own, "/self").unwrap();
            file.create_external_link("me", own, "/").unwrap();
            file.close().unwrap();
        }
        let file = File::edit(folder.join(&names[0])).unwrap();
        use_views(&file);
        assert!(file.node("self").is_err());
        let Node::Dataset(far) = file.node("me/to/back/me/to/numbers").unwrap() else { panic!() };
        assert_eq!(far.read::<i32>(..).unwrap(), [1, 2, 3, 4]);
        let near = file.group("me").unwrap();
        drop((far, near));
        file.close().unwrap();
    }
    assert_closed(&folder);
}

#[test]
fn threads_that_read_a_circle_from_both_ends_leave_nothing_open() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let [a, b] = ["a.h5", "b.h5"].map(|name| folder.join(name));
    make(&a, &[("b.h5", "numbers")]);
    make(&b, &[("a.h5", "numbers")]);
    for _ in 0..100 {
        std::thread::scope(|scope| {
            for path in [&a, &b] {
                scope.spawn(move || {
                    let file = File::open(path).unwrap();
                    use_views(&file);
                    file.close().unwrap();
                });
            }
        });
        assert_closed(&folder);
    }
}
