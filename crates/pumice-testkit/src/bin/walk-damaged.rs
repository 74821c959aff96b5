//! `walk-damaged SEED FIRST COUNT FILE...`: makes damaged files of good ones and walks each of them
//! completely; `walk-damaged as-they-are FILE...` walks files as they are.
//!
//! Prints a line before each file and `done` with its time after it, so that the caller knows which
//! file ended the process. Values are read whole and hashed; errors are fine.

use pumice::{Context, File};
use pumice_testkit::damage::Damage;
use pumice_testkit::manifest;
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let context = Context::builder().threads(1).build().expect("no threads to start");
    match arguments.as_slice() {
        [mode, files @ ..] if mode == "as-they-are" => {
            for file in files {
                if let Ok(bytes) = std::fs::read(file) {
                    walk(&context, file, bytes);
                }
            }
        }
        [seed, first, count, files @ ..] => {
            let number = |text: &String| text.parse::<u64>().expect("a number");
            let (seed, first, count) = (number(seed), number(first), number(count));
            let originals: Vec<Vec<u8>> =
                files.iter().filter_map(|f| std::fs::read(f).ok()).collect();
            for case in first..first + count {
                let (what, bytes) = Damage::new(seed, case).apply(&originals);
                walk(&context, &format!("case {case}: {what}"), bytes);
            }
        }
        _ => eprintln!("usage: walk-damaged SEED FIRST COUNT FILE... | as-they-are FILE..."),
    }
}

fn walk(context: &Context, what: &str, bytes: Vec<u8>) {
    println!("{what}");
    let start = Instant::now();
    let opened = File::options().context(context).open_bytes(bytes);
    let entries = match opened.and_then(|file| manifest::of(&file)) {
        Ok(found) => found.as_object().map_or(0, |found| found.len()),
        Err(_) => 0,
    };
    println!("done {} ms, {entries} object(s)", start.elapsed().as_millis());
}
