//! Lines over a grid with names and numbers, as a PNG file.

use crate::picture::letters;
use anyhow::{Context, Result};
use std::io::Write;

const WIDTH: usize = 1040;
const HEIGHT: usize = 540;
/// Room around the grid: left, right, above, below.
const MARGINS: [usize; 4] = [76, 230, 20, 58];
const GRID: [u8; 3] = [220, 220, 220];
const INK: [u8; 3] = [60, 60, 60];
/// The magnification of letters.
const SCALE: usize = 2;

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

/// The contents of a chart.
pub(super) struct Chart {
    /// Names, and points both of whose coordinates are between 0 and 1.
    pub(super) lines: Vec<(String, Vec<(f64, f64)>)>,
    /// Labels below the grid, at equal distances from edge to edge.
    pub(super) below: Vec<String>,
    /// The labels of the axes.
    pub(super) across: String,
    pub(super) upwards: String,
}

impl Chart {
    pub(super) fn write_png(&self, file: impl Write) -> Result<()> {
        let pixels = self.pixels();
        let action = "write a picture";
        let mut encoder = png::Encoder::new(file, WIDTH as u32, HEIGHT as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().context(action)?;
        writer.write_image_data(&pixels).context(action)?;
        writer.finish().context(action)
    }

    fn pixels(&self) -> Vec<u8> {
        let mut pixels = vec![255; WIDTH * HEIGHT * 3];
        let [left, right, above, below] = MARGINS;
        for fifth in 0..=5 {
            let value = f64::from(fifth) / 5.0;
            draw(&mut pixels, place(0.0, value), place(1.0, value), GRID, 1);
            let text = format!("{} %", fifth * 20);
            let at = (left - 10 - width(&text), place(0.0, value).1 as usize - letters::HEIGHT);
            write(&mut pixels, &text, at, INK);
        }
        let steps = self.below.len().saturating_sub(1).max(1) as f64;
        for (step, text) in self.below.iter().enumerate() {
            let x = step as f64 / steps;
            draw(&mut pixels, place(x, 0.0), place(x, 1.0), GRID, 1);
            let middle = place(x, 0.0).0 as usize;
            write(
                &mut pixels,
                text,
                (middle.saturating_sub(width(text) / 2), HEIGHT - below + 10),
                INK,
            );
        }
        let middle = (left + WIDTH - right).saturating_sub(width(&self.across)) / 2;
        write(&mut pixels, &self.across, (middle, HEIGHT - 22), INK);
        write(&mut pixels, &self.upwards, (WIDTH - right + 16, above), INK);
        // The first lines last, so that they are on top.
        for (number, ((name, points), (_, colour))) in
            self.lines.iter().zip(COLOURS).enumerate().rev()
        {
            let points: Vec<_> = points.iter().map(|&(x, y)| place(x, y)).collect();
            points.windows(2).for_each(|pair| draw(&mut pixels, pair[0], pair[1], colour, 3));
            let (x, y) = (WIDTH - right + 16, above + 34 + number * 26);
            let middle = (y + letters::HEIGHT) as f64;
            draw(&mut pixels, (x as f64, middle), (x as f64 + 14.0, middle), colour, 5);
            write(&mut pixels, name, (x + 22, y), INK);
        }
        pixels
    }
}

/// The pixel of a point of the grid.
fn place(x: f64, y: f64) -> (f64, f64) {
    let [left, right, above, below] = MARGINS;
    let across = (WIDTH - left - right) as f64 * x.clamp(0.0, 1.0);
    let down = (HEIGHT - above - below) as f64 * (1.0 - y.clamp(0.0, 1.0));
    (left as f64 + across, above as f64 + down)
}

fn width(text: &str) -> usize {
    text.chars().count() * letters::ADVANCE * SCALE
}

fn write(pixels: &mut [u8], text: &str, at: (usize, usize), colour: [u8; 3]) {
    for (x, y) in letters::pixels(text) {
        for (dx, dy) in (0..SCALE).flat_map(|dx| (0..SCALE).map(move |dy| (dx, dy))) {
            dot(pixels, at.0 + x * SCALE + dx, at.1 + y * SCALE + dy, colour);
        }
    }
}

fn draw(pixels: &mut [u8], from: (f64, f64), to: (f64, f64), colour: [u8; 3], width: usize) {
    let steps = (to.0 - from.0).abs().max((to.1 - from.1).abs()).ceil().max(1.0);
    for step in 0..=steps as usize {
        let part = step as f64 / steps;
        let x = (from.0 + (to.0 - from.0) * part).round() as usize;
        let y = (from.1 + (to.1 - from.1) * part).round() as usize;
        for (dx, dy) in (0..width).flat_map(|dx| (0..width).map(move |dy| (dx, dy))) {
            dot(pixels, x + dx - width / 2, y + dy - width / 2, colour);
        }
    }
}

fn dot(pixels: &mut [u8], x: usize, y: usize, colour: [u8; 3]) {
    if x < WIDTH && y < HEIGHT {
        pixels[(y * WIDTH + x) * 3..][..3].copy_from_slice(&colour);
    }
}
