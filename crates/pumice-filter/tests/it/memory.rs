//! Sizes that come from a file or a caller and that there is no memory for are errors, in every filter.
//!
//! An allocation that cannot fail ends the whole program, so that what must not happen is tried in a child: this
//! program again, with an address space that is only a little larger than what it has.

use pumice_filter::{
    BitshuffleCodec, BloscCodec, BloscShuffle, DatasetFacts, FilterError, FilterSpec, Pipeline,
    Scaling, SzipCoding,
};
use pumice_space::CellSet;
use pumice_types::{ByteOrder, Datatype, Integer};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::process::Command;
use std::sync::Arc;

/// Bytes of most chunks that are tried.
const CHUNK: usize = 6 << 20;

/// The MiB that a filter may have, in turn. The last is enough for all.
const ROOM: [usize; 9] = [1, 3, 5, 7, 9, 12, 20, 60, 1000];

/// Settings of glibc under which memory that was given back does not stay in the process.
const NOTHING_KEPT: [(&str, &str); 2] =
    [("MALLOC_ARENA_MAX", "1"), ("MALLOC_MMAP_THRESHOLD_", "65536")];

#[test]
fn what_there_is_no_memory_for_is_an_error() {
    let this = std::env::current_exe().unwrap();
    let child = ["--exact", "memory::with_little_memory", "--ignored", "--nocapture"];
    let mut command = Command::new(this);
    command.args(child).args(["--test-threads", "1"]).envs(NOTHING_KEPT);
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    let last = said.lines().rev().take(3).collect::<Vec<_>>();
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{:?}, after {last:?}: {error}", done.status);
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "limits the memory of its process: it is run by the test above, in a child"]
fn with_little_memory() {
    for (name, specs, data) in cases() {
        let pipeline = Pipeline::new(specs).unwrap();
        let (encoded, mask) = pipeline.encode_slice(&data).unwrap();
        assert_eq!(mask, 0, "{name}");
        let encode = || pipeline.encode_slice(&data).map(|(bytes, _)| bytes);
        let decode = || pipeline.decode_slice(&encoded, mask, data.len());
        // Locations are carried as they are where there is no memory for their short form.
        let right = |bytes: &[u8]| {
            bytes == encoded || pipeline.decode_slice(bytes, mask, data.len()).as_ref() == Ok(&data)
        };
        try_in_little(&format!("{name}, encoding"), encode, right);
        try_in_little(&format!("{name}, decoding"), decode, |bytes| *bytes == **data);
    }
}

