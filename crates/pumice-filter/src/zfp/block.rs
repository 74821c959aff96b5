//! A block of ZFP: bits to coefficients, coefficients to elements.
//!
//! Coefficients are unsigned numbers in base minus two, in the order of their frequency ([`order`](super::order)), one plane of
//! bits after another from the highest. Of a plane, first the bits of all coefficients that have had a one; then a
//! bit says whether the rest has a one, and where it is follows in unary, until it has none. The limits of the mode may end a block
//! anywhere; what is missing is zeros.

use super::order;

/// Exponents below this are not coded: reversible mode is said with one less.
const LEAST_EXPONENT: i32 = -1074;
const MOST_BITS: u64 = 16_658;
const MOST_PLANES: u32 = 64;
/// The most elements of a block.
const MOST_ELEMENTS: usize = 256;

/// Takes bits from bytes, lowest first.
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    /// Loaded bits, the next one lowest; those above are zeros.
    loaded: u64,
    count: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, loaded: 0, count: 0 }
    }

    /// The next bits, at most 64; `None` if there are fewer.
    pub(super) fn take(&mut self, bits: u32) -> Option<u64> {
        if bits > 32 {
            let low = self.take_few(32)?;
            return Some(self.take_few(bits - 32)? << 32 | low);
        }
        self.take_few(bits)
    }

    #[inline]
    fn take_few(&mut self, bits: u32) -> Option<u64> {
        while self.count < bits {
            let (&byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            self.loaded |= u64::from(byte) << self.count;
            self.count += 8;
        }
        let taken = self.loaded & ((1 << bits) - 1);
        self.loaded >>= bits;
        self.count -= bits;
        Some(taken)
    }

    /// Skips bits; bits behind the end do not matter, as the last block may be cut short.
    fn skip(&mut self, mut bits: u64) {
        while bits > 0 {
            let now = bits.min(32) as u32;
            if self.take_few(now).is_none() {
                (self.bytes, self.loaded, self.count) = (&[], 0, 0);
                return;
            }
            bits -= u64::from(now);
        }
    }
}

/// The limits of a mode on a block.
pub(super) struct Limits {
    least_bits: u64,
    most_bits: u64,
    planes: u32,
    least_exponent: i32,
}

impl Limits {
    /// The limits of a mode, short or long.
    pub(super) fn of(mode: u64) -> Option<Self> {
        let any = Self {
            least_bits: 1,
            most_bits: MOST_BITS,
            planes: MOST_PLANES,
            least_exponent: LEAST_EXPONENT,
        };
        let limits = match mode {
            0..2048 => Self { least_bits: mode + 1, most_bits: mode + 1, ..any },
            2048..2176 => Self { planes: mode as u32 - 2047, ..any },
            2176 => Self { least_exponent: LEAST_EXPONENT - 1, ..any },
            2177..0xFFF => Self { least_exponent: mode as i32 + LEAST_EXPONENT - 2177, ..any },
            _ => Self {
                least_bits: (mode >> 12 & 0x7FFF) + 1,
                most_bits: (mode >> 27 & 0x7FFF) + 1,
                planes: (mode >> 42 & 0x7F) as u32 + 1,
                least_exponent: (mode >> 49) as i32 - 16_495,
            },
        };
        (limits.least_bits <= limits.most_bits && limits.planes <= MOST_PLANES).then_some(limits)
    }

    fn is_reversible(&self) -> bool {
        self.least_exponent < LEAST_EXPONENT
    }
}

/// A block that is decoded again and again.
pub(super) struct Block {
    axes: usize,
    /// Bits of an element.
    width: u32,
    order: &'static [u8],
    coefficients: [u64; MOST_ELEMENTS],
    /// Numbers, then the bits of elements.
    values: [u64; MOST_ELEMENTS],
}

