//! Small files with everything that Pumice writes, and what a test needs to know of their bytes.

use pumice::{
    BitshuffleCodec, BloscCodec, BloscShuffle, DatasetBuilder, Datatype, File, FilterSpec, Scaling,
    Selection, SzipCoding, Value,
};
use pumice_bytes::lookup3;
use pumice_filter::Pipeline;
use std::ops::Range;

/// A file as it should be.
pub(crate) struct Specimen {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    /// The ranges of values without a checksum.
    pub(crate) exposed: Vec<Range<usize>>,
    /// A range with its checksum behind it, not included.
    pub(crate) blocks: Vec<Range<usize>>,
}

/// A smaller choice, where cases are many: the bytes of filtered indexes differ little.
pub(crate) fn some() -> Vec<Specimen> {
    let all = dense().into_iter().chain(sparse()).chain(variable_length());
    let mut all: Vec<Specimen> = all.collect();
    all.retain(|specimen| {
        !specimen.name.contains("default filters") || specimen.name.contains("fixed array")
    });
    all
}

/// Groups, attributes and dense datasets of every layout and index.
pub(crate) fn dense() -> Vec<Specimen> {
    vec![objects(), chunked()]
}

/// Sparse datasets with every index, with and without filters.
pub(crate) fn sparse() -> Vec<Specimen> {
    let indexes = [
        ("single chunk", [Some(12), Some(14)], [12, 14]),
        ("fixed array", [Some(12), Some(14)], [5, 6]),
        ("extensible array", [Some(12), None], [5, 6]),
        ("B-tree", [None, None], [5, 6]),
    ];
    let mut specimens = Vec::new();
    for (index, max, chunk) in indexes {
        for filters in ["no filters", "default filters"] {
            specimens.push(sparse_specimen(&format!("{index}, {filters}"), max, chunk, filters));
        }
    }
    let max = [Some(12), Some(14)];
    for filters in ["deflate", "fletcher32"] {
        let name = format!("fixed array, {filters}");
        specimens.push(sparse_specimen(&name, max, [5, 6], filters));
    }
    specimens
}

/// Datasets of strings and of nested sequences, in structured chunks.
pub(crate) fn variable_length() -> Vec<Specimen> {
    ["no filters", "default filters"].into_iter().map(varlen_specimen).collect()
}

fn varlen_specimen(filters: &str) -> Specimen {
    let bytes = write(|file| {
        let filtered = |builder: DatasetBuilder| match filters {
            "no filters" => builder.no_filters(),
            _ => builder,
        };
        let dense = file.new_strings().shape([7]).chunk([4]).variable_length();
        let dense = filtered(dense).create("dense").unwrap();
        dense.write_strings(.., &WORDS).unwrap();
        let single = file.new_strings().shape([7]).chunk([7]).variable_length();
        filtered(single).create("single").unwrap().write_strings(2..5, &WORDS[..3]).unwrap();
        let sparse =
            file.new_dataset_of(nested()).shape([20]).max_shape([None]).chunk([6]).sparse();
        let sparse = filtered(sparse).create("sparse").unwrap();
        sparse.write_values(3..8, &(0..5).map(nested_value).collect::<Vec<_>>()).unwrap();
        sparse.write_values(19, &[nested_value(7)]).unwrap();
    });
    Specimen::new(&format!("variable length, {filters}"), bytes, Vec::new())
}

/// Strings in structured chunks, dense and sparse, with every index of several chunks and with one chunk.
pub(crate) fn variable_length_indexes() -> Vec<Specimen> {
    let indexes = [
        ("single chunk", [Some(6), Some(8)], [6, 8]),
        ("fixed array", [Some(6), Some(8)], [4, 5]),
        ("extensible array", [Some(6), None], [4, 5]),
        ("B-tree", [None, None], [4, 5]),
    ];
    let mut specimens = Vec::new();
    for (index, max, chunk) in indexes {
        for layout in ["dense", "sparse"] {
            for filters in ["no filters", "default filters"] {
                let bytes = write(|file| {
                    let builder = file.new_strings().shape([6, 8]).max_shape(max).chunk(chunk);
                    let builder = match layout {
                        "dense" => builder.variable_length(),
                        _ => builder.sparse(),
                    };
                    let builder = match filters {
                        "no filters" => builder.no_filters(),
                        _ => builder,
                    };
                    let words = builder.create("words").unwrap();
                    let cells = (0..48).filter(|at| at * at % 7 < 3).map(|at| [at / 8, at % 8]);
                    words.write_string_cells(cells.zip(WORDS.iter().cycle())).unwrap();
                });
                let name = format!("{layout} words, {index}, {filters}");
                specimens.push(Specimen::new(&name, bytes, Vec::new()));
            }
        }
    }
    specimens
}

