//! Lines over a grid, as a PNG file.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

const WIDTH: usize = 960;
const HEIGHT: usize = 540;
const MARGIN: usize = 20;
const GRID: [u8; 3] = [220, 220, 220];

/// The colours of the lines, with their names.
pub(super) const COLOURS: [(&str, [u8; 3]); 7] = [
    ("black", [20, 20, 20]),
    ("red", [214, 39, 40]),
    ("blue", [31, 119, 180]),
    ("cyan", [23, 190, 207]),
    ("green", [44, 160, 44]),
    ("orange", [255, 127, 14]),
    ("grey", [150, 150, 150]),
];

/// Draws lines of values between 0 and 1, all of them from edge to edge.
pub(super) fn write_png(path: &Path, lines: &[Vec<f64>]) -> Result<()> {
    let mut pixels = vec![255; WIDTH * HEIGHT * 3];
    for tenth in 0..=10 {
        let value = f64::from(tenth) / 10.0;
        draw(&mut pixels, place(0.0, value), place(1.0, value), GRID, 1);
        draw(&mut pixels, place(value, 0.0), place(value, 1.0), GRID, 1);
    }
    // The first lines last, so that they are on top.
    for (line, (_, colour)) in lines.iter().zip(COLOURS).rev() {
        let last = line.len().saturating_sub(1).max(1) as f64;
        let points: Vec<_> =
            line.iter().enumerate().map(|(i, &value)| place(i as f64 / last, value)).collect();
        points.windows(2).for_each(|pair| draw(&mut pixels, pair[0], pair[1], colour, 3));
    }
    let action = || format!("write {}", path.display());
    let file = BufWriter::new(File::create(path).with_context(action)?);
    let mut encoder = png::Encoder::new(file, WIDTH as u32, HEIGHT as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().with_context(action)?;
    writer.write_image_data(&pixels).with_context(action)?;
    writer.finish().with_context(action)
}

/// The pixel of a point, both of whose coordinates are between 0 and 1.
fn place(x: f64, y: f64) -> (f64, f64) {
    let across = (WIDTH - 2 * MARGIN) as f64 * x.clamp(0.0, 1.0);
    let down = (HEIGHT - 2 * MARGIN) as f64 * (1.0 - y.clamp(0.0, 1.0));
    (MARGIN as f64 + across, MARGIN as f64 + down)
}

fn draw(pixels: &mut [u8], from: (f64, f64), to: (f64, f64), colour: [u8; 3], width: usize) {
    let steps = (to.0 - from.0).abs().max((to.1 - from.1).abs()).ceil().max(1.0);
    for step in 0..=steps as usize {
        let part = step as f64 / steps;
        let x = (from.0 + (to.0 - from.0) * part).round() as usize;
        let y = (from.1 + (to.1 - from.1) * part).round() as usize;
        for (dx, dy) in (0..width).flat_map(|dx| (0..width).map(move |dy| (dx, dy))) {
            let at = ((y + dy - width / 2) * WIDTH + x + dx - width / 2) * 3;
            if let Some(pixel) = pixels.get_mut(at..at + 3) {
                pixel.copy_from_slice(&colour);
            }
        }
    }
}