impl Block {
    pub(super) fn new(axes: usize, bytes: usize) -> Self {
        Self {
            axes,
            width: bytes as u32 * 8,
            order: order::of(axes),
            coefficients: [0; MOST_ELEMENTS],
            values: [0; MOST_ELEMENTS],
        }
    }

    /// The bits of the elements, fastest axis first.
    pub(super) fn values(&self) -> &[u64] {
        &self.values[..self.order.len()]
    }

    /// Decodes integers; `None` if there are too few bits.
    pub(super) fn integers(&mut self, bits: &mut Bits<'_>, limits: &Limits) -> Option<()> {
        match limits.is_reversible() {
            true => self.reversible(bits, limits.least_bits, limits.most_bits),
            false => self.lossy(bits, limits.least_bits, limits.most_bits, limits.planes),
        }
    }

    /// Decodes floats; `None` if there are too few bits.
    pub(super) fn floats(&mut self, bits: &mut Bits<'_>, limits: &Limits) -> Option<()> {
        if bits.take(1)? == 0 {
            self.values.fill(0);
            bits.skip(limits.least_bits.saturating_sub(1));
            return Some(());
        }
        let mut used = 1;
        let reversible = limits.is_reversible();
        if reversible {
            used += 1;
            if bits.take(1)? == 1 {
                // The bits of floats, as integers.
                let (least, most) =
                    (limits.least_bits.saturating_sub(used), limits.most_bits.saturating_sub(used));
                self.reversible(bits, least, most)?;
                self.make_magnitudes();
                return Some(());
            }
        }
        let exponent_bits = if self.width == 32 { 8 } else { 11 };
        let bias = (1i32 << (exponent_bits - 1)) - 1;
        let exponent = bits.take(exponent_bits)? as i32 - bias;
        used += u64::from(exponent_bits);
        let (least, most) =
            (limits.least_bits.saturating_sub(used), limits.most_bits.saturating_sub(used));
        if reversible {
            self.reversible(bits, least, most)?;
        } else {
            let planes = exponent - limits.least_exponent + 2 * self.axes as i32 + 2;
            self.lossy(bits, least, most, limits.planes.min(planes.max(0) as u32))?;
        }
        self.make_floats(exponent, reversible && exponent == -bias);
        Some(())
    }

    fn lossy(&mut self, bits: &mut Bits<'_>, least: u64, most: u64, planes: u32) -> Option<()> {
        let used = self.read_coefficients(bits, most, planes)?;
        bits.skip(least.saturating_sub(used));
        self.reorder();
        self.transform(lift);
        Some(())
    }

    fn reversible(&mut self, bits: &mut Bits<'_>, least: u64, most: u64) -> Option<()> {
        let count = if self.width == 32 { 5 } else { 6 };
        let planes = bits.take(count)? as u32 + 1;
        let used = self.read_coefficients(bits, most.saturating_sub(count.into()), planes)?;
        bits.skip(least.saturating_sub(used + u64::from(count)));
        self.reorder();
        self.transform(add_up);
        Some(())
    }

    /// Reads planes of bits, as many as there may be; gives how many bits that were.
    fn read_coefficients(&mut self, bits: &mut Bits<'_>, most: u64, planes: u32) -> Option<u64> {
        let size = self.order.len();
        let coefficients = &mut self.coefficients[..size];
        coefficients.fill(0);
        let (mut left, mut known) = (most, 0);
        for plane in (self.width.saturating_sub(planes)..self.width).rev() {
            if left == 0 {
                break;
            }
            let here = (known as u64).min(left) as usize;
            left -= here as u64;
            for group in coefficients[..here].chunks_mut(64) {
                let word = bits.take(group.len() as u32)?;
                for (at, number) in group.iter_mut().enumerate() {
                    *number |= (word >> at & 1) << plane;
                }
            }
            while left > 0 && known < size {
                left -= 1;
                if bits.take(1)? == 0 {
                    break;
                }
                while left > 0 && known < size - 1 {
                    left -= 1;
                    if bits.take(1)? == 1 {
                        break;
                    }
                    known += 1;
                }
                coefficients[known] |= 1 << plane;
                known += 1;
            }
        }
        Some(most - left)
    }

