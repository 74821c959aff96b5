//! Random calls of ranks, beside an array in memory.

use crate::support::{folder, options, ranks};
use proptest::prelude::*;
use pumice::Selection;
use pumice_collective::CollectiveFile;

const SIDE: u64 = 14;

#[derive(Clone, Debug)]
enum Part {
    Nothing,
    Block([u64; 2], [u64; 2]),
    Points(Vec<[u64; 2]>),
}

#[derive(Clone, Debug)]
enum Step {
    Write(Vec<Part>),
    Erase(Vec<Part>),
    Flush,
    Read,
}

fn part() -> impl Strategy<Value = Part> {
    let block = (0..SIDE, 0..SIDE, 1..SIDE, 1..SIDE).prop_map(|(row, column, rows, columns)| {
        Part::Block([row, column], [rows.min(SIDE - row), columns.min(SIDE - column)])
    });
    let points = prop::collection::vec((0..SIDE, 0..SIDE), 1..9).prop_map(|points| {
        Part::Points(points.into_iter().map(|(row, column)| [row, column]).collect())
    });
    prop_oneof![1 => Just(Part::Nothing), 3 => block, 2 => points]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let parts = || prop::collection::vec(part(), 4);
    let step = prop_oneof![
        4 => parts().prop_map(Step::Write),
        2 => parts().prop_map(Step::Erase),
        1 => Just(Step::Flush),
        1 => Just(Step::Read),
    ];
    prop::collection::vec(step, 1..10)
}

impl Part {
    fn cells(&self) -> Vec<[u64; 2]> {
        match self {
            Self::Nothing => vec![],
            Self::Points(points) => points.clone(),
            Self::Block(start, count) => {
                let row =
                    |row| (0..count[1]).map(move |column| [start[0] + row, start[1] + column]);
                (0..count[0]).flat_map(row).collect()
            }
        }
    }

    fn selection(&self) -> Selection {
        match self {
            Self::Nothing => Selection::none(),
            Self::Points(points) => Selection::points(2, points.concat()).unwrap(),
            Self::Block(start, count) => Selection::block(start, count).unwrap(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn ranks_leave_what_a_naive_array_has(
        steps in steps(),
        size in 1..5usize,
        sparse: bool,
        side in 3..9u64,
    ) {
        let mut cells = vec![None; (SIDE * SIDE) as usize];
        let at = |[row, column]: [u64; 2]| (row * SIDE + column) as usize;
        let mut expected = Vec::new();
        for (number, step) in steps.iter().enumerate() {
            match step {
                Step::Write(parts) => for (rank, part) in parts[..size].iter().enumerate() {
                    for (count, cell) in part.cells().into_iter().enumerate() {
                        cells[at(cell)] = Some((number * 1000 + rank * 200 + count) as i64 + 1);
                    }
                }
                Step::Erase(parts) => for cell in parts[..size].iter().flat_map(Part::cells) {
                    cells[at(cell)] = None;
                }
                Step::Flush | Step::Read => {}
            }
            expected.push(cells.iter().map(|cell| cell.unwrap_or(-5)).collect::<Vec<i64>>());
        }
        let (_folder, path) = folder();
        ranks(size, |comm| {
            let rank = comm.rank();
            let file = CollectiveFile::create_with(comm, &path, options())?;
            let dataset = file.create_dataset("d", |file| {
                let builder = file.new_dataset::<i64>().shape([SIDE, SIDE]).chunk([side, 5]).fill_value(-5i64);
                if sparse { builder.sparse() } else { builder.deflate(1) }
            })?;
            for (number, step) in steps.iter().enumerate() {
                match step {
                    Step::Write(parts) => {
                        let count = parts[rank].cells().len();
                        let value = |count| (number * 1000 + rank * 200 + count) as i32 + 1;
                        dataset.write(parts[rank].selection(), &(0..count).map(value).collect::<Vec<_>>())?;
                    }
                    Step::Erase(parts) => dataset.erase(parts[rank].selection())?,
                    Step::Flush => file.flush()?,
                    Step::Read => assert_eq!(dataset.read::<i64>(..)?, expected[number]),
                }
            }
            file.close()
        });
        let found = pumice::File::open(&path).unwrap().dataset("d").unwrap();
        prop_assert_eq!(&found.read::<i64>(..).unwrap(), expected.last().unwrap());
        if sparse {
            let defined = cells.iter().flatten().count() as u64;
            prop_assert_eq!(found.count_defined(..).unwrap(), defined);
        }
    }
}
