//! The default shape of a chunk.

use super::Access;

/// An axis that can grow counts as at least this long.
const GROWING: u64 = 1024;

/// A chunk of about `cells` cells, with sides as equal as the shape and `access` allow. An axis
/// that can grow counts as 1024 cells at least: absent cells take space.
pub(super) fn chunk_shape(shape: &[u64], max: &[u64], cells: u64, access: Access) -> Vec<u64> {
    let lengths = axes(shape, max, GROWING);
    let chunk = shape_within(&lengths, cells, access);
    framed(chunk, &lengths, [shape, max], cells, access)
}

/// The default shape of a sparse chunk, where absent cells take no space: axes that can grow count
/// as long as the chunk needs for its `cells`, within their maximum.
pub(super) fn sparse_chunk_shape(
    shape: &[u64],
    max: &[u64],
    cells: u64,
    access: Access,
) -> Vec<u64> {
    let enough = |growing: u64| {
        let sides = axes(shape, max, growing).into_iter().enumerate();
        let sides = sides.map(|(axis, side)| if access == Access::Across(axis) { 1 } else { side });
        sides.fold(1, u64::saturating_mul) >= cells
    };
    let (mut low, mut high) = (GROWING, cells.max(GROWING));
    while low < high {
        let middle = low + (high - low) / 2;
        if enough(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    let chunk = shape_within(&axes(shape, max, low), cells, access);
    framed(chunk, &axes(shape, max, cells), [shape, max], cells, access)
}

/// The chunk of an array that grows along one axis, frame by frame: the other sides divide the frame, so that
/// no chunk is nearly empty, and the side along the axis makes up for it.
fn framed(
    mut chunk: Vec<u64>,
    lengths: &[u64],
    [shape, max]: [&[u64]; 2],
    cells: u64,
    access: Access,
) -> Vec<u64> {
    let grows = |axis: usize| max.get(axis) > shape.get(axis);
    let mut growing = (0..chunk.len()).filter(|&axis| grows(axis));
    let (Some(along), None) = (growing.next(), growing.next()) else { return chunk };
    let others = |chunk: &[u64], but: usize| {
        let sides = chunk.iter().enumerate().filter(|(axis, _)| *axis != but);
        (cells / sides.fold(1u64, |all, (_, &side)| all.saturating_mul(side)).max(1)).max(1)
    };
    let decided = |axis: usize| access == Access::Across(axis) || access == Access::Along(axis);
    let divided: Vec<usize> =
        (0..chunk.len()).filter(|&axis| axis != along && !decided(axis)).collect();
    for &axis in &divided {
        // The last side compensates for the others if the side along the axis is fixed.
        let last = decided(along) && divided.len() > 1 && divided.last() == Some(&axis);
        let wanted = if last { others(&chunk, axis).min(lengths[axis]) } else { chunk[axis] };
        chunk[axis] = divisor(shape[axis], wanted);
    }
    if !decided(along) {
        chunk[along] = others(&chunk, along).min(lengths[along].max(1));
    }
    chunk
}

/// About `side`, so that an axis of `length` cells is divided by it, if a number near it does so; else
/// [evenly](even).
fn divisor(length: u64, side: u64) -> u64 {
    if length <= side || side == 0 {
        return side;
    }
    // From two thirds of the side to one and a half of it, or twice: lengths such as powers of two
    // have a divisor there.
    let (least, most) =
        (length.div_ceil(side.saturating_mul(2)), length.div_ceil(side.div_ceil(2)));
    let near = (least.max(1)..=most.min(least.saturating_add(4096)))
        .filter(|chunks| length.is_multiple_of(*chunks))
        .map(|chunks| length / chunks);
    let ratio = |one: u64| (one as f64 / side as f64).ln().abs();
    let near = near.filter(|&one| ratio(one) < 0.5);
    near.min_by(|&one, &other| ratio(one).total_cmp(&ratio(other)))
        .unwrap_or_else(|| even(length, side))
}

/// About `side`, adjusted so that an axis of `length` cells has no chunk that is much shorter than
/// others.
pub(super) fn even(length: u64, side: u64) -> u64 {
    if length <= side {
        return side;
    }
    let chunks = length as f64 / side as f64;
    // One instead of nearly two would be much too long.
    let more = if chunks < 2.0 { 0.25 } else { 0.0 };
    length.div_ceil((chunks + more).round() as u64)
}

/// The lengths that axes count as: those that can grow are at least `growing` cells long.
fn axes(shape: &[u64], max: &[u64], growing: u64) -> Vec<u64> {
    let axes = shape.iter().zip(max);
    axes.map(|(&now, &max)| if max > now { now.max(growing).min(max) } else { now.max(1) })
        .collect()
}

fn shape_within(axes: &[u64], cells: u64, access: Access) -> Vec<u64> {
    let mut chunk = axes.to_vec();
    let mut order: Vec<usize> = (0..axes.len()).collect();
    order.sort_by_key(|&axis| axes[axis]);
    let mut left = cells.max(1);
    if let Access::Along(first) | Access::Across(first) = access
        && first < axes.len()
    {
        let along = access == Access::Along(first);
        chunk[first] = if along { axes[first].min(left) } else { 1 };
        left = (left / chunk[first]).max(1);
        order.retain(|&axis| axis != first);
    }
    let axes_left = order.len();
    for (done, &axis) in order.iter().enumerate() {
        let share = (left as f64).powf(1.0 / (axes_left - done) as f64).round() as u64;
        chunk[axis] = axes[axis].min(share.max(1));
        left = (left / chunk[axis]).max(1);
    }
    chunk
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NO: u64 = u64::MAX;

    #[test]
    fn shapes_of_the_usual_kinds() {
        let guess =
            |shape: &[u64], max: &[u64], cells| chunk_shape(shape, max, cells, Access::Blocks);
        assert_eq!(guess(&[100], &[100], 32768), [100], "all of it, if it is small");
        assert_eq!(guess(&[1_000_000], &[1_000_000], 32768), [32768]);
        assert_eq!(guess(&[0], &[NO], 32768), [1024], "a log that begins empty");
        assert_eq!(guess(&[4000, 4000], &[4000, 4000], 65536), [256, 256]);
        assert_eq!(guess(&[3, 1_000_000], &[3, 1_000_000], 30000), [3, 10000], "a table of points");
        assert_eq!(guess(&[0, 12], &[NO, 12], 32768), [1024, 12], "rows that are appended");
        assert_eq!(guess(&[500, 500], &[500, 500], 0), [1, 1], "huge elements");
    }

    #[test]
    fn frames_that_are_appended_are_divided() {
        let guess = |frame: u64, access| {
            chunk_shape(&[0, frame, frame], &[NO, frame, frame], 131_072, access)
        };
        assert_eq!(guess(512, Access::Blocks), [32, 64, 64]);
        assert_eq!(guess(500, Access::Blocks), [52, 50, 50]);
        assert_eq!(guess(1000, Access::Blocks), [52, 50, 50]);
        assert_eq!(guess(509, Access::Blocks), [50, 51, 51], "a prime number");
        assert_eq!(guess(512, Access::Across(0)), [1, 256, 512]);
        assert_eq!(guess(512, Access::Along(0)), [1024, 8, 16]);
        assert_eq!(guess(512, Access::Across(1)), [512, 1, 256]);
        assert_eq!(guess(512, Access::Along(1)), [16, 512, 16]);
        assert_eq!(guess(3, Access::Blocks), [1024, 3, 3], "a frame of a few cells");
    }

    #[test]
    fn access_decides_which_axis_is_long() {
        let film = [1000, 256, 512];
        assert_eq!(chunk_shape(&film, &film, 131_072, Access::Across(0)), [1, 256, 512]);
        assert_eq!(chunk_shape(&film, &film, 131_072, Access::Along(0)), [1000, 11, 11]);
        assert_eq!(chunk_shape(&film, &film, 131_072, Access::Along(2)), [16, 16, 512]);
        let there_is_none = chunk_shape(&film, &film, 131_072, Access::Along(7));
        assert_eq!(there_is_none, chunk_shape(&film, &film, 131_072, Access::Blocks));
    }

    #[test]
    fn sparse_chunks_have_their_cells_whatever_the_shape_is_by_now() {
        let guess =
            |shape: &[u64], max: &[u64]| sparse_chunk_shape(shape, max, 1 << 20, Access::Blocks);
        assert_eq!(guess(&[0], &[NO]), [1 << 20], "events that begin empty");
        assert_eq!(guess(&[5000], &[NO]), [1 << 20]);
        assert_eq!(guess(&[0], &[5000]), [5000], "all that there can be");
        assert_eq!(guess(&[0], &[0]), [1]);
        assert_eq!(guess(&[0, 16], &[NO, 16]), [1 << 16, 16], "rows that are appended");
        assert_eq!(guess(&[16, 0], &[16, NO]), [16, 1 << 16]);
        assert_eq!(guess(&[0, 0], &[NO, NO]), [1024, 1024]);
        assert_eq!(guess(&[0, 0], &[NO, 64]), [1 << 14, 64]);
        assert_eq!(guess(&[0, 4, 4], &[NO, NO, 4]), [512, 512, 4]);
        assert_eq!(guess(&[0, 100_000], &[NO, 100_000]), [1048, 1000]);
        assert_eq!(guess(&[0, 512, 512], &[NO, 512, 512]), [64, 128, 128], "frames");
        assert_eq!(
            guess(&[3000, 3000], &[3000, 3000]),
            chunk_shape(&[3000; 2], &[3000; 2], 1 << 20, Access::Blocks)
        );
        let along =
            |axis| sparse_chunk_shape(&[0, 1000], &[NO, 1000], 1 << 20, Access::Along(axis));
        assert_eq!(along(0), [1049, 1000], "as long as it must be, and not all of the chunk");
        assert_eq!(along(1), [1048, 1000]);
        let slices = sparse_chunk_shape(&[0, 0], &[NO, NO], 1 << 20, Access::Across(0));
        assert_eq!(slices, [1, 1 << 20]);
    }

    #[test]
    fn sides_divide_an_axis_evenly() {
        assert_eq!(even(20_000, 2479), 2500);
        assert_eq!(even(20_000, 983), 1000);
        assert_eq!((even(10, 7), even(10, 9)), (5, 10));
        assert_eq!(even(10, 4), 4, "in chunks of 4, 4 and 2");
        assert_eq!(even(0, 7), 7);
        assert_eq!(even(u64::MAX, 1 << 20).div_ceil(1 << 20), 1);
    }

    proptest! {
        #[test]
        fn a_sparse_chunk_has_its_cells_wherever_the_shape_may_become_so_large(
            axes in prop::collection::vec(axis(), 1..4),
            cells in 1..100_000_000u64,
        ) {
            let (shape, max): (Vec<u64>, Vec<u64>) = axes.into_iter().unzip();
            let chunk = sparse_chunk_shape(&shape, &max, cells, Access::Blocks);
            for ((&side, &now), &most) in chunk.iter().zip(&shape).zip(&max) {
                prop_assert!(side >= 1 && side <= now.max(most).max(1), "{chunk:?} of {max:?}");
            }
            let possible = max.iter().map(|&most| most.max(1)).fold(1, u64::saturating_mul);
            let size = chunk.iter().fold(1, |size: u64, &side| size.saturating_mul(side));
            prop_assert!(4 * size >= cells.min(possible), "{chunk:?} for {cells} of {max:?}");
            prop_assert!(size <= 4 * cells, "{chunk:?} for {cells}");
        }
    }

    fn axis() -> impl Strategy<Value = (u64, u64)> {
        let now = prop_oneof![0..4u64, 0..3000u64, 0..10_000_000u64];
        (now, 0..3u8, 0..5000u64).prop_map(|(now, kind, more)| match kind {
            0 => (now, now),
            1 => (now, now + more),
            _ => (now, NO),
        })
    }

    proptest! {
        #[test]
        fn a_chunk_fits_the_shape_and_has_about_the_size_that_was_asked_for(
            axes in prop::collection::vec(axis(), 1..7),
            cells in 1..1_000_000u64,
            (kind, which) in (0..3u8, 0..7usize),
        ) {
            let (shape, max): (Vec<u64>, Vec<u64>) = axes.into_iter().unzip();
            let access = match kind {
                0 => Access::Blocks,
                1 => Access::Along(which),
                _ => Access::Across(which),
            };
            let chunk = chunk_shape(&shape, &max, cells, access);
            prop_assert_eq!(chunk.len(), shape.len());
            let long = |axis: usize| match max[axis] > shape[axis] {
                true => shape[axis].max(GROWING).min(max[axis]),
                false => shape[axis].max(1),
            };
            for (axis, &side) in chunk.iter().enumerate() {
                prop_assert!(side >= 1 && side <= long(axis).max(1), "{chunk:?} of {shape:?}, {max:?}");
            }
            let size: u64 = chunk.iter().product();
            // Rounding up on every axis but the last, by half a cell at most.
            prop_assert!(size <= 4 * cells, "{chunk:?}: {size} cells");
            let across = matches!(access, Access::Across(axis) if axis < shape.len());
            let all = (0..shape.len()).map(long).fold(1u64, u64::saturating_mul);
            if !across {
                prop_assert!(4 * size >= cells.min(all), "{chunk:?}: {size} of {cells} or {all}");
            }
            match access {
                Access::Along(axis) if axis < shape.len() => {
                    prop_assert_eq!(chunk[axis], long(axis).min(cells));
                }
                Access::Across(axis) if axis < shape.len() => prop_assert_eq!(chunk[axis], 1),
                _ => {}
            }
        }
    }
}
