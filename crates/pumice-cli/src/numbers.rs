//! Numbers as text: C's `%g`, digits in groups, percentages.

use std::fmt::Write;

/// Significant digits of `%g`.
const DIGITS: i32 = 6;

/// Appends a float as C's `printf("%g")` does.
pub(crate) fn push_general(out: &mut String, value: f64) {
    if !value.is_finite() {
        let sign = if value.is_sign_negative() { "-" } else { "" };
        let name = if value.is_nan() { "nan" } else { "inf" };
        out.push_str(sign);
        out.push_str(name);
        return;
    }
    // Small whole numbers are common, and are what they are.
    if value.abs() < 1e6 && value == value.trunc() && !(value == 0.0 && value.is_sign_negative()) {
        push_integer(out, value as i64);
        return;
    }
    if !push_rounded(out, value) {
        push_exact(out, value);
    }
}

/// Powers of ten that a float has exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// A number times a power of ten, if that can be told with one rounding.
fn scaled(value: f64, power: i32) -> Option<f64> {
    let factor = POWERS.get(power.unsigned_abs() as usize)?;
    Some(if power < 0 { value / factor } else { value * factor })
}

/// Appends `%g` of a number of middling size, by rounding it to an integer of six digits. Returns
/// `false` and does nothing if that might not be exact: the number is very large or small, or so
/// near the middle between two such integers that the multiplication's own rounding may decide.
fn push_rounded(out: &mut String, value: f64) -> bool {
    let magnitude = value.abs();
    // The binary exponent times the logarithm of two, rounded down: at most one too small.
    let binary = (magnitude.to_bits() >> 52) as i32 - 1023;
    let mut exponent = (binary * 1233) >> 12;
    let Some(mut six) = scaled(magnitude, DIGITS - 1 - exponent) else { return false };
    if six >= 999_999.5 {
        exponent += 1;
        match scaled(magnitude, DIGITS - 1 - exponent) {
            Some(less) => six = less,
            None => return false,
        }
    }
    if !(99_999.5..999_999.5).contains(&six) {
        return false;
    }
    let (whole, part) = (six.trunc(), six.fract());
    if (part - 0.5).abs() < 1e-6 {
        return false;
    }
    let digits = whole as u32 + u32::from(part > 0.5);
    if value.is_sign_negative() {
        out.push('-');
    }
    push_digits(out, digits, exponent);
    true
}

/// Appends a number of six significant digits, the first of which stands for ten to the `exponent`.
fn push_digits(out: &mut String, digits: u32, exponent: i32) {
    let mut text = [b'0'; DIGITS as usize];
    let mut rest = digits;
    for place in text.iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let used = text.iter().rposition(|&digit| digit != b'0').map_or(1, |last| last + 1);
    let text = std::str::from_utf8(&text).unwrap_or_default();
    if !(-4..DIGITS).contains(&exponent) {
        out.push_str(&text[..1]);
        if used > 1 {
            out.push('.');
            out.push_str(&text[1..used]);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
        return;
    }
    if exponent < 0 {
        out.push_str(&"0.00000"[..1 + exponent.unsigned_abs() as usize]);
        out.push_str(&text[..used]);
        return;
    }
    let whole = exponent as usize + 1;
    out.push_str(&text[..whole]);
    if used > whole {
        out.push('.');
        out.push_str(&text[whole..used]);
    }
}

/// Appends an integer.
pub(crate) fn push_integer(out: &mut String, value: i64) {
    let mut text = [0; 20];
    let mut place = text.len();
    let mut rest = value.unsigned_abs();
    loop {
        place -= 1;
        text[place] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push('-');
    }
    out.push_str(std::str::from_utf8(&text[place..]).unwrap_or_default());
}

/// Appends `%g` of any number, by its exact decimal value.
fn push_exact(out: &mut String, value: f64) {
    let start = out.len();
    // Rounding to the significant digits decides about the exponent: 999999.5 becomes 1e+06.
    // Writing to a string does not fail.
    let _ = write!(out, "{value:.*e}", (DIGITS - 1) as usize);
    let Some(at) = out[start..].find('e').map(|at| start + at) else { return };
    let exponent: i32 = out[at + 1..].parse().unwrap_or(0);
    out.truncate(at);
    if !(-4..DIGITS).contains(&exponent) {
        trim_zeros(out, start);
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
        return;
    }
    // The same digits with the point elsewhere: "d.ddddd" becomes "ddd.ddd" or "0.000dddddd".
    let first = start + usize::from(out[start..].starts_with('-'));
    out.remove(first + 1);
    if exponent >= 0 {
        let place = first + 1 + exponent as usize;
        if place < out.len() {
            out.insert(place, '.');
        }
    } else {
        out.insert_str(first, &"0.00000"[..1 + exponent.unsigned_abs() as usize]);
    }
    trim_zeros(out, start);
}

/// Removes zeros behind a decimal point, and a point that nothing follows.
fn trim_zeros(out: &mut String, start: usize) {
    if !out[start..].contains('.') {
        return;
    }
    let kept = out.trim_end_matches('0').trim_end_matches('.').len();
    out.truncate(kept);
}

/// A format for floats of C's `printf`: `%[flags][width][.precision]` and one of `eEfFgG`, with any
/// text around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FloatFormat {
    before: String,
    after: String,
    flags: String,
    width: usize,
    precision: usize,
    letter: char,
}

