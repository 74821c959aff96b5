//! Which requests answer a set of ranges: near ones together, long ones in pieces.

use std::ops::Range;

/// The requests for ranges that ascend by their starts: what is no further apart than `gap` is asked for together, and
/// nothing larger than `piece` at once. Only a range that is larger itself is cut.
pub(crate) fn requests(
    ranges: impl IntoIterator<Item = Range<u64>>,
    gap: u64,
    piece: u64,
) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        let before = runs.last().map_or(0, |last| last.end);
        match runs.last_mut() {
            Some(last)
                if range.start <= last.end.saturating_add(gap)
                    && range.end.max(last.end) - last.start <= piece =>
            {
                last.end = last.end.max(range.end);
            }
            // What overlaps is not asked for twice.
            _ if range.end > before => runs.push(range.start.max(before)..range.end),
            _ => {}
        }
    }
    runs.into_iter().flat_map(|run| cut(run, piece)).collect()
}

/// Equal pieces of a range.
fn cut(range: Range<u64>, piece: u64) -> impl Iterator<Item = Range<u64>> {
    let length = range.end - range.start;
    let count = length.div_ceil(piece.max(1)).max(1);
    let size = length.div_ceil(count).max(1);
    (0..count).map(move |i| {
        let start = range.start + (i * size).min(length);
        start..range.start + ((i + 1) * size).min(length)
    })
}

/// What two ranges have in common.
pub(crate) fn common(a: &Range<u64>, b: &Range<u64>) -> Option<Range<u64>> {
    let both = a.start.max(b.start)..a.end.min(b.end);
    (both.start < both.end).then_some(both)
}

/// The range of a read; an error if there is no such range.
pub(crate) fn of(offset: u64, length: usize) -> std::io::Result<Range<u64>> {
    let end = offset.checked_add(length as u64);
    end.map(|end| offset..end).ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_ranges_become_one_request_and_long_ones_several() {
        let found = requests([0..10, 12..20, 31..40, 35..38], 10, 100);
        assert_eq!(found, [0..20, 31..40]);
        let found = requests([0..10, 12..20, 30..40], 10, 100);
        assert_eq!(found, [Range { start: 0, end: 40 }]);
        assert_eq!(requests([5..255, 1000..1010], 0, 100), [5..89, 89..173, 173..255, 1000..1010]);
        assert_eq!(
            requests([0..60, 60..90, 90..110, 100..105, 104..115], 0, 100),
            [0..90, 90..115]
        );
        assert_eq!(
            requests([0..250, 10..20, 240..260], 0, 100),
            [0..84, 84..168, 168..250, 250..260]
        );
        assert_eq!(requests([], 0, 100), [] as [Range<u64>; 0]);
    }

    #[test]
    fn pieces_cover_a_range() {
        for length in 1..50 {
            for piece in 1..20 {
                let pieces: Vec<_> = cut(7..7 + length, piece).collect();
                assert!(pieces.iter().all(|one| one.end - one.start <= piece));
                assert_eq!(pieces.iter().map(|one| one.end - one.start).sum::<u64>(), length);
                assert!(pieces.windows(2).all(|two| two[0].end == two[1].start));
            }
        }
    }
}
