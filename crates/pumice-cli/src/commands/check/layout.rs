//! The use of every byte of a file: structures that overlap, and unused ranges.

use pumice::{ObjectPath, Place, PlaceKind};
use std::collections::BTreeMap;

/// Ranges of a file, and their owners.
#[derive(Default)]
pub(super) struct Layout {
    /// Begin, end, kind, and the number of the owner.
    pieces: Vec<(u64, u64, PlaceKind, u32)>,
    owners: Vec<ObjectPath>,
}

impl Layout {
    /// Adds the ranges of an object.
    pub(super) fn add(&mut self, path: ObjectPath, places: &[Place]) {
        let owner = self.owners.len() as u32;
        self.owners.push(path);
        let places = places.iter().filter(|place| place.length > 0);
        self.pieces.extend(places.map(|place| {
            let end = place.address.saturating_add(place.length);
            (place.address, end, place.kind, owner)
        }));
    }

    /// Ranges that overlap another, or lie beyond the end of the file: their owners, and the fault.
    /// The file ends at `end_of_file`, but may have more bytes if it is one of several: `has`
    /// decides.
    pub(super) fn problems(
        &mut self,
        end_of_file: u64,
        has: impl Fn(u64, u64) -> bool,
    ) -> Vec<(String, String)> {
        self.pieces.sort_unstable();
        let mut problems = Vec::new();
        let mut last: Option<(u64, u64, PlaceKind, u32)> = None;
        for &piece in &self.pieces {
            let (begin, end, kind, owner) = piece;
            if end > end_of_file && !has(begin, end - begin) {
                let what = format!(
                    "{kind} from {begin:#x} to {end:#x} is beyond the end of the file at {end_of_file:#x}"
                );
                problems.push((self.owner(owner), what));
            }
            if let Some((other_begin, other_end, other, other_owner)) = last
                && begin < other_end
            {
                let whose = self.owner(other_owner);
                let what = format!(
                    "{kind} from {begin:#x} to {end:#x} overlaps {other} of {whose} from {other_begin:#x} to {other_end:#x}"
                );
                problems.push((self.owner(owner), what));
            }
            if last.is_none_or(|(_, other_end, ..)| end > other_end) {
                last = Some(piece);
            }
        }
        problems
    }

    fn owner(&self, number: u32) -> String {
        self.owners.get(number as usize).map_or("/".to_owned(), ObjectPath::to_string)
    }

    /// Bytes by kind of structure.
    pub(super) fn bytes_by_kind(&self) -> BTreeMap<PlaceKind, u64> {
        let mut bytes = BTreeMap::new();
        for (begin, end, kind, _) in &self.pieces {
            let sum: &mut u64 = bytes.entry(*kind).or_default();
            *sum = sum.saturating_add(end - begin);
        }
        bytes
    }

    /// Addresses and lengths of unused ranges. Call [`problems`](Self::problems) first, which sorts
    /// the ranges.
    pub(super) fn unreachable(&self, first: u64, end_of_file: u64) -> Vec<(u64, u64)> {
        let mut gaps = Vec::new();
        let mut at = first;
        for &(begin, end, ..) in &self.pieces {
            let begin = begin.min(end_of_file);
            if begin > at {
                gaps.push((at, begin - at));
            }
            at = at.max(end);
        }
        if at < end_of_file {
            gaps.push((at, end_of_file - at));
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(pieces: &[(&str, u64, u64)]) -> Layout {
        let mut layout = Layout::default();
        for &(path, address, length) in pieces {
            layout.add(
                ObjectPath::from(path.to_owned()),
                &[Place { address, length, kind: PlaceKind::Chunk }],
            );
        }
        layout
    }

    #[test]
    fn overlaps_are_found_behind_a_long_piece_too() {
        let mut layout = layout(&[("/a", 0, 100), ("/b", 10, 5), ("/c", 50, 10), ("/d", 100, 8)]);
        let problems = layout.problems(104, |_, _| false);
        let paths: Vec<&str> = problems.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["/b", "/c", "/d"]);
        assert!(problems[1].1.contains("overlaps chunk of /a from 0x0 to 0x64"), "{problems:?}");
        assert!(problems[2].1.contains("beyond the end of the file at 0x68"), "{problems:?}");
    }

    #[test]
    fn gaps_are_what_no_piece_covers() {
        let mut layout = layout(&[("/a", 10, 10), ("/b", 15, 20), ("/c", 40, 10)]);
        assert_eq!(layout.problems(60, |_, _| false).len(), 1);
        assert_eq!(layout.unreachable(0, 60), [(0, 10), (35, 5), (50, 10)]);
        assert_eq!(layout.unreachable(10, 45), [(35, 5)]);
    }
}