    /// Signed numbers of the coefficients, where they belong.
    fn reorder(&mut self) {
        let mask = 0xAAAA_AAAA_AAAA_AAAA_u64 >> (64 - self.width);
        for (&number, &place) in self.coefficients.iter().zip(self.order) {
            let signed = (number ^ mask).wrapping_sub(mask);
            self.values[usize::from(place)] = wrapped(signed as i64, self.width) as u64;
        }
    }

    /// Transforms four numbers at a time along each axis, the slowest first.
    fn transform(&mut self, change: fn([i64; 4], u32) -> [i64; 4]) {
        let size = self.order.len();
        for axis in (0..self.axes).rev() {
            let stride = 1 << (2 * axis);
            for start in (0..size).filter(|at| at / stride % 4 == 0) {
                let places: [usize; 4] = std::array::from_fn(|at| start + at * stride);
                let changed = change(places.map(|place| self.values[place] as i64), self.width);
                for (place, value) in places.into_iter().zip(changed) {
                    self.values[place] = wrapped(value, self.width) as u64;
                }
            }
        }
    }

    /// Negative integers to the bits of negative floats.
    fn make_magnitudes(&mut self) {
        let mask = u64::MAX >> (65 - self.width);
        for value in &mut self.values {
            if (*value as i64) < 0 {
                *value ^= mask;
            }
        }
    }

    /// Integers to the bits of floats, with a common exponent.
    fn make_floats(&mut self, exponent: i32, zeros: bool) {
        let exponent = exponent - (self.width as i32 - 2);
        for value in &mut self.values {
            let number = *value as i64;
            *value = match self.width {
                _ if zeros => 0,
                32 => u64::from((power_32(exponent) * number as f32).to_bits()),
                _ => (power_64(exponent) * number as f64).to_bits(),
            };
        }
    }
}

/// A number of so many bits, with its sign.
fn wrapped(value: i64, width: u32) -> i64 {
    value << (64 - width) >> (64 - width)
}

/// Undoes the transform of the lossy modes.
fn lift([mut x, mut y, mut z, mut w]: [i64; 4], width: u32) -> [i64; 4] {
    y = wrapped(y.wrapping_add(w >> 1), width);
    w = w.wrapping_sub(y >> 1);
    y = y.wrapping_add(w);
    w = w.wrapping_sub(y.wrapping_sub(w));
    z = z.wrapping_add(x);
    x = x.wrapping_sub(z.wrapping_sub(x));
    y = y.wrapping_add(z);
    z = z.wrapping_sub(y.wrapping_sub(z));
    w = w.wrapping_add(x);
    x = x.wrapping_sub(w.wrapping_sub(x));
    [x, y, z, w]
}

/// Undoes the transform of the reversible mode: differences of differences.
fn add_up([x, mut y, mut z, mut w]: [i64; 4], _width: u32) -> [i64; 4] {
    w = w.wrapping_add(z);
    z = z.wrapping_add(y);
    w = w.wrapping_add(z);
    y = y.wrapping_add(x);
    z = z.wrapping_add(y);
    w = w.wrapping_add(z);
    [x, y, z, w]
}

/// Two to a power that a float has, or 0.
fn power_32(exponent: i32) -> f32 {
    f32::from_bits(match exponent {
        -126..=127 => (exponent + 127) as u32 * (1 << 23),
        -149..-126 => 1 << (exponent + 149),
        _ => 0,
    })
}

fn power_64(exponent: i32) -> f64 {
    f64::from_bits(match exponent {
        -1022..=1023 => (exponent + 1023) as u64 * (1 << 52),
        -1074..-1022 => 1 << (exponent + 1074),
        _ => 0,
    })
}