/// Chunks into which cells came, and out of which most went again, one by one: through logs that became
/// long and were merged.
pub(crate) fn logged() -> Vec<Specimen> {
    let mut specimens = Vec::new();
    for filters in ["no filters", "fletcher32", "default filters"] {
        let mut values = Vec::new();
        let bytes = write(|file| {
            let builder = file.new_dataset::<u8>().shape([9000]).chunk([6000]).sparse();
            let builder = match filters {
                "no filters" => builder.no_filters(),
                "fletcher32" => builder.no_filters().fletcher32(),
                _ => builder,
            };
            let dataset = builder.create("bytes").unwrap();
            dataset.write(0..400, &[1u8; 400]).unwrap();
            let added = || (0..1500u64).map(|n| 400 + n * 3701 % 5600);
            added().for_each(|cell| dataset.write_point(&[cell], cell as u8).unwrap());
            let stays = |cell: &u64| cell % 61 == 7;
            let gone = (0..400).chain(added()).filter(|cell| !stays(cell));
            gone.for_each(|cell| dataset.erase(cell).unwrap());
            dataset.write_point(&[8999], 7u8).unwrap();
            values = dataset.read_defined::<u8>(..6000).unwrap().values;
        });
        let exposed = match filters {
            "no filters" => vec![find(&bytes, &values), last_chunk(&bytes)],
            "fletcher32" => Vec::new(),
            _ => {
                let pipeline = Pipeline::new(vec![FilterSpec::zstd(3)]).unwrap();
                vec![find(&bytes, &pipeline.encode(values).unwrap().0), last_chunk(&bytes)]
            }
        };
        specimens.push(Specimen::new(&format!("logged bytes, {filters}"), bytes, exposed));
    }
    for (layout, filters) in [("sparse", "no filters"), ("sparse", "default"), ("dense", "default")]
    {
        let bytes = write(|file| {
            let builder = file.new_strings().shape([3000]).chunk([3000]);
            let builder =
                if layout == "dense" { builder.variable_length() } else { builder.sparse() };
            let builder = if filters == "default" { builder } else { builder.no_filters() };
            let dataset = builder.create("words").unwrap();
            dataset.write_strings(0..400, &["x"; 400]).unwrap();
            let added = || (0..1500u64).map(|n| 400 + n * 701 % 2600);
            let word = |cell: u64| WORDS[cell as usize % 7];
            added().for_each(|cell| dataset.write_string_point(&[cell], word(cell)).unwrap());
            let gone = (0..400).chain(added()).filter(|cell| cell % 61 != 7);
            gone.for_each(|cell| dataset.reset(cell).unwrap());
        });
        let name = format!("logged words, {layout}, {filters}");
        specimens.push(Specimen::new(&name, bytes, Vec::new()));
    }
    specimens
}

/// The one value of a chunk with nothing else behind it, which no pipeline makes shorter: it follows the
/// locations of the last cell of 9000.
fn last_chunk(bytes: &[u8]) -> Range<usize> {
    let pipeline = |filters: Vec<FilterSpec>| Pipeline::new(filters).unwrap();
    let cells = pumice_space::CellSet::from_sorted_cells(6000, [2999]).unwrap();
    let forms = [vec![], vec![FilterSpec::location(), FilterSpec::zstd(3)]];
    let forms = forms.map(|filters| pipeline(filters).encode_cells(&[6000], &cells).unwrap().bytes);
    let found = forms.iter().flat_map(|form| find_all(bytes, form)).next();
    let end = found.expect("the locations of the last cell").end;
    end..end + 1
}

/// Datasets `d` with one stored chunk at `[0, 0]`: fixed and nested types, and every predefined filter.
pub(crate) fn sections() -> Vec<(String, File)> {
    let filters = [
        ("none", vec![]),
        ("location", vec![FilterSpec::location()]),
        ("zstd", vec![FilterSpec::zstd(3)]),
        ("deflate", vec![FilterSpec::deflate(6)]),
        ("szip", vec![FilterSpec::szip(SzipCoding::NearestNeighbour, 8)]),
        ("scaleoffset", vec![FilterSpec::scale_offset(Scaling::Integer)]),
        ("nbit", vec![FilterSpec::nbit()]),
        ("blosc", vec![FilterSpec::blosc(BloscCodec::Lz4, 5, BloscShuffle::Bytes)]),
        ("bitshuffle", vec![FilterSpec::bitshuffle(BitshuffleCodec::Lz4)]),
        ("lzf", vec![FilterSpec::lzf()]),
        ("lz4 and bzip2", vec![FilterSpec::lz4(0), FilterSpec::bzip2(9)]),
    ];
    let mut files = Vec::new();
    for kind in ["points", "every other cell", "nested", "nested, dense"] {
        let plain = filters.iter().map(|(name, filters)| (*name, Some(filters)));
        for (name, filters) in plain.chain([("default", None)]) {
            let file = File::in_memory().unwrap();
            create_sections(&file, kind, filters);
            files.push((format!("{kind}, {name}"), file));
        }
    }
    files
}

