//! Pictures of where cells are: counted into a grid, then drawn with characters or pixels.
//!
//! Brightness follows the logarithm of density, because the densities of a sparse matrix differ by
//! orders of magnitude.

mod image;
pub(crate) mod letters;
mod terminal;

pub(crate) use image::write_png;
pub(crate) use terminal::{ascii, block_grid, blocks, braille, character_grid, dot_grid};

/// The faintest level of a place that is not empty.
const FAINTEST: f64 = 0.12;
/// Places that differ by less than this factor do not use all levels: the difference may only be
/// that some have a row more than others.
const SMALL_RANGE: f64 = 16.0;

/// The number of cells in each place of a grid over a matrix.
#[derive(Clone, Debug)]
pub(crate) struct Density {
    rows: u64,
    columns: u64,
    height: usize,
    width: usize,
    counts: Vec<u64>,
}

impl Density {
    /// A grid for a matrix of `rows` x `columns`, in its proportions, with at most `width` x `height`
    /// places and never more than one for each cell. A place is `aspect` times as high as wide.
    pub(crate) fn new(rows: u64, columns: u64, width: usize, height: usize, aspect: u64) -> Self {
        let (rows, columns) = (rows.max(1), columns.max(1));
        let fit = |length: u64, places: usize| length as f64 / places.max(1) as f64;
        let scale = fit(columns, width).max(fit(rows, height) / aspect as f64).max(1.0);
        let places = |length: u64, scale: f64, most: usize| {
            ((length as f64 / scale).round() as usize).clamp(1, most.max(1))
        };
        let (across, down) =
            (places(columns, scale, width), places(rows, scale * aspect as f64, height));
        Self { rows, columns, height: down, width: across, counts: vec![0; across * down] }
    }

    /// Counts cells that follow each other in row-major order from `linear` on.
    #[cfg(test)]
    pub(crate) fn add(&mut self, linear: u64, length: u64) {
        let (mut row, mut column) = (linear / self.columns, linear % self.columns);
        let mut left = length;
        while left > 0 && row < self.rows {
            let here = left.min(self.columns - column);
            self.add_in_row(row, column, here);
            left -= here;
            (row, column) = (row + 1, 0);
        }
    }

    /// Counts cells at one place.
    pub(crate) fn add_at(&mut self, row: u64, column: u64, count: u64) {
        let line = place(row, self.rows, self.height) * self.width;
        self.counts[line + place(column, self.columns, self.width)] += count;
    }

    /// Counts cells that follow each other in a row.
    pub(crate) fn add_in_row(&mut self, row: u64, column: u64, length: u64) {
        let line = place(row, self.rows, self.height) * self.width;
        let end = column + length;
        let mut from = column;
        while from < end {
            let at = place(from, self.columns, self.width);
            let to = boundary(at + 1, self.columns, self.width).min(end);
            self.counts[line + at] += to - from;
            from = to;
        }
    }

    /// The brightness of each place, row by row: 0 if it is empty, 1 if it is the densest.
    fn levels(&self) -> Vec<f32> {
        let densities: Vec<f64> = (0..self.counts.len())
            .map(|index| {
                let (line, at) = (index / self.width, index % self.width);
                let high = extent(line, self.rows, self.height);
                let wide = extent(at, self.columns, self.width);
                self.counts[index] as f64 / (high as f64 * wide as f64)
            })
            .collect();
        let filled = densities.iter().copied().filter(|&density| density > 0.0);
        let (least, most) = filled.fold((f64::INFINITY, 0.0f64), |(least, most), density| {
            (least.min(density), most.max(density))
        });
        let range = (most / least).max(SMALL_RANGE).ln();
        let level = |density: f64| match density {
            density if density <= 0.0 => 0.0,
            density => 1.0 - (1.0 - FAINTEST) * (most / density).ln() / range,
        };
        densities.into_iter().map(|density| level(density) as f32).collect()
    }
}

/// The place that an index of an axis falls into.
fn place(index: u64, length: u64, places: usize) -> usize {
    (u128::from(index) * places as u128 / u128::from(length)) as usize
}

/// The first index of a place.
fn boundary(place: usize, length: u64, places: usize) -> u64 {
    (place as u128 * u128::from(length)).div_ceil(places as u128) as u64
}

/// The number of indices of a place.
fn extent(place: usize, length: u64, places: usize) -> u64 {
    boundary(place + 1, length, places) - boundary(place, length, places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_keep_proportions_and_limits() {
        let size = |rows, columns, aspect| {
            let grid = Density::new(rows, columns, 100, 100, aspect);
            (grid.height, grid.width)
        };
        assert_eq!(size(63_436, 63_436, 1), (100, 100));
        assert_eq!(size(63_436, 63_436, 2), (50, 100));
        assert_eq!(size(1000, 500, 1), (100, 50));
        assert_eq!(size(24, 24, 1), (24, 24));
        assert_eq!(size(1, 1 << 60, 1), (1, 100));
        assert_eq!(size(0, 0, 1), (1, 1));
    }

    #[test]
    fn every_cell_is_counted_once_in_its_place() {
        let mut grid = Density::new(7, 13, 5, 3, 1);
        for linear in 0..7 * 13 {
            grid.add(linear, 1);
        }
        let mut runs = Density::new(7, 13, 5, 3, 1);
        runs.add(0, 40);
        runs.add(40, 51);
        assert_eq!(grid.counts, runs.counts);
        assert_eq!(runs.counts.iter().sum::<u64>(), 91);
        assert!(runs.levels().iter().all(|&level| level == 1.0));
    }

    #[test]
    fn denser_places_are_brighter() {
        let mut grid = Density::new(1, 300, 3, 1, 1);
        grid.add(0, 1);
        grid.add(100, 50);
        let levels = grid.levels();
        assert_eq!(levels.len(), 3);
        assert!(levels[0] > 0.0 && levels[0] < levels[1] && levels[1] == 1.0 && levels[2] == 0.0);
    }
}