impl FloatFormat {
    /// Parses a format; `None` if it is not one for floats.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (before, rest) = text.split_once('%')?;
        let flags: String = rest.chars().take_while(|letter| "-+ #0".contains(*letter)).collect();
        let rest = &rest[flags.len()..];
        let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).count();
        let (width, rest) = rest.split_at(digits(rest));
        let (precision, rest) = match rest.strip_prefix('.') {
            Some(rest) => {
                let (number, rest) = rest.split_at(digits(rest));
                (Some(number), rest)
            }
            None => (None, rest),
        };
        let rest = rest.trim_start_matches(['l', 'L']);
        let letter = rest.chars().next().filter(|letter| "eEfFgG".contains(*letter))?;
        // Nobody needs thousands of digits, and no text shall be vast.
        let number = |text: &str| text.parse::<usize>().unwrap_or(0).min(4096);
        Some(Self {
            before: before.to_owned(),
            after: rest[1..].to_owned(),
            width: number(width),
            precision: precision.map_or(6, number),
            flags,
            letter,
        })
    }

    /// Appends a float.
    pub(crate) fn push(&self, out: &mut String, value: f64) {
        let magnitude = value.abs();
        let mut text = match self.letter {
            _ if value.is_nan() => "nan".to_owned(),
            _ if value.is_infinite() => "inf".to_owned(),
            'f' | 'F' => format!("{magnitude:.*}", self.precision),
            'e' | 'E' => exponential(magnitude, self.precision),
            _ => general(magnitude, self.precision.max(1)),
        };
        if self.letter.is_ascii_uppercase() {
            text.make_ascii_uppercase();
        }
        let has = |flag: char| self.flags.contains(flag);
        let sign = match value.is_sign_negative() {
            true => "-",
            false if has('+') => "+",
            false if has(' ') => " ",
            false => "",
        };
        let missing = self.width.saturating_sub(text.len() + sign.len());
        let zeros = has('0') && !has('-') && value.is_finite();
        let (left, middle, right) = match (zeros, has('-')) {
            (true, _) => (0, missing, 0),
            (false, true) => (0, 0, missing),
            (false, false) => (missing, 0, 0),
        };
        let (before, after) = (&self.before, &self.after);
        let zeros = "0".repeat(middle);
        // Writing to a string does not fail.
        let _ = write!(out, "{before}{:left$}{sign}{zeros}{text}{:right$}{after}", "", "");
    }
}

/// `%e` of a number without a sign.
fn exponential(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

/// `%g` of a number without a sign.
fn general(value: f64, digits: usize) -> String {
    let text = format!("{value:.*e}", digits - 1);
    let exponent = text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok());
    let exponent: i64 = exponent.unwrap_or(0);
    if exponent < -4 || exponent >= digits as i64 {
        let text = exponential(value, digits - 1);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "+00"));
        let mut mantissa = mantissa.to_owned();
        trim_zeros(&mut mantissa, 0);
        return format!("{mantissa}e{exponent}");
    }
    let decimals = (digits as i64 - 1 - exponent).max(0) as usize;
    let mut text = format!("{value:.decimals$}");
    trim_zeros(&mut text, 0);
    text
}

/// A count with commas between groups of three digits.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of bytes as `64.0 MiB`.
pub(crate) fn bytes(count: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let power = (63 - count.leading_zeros()) / 10;
    let number = count as f64 / (1_u64 << (10 * power)) as f64;
    format!("{number:.1} {}", units[power as usize - 1])
}

