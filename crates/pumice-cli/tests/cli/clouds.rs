//! Files for object stores, and addresses of such.

use crate::support::Place;
use pumice::{Dataset, File, Node, Place as Range, WalkOrder};
use std::ops::ControlFlow;

/// A file with groups, datasets and attributes that were written one after another.
fn scattered() -> Place {
    let place = Place::new();
    let file = File::create(place.path("a.h5")).unwrap();
    for number in 0..40 {
        let group = file.create_group(&format!("g{number:02}")).unwrap();
        group.set_attribute("unit", "mV").unwrap();
        let dataset = group.new_dataset::<i32>().shape([40, 100]).chunk([10, 100]);
        let dataset = dataset.create("d").unwrap();
        // The last chunk first.
        for row in (0..4).rev() {
            dataset
                .write((10 * row..10 * row + 10, ..), &vec![number * 10 + row as i32; 1000])
                .unwrap();
        }
        file.flush().unwrap();
    }
    file.close().unwrap();
    place
}

fn places(file: &File) -> (Vec<Range>, Vec<Dataset>) {
    let (mut places, mut datasets) = (file.places().unwrap(), Vec::new());
    let _ = file.walk(WalkOrder::Name, |_, node| {
        match node.unwrap() {
            Node::Group(group) => places.extend(group.places().unwrap()),
            Node::Dataset(dataset) => {
                places.extend(dataset.places().unwrap());
                datasets.push(dataset);
            }
            Node::Datatype(_) => {}
        }
        ControlFlow::<()>::Continue(())
    });
    (places, datasets)
}

#[test]
fn a_file_for_the_cloud_has_its_metadata_at_the_front_and_its_chunks_in_order() {
    let place = scattered();
    place.succeed("repack --cloud a.h5 b.h5");
    place.succeed("diff a.h5 b.h5");
    let (a, b) = (File::open(place.path("a.h5")).unwrap(), File::open(place.path("b.h5")).unwrap());
    let split = |file: &File| {
        let (data, metadata): (Vec<_>, Vec<_>) =
            places(file).0.into_iter().partition(|place| place.kind.is_data());
        let first = data.iter().map(|place| place.address).min().unwrap();
        let end = metadata.iter().map(|place| place.address + place.length).max().unwrap();
        (first, end)
    };
    let (first, end) = split(&a);
    assert!(first < end, "the old file is mixed");
    let (first, end) = split(&b);
    assert!(end <= first, "metadata up to {end}, data from {first}");
    let mut before = 0;
    for dataset in places(&b).1 {
        let chunks = dataset.places().unwrap();
        for chunk in chunks.iter().filter(|place| place.kind.is_data()) {
            assert!(
                chunk.address > before,
                "{}: {} behind {before}",
                dataset.path(),
                chunk.address
            );
            before = chunk.address;
        }
    }
    // In its own place.
    place.succeed("repack --cloud a.h5");
    let (first, end) = split(&File::open(place.path("a.h5")).unwrap());
    assert!(end <= first);
}

#[test]
#[cfg(not(feature = "remote"))]
fn an_address_without_object_stores_says_how_to_get_them() {
    let place = scattered();
    for line in ["ls s3://bucket/a.h5", "read s3://bucket/a.h5/d", "repack a.h5 s3://bucket/a.h5"] {
        let error = place.fail(line);
        assert!(
            error.contains("s3://bucket/a.h5") && error.contains("--features remote"),
            "{error}"
        );
    }
}
