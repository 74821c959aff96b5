//! Parts of a dataset that are selected, as text.

use pumice::Selection;

/// The blocks or points of a region, as text.
pub(crate) fn parts(region: &Selection, shape: &[u64]) -> (&'static str, Vec<String>) {
    let text = |point: &[u64]| {
        let numbers: Vec<String> = point.iter().map(u64::to_string).collect();
        format!("({})", numbers.join(","))
    };
    if let Some((rank, coordinates)) = region.as_points() {
        return ("POINT", coordinates.chunks_exact(rank.max(1)).map(text).collect());
    }
    let mut blocks = Vec::new();
    region.for_each_block(shape, |first, last| {
        blocks.push(format!("{}-{}", text(first), text(last)));
    });
    ("BLOCK", blocks)
}
