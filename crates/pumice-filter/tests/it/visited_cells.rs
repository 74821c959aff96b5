//! Cells that are shown as they are decoded are those of the decoded set, whatever the bytes.

use proptest::prelude::*;
use pumice_bytes::{Budget, lookup3};
use pumice_filter::location::{Aim, CellVisitor, decode_cells, encode_cells, visit_cells};
use pumice_space::{CellSet, Run};

/// Collects what it is shown, and has enough of it after some pieces.
#[derive(Default)]
struct Collector {
    dims: Vec<u64>,
    cells: Vec<u64>,
    pieces: Option<usize>,
}

impl Collector {
    fn goes_on(&mut self) -> bool {
        match &mut self.pieces {
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
            None => true,
        }
    }
}

impl CellVisitor for Collector {
    fn begin(&mut self, dims: &[u64]) -> bool {
        self.dims = dims.to_vec();
        true
    }

    fn cells(&mut self, cells: &[u32]) -> bool {
        self.cells.extend(cells.iter().map(|&cell| u64::from(cell)));
        self.goes_on()
    }

    fn runs(&mut self, runs: &[[u64; 2]]) -> bool {
        self.cells.extend(runs.iter().flat_map(|&[start, end]| start..end));
        self.goes_on()
    }
}

fn cells_of(set: &CellSet) -> Vec<u64> {
    set.runs().flat_map(|run| run.start..run.end()).collect()
}

/// Scattered cells, runs, boxes, few holes; of matrices, lines and blocks.
fn sets() -> impl Strategy<Value = (Vec<u64>, CellSet)> {
    let shape = prop_oneof![
        (1u64..3000).prop_map(|n| vec![n]),
        (1u64..60, 1u64..90).prop_map(|(a, b)| vec![a, b]),
        (1u64..12, 1u64..12, 1u64..20).prop_map(|(a, b, c)| vec![a, b, c]),
    ];
    let piece = (0u64..6000, 1u64..40, 1u64..9);
    let pieces = proptest::collection::vec(piece, 0..80);
    (shape, pieces, any::<bool>(), 1u64..40).prop_map(|(dims, pieces, complement, most)| {
        let cells: u64 = dims.iter().product();
        let width = dims[dims.len() - 1];
        let mut set = CellSet::empty(cells);
        for (start, len, height) in pieces {
            for row in 0..height {
                let start = (start + row * width) % cells;
                let run = Run { start, len: len.min(most).min(cells - start) };
                set = set.union(&CellSet::from_runs(cells, [run]).unwrap());
            }
        }
        (dims, if complement { set.complement() } else { set })
    })
}

fn aims() -> impl Strategy<Value = Aim> {
    prop_oneof![Just(Aim::Short), Just(Aim::Fast)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn all_cells_are_shown((dims, set) in sets(), aim in aims()) {
        let mut out = Vec::new();
        encode_cells(&dims, &set, aim, &mut out).unwrap();
        let mut seen = Collector::default();
        if visit_cells(&out, &mut Budget::new(1 << 24), &mut seen).unwrap() {
            prop_assert_eq!(seen.dims, dims);
            prop_assert_eq!(seen.cells, cells_of(&set));
        } else {
            prop_assert_eq!(out[0], 0, "only what is carried verbatim is not shown");
        }
    }

    #[test]
    fn damaged_forms_are_refused_or_show_what_they_decode_to(
        (dims, set) in sets(),
        aim in aims(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut out = Vec::new();
        encode_cells(&dims, &set, aim, &mut out).unwrap();
        let end = out.len().saturating_sub(4);
        for (at, byte) in changes {
            if end > 1 {
                out[1 + at.index(end - 1)] = byte;
            }
        }
        // With a right checksum, so that more than that is looked at.
        let checksum = lookup3(&out[..end]).to_le_bytes();
        out[end..].copy_from_slice(&checksum);
        let mut seen = Collector::default();
        let shown = visit_cells(&out, &mut Budget::new(1 << 24), &mut seen);
        match decode_cells(&out, &mut Budget::new(1 << 24)) {
            Ok(Some((dims, set))) => {
                prop_assert!(shown.unwrap());
                prop_assert_eq!(seen.dims.as_slice(), dims.as_slice());
                prop_assert_eq!(seen.cells, cells_of(&set));
            }
            Ok(None) => prop_assert!(!shown.unwrap()),
            Err(_) => prop_assert!(!matches!(shown, Ok(true))),
        }
    }

    #[test]
    fn who_has_seen_enough_is_shown_no_more(
        (dims, set) in sets(),
        aim in aims(),
        pieces in 0usize..3,
    ) {
        let mut out = Vec::new();
        encode_cells(&dims, &set, aim, &mut out).unwrap();
        let mut seen = Collector { pieces: Some(pieces), ..Collector::default() };
        let all = visit_cells(&out, &mut Budget::new(1 << 24), &mut seen).unwrap();
        let expected = cells_of(&set);
        prop_assert_eq!(&seen.cells[..], &expected[..seen.cells.len()]);
        prop_assert!(!all || seen.cells == expected);
    }
}
