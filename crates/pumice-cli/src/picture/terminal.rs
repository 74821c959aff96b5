//! Pictures made of characters, in a frame.

use super::Density;

/// Pictures of small matrices are enlarged to about this many dots.
const SMALL: usize = 48;
/// Dots make faint places look brighter than they are.
const CONTRAST: f32 = 1.6;
/// Characters from empty to densest.
const SHADES: &[u8] = b" .:-=+*#%@";
/// The order in which dots of 4 x 4 light up: thresholds in sixteenths, spread evenly.
const ORDER: [[u8; 4]; 4] = [[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]];
/// The bit of each dot of a Braille character, by line and column.
const DOTS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

/// A grid for [`braille`]: two dots across each of `width` characters, four down.
pub(crate) fn dot_grid(rows: u64, columns: u64, width: usize) -> Density {
    Density::new(rows, columns, width * 2, width * 2, 1)
}

/// A grid for [`ascii`]: characters are twice as high as wide.
pub(crate) fn character_grid(rows: u64, columns: u64, width: usize) -> Density {
    Density::new(rows, columns, width, width.div_ceil(2), 2)
}

/// Draws with Braille dots. The denser a place, the more of its dots are there; a character with
/// any cell in it has at least one dot.
pub(crate) fn braille(grid: &Density, width: usize) -> String {
    let levels = grid.levels();
    let longest = grid.width.max(grid.height);
    let factor = (SMALL.min(width * 2) / longest).max(1);
    let (across, down) = (grid.width * factor, grid.height * factor);
    let level = |x: usize, y: usize| match (x < across, y < down) {
        (true, true) => levels[y / factor * grid.width + x / factor],
        _ => 0.0,
    };
    let mut lines = Vec::with_capacity(down.div_ceil(4));
    for top in (0..down).step_by(4) {
        let characters = (0..across).step_by(2).map(|left| character(left, top, level));
        lines.push(characters.collect());
    }
    framed(&lines, across.div_ceil(2), ["┌─┐", "│ │", "└─┘"])
}

/// One Braille character, whose upper left dot is at `left`, `top`.
fn character(left: usize, top: usize, level: impl Fn(usize, usize) -> f32) -> char {
    let mut bits = 0u8;
    let mut densest = (0.0, 0u8);
    for (line, dots) in DOTS.iter().enumerate() {
        for (column, &bit) in dots.iter().enumerate() {
            let (x, y) = (left + column, top + line);
            let level = level(x, y);
            let threshold = (f32::from(ORDER[y % 4][x % 4]) + 0.5) / 16.0;
            if level.powf(CONTRAST) > threshold {
                bits |= bit;
            }
            if level > densest.0 {
                densest = (level, bit);
            }
        }
    }
    if bits == 0 {
        bits = densest.1;
    }
    char::from_u32(0x2800 + u32::from(bits)).unwrap_or(' ')
}

/// A grid for [`blocks`]: one place across each of `width` characters, two down.
pub(crate) fn block_grid(rows: u64, columns: u64, width: usize) -> Density {
    Density::new(rows, columns, width, width, 1)
}

/// Draws with half blocks, coloured from sparse to dense for dark backgrounds.
pub(crate) fn blocks(grid: &Density, width: usize) -> String {
    let levels = grid.levels();
    let factor = (SMALL.min(width) / grid.width.max(grid.height)).max(1);
    let (across, down) = (grid.width * factor, grid.height * factor);
    let level = |x: usize, y: usize| match y < down {
        true => levels[y / factor * grid.width + x / factor],
        false => 0.0,
    };
    let mut lines = Vec::with_capacity(down.div_ceil(2));
    for top in (0..down).step_by(2) {
        let mut line = String::new();
        for x in 0..across {
            let (upper, lower) = (level(x, top), level(x, top + 1));
            match (upper > 0.0, lower > 0.0) {
                (false, false) => line.push(' '),
                (true, false) => line += &format!("\x1b[38;2;{}m▀\x1b[0m", colour(upper)),
                (false, true) => line += &format!("\x1b[38;2;{}m▄\x1b[0m", colour(lower)),
                (true, true) => {
                    line += &format!("\x1b[38;2;{};48;2;{}m▀\x1b[0m", colour(upper), colour(lower));
                }
            }
        }
        lines.push(line);
    }
    framed(&lines, across, ["┌─┐", "│ │", "└─┘"])
}

