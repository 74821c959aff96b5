//! Letters for pictures: capitals, digits and some marks, five pixels wide and seven high.

/// Pixels from one letter to the next, and the height of a letter.
pub(crate) const ADVANCE: usize = 6;
pub(crate) const HEIGHT: usize = 7;

/// Rows from the top; the highest of five bits is the leftmost pixel.
#[rustfmt::skip]
const LETTERS: [(char, [u8; HEIGHT]); 41] = [
    ('A', [14, 17, 17, 31, 17, 17, 17]), ('B', [30, 17, 17, 30, 17, 17, 30]),
    ('C', [14, 17, 16, 16, 16, 17, 14]), ('D', [30, 17, 17, 17, 17, 17, 30]),
    ('E', [31, 16, 16, 30, 16, 16, 31]), ('F', [31, 16, 16, 30, 16, 16, 16]),
    ('G', [14, 17, 16, 23, 17, 17, 14]), ('H', [17, 17, 17, 31, 17, 17, 17]),
    ('I', [14, 4, 4, 4, 4, 4, 14]),      ('J', [7, 2, 2, 2, 2, 18, 12]),
    ('K', [17, 18, 20, 24, 20, 18, 17]), ('L', [16, 16, 16, 16, 16, 16, 31]),
    ('M', [17, 27, 21, 21, 17, 17, 17]), ('N', [17, 25, 21, 19, 17, 17, 17]),
    ('O', [14, 17, 17, 17, 17, 17, 14]), ('P', [30, 17, 17, 30, 16, 16, 16]),
    ('Q', [14, 17, 17, 17, 21, 18, 13]), ('R', [30, 17, 17, 30, 20, 18, 17]),
    ('S', [15, 16, 16, 14, 1, 1, 30]),   ('T', [31, 4, 4, 4, 4, 4, 4]),
    ('U', [17, 17, 17, 17, 17, 17, 14]), ('V', [17, 17, 17, 17, 17, 10, 4]),
    ('W', [17, 17, 17, 21, 21, 27, 17]), ('X', [17, 17, 10, 4, 10, 17, 17]),
    ('Y', [17, 17, 10, 4, 4, 4, 4]),     ('Z', [31, 1, 2, 4, 8, 16, 31]),
    ('0', [14, 17, 19, 21, 25, 17, 14]), ('1', [4, 12, 4, 4, 4, 4, 14]),
    ('2', [14, 17, 1, 6, 8, 16, 31]),    ('3', [14, 17, 1, 6, 1, 17, 14]),
    ('4', [2, 6, 10, 18, 31, 2, 2]),     ('5', [31, 16, 30, 1, 1, 17, 14]),
    ('6', [6, 8, 16, 30, 17, 17, 14]),   ('7', [31, 1, 2, 4, 8, 8, 8]),
    ('8', [14, 17, 17, 14, 17, 17, 14]), ('9', [14, 17, 17, 15, 1, 2, 12]),
    ('.', [0, 0, 0, 0, 0, 12, 12]),      (',', [0, 0, 0, 0, 12, 4, 8]),
    ('-', [0, 0, 0, 14, 0, 0, 0]),       ('%', [24, 25, 2, 4, 8, 19, 3]),
    ('/', [1, 1, 2, 4, 8, 16, 16]),
];

/// The pixels of a text, from its upper left corner; unknown letters are blank.
pub(crate) fn pixels(text: &str) -> impl Iterator<Item = (usize, usize)> {
    text.chars().enumerate().flat_map(|(place, letter)| {
        let letter = letter.to_ascii_uppercase();
        let rows =
            LETTERS.iter().find(|known| known.0 == letter).map_or([0; HEIGHT], |known| known.1);
        (0..HEIGHT)
            .flat_map(|row| (0..5).map(move |column| (column, row)))
            .filter(move |&(column, row)| rows[row] >> (4 - column) & 1 == 1)
            .map(move |(column, row)| (place * ADVANCE + column, row))
    })
}
