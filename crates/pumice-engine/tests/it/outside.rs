//! External links: followed from file to file, found beside the file that has them, and never in
//! circles.

use pumice_cache::{ChunkCache, Config};
use pumice_engine::file::{Cache, File};
use pumice_engine::group::{self, Found};
use pumice_engine::open_files::{Opening, open_path};
use pumice_engine::{Error, Result};
use pumice_format::messages::{Link, LinkTarget};
use pumice_store::Locking;
use std::path::Path;
use std::sync::Arc;

/// Makes a file with a group `here` and these links.
fn create(path: &Path, cache: &Cache, links: &[(&str, LinkTarget)]) {
    let file =
        open_path(path, Opening::Create, cache.clone(), Locking::default(), &Default::default())
            .unwrap();
    let root = file.root().unwrap();
    let here = group::create(&file, &group::GroupSpec::default()).unwrap();
    let hard = ("here", LinkTarget::Hard { address: here.address() });
    for (name, target) in [hard].iter().chain(links) {
        group::insert(&file, &root, Link::new(*name, target.clone())).unwrap();
    }
    file.commit().unwrap();
}

fn external(file: &str, path: &str) -> LinkTarget {
    LinkTarget::External { file: file.into(), path: path.into() }
}

fn resolve(file: &Arc<File>, path: &str) -> Result<Found> {
    group::resolve(file, &file.root()?, path)
}

#[test]
fn external_links_lead_from_file_to_file_but_not_in_circles() {
    let folder = tempfile::tempdir().unwrap();
    let cache = ChunkCache::new(Config::default());
    let [first, second] = ["first.h5", "second.h5"].map(|name| folder.path().join(name));
    let moved = folder.path().join("gone").join("second.h5");
    create(
        &first,
        &cache,
        &[
            ("there", external("second.h5", "/here")),
            ("moved", external(&moved.to_string_lossy(), "here")),
            ("back and forth", external("second.h5", "/back")),
            ("circle", external("second.h5", "/circle")),
            ("missing file", external("nowhere.h5", "/here")),
            ("missing object", external("second.h5", "/nothing")),
            ("not a file", external("/dev/zero", "/")),
            ("root", external("second.h5", "/")),
        ],
    );
    let back =
        [("back", external("first.h5", "/here")), ("circle", external("first.h5", "/circle"))];
    create(&second, &cache, &back);

    let file =
        open_path(&first, Opening::Read, cache.clone(), Locking::default(), &Default::default())
            .unwrap();
    let address = |path| resolve(&file, path).unwrap().object.address();
    let there = resolve(&file, "there").unwrap();
    let other = there.file.expect("in another file");
    assert_eq!(other.path(), Some(second.as_path()));
    assert_eq!(there.object.address(), resolve(&other, "here").unwrap().object.address());
    assert_eq!(address("moved"), there.object.address(), "beside the file that has the link");
    assert_eq!(address("root/here"), there.object.address(), "on the way to more");
    let home = resolve(&file, "back and forth").unwrap();
    assert!(Arc::ptr_eq(&home.file.unwrap(), &file), "a file is open once");
    assert_eq!(home.object.address(), address("here"));
    let circle = resolve(&file, "circle").err().unwrap().to_string();
    assert!(circle.contains("more than 16"), "{circle}");
    for missing in ["missing file", "missing object", "not a file"] {
        assert!(matches!(resolve(&file, missing), Err(Error::NotFound(_))), "{missing}");
    }
}