/// A time in seconds since 1970 as `2026-11-15 12:30:00 UTC`.
pub(crate) fn time(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March here, so that the day of a leap year comes last.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// A shape as `63,436 x 63,436`.
pub(crate) fn shape(dims: &[u64]) -> String {
    dims.iter().map(|&dim| grouped(dim)).collect::<Vec<_>>().join(" x ")
}

/// A part of a whole in percent, with three significant digits.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "0 %".into();
    }
    let share = part as f64 * 100.0 / whole as f64;
    if share >= 99.95 {
        let digits = if part == whole { 0 } else { 2 };
        return format!("{:.*} %", digits, share.min(if part == whole { 100.0 } else { 99.99 }));
    }
    if share > 0.0 && share < 1e-4 {
        return format!("{share:.2e} %");
    }
    let magnitude = if share > 0.0 { share.log10().floor() as i32 } else { 0 };
    let decimals = (2 - magnitude).clamp(0, 12) as usize;
    let mut text = format!("{share:.decimals$}");
    trim_zeros(&mut text, 0);
    text + " %"
}

/// Bytes per cell, with two decimals.
pub(crate) fn per_cell(bytes: u64, cells: u64) -> String {
    if cells == 0 { "-".into() } else { format!("{:.2}", bytes as f64 / cells as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_utc() {
        assert_eq!(time(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(time(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(time(1_794_745_799), "2026-11-15 12:29:59 UTC");
    }

    #[test]
    fn rounding_to_six_digits_agrees_with_the_exact_value() {
        let mut state = 1u64;
        let mut quick = 0;
        for step in 0..200_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // Numbers of all sizes, and numbers near the middle between two texts.
            let value = match step % 4 {
                0 => f64::from_bits(state),
                1 => (state >> 11) as f64 / (1u64 << 53) as f64,
                2 => (state % 20_000_001) as f64 / 2e7 + 5e-7,
                _ => ((state % 2_000_000) as f64 + 0.5) * 10f64.powi((state >> 60) as i32 - 8),
            };
            if !value.is_finite() {
                continue;
            }
            let (mut rounded, mut exact) = (String::new(), String::new());
            push_exact(&mut exact, value);
            if push_rounded(&mut rounded, value) {
                quick += 1;
                assert_eq!(rounded, exact, "{value:e}");
            }
        }
        assert!(quick > 60_000, "{quick}");
        for (value, text) in
            [(0, "0"), (-7, "-7"), (1_234_567, "1234567"), (i64::MIN, "-9223372036854775808")]
        {
            let mut found = String::new();
            push_integer(&mut found, value);
            assert_eq!(found, text);
        }
    }

    #[test]
    fn general_format_is_that_of_c() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (100000.0, "100000"),
            (1e6, "1e+06"),
            (999999.5, "1e+06"),
            (123456789.0, "1.23457e+08"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (0.1 + 0.2, "0.3"),
            (0.00012345678, "0.000123457"),
            (-0.025, "-0.025"),
            (12.5, "12.5"),
            (-123456.7, "-123457"),
            (999999.4, "999999"),
            (100.000001, "100"),
            (-1.0 / 3.0, "-0.333333"),
            (1e300, "1e+300"),
            (5e-324, "4.94066e-324"),
            (65504.0, "65504"),
            (f64::NAN, "nan"),
            (-f64::NAN, "-nan"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            let mut text = String::from("10.0");
            push_general(&mut text, value);
            assert_eq!(text, format!("10.0{expected}"));
        }
    }

    #[test]
    fn formats_are_those_of_printf() {
        for (format, value, expected) in [
            ("%.3f", 1.25, "1.250"),
            ("%10.3e", -1234.5, "-1.234e+03"),
            ("<%-8.2g>", 0.000012345, "<1.2e-05 >"),
            ("%08.2f", -1.5, "-0001.50"),
            ("%+G", 1e20, "+1E+20"),
            ("%lf", 2.0, "2.000000"),
            ("%.17g", 0.1, "0.10000000000000001"),
            ("%6.1f", f64::NAN, "   nan"),
        ] {
            let mut text = String::new();
            FloatFormat::parse(format).unwrap().push(&mut text, value);
            assert_eq!(text, expected, "{format}");
        }
        for wrong in ["", "%", "%d", "%s", "5"] {
            assert_eq!(FloatFormat::parse(wrong), None);
        }
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1,000");
        assert_eq!(shape(&[63436, 1234567]), "63,436 x 1,234,567");
    }

    #[test]
    fn percentages_keep_three_digits() {
        assert_eq!(percent(0, 10), "0 %");
        assert_eq!(percent(1, 0), "0 %");
        assert_eq!(percent(10, 10), "100 %");
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(percent(299_188, 4_024_126_096), "0.00743 %");
        assert_eq!(percent(999_999, 1_000_000), "99.99 %");
        assert_eq!(percent(2, 1 << 60), "1.73e-16 %");
    }
}
