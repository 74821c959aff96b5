//! What a second thread gains on a compressed full read, beside a control that shares nothing.

use pumice::{Context, Dataset, File};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Outcome;

/// Reads the whole array with so many threads.
pub fn read_all(path: &str, threads: usize) -> Outcome<Vec<f32>> {
    let context = Context::builder().threads(threads).build()?;
    let file = File::options().context(&context).open(path)?;
    Ok(file.dataset("d")?.read::<f32>(..)?)
}

/// Reads and decodes every chunk with so many threads that share a counter and nothing else: no
/// cache, no order, no books. Places them in one array like the others.
pub fn control(path: &str, threads: usize) -> Outcome<Vec<f32>> {
    let context = Context::builder().threads(1).build()?;
    let file = File::options().context(&context).open(path)?;
    let dataset = file.dataset("d")?;
    let (shape, chunk) = (dataset.shape(), dataset.chunk().ok_or("no chunks")?);
    let (columns, side) = (shape[1] as usize, chunk[0] as usize);
    let mut values = vec![0f32; shape.iter().product::<u64>() as usize];
    // A band of whole chunks for each turn: bands lie one after another in the result.
    let bands: Vec<_> = values.chunks_mut(side * columns).map(std::sync::Mutex::new).collect();
    let next = AtomicUsize::new(0);
    let work = || -> Result<(), String> {
        loop {
            let band = next.fetch_add(1, Ordering::Relaxed);
            let Some(place) = bands.get(band) else { return Ok(()) };
            let mut place = place.lock().map_err(|error| error.to_string())?;
            decode_band(&dataset, &mut place, band, side, columns)
                .map_err(|error| error.to_string())?;
        }
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut result = work();
        for other in others {
            result = result.and(other.join().map_err(|_| "a thread failed".to_string())?);
        }
        result
    })?;
    drop(bands);
    Ok(values)
}

fn decode_band(
    dataset: &Dataset,
    place: &mut [f32],
    band: usize,
    side: usize,
    columns: usize,
) -> Outcome<()> {
    let pipeline = pumice_filter::Pipeline::new(dataset.filters())?;
    let bytes = side * side * size_of::<f32>();
    for column in (0..columns).step_by(side) {
        let stored = dataset.read_chunk([(band * side) as u64, column as u64])?;
        let (stored, mask) = stored.ok_or("a chunk is missing")?;
        let cells = pipeline.decode(stored, mask, bytes)?;
        for (row, line) in cells.chunks_exact(side * size_of::<f32>()).enumerate() {
            let to = &mut place[row * columns + column..][..side];
            bytemuck::cast_slice_mut(to).copy_from_slice(line);
        }
    }
    Ok(())
}