fn create_sections(file: &File, kind: &str, filters: Option<&Vec<FilterSpec>>) {
    let datatype = match kind {
        "points" | "every other cell" => Datatype::i32_le(),
        _ => nested(),
    };
    let builder = file.new_dataset_of(datatype).shape([80, 90]).chunk([50, 60]);
    let builder = match kind {
        "nested, dense" => builder.variable_length(),
        _ => builder.sparse(),
    };
    let builder = match filters {
        None => builder,
        Some(filters) => filters.iter().cloned().fold(builder.no_filters(), DatasetBuilder::filter),
    };
    let dataset = builder.create("d").unwrap();
    let numbers: Vec<i32> = (0..250).map(|n| n * n / 7).collect();
    match kind {
        "points" => {
            let points: Vec<[u64; 2]> = (0..250).map(|n| [n * 7 % 50, n * 11 % 60]).collect();
            dataset.write_points(&points, &numbers).unwrap();
        }
        "every other cell" => {
            let cells = Selection::hyperslab(&[1, 2], &[2, 3], &[10, 10], &[1, 2]).unwrap();
            dataset.write(cells, &numbers[..200]).unwrap();
        }
        _ => {
            let values: Vec<Value> = (0..40).map(nested_value).collect();
            dataset.write_values((3..5, 10..30), &values).unwrap();
        }
    }
    dataset.flush().unwrap();
}

const WORDS: [&str; 7] = ["one", "", "three", "a rather longer string", "five", "six", "seven"];

fn nested() -> Datatype {
    Datatype::compound([
        ("id", Datatype::i16_be()),
        ("words", Datatype::varlen(Datatype::varlen_string(16), 16)),
    ])
}

fn nested_value(id: i128) -> Value {
    let words = WORDS[..id as usize % 4].iter().map(|&word| Value::from(word)).collect();
    let words = Value::Sequence(words);
    Value::Compound(vec![("id".into(), Value::Integer(id)), ("words".into(), words)])
}

fn objects() -> Specimen {
    let numbers: Vec<i16> = (0..40).map(|n| 300 * n - 7).collect();
    let bytes = write(|file| {
        file.set_attribute("title", "a file to be damaged").unwrap();
        let group = file.create_group("a/b").unwrap();
        group.set_attribute("list", [1.5f32, -2.5]).unwrap();
        group.set_attribute("count", 7u8).unwrap();
        let contiguous = file.new_dataset::<i16>().shape([5, 8]).create("a/contiguous").unwrap();
        contiguous.write(.., &numbers).unwrap();
        contiguous.set_attribute("unit", "mm").unwrap();
        let compact = file.new_dataset::<u8>().shape([6]).compact().create("a/compact").unwrap();
        compact.write(.., &[1u8, 2, 3, 4, 5, 6]).unwrap();
        let scalar = file.new_dataset::<f64>().create("a/b/scalar").unwrap();
        scalar.write(.., &[0.3f64]).unwrap();
        file.new_dataset::<i32>().shape([4]).fill_value(9i32).create("unwritten").unwrap();
    });
    let values: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    let exposed = vec![find(&bytes, &values), find(&bytes, &0.3f64.to_le_bytes())];
    Specimen::new("objects", bytes, exposed)
}

fn chunked() -> Specimen {
    let numbers: Vec<i32> = (0..60).map(|n| n * n - 900).collect();
    let bytes = write(|file| {
        let dataset = || file.new_dataset::<i32>().shape([6, 10]).fill_value(-1i32);
        let create = |builder: DatasetBuilder, name: &str| {
            builder.create(name).unwrap().write((.., ..), &numbers).unwrap();
        };
        create(dataset().chunk([4, 5]).shuffle().deflate(6).fletcher32(), "fixed");
        create(dataset().chunk([6, 10]).fletcher32(), "single");
        create(dataset().chunk([2, 10]).max_shape([None, Some(10)]).deflate(1), "extensible");
        create(dataset().chunk([6, 5]).max_shape([None, None]).fletcher32().deflate(9), "tree");
        let holes = dataset().chunk([3, 10]).create("holes").unwrap();
        holes.write((0..3, ..), &numbers[..30]).unwrap();
    });
    // Only "holes" is stored without filters that check: its one chunk has the values as they are.
    let values: Vec<u8> = numbers[..30].iter().flat_map(|n| n.to_le_bytes()).collect();
    let places = find_all(&bytes, &values);
    Specimen::new("chunked", bytes, places)
}