/// The colour of a level, between those of the stops.
fn colour(level: f32) -> String {
    const STOPS: [[f32; 3]; 4] =
        [[92.0, 60.0, 140.0], [196.0, 60.0, 100.0], [240.0, 130.0, 60.0], [255.0, 236.0, 150.0]];
    let position = level.clamp(0.0, 1.0) * (STOPS.len() - 1) as f32;
    let stop = (position as usize).min(STOPS.len() - 2);
    let share = position - stop as f32;
    let mixed = |part: usize| STOPS[stop][part] * (1.0 - share) + STOPS[stop + 1][part] * share;
    format!("{:.0};{:.0};{:.0}", mixed(0), mixed(1), mixed(2))
}

/// Draws with ASCII characters, heavier ones where it is denser.
pub(crate) fn ascii(grid: &Density) -> String {
    let levels = grid.levels();
    let heaviest = SHADES.len() - 1;
    let shade = |&level: &f32| match level {
        level if level <= 0.0 => ' ',
        level => char::from(SHADES[((level * heaviest as f32).ceil() as usize).clamp(1, heaviest)]),
    };
    let lines: Vec<String> =
        levels.chunks(grid.width).map(|line| line.iter().map(shade).collect()).collect();
    framed(&lines, grid.width, ["+-+", "| |", "+-+"])
}

/// Lines in a frame whose corners and sides are given.
fn framed(lines: &[String], width: usize, frame: [&str; 3]) -> String {
    let side = |line: usize, at: usize| frame[line].chars().nth(at).unwrap_or(' ');
    let level = |line: usize| {
        let middle: String = std::iter::repeat_n(side(line, 1), width).collect();
        format!("{}{middle}{}\n", side(line, 0), side(line, 2))
    };
    let mut text = level(0);
    for line in lines {
        text.push(side(1, 0));
        text.push_str(line);
        text.push(side(1, 2));
        text.push('\n');
    }
    text + &level(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagonal_looks_like_one() {
        let mut grid = character_grid(4, 8, 8);
        for index in 0..4 {
            grid.add(index * 8 + index * 2, 2);
        }
        let expected = "+--------+\n|@@@@    |\n|    @@@@|\n+--------+\n";
        assert_eq!(ascii(&grid), expected);
        let mut dots = dot_grid(48, 48, 30);
        for index in 0..48 {
            dots.add(index * 48 + index, 1);
        }
        let text = braille(&dots, 30);
        let first = text.lines().nth(1).unwrap();
        assert_eq!(first.chars().take(4).collect::<String>(), "│⠑⢄\u{2800}");
        assert_eq!(text.lines().count(), 12 + 2);
    }

    #[test]
    fn lone_cells_stay_visible() {
        let mut dots = dot_grid(1 << 20, 1 << 20, 40);
        dots.add(0, 1 << 18);
        dots.add((1 << 39) + 5, 1);
        let text = braille(&dots, 40);
        let visible = text.chars().filter(|&letter| ('\u{2801}'..='\u{28ff}').contains(&letter));
        assert!(visible.count() > 1);
        let middle = text.lines().nth(11).unwrap();
        assert!(middle.chars().any(|letter| ('\u{2801}'..='\u{28ff}').contains(&letter)));
    }

    #[test]
    fn small_matrices_are_enlarged() {
        let mut dots = dot_grid(2, 2, 40);
        dots.add(0, 1);
        assert_eq!(braille(&dots, 40).lines().count(), 12 + 2);
    }
}
