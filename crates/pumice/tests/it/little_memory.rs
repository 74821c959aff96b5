//! Sizes that a file dictates and that there is no memory for are errors: no read, write or flush ends the program.
//!
//! An allocation that cannot fail would end it, so that all is tried in a child: this program again, with a limited
//! address space.

use pumice::{
    BitshuffleCodec, BloscCodec, BloscShuffle, Context, Datatype, File, FileOptions,
    LibraryVersion, Scaling, SzipCoding,
};
use std::path::{Path, PathBuf};
use std::process::Command;

/// KiB of address space that the child has.
const LIMIT: usize = 700_000;

/// Bytes of chunks, of elements and of structures in the file.
const HUGE: u64 = 2 << 30;

const FILTERS: [&str; 11] = [
    "deflate",
    "shuffle",
    "fletcher32",
    "lz4",
    "zstd",
    "bzip2",
    "lzf",
    "bitshuffle",
    "blosc",
    "szip",
    "scale offset",
];

#[test]
fn huge_sizes_are_errors_where_memory_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    make_all(folder.path());
    let this = std::env::current_exe().unwrap();
    let child = "ulimit -v \"$1\" && shift && exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", child, "sh", &LIMIT.to_string()]).arg(this);
    command.args(["--exact", "little_memory::with_little_memory", "--ignored", "--nocapture"]);
    command.args(["--test-threads", "1"]).env("PUMICE_TEST_FOLDER", folder.path());
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    let last = said.lines().rev().take(3).collect::<Vec<_>>();
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{:?}, after {last:?}: {error}", done.status);
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "needs a limited address space: it is run by the test above, in a child"]
fn with_little_memory() {
    let Some(folder) = std::env::var_os("PUMICE_TEST_FOLDER").map(PathBuf::from) else { return };
    for filter in FILTERS {
        let path = folder.join(format!("{filter}.h5"));
        let file = options().open(&path).unwrap();
        refuse(filter, "read", file.dataset("d").and_then(|data| data.read::<u8>(5..6)));
        drop(file);
        let file = options().edit(&path).unwrap();
        let written = file.dataset("d").and_then(|data| data.write(5..6, &[7u8]));
        refuse(filter, "write", written.and_then(|()| file.flush()));
        // What is left of it must not be in the way.
        let new = file.dataset("new").and_then(|data| data.write(HUGE - 1.., &[7u8]));
        refuse(filter, "write new", new.and_then(|()| file.flush()));
        let _ = file.close();
    }
    let file = options().open(folder.join("elements.h5")).unwrap();
    refuse("elements", "read", file.dataset("d").and_then(|data| data.read_bytes(0..1)));
    let file = options().open(folder.join("wide.h5")).unwrap();
    refuse("wide", "read", file.dataset("d").and_then(|data| data.read::<u8>(..)));
    refuse("wide", "defined", file.dataset("s").and_then(|data| data.read::<u8>(..)));
    let file = options().open(folder.join("heap.h5")).unwrap();
    refuse("heap", "strings", file.dataset("d").and_then(|data| data.read_strings(..)));
    let file = options().open(folder.join("names.h5"));
    refuse("names", "list", file.and_then(|file| file.group("g")?.members()));
}

fn options() -> FileOptions {
    let context = Context::builder().cache_bytes(1 << 20).threads(1).build().unwrap();
    File::options().context(&context)
}

fn refuse<T>(kind: &str, what: &str, done: pumice::Result<T>) {
    println!("{kind}, {what}");
    match done {
        Ok(_) => panic!("{kind}, {what}: no error"),
        Err(error) => println!("{kind}, {what}: {error}"),
    }
}

fn make_all(folder: &Path) {
    for filter in FILTERS {
        let file = options().create(folder.join(format!("{filter}.h5"))).unwrap();
        let builder = file.new_dataset::<u8>().shape([HUGE]).chunk([HUGE]);
        let builder = match filter {
            "deflate" => builder.deflate(1),
            "shuffle" => builder.shuffle().deflate(1),
            "fletcher32" => builder.fletcher32(),
            "lz4" => builder.lz4(),
            "zstd" => builder.zstd(1),
            "bzip2" => builder.bzip2(1),
            "lzf" => builder.lzf(),
            "bitshuffle" => builder.bitshuffle(BitshuffleCodec::Lz4),
            "blosc" => builder.blosc(BloscCodec::Lz4, 1, BloscShuffle::Bytes),
            "szip" => builder.szip(SzipCoding::NearestNeighbour, 8),
            "scale offset" => builder.scale_offset(Scaling::Integer),
            _ => builder,
        };
        builder.clone().create("new").unwrap();
        let data = builder.create("d").unwrap();
        data.write_chunk([0], &stored(filter), 0).unwrap();
        file.close().unwrap();
    }
    make_others(folder);
}

/// The beginning of what a filter makes of such a chunk.
fn stored(filter: &str) -> Vec<u8> {
    let mut bytes = match filter {
        // A stream of zlib.
        "deflate" | "shuffle" => vec![0x78, 0x01],
        "lz4" | "bitshuffle" => {
            [HUGE.to_be_bytes().to_vec(), (1u32 << 30).to_be_bytes().to_vec()].concat()
        }
        "zstd" => vec![0x28, 0xB5, 0x2F, 0xFD, 0xA0, 0, 0, 0, 0x80],
        "bzip2" => b"BZh91AY&SY".to_vec(),
        "blosc" => {
            let mut head = vec![2, 1, 0x21, 1];
            head.extend((HUGE as u32 - 1).to_le_bytes());
            head.extend((1u32 << 20).to_le_bytes());
            head.extend(4096u32.to_le_bytes());
            head
        }
        _ => Vec::new(),
    };
    bytes.resize(4096, 0);
    bytes
}

fn make_others(folder: &Path) {
    // Elements of a size that says nothing of the bytes in the file.
    let file = options().create(folder.join("elements.h5")).unwrap();
    let datatype = Datatype::opaque(500 << 20, "huge");
    file.new_dataset_of(datatype).shape([3]).chunk([1]).create("d").unwrap();
    file.close().unwrap();
    let file = options().create(folder.join("wide.h5")).unwrap();
    let builder = file.new_dataset::<u8>().shape([1 << 20, 1 << 20]);
    builder.clone().create("d").unwrap();
    builder.sparse().create("s").unwrap();
    file.close().unwrap();
    // A collection of the global heap, and names of a group, as long as a file that is mostly a hole.
    let path = folder.join("heap.h5");
    let file = options().create(&path).unwrap();
    let strings = file.new_strings().shape([2]).create("d").unwrap();
    strings.write_strings(.., &["one", "two"]).unwrap();
    drop(strings);
    file.close().unwrap();
    lengthen(&path, b"GCOL", 8);
    let path = folder.join("names.h5");
    let file = options().library_version(LibraryVersion::Earliest).create(&path).unwrap();
    file.create_group("g/inside").unwrap();
    file.close().unwrap();
    lengthen(&path, b"HEAP", 8);
}

/// Makes structures with a signature as long as a file that is made longer than memory.
fn lengthen(path: &Path, signature: &[u8], field: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    let found = |at: &usize| bytes[*at..].starts_with(signature);
    let places: Vec<usize> = (0..bytes.len()).filter(found).collect();
    assert!(!places.is_empty());
    for place in places {
        bytes[place + field..place + field + 8].copy_from_slice(&HUGE.to_le_bytes());
    }
    std::fs::write(path, &bytes).unwrap();
    std::fs::File::options().write(true).open(path).unwrap().set_len(2 * HUGE).unwrap();
}
