//! Pictures as PNG files: colours from a palette, white for empty places.

use super::Density;
use anyhow::{Context, Result};
use std::io::Write;

/// Palette places: background, frame, and behind them the colours from sparse to dense.
const BACKGROUND: u8 = 0;
const FRAME: u8 = 1;
const FIRST_COLOUR: u8 = 2;
/// The stops of the palette, from sparse to dense.
const STOPS: [[u8; 3]; 5] =
    [[250, 196, 92], [236, 122, 62], [186, 48, 92], [92, 22, 116], [22, 10, 52]];

/// Writes the picture, enlarged so that its longer side has about `size` pixels, in a frame.
pub(crate) fn write_png(file: impl Write, grid: &Density, size: usize) -> Result<()> {
    let action = "write a picture";
    let factor = (size / grid.width.max(grid.height)).max(1);
    let (width, height) = (grid.width * factor + 2, grid.height * factor + 2);
    let pixels = pixels(grid, factor, width, height);
    let mut encoder = png::Encoder::new(file, width as u32, height as u32);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(palette());
    let mut writer = encoder.write_header().context(action)?;
    writer.write_image_data(&pixels).context(action)?;
    writer.finish().context(action)
}

fn pixels(grid: &Density, factor: usize, width: usize, height: usize) -> Vec<u8> {
    let levels = grid.levels();
    let mut pixels = vec![FRAME; width * height];
    let lines = pixels.chunks_exact_mut(width).skip(1).take(height - 2);
    for (y, line) in lines.enumerate() {
        let row = &levels[y / factor * grid.width..][..grid.width];
        let places = line[1..width - 1].chunks_exact_mut(factor);
        for (place, &level) in places.zip(row) {
            place.fill(colour(level));
        }
    }
    pixels
}

/// The palette place of a level.
fn colour(level: f32) -> u8 {
    if level <= 0.0 {
        return BACKGROUND;
    }
    let colours = f32::from(u8::MAX - FIRST_COLOUR);
    FIRST_COLOUR + (level.min(1.0) * colours).round() as u8
}

fn palette() -> Vec<u8> {
    let mut palette = vec![255, 255, 255, 170, 170, 170];
    let last = u8::MAX - FIRST_COLOUR;
    for index in 0..=last {
        let position = f32::from(index) / f32::from(last) * (STOPS.len() - 1) as f32;
        let stop = (position as usize).min(STOPS.len() - 2);
        let share = position - stop as f32;
        for (from, to) in STOPS[stop].into_iter().zip(STOPS[stop + 1]) {
            let mixed = f32::from(from) * (1.0 - share) + f32::from(to) * share;
            palette.push(mixed.round() as u8);
        }
    }
    palette
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_use_the_whole_palette() {
        assert_eq!(palette().len(), 256 * 3);
        assert_eq!((colour(0.0), colour(1e-6), colour(1.0)), (BACKGROUND, FIRST_COLOUR, 255));
    }

    #[test]
    fn a_frame_surrounds_enlarged_cells() {
        let mut grid = Density::new(1, 2, 8, 8, 1);
        grid.add(1, 1);
        let expected =
            [1, 1, 1, 1, 1, 1, 1, 0, 0, 255, 255, 1, 1, 0, 0, 255, 255, 1, 1, 1, 1, 1, 1, 1];
        assert_eq!(pixels(&grid, 2, 6, 4), expected);
    }
}
