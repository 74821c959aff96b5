//! Random steps on datasets of variable-length types in structured chunks, each checked against a
//! dictionary of cells.

use pumice::{
    Context, Dataset, Datatype, File, FileOptions, FilterSpec, Points, Section, Selection, Value,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Bytes of addresses and lengths; files with addresses of two would soon be full.
const WIDTHS: [(u8, u8); 6] = [(8, 8), (8, 4), (8, 2), (4, 8), (4, 4), (4, 2)];

/// A small generator of random numbers, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

fn is_string(datatype: &Datatype) -> bool {
    *datatype == Datatype::varlen_string(datatype.size() as u32)
}

/// All kinds of elements, with references of `size` bytes.
fn datatypes(size: u32) -> Vec<Datatype> {
    let string = || Datatype::varlen_string(size);
    let varlen = |base| Datatype::varlen(base, size);
    let record = Datatype::compound([
        ("id", Datatype::i32_le()),
        ("name", string()),
        ("track", varlen(Datatype::f64_be())),
    ]);
    vec![
        string(),
        varlen(Datatype::i16_be()),
        record.clone(),
        varlen(string()),
        varlen(varlen(Datatype::u8())),
        Datatype::array(string(), [2, 2]),
        varlen(record),
    ]
}

fn value(datatype: &Datatype, random: &mut Random) -> Value {
    match datatype {
        Datatype::Integer(integer) if !integer.signed => Value::Integer(random.below(256).into()),
        Datatype::Integer(_) => Value::Integer(i128::from(random.below(2000)) - 1000),
        Datatype::Float(_) => Value::Float(random.below(1 << 40) as f64 / 7.0),
        Datatype::Array(array) => {
            Value::Array((0..array.count()).map(|_| value(&array.base, random)).collect())
        }
        Datatype::Compound(compound) => Value::Compound(
            compound
                .members
                .iter()
                .map(|member| (member.name.clone(), value(&member.datatype, random)))
                .collect(),
        ),
        Datatype::VarLen(_) if random.one_in(9) => Value::Null,
        Datatype::VarLen(varlen) if *varlen.base == Datatype::u8() && !random.one_in(3) => {
            let length = if random.one_in(50) { 3000 } else { random.below(12) };
            let bytes = (0..length).map(|_| 1 + random.below(255) as u8).collect();
            match is_string(datatype) {
                true => Value::Text(bytes),
                false => {
                    Value::Sequence(bytes.into_iter().map(|n| Value::Integer(n.into())).collect())
                }
            }
        }
        Datatype::VarLen(_) if is_string(datatype) => Value::Text(Vec::new()),
        Datatype::VarLen(varlen) => {
            Value::Sequence((0..random.below(4)).map(|_| value(&varlen.base, random)).collect())
        }
        other => panic!("no values of {other}"),
    }
}

/// The value of unwritten cells.
fn fill(datatype: &Datatype) -> Value {
    match datatype {
        Datatype::Integer(_) => Value::Integer(0),
        Datatype::Array(array) => Value::Array(vec![fill(&array.base); array.count()]),
        Datatype::Compound(compound) => Value::Compound(
            compound.members.iter().map(|m| (m.name.clone(), fill(&m.datatype))).collect(),
        ),
        _ => Value::Null,
    }
}

struct Model {
    datatype: Datatype,
    sparse: bool,
    shape: Vec<u64>,
    cells: BTreeMap<Vec<u64>, Value>,
}

impl Model {
    /// A random box inside the shape: start and count.
    fn block(&self, random: &mut Random) -> Option<(Vec<u64>, Vec<u64>)> {
        if self.shape.contains(&0) {
            return None;
        }
        let start: Vec<u64> = self.shape.iter().map(|&side| random.below(side)).collect();
        let axes = start.iter().zip(&self.shape);
        let count = axes.map(|(&start, &side)| 1 + random.below((side - start).min(6))).collect();
        Some((start, count))
    }

    /// Some points inside the shape, each once.
    fn points(&self, random: &mut Random) -> Vec<Vec<u64>> {
        if self.shape.contains(&0) {
            return Vec::new();
        }
        let mut points = Vec::new();
        for _ in 0..random.below(6) {
            let point = self.shape.iter().map(|&side| random.below(side)).collect();
            if !points.contains(&point) {
                points.push(point);
            }
        }
        points
    }

    fn check(&self, dataset: &Dataset, random: &mut Random) {
        let Some((start, count)) = self.block(random) else { return };
        let selection = Selection::block(&start, &count).unwrap();
        let wanted: Vec<Value> = cells_of(&start, &count)
            .map(|cell| self.cells.get(&cell).cloned().unwrap_or_else(|| fill(&self.datatype)))
            .collect();
        assert_eq!(dataset.read_values(&selection).unwrap(), wanted);
        if !self.sparse {
            return;
        }
        let found = dataset.read_defined_values(&selection).unwrap();
        let found: BTreeMap<Vec<u64>, Value> =
            found.iter().map(|(point, value)| (point.to_vec(), value.clone())).collect();
        let inside = cells_of(&start, &count);
        let known: BTreeMap<Vec<u64>, Value> = inside
            .filter_map(|cell| self.cells.get_key_value(&cell).map(|(k, v)| (k.clone(), v.clone())))
            .collect();
        assert_eq!(found, known);
        assert_eq!(dataset.count_defined(..).unwrap(), self.cells.len() as u64);
        let columns = dataset.defined_columns::<u64>(..).unwrap();
        let cell = |at: usize| columns.iter().map(|axis| axis[at]).collect::<Vec<u64>>();
        let listed: BTreeSet<Vec<u64>> = (0..columns[0].len()).map(cell).collect();
        assert!(listed.iter().eq(self.cells.keys()));
    }
}

fn cells_of(start: &[u64], count: &[u64]) -> impl Iterator<Item = Vec<u64>> + Clone {
    let (start, count) = (start.to_vec(), count.to_vec());
    (0..count.iter().product::<u64>()).map(move |mut number| {
        let mut cell = start.clone();
        for axis in (0..count.len()).rev() {
            cell[axis] += number % count[axis];
            number /= count[axis];
        }
        cell
    })
}

fn create(
    path: &Path,
    options: FileOptions,
    model: &Model,
    kind: u64,
    random: &mut Random,
) -> File {
    let file = options.create(path).unwrap();
    let shape = model.shape.clone();
    let rank = shape.len();
    // Every chunk index: single, fixed array, extensible array, B-tree.
    let (chunk, max): (Vec<u64>, Vec<Option<u64>>) = match kind % 4 {
        0 => (shape.clone(), shape.iter().map(|&side| Some(side)).collect()),
        1 => (
            shape.iter().map(|side| side.div_ceil(2)).collect(),
            shape.iter().map(|&n| Some(n)).collect(),
        ),
        2 => (vec![3; rank], (0..rank).map(|axis| (axis != rank / 2).then_some(20)).collect()),
        _ => (vec![2; rank], vec![None; rank]),
    };
    let builder =
        file.new_dataset_of(model.datatype.clone()).shape(shape).max_shape(max).chunk(chunk);
    let builder = if model.sparse { builder.sparse() } else { builder.variable_length() };
    let builder = match random.below(4) {
        0 => builder.no_filters(),
        1 => builder
            .section_filter(Section::Heap, FilterSpec::deflate(4))
            .dont_filter_partial_chunks(),
        // Optional filters that nobody has are skipped in every section.
        2 if random.one_in(2) => builder
            .filter(FilterSpec {
                id: 77,
                optional: true,
                name: None,
                config: None,
                parameters: vec![],
            })
            .lzf(),
        _ => builder,
    };
    builder.create("group/values").unwrap();
    file
}

fn run(seed: u64, steps: usize, folder: &Path) {
    let mut random = Random(0x9E37_79B9_7F4A_7C15 ^ seed.wrapping_mul(0xD134_2543_DE82_EF95));
    let widths = WIDTHS[random.below(WIDTHS.len() as u64) as usize];
    let types = datatypes(8 + u32::from(widths.0));
    let kind = random.below(4);
    let rank = 1 + random.below(4) as usize;
    let side = [12, 7, 4, 3][rank - 1];
    let mut model = Model {
        datatype: types[seed as usize % types.len()].clone(),
        sparse: random.one_in(2),
        shape: (0..rank).map(|_| 1 + random.below(side)).collect(),
        cells: BTreeMap::new(),
    };
    let cache = [0, 2000, 64 << 20][random.below(3) as usize];
    let context = Context::builder().cache_bytes(cache).threads(1 + random.below(2) as usize);
    let context = context.build().unwrap();
    let path = folder.join(format!("{seed}.h5"));
    let options = File::options().context(&context).widths(widths.0, widths.1);
    let mut file = create(&path, options, &model, kind, &mut random);
    let mut dataset = file.dataset("group/values").unwrap();
    dataset.set_heap_waste([0, 25, 100][random.below(3) as usize]);
    for _ in 0..steps {
        match random.below(14) {
            0..=3 => {
                let Some((start, count)) = model.block(&mut random) else { continue };
                let cells: Vec<_> = cells_of(&start, &count).collect();
                let values: Vec<Value> =
                    cells.iter().map(|_| value(&model.datatype, &mut random)).collect();
                dataset.write_values(Selection::block(&start, &count).unwrap(), &values).unwrap();
                model.cells.extend(cells.into_iter().zip(values));
            }
            4 => {
                let points = model.points(&mut random);
                let values: Vec<Value> =
                    points.iter().map(|_| value(&model.datatype, &mut random)).collect();
                let selection = Selection::points(rank, points.concat()).unwrap();
                dataset.write_values(selection, &values).unwrap();
                model.cells.extend(points.into_iter().zip(values));
            }
            5 if model.sparse => {
                let points = model.points(&mut random);
                let list = points.concat();
                dataset.erase_at(&Points::list(rank, &list).unwrap()).unwrap();
                points.iter().for_each(|cell| drop(model.cells.remove(cell)));
            }
            10 if model.sparse => {
                let Some((start, count)) = model.block(&mut random) else { continue };
                dataset.erase(Selection::block(&start, &count).unwrap()).unwrap();
                cells_of(&start, &count).for_each(|cell| drop(model.cells.remove(&cell)));
            }
            6 if kind >= 2 => {
                let shape: Vec<u64> = (0..rank).map(|_| random.below(side + 2)).collect();
                dataset.resize(&shape).unwrap();
                model.cells.retain(|cell, _| cell.iter().zip(&shape).all(|(at, side)| at < side));
                model.shape = shape;
            }
            7 => file.flush().unwrap(),
            // Every stored chunk is read and written back, section by section.
            11 => {
                for chunk in dataset.structured_chunks().unwrap().list().unwrap() {
                    let sections = dataset.read_structured_chunk(&chunk.offset).unwrap().unwrap();
                    dataset.write_structured_chunk(&chunk.offset, &sections).unwrap();
                }
            }
            12 => {
                let bytes = [0, 700, 5000, 64 << 20][random.below(4) as usize];
                context.set_cache_bytes(bytes).unwrap();
            }
            8 => {
                drop(dataset);
                file.close().unwrap();
                file = File::options().context(&context).edit(&path).unwrap();
                dataset = file.dataset("group/values").unwrap();
            }
            _ => model.check(&dataset, &mut random),
        }
    }
    model.check(&dataset, &mut random);
    drop(dataset);
    file.close().unwrap();
    let file = File::options().context(&context).open(&path).unwrap();
    let dataset = file.dataset("group/values").unwrap();
    for _ in 0..5 {
        model.check(&dataset, &mut random);
    }
}

#[test]
fn random_steps_on_variable_length_data_agree_with_a_dictionary() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..200 {
        run(seed, 70, folder.path());
    }
}