fn sparse_specimen(name: &str, max: [Option<u64>; 2], chunk: [u64; 2], filters: &str) -> Specimen {
    let value = |row: u64, column: u64| 1000 * row + 17 * column + 1;
    let points: Vec<[u64; 2]> = (0..12)
        .flat_map(|row| (0..14).map(move |column| [row, column]))
        .filter(|[row, column]| (row * 7 + column * column) % 5 < 2)
        .collect();
    let values: Vec<u64> = points.iter().map(|point| value(point[0], point[1])).collect();
    let bytes = write(|file| {
        let builder =
            file.new_dataset::<u64>().shape([12, 14]).max_shape(max).chunk(chunk).sparse();
        let builder = match filters {
            "no filters" => builder.no_filters(),
            "deflate" => builder
                .location_filters(vec![FilterSpec::deflate(6)])
                .value_filters(vec![FilterSpec::deflate(6)]),
            "fletcher32" => builder.fletcher32(),
            _ => builder,
        };
        let dataset = builder.fill_value(5u64).create("sparse").unwrap();
        dataset.write_points(&points, &values).unwrap();
    });
    if filters == "fletcher32" {
        return Specimen::new(name, bytes, Vec::new());
    }
    let pipeline = match filters {
        "default filters" => vec![FilterSpec::shuffle(8), FilterSpec::zstd(3)],
        "deflate" => vec![FilterSpec::deflate(6)],
        _ => Vec::new(),
    };
    let pipeline = Pipeline::new(pipeline).unwrap();
    let mut exposed = Vec::new();
    for row in (0..12).step_by(chunk[0] as usize) {
        for column in (0..14).step_by(chunk[1] as usize) {
            let inside = |point: &&[u64; 2]| {
                (row..row + chunk[0]).contains(&point[0])
                    && (column..column + chunk[1]).contains(&point[1])
            };
            let section = points.iter().filter(inside);
            let section = section.flat_map(|point| value(point[0], point[1]).to_le_bytes());
            let (stored, _) = pipeline.encode(section.collect()).unwrap();
            exposed.push(find(&bytes, &stored));
        }
    }
    Specimen::new(name, bytes, exposed)
}

impl Specimen {
    fn new(name: &str, bytes: Vec<u8>, exposed: Vec<Range<usize>>) -> Self {
        let blocks = blocks(&bytes);
        Self { name: name.into(), bytes, exposed, blocks }
    }
}

fn write(fill: impl FnOnce(&File)) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("specimen.h5");
    let file = File::create(&path).unwrap();
    fill(&file);
    file.close().unwrap();
    std::fs::read(path).unwrap()
}

fn find(bytes: &[u8], wanted: &[u8]) -> Range<usize> {
    let places = find_all(bytes, wanted);
    assert_eq!(places.len(), 1, "{wanted:?} stands once in the file");
    places[0].clone()
}

fn find_all(bytes: &[u8], wanted: &[u8]) -> Vec<Range<usize>> {
    let places = bytes.windows(wanted.len()).enumerate();
    let places = places.filter(|(_, window)| window == &wanted);
    places.map(|(start, _)| start..start + wanted.len()).collect()
}

/// Everything that begins like a block of metadata, or like an unfiltered section 0, and is
/// followed by its checksum.
fn blocks(bytes: &[u8]) -> Vec<Range<usize>> {
    let openings: [&[u8]; 12] = [
        b"\x89HDF",
        b"OHDR",
        b"OCHK",
        b"FAHD",
        b"FADB",
        b"EAHD",
        b"EAIB",
        b"EADB",
        b"BTHD",
        b"BTLF",
        b"\x01\x00\x08",
        b"HGLS",
    ];
    let mut blocks = Vec::new();
    for start in 0..bytes.len() {
        if !openings.iter().any(|opening| bytes[start..].starts_with(opening)) {
            continue;
        }
        let ends = start + 8..=(start + 2048).min(bytes.len().saturating_sub(4));
        let mut ends =
            ends.filter(|&end| bytes[end..end + 4] == lookup3(&bytes[start..end]).to_le_bytes());
        blocks.extend(ends.next().map(|end| start..end));
    }
    blocks
}