/// Tries something that takes memory, with more and more of it: there must be an error, then a result.
fn try_in_little(
    what: &str,
    make: impl Fn() -> Result<Vec<u8>, FilterError> + Sync,
    is_right: impl Fn(&[u8]) -> bool,
) {
    let mut refused = 0;
    for room in ROOM {
        println!("{what}, {room} MiB");
        // A thread of its own has no buffers from before.
        let alone = || {
            limit_to(Some(room << 20));
            let made = make();
            limit_to(None);
            made
        };
        let made = std::thread::scope(|scope| scope.spawn(alone).join().unwrap());
        match made {
            Ok(bytes) => {
                assert!(is_right(&bytes), "{what}, {room} MiB");
                break;
            }
            Err(error) => {
                // A codec in C says it in its own words.
                let said = matches!(error, FilterError::Memory { .. })
                    || error.to_string().to_lowercase().contains("memory");
                assert!(said, "{what}, {room} MiB: {error}");
                assert!(room < 1000, "{what}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0, "{what}: never refused");
}

/// Leaves the process so many bytes beside those that it has.
fn limit_to(room: Option<usize>) {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
    let current = room.map(|room| pages * rustix::param::page_size() as u64 + room as u64);
    setrlimit(Resource::As, Rlimit { current, maximum: None }).unwrap();
}

/// A name, filters, and data that they make something of.
type Case = (String, Vec<FilterSpec>, Arc<Vec<u8>>);

fn cases() -> Vec<Case> {
    let mut all = for_numbers();
    let shuffled = vec![shuffle(), required(FilterSpec::deflate(1)), FilterSpec::fletcher32()];
    all.push(("three filters".into(), shuffled, Arc::new(numbers())));
    all.extend(sections());
    all
}

fn numbers() -> Vec<u8> {
    (0..CHUNK as u32 / 4).flat_map(|number| (number % 1000).to_le_bytes()).collect()
}

fn shuffle() -> FilterSpec {
    required(FilterSpec::shuffle(4))
}

fn required(spec: FilterSpec) -> FilterSpec {
    FilterSpec { optional: false, ..spec }
}

/// Every filter for numbers.
fn for_numbers() -> Vec<Case> {
    let mut given = vec![
        FilterSpec::deflate(1),
        FilterSpec::shuffle(4),
        FilterSpec::fletcher32(),
        FilterSpec::zstd(1),
        FilterSpec::lzf(),
        FilterSpec::lz4(0),
        FilterSpec::lz4(1 << 20),
        FilterSpec::bzip2(1),
        FilterSpec::szip(SzipCoding::NearestNeighbour, 16),
        FilterSpec::scale_offset(Scaling::Integer),
        FilterSpec::nbit(),
        FilterSpec::bitshuffle(BitshuffleCodec::None),
        FilterSpec::bitshuffle(BitshuffleCodec::Lz4),
        FilterSpec::bitshuffle(BitshuffleCodec::Zstd(1)),
    ];
    type Codec = BloscCodec;
    for codec in [Codec::BloscLz, Codec::Lz4, Codec::Snappy, Codec::Zlib, Codec::Zstd] {
        given.push(FilterSpec::blosc(codec, 1, BloscShuffle::Bytes));
    }
    given.push(FilterSpec::blosc(Codec::Lz4, 1, BloscShuffle::Bits));
    // Nothing but the significant bits.
    let mut integer = Integer::new(4, ByteOrder::Little, false);
    integer.precision = 10;
    let (whole, narrow) =
        (Datatype::Integer(Integer::new(4, ByteOrder::Little, false)), Datatype::Integer(integer));
    let complete = |spec: &FilterSpec| {
        let datatype = if spec.id == 5 { &narrow } else { &whole };
        let chunk = [CHUNK as u64 / 4];
        let facts =
            DatasetFacts { datatype, chunk: &chunk, fill: None, sparse: false, length_width: 8 };
        required(spec.for_dataset(&facts).unwrap())
    };
    let named = |spec: &FilterSpec| format!("{} {:?}", spec.id, spec.parameters);
    let data = Arc::new(numbers());
    given.iter().map(|spec| (named(spec), vec![complete(spec)], Arc::clone(&data))).collect()
}

/// The filters of structured chunks, each with a section that it has a short form for, and with other bytes.
fn sections() -> Vec<Case> {
    let plain = Pipeline::new(Vec::new()).unwrap();
    let count = CHUNK as u32 / 8;
    let lengths: Vec<u32> = (0..count).map(|number| number % 20).collect();
    let bytes = vec![7; lengths.iter().map(|length| *length as usize).sum()];
    let heap = plain.encode_heap(&lengths, &bytes, 8).unwrap().bytes;
    let references = plain.encode_references(&lengths).unwrap().bytes;
    let mut sections = vec![
        ("heap", FilterSpec::heap(), heap),
        ("references", FilterSpec::references(), references),
        ("heap, verbatim", FilterSpec::heap(), numbers()),
        ("references, verbatim", FilterSpec::references(), numbers()),
        ("location, verbatim", FilterSpec::location(), numbers()),
    ];
    let scattered = (0..1 << 20).map(|number: u64| number * 7 + number % 3);
    let runs =
        (0..1 << 18).flat_map(|number: u64| (0..6 + number % 3).map(move |at| number * 20 + at));
    let dense = (0..1 << 22).filter(|number: &u64| !number.is_multiple_of(3));
    let sets: [(_, Vec<u64>); 3] =
        [("scattered", scattered.collect()), ("runs", runs.collect()), ("dense", dense.collect())];
    for (name, cells) in sets {
        let set = CellSet::from_sorted_cells(1 << 23, cells).unwrap();
        let stored = plain.encode_cells(&[1 << 12, 1 << 11], &set).unwrap();
        sections.push((name, FilterSpec::location(), stored.bytes));
    }
    let case =
        |(name, spec, data): (&str, _, _)| (name.to_owned(), vec![required(spec)], Arc::new(data));
    sections.into_iter().map(case).collect()
}
