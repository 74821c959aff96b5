//! `pumice dump --json`.

use crate::support::{Place, small};
use pumice::File;
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A file in which the values of one dataset and those of a large one fail their checksums at the end.
fn damaged(place: &Place) {
    let path = place.path("damaged.h5");
    let file = File::create(&path).unwrap();
    for (name, cells) in [("a", 6u64), ("large", 400_000), ("sound", 6)] {
        let dataset = file.new_dataset::<u32>().shape([cells]).chunk([cells / 2]).fletcher32();
        let dataset = dataset.create(name).unwrap();
        let mark = if name == "sound" { 5 } else { 0x4b52_414d };
        dataset.write(.., &vec![mark; cells as usize]).unwrap();
        dataset.set_attribute("unit", 7i32).unwrap();
    }
    file.close().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let marks: Vec<usize> = bytes
        .windows(4)
        .enumerate()
        .filter(|(_, found)| *found == b"MARK")
        .map(|at| at.0)
        .collect();
    // The last cell of the small dataset and the last of the large one: they may stand in any order.
    let apart = marks.windows(2).filter(|pair| pair[1] - pair[0] > 4).map(|pair| pair[0]);
    let ends: Vec<usize> = apart.chain(marks.last().copied()).collect();
    assert!(ends.len() >= 2, "{ends:?}");
    ends.iter().for_each(|&end| bytes[end] = 0);
    std::fs::write(&path, bytes).unwrap();
}

#[test]
fn an_object_that_cannot_be_read_is_told_as_an_error() {
    let place = Place::new();
    damaged(&place);
    let run = place.pumice("dump --json damaged.h5");
    assert_eq!(run.code, Some(1), "{}", run.err);
    let root = &json(&run.out)["root"];
    let members = &root["members"];
    let small = &members["a"];
    assert_eq!(small["kind"], "error", "{small}");
    assert!(small["error"].as_str().unwrap().contains("hecksum"), "{small}");
    assert_eq!(small["shape"], json("[6]"));
    assert_eq!(small["attributes"]["unit"]["values"], json("[7]"));
    assert!(small.get("values").is_none(), "{small}");
    assert_eq!(members["sound"]["values"], json("[5,5,5,5,5,5]"));
    let large = &members["large"];
    assert!(large["kind"] == "error" || large["error"].is_string(), "{}", large["kind"]);
}

#[test]
fn objects_that_are_asked_for_are_printed_alone() {
    let place = small();
    let told = place.succeed(
        "dump --json -d matrix -s 0,1 -c 2,1 -S 4,1 -k 1,5 -a matrix/source_field small.h5",
    );
    let told = json(&told);
    assert!(told.get("root").is_none(), "{told}");
    let object = &told["objects"][0];
    assert_eq!(object["path"], "matrix");
    assert_eq!(object["object"]["defined"], json("[[[0,1],-2.0],[[4,4],3.0],[[4,5],123456789.0]]"));
    assert_eq!(object["object"]["subset"]["block"], json("[1,5]"));
    assert_eq!(told["objects"][1]["object"]["values"], json("[\"real\"]"));
    let run = place.pumice("dump --json -d nowhere -g / -N matrix small.h5");
    assert_eq!(run.code, Some(1));
    let told = json(&run.out);
    assert_eq!(told["objects"][0]["object"]["kind"], "error");
    assert_eq!(told["objects"][1]["object"]["members"]["matrix"]["kind"], "dataset");
    assert_eq!(told["objects"][2]["object"]["kind"], "hard link");
    let run = place.pumice("dump --json -d matrix -s 9,9 small.h5");
    assert_eq!(
        (run.code, &json(&run.out)["objects"][0]["object"]["kind"]),
        (Some(1), &json("\"error\""))
    );
}

#[test]
fn groups_may_be_nested_deeply() {
    let place = Place::new();
    let file = File::create(place.path("deep.h5")).unwrap();
    let mut group = file.create_group("g").unwrap();
    for _ in 0..400 {
        group = group.create_group("g").unwrap();
    }
    group.new_dataset::<u8>().create("deep").unwrap();
    drop(group);
    file.close().unwrap();
    let told = place.succeed("dump --json deep.h5");
    assert_eq!(told.matches("\"members\"").count(), 402);
    assert!(told.contains("\"deep\":{\"kind\":\"dataset\""), "{told}");
}
