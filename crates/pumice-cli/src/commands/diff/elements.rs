//! Values of two arrays, element by element.
//!
//! A [`Plan`] is made once for a pair of datatypes. Numbers are compared in the widest type of
//! their class; differences are printed as h5diff prints them.

use super::report::{Report, Told};
use crate::numbers::FloatFormat;
use crate::threads;
use anyhow::{Result, bail};
use pumice::types::{
    ByteOrder, Conversion, Enumeration, Integer, ReferenceKind, StringPadding, VarLen, VarLenKind,
};
use pumice::{Datatype, Element, Heaped};
use std::fmt::Write;

/// The bytes from which on several threads compare values.
const PARALLEL_BYTES: usize = 64 << 10;

/// Two references whose objects are still to be compared, by address.
pub(super) struct Reference {
    pub(super) first: u64,
    pub(super) second: u64,
    /// The bytes printed before it.
    pub(super) after: usize,
}

/// The comparison of elements of two datatypes.
pub(super) struct Plan {
    sizes: [usize; 2],
    kind: Kind,
    /// Equal bytes are equal values.
    plain: bool,
}

enum Kind {
    Signed([Conversion; 2], u32),
    Unsigned([Conversion; 2], u32),
    Float([Conversion; 2], bool),
    Text([StringPadding; 2]),
    VariableText([VarLen; 2]),
    Bytes([ByteOrder; 2]),
    Enum(Box<[Enumeration; 2]>),
    Compound(Vec<([usize; 2], Plan)>),
    Array(Box<Plan>),
    Sequence([VarLen; 2], Box<Plan>),
    Object,
    /// References that cannot be followed: equal bytes are equal.
    Unknown,
}

/// Elements of one side, and their heap.
#[derive(Clone, Copy)]
struct Side<'a> {
    elements: &'a [u8],
    heap: &'a [u8],
}

impl<'a> Side<'a> {
    fn of(values: &'a Heaped) -> Self {
        Self { elements: &values.elements, heap: &values.heap }
    }
}

/// One element and the heap of its array.
pub(super) type Value<'a> = (&'a [u8], &'a [u8]);

impl Plan {
    pub(super) fn new(first: &Datatype, second: &Datatype) -> Result<Self> {
        let sizes = [first.size(), second.size()];
        let widest = sizes[0].max(sizes[1]) as u32;
        let kind = match (first, second) {
            (Datatype::Integer(Integer { signed: true, .. }), Datatype::Integer(_)) => {
                Kind::Signed([to::<i64>(first)?, to::<i64>(second)?], widest)
            }
            (Datatype::Integer(_), Datatype::Integer(_)) => {
                Kind::Unsigned([to::<u64>(first)?, to::<u64>(second)?], widest)
            }
            (Datatype::Float(_), Datatype::Float(_)) => {
                Kind::Float([to::<f64>(first)?, to::<f64>(second)?], widest <= 4)
            }
            (Datatype::String(one), Datatype::String(other)) => {
                Kind::Text([one.padding, other.padding])
            }
            (Datatype::Bitfield(one), Datatype::Bitfield(other)) => {
                Kind::Bytes([one.order, other.order])
            }
            (Datatype::Opaque(_), Datatype::Opaque(_)) => Kind::Bytes([ByteOrder::NATIVE; 2]),
            (Datatype::Enum(one), Datatype::Enum(other)) => {
                Kind::Enum(Box::new([one.clone(), other.clone()]))
            }
            (Datatype::Compound(one), Datatype::Compound(other)) => {
                let pairs = one.members.iter().zip(&other.members);
                let members = pairs.map(|(one, other)| {
                    let offsets = [one.offset as usize, other.offset as usize];
                    Ok((offsets, Self::new(&one.datatype, &other.datatype)?))
                });
                Kind::Compound(members.collect::<Result<_>>()?)
            }
            (Datatype::Array(one), Datatype::Array(other)) => {
                Kind::Array(Box::new(Self::new(&one.base, &other.base)?))
            }
            (Datatype::VarLen(one), Datatype::VarLen(other)) => {
                let varlens = [one.clone(), other.clone()];
                match one.kind {
                    VarLenKind::Sequence => {
                        Kind::Sequence(varlens, Box::new(Self::new(&one.base, &other.base)?))
                    }
                    VarLenKind::String { .. } => Kind::VariableText(varlens),
                }
            }
            (Datatype::Reference(one), Datatype::Reference(other))
                if one.kind == ReferenceKind::Object && other.kind == ReferenceKind::Object =>
            {
                Kind::Object
            }
            (first, second) if first == second => Kind::Unknown,
            (first, _) => bail!("values of class {} cannot be compared", first.class_name()),
        };
        let plain = first == second
            && !first.has_varlen()
            && !matches!(kind, Kind::Object | Kind::Text(_) | Kind::Compound(_));
        Ok(Self { sizes, kind, plain })
    }

    /// Whether equal bytes are equal values.
    pub(super) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Whether references are among the values.
    pub(super) fn has_references(&self) -> bool {
        match &self.kind {
            Kind::Object => true,
            Kind::Compound(members) => members.iter().any(|(_, plan)| plan.has_references()),
            Kind::Array(base) | Kind::Sequence(_, base) => base.has_references(),
            _ => false,
        }
    }

    /// Compares neighbours from the cell `before` on; answers how many differ, `most` at most.
    pub(super) fn compare_block(
        &self,
        first: &Heaped,
        second: &Heaped,
        before: u64,
        most: Option<u64>,
        report: &mut Report<'_>,
        pending: &mut Vec<Reference>,
    ) -> Result<u64> {
        if self.plain && first.elements == second.elements {
            return Ok(0);
        }
        let large = first.elements.len() >= PARALLEL_BYTES;
        if large && most.is_none() && !self.has_references() {
            return self.compare_parts_at_once(first, second, before, report);
        }
        let place = |index: usize| before + index as u64;
        self.compare_all(Side::of(first), Side::of(second), place, most, report, pending)
    }

    /// Compares neighbours, a part of them on each thread; reports differences in order.
    fn compare_parts_at_once(
        &self,
        first: &Heaped,
        second: &Heaped,
        before: u64,
        report: &mut Report<'_>,
    ) -> Result<u64> {
        let sizes = self.sizes.map(|size| size.max(1));
        let part = (first.elements.len() / sizes[0]).div_ceil(threads::available()).max(1);
        let one = first.elements.chunks(part * sizes[0]);
        let other = second.elements.chunks(part * sizes[1]);
        let (options, names, dims) = report.parts();
        let compare = |(number, (one, other))| -> Result<(u64, Told)> {
            let one = Side { elements: one, heap: &first.heap };
            let other = Side { elements: other, heap: &second.heap };
            let start = before + (number * part) as u64;
            let mut text = Vec::new();
            let mut report = Report::of_part(&mut text, options, names.clone(), dims);
            let place = |index: usize| start + index as u64;
            let found = self.compare_all(one, other, place, None, &mut report, &mut Vec::new())?;
            let relative = report.relative();
            Ok((found, Told { text, relative }))
        };
        let compared = threads::for_each_part(one.zip(other).enumerate().collect(), compare);
        let mut found = 0;
        for part in compared {
            let (count, told) = part?;
            found += count;
            report.append(&told)?;
        }
        Ok(found)
    }

    /// The elements of both sides, pair by pair.
    pub(super) fn elements<'a>(
        &self,
        [first, second]: &'a [Heaped; 2],
    ) -> impl Iterator<Item = [Value<'a>; 2]> + use<'a> {
        let one = first.elements.chunks_exact(self.sizes[0].max(1));
        let other = second.elements.chunks_exact(self.sizes[1].max(1));
        one.zip(other).map(|(one, other)| [(one, &*first.heap), (other, &*second.heap)])
    }

    /// Compares cells at `places`; answers how many differ, `most` at most.
    pub(super) fn compare_cells(
        &self,
        values: &[Heaped; 2],
        places: &[u64],
        most: Option<u64>,
        report: &mut Report<'_>,
        pending: &mut Vec<Reference>,
    ) -> Result<u64> {
        let place = |index: usize| places.get(index).copied().unwrap_or(0);
        let [first, second] = values;
        self.compare_all(Side::of(first), Side::of(second), place, most, report, pending)
    }

    fn compare_all(
        &self,
        first: Side<'_>,
        second: Side<'_>,
        place: impl Fn(usize) -> u64,
        most: Option<u64>,
        report: &mut Report<'_>,
        pending: &mut Vec<Reference>,
    ) -> Result<u64> {
        let mut found = 0;
        let one = first.elements.chunks_exact(self.sizes[0].max(1));
        let other = second.elements.chunks_exact(self.sizes[1].max(1));
        for (index, (one, other)) in one.zip(other).enumerate() {
            if self.plain && one == other {
                continue;
            }
            let values = [(one, first.heap), (other, second.heap)];
            found += self.compare(values, place(index), report, pending)?;
            if most.is_some_and(|most| found >= most) {
                break;
            }
        }
        Ok(found)
    }

    /// Compares two elements; answers how many values in them differ.
    pub(super) fn compare(
        &self,
        values: [Value<'_>; 2],
        place: u64,
        report: &mut Report<'_>,
        pending: &mut Vec<Reference>,
    ) -> Result<u64> {
        let [(one, heap), (other, other_heap)] = values;
        Ok(match &self.kind {
            Kind::Signed(conversions, size) => {
                let pair = pair(conversions, one, other).map(i64::from_ne_bytes);
                integers(pair, *size, place, report)?
            }
            Kind::Unsigned(conversions, size) => {
                let pair = pair(conversions, one, other).map(u64::from_ne_bytes);
                unsigned(pair, *size, place, report)?
            }
            Kind::Float(conversions, single) => {
                let pair = pair(conversions, one, other).map(f64::from_ne_bytes);
                floats(pair, *single, place, report)?
            }
            Kind::Text(padding) => {
                let size = self.sizes[0].max(self.sizes[1]);
                let texts = [padded(one, size, padding[0]), padded(other, size, padding[1])];
                texts_differ([&texts[0], &texts[1]], place, report)?
            }
            Kind::VariableText(varlens) => {
                let texts = [
                    varlens[0].payload(one, heap).ok().flatten().unwrap_or_default(),
                    varlens[1].payload(other, other_heap).ok().flatten().unwrap_or_default(),
                ];
                texts_differ(texts.map(until_zero), place, report)?
            }
            Kind::Bytes(orders) => {
                let (one, other) = (native(one, orders[0]), native(other, orders[1]));
                bytes_differ(&one, &other, place, report)?
            }
            Kind::Enum(enumerations) => enums_differ(enumerations, [one, other], place, report)?,
            Kind::Compound(members) => {
                let mut found = 0;
                for (offsets, plan) in members {
                    let part = |element: &'_ [u8], side: usize| -> Option<std::ops::Range<usize>> {
                        let end = offsets[side].checked_add(plan.sizes[side])?;
                        (end <= element.len()).then_some(offsets[side]..end)
                    };
                    if let (Some(mine), Some(yours)) = (part(one, 0), part(other, 1)) {
                        let values = [(&one[mine], heap), (&other[yours], other_heap)];
                        found += plan.compare(values, place, report, pending)?;
                    }
                }
                found
            }
            Kind::Array(base) => {
                base.compare_parts([(one, heap), (other, other_heap)], place, report, pending)?
            }
            Kind::Sequence(varlens, base) => {
                let mine = varlens[0].payload(one, heap).ok().flatten().unwrap_or_default();
                let yours =
                    varlens[1].payload(other, other_heap).ok().flatten().unwrap_or_default();
                let counts =
                    [mine.len() / base.sizes[0].max(1), yours.len() / base.sizes[1].max(1)];
                let values = [(mine, heap), (yours, other_heap)];
                u64::from(counts[0] != counts[1])
                    + base.compare_parts(values, place, report, pending)?
            }
            Kind::Object => {
                let (first, second) = (address(one), address(other));
                if (first == 0) == (second == 0) && first != 0 {
                    pending.push(Reference { first, second, after: report.told() });
                }
                u64::from((first == 0) != (second == 0))
            }
            Kind::Unknown => u64::from(one != other),
        })
    }

    fn compare_parts(
        &self,
        [(one, heap), (other, other_heap)]: [Value<'_>; 2],
        place: u64,
        report: &mut Report<'_>,
        pending: &mut Vec<Reference>,
    ) -> Result<u64> {
        let mut found = 0;
        let one = one.chunks_exact(self.sizes[0].max(1));
        let other = other.chunks_exact(self.sizes[1].max(1));
        for (one, other) in one.zip(other) {
            found += self.compare([(one, heap), (other, other_heap)], place, report, pending)?;
        }
        Ok(found)
    }
}

fn to<T: Element>(datatype: &Datatype) -> Result<Conversion> {
    Ok(Conversion::new(datatype, &T::datatype()).map_err(pumice::Error::from)?)
}

fn pair(conversions: &[Conversion; 2], one: &[u8], other: &[u8]) -> [[u8; 8]; 2] {
    let mut converted = [[0; 8]; 2];
    // The sizes are those that the conversions were made for; on others the number stays 0.
    let _ = conversions[0].convert(one, &mut converted[0]);
    let _ = conversions[1].convert(other, &mut converted[1]);
    converted
}

fn address(element: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let size = element.len().min(8);
    bytes[..size].copy_from_slice(&element[..size]);
    u64::from_le_bytes(bytes)
}

/// The verdict on a difference.
enum Verdict {
    Equal,
    Different,
    /// A difference with its relative size.
    Relative(f64),
    /// Relative to zero.
    Incomparable,
}

/// Judges numbers that differ by `difference`, absolute.
fn judge(report: &Report<'_>, [one, other]: [f64; 2], difference: f64, relative: f64) -> Verdict {
    let options = report.options;
    if let Some(delta) = options.delta {
        return if difference > delta { Verdict::Different } else { Verdict::Equal };
    }
    let Some(most) = options.relative else {
        return Verdict::Different;
    };
    let zero = |number: f64| number.abs() < f64::EPSILON;
    match (zero(one), zero(other)) {
        (true, true) => Verdict::Equal,
        (true, false) => Verdict::Incomparable,
        _ if relative > most => Verdict::Relative(relative),
        _ => Verdict::Equal,
    }
}

fn integers([one, other]: [i64; 2], size: u32, place: u64, report: &mut Report<'_>) -> Result<u64> {
    if one == other {
        return Ok(0);
    }
    // As C computes it: in the type, but for those that are smaller than an int.
    let bits = 64 - size.clamp(4, 8) * 8;
    let difference = (one.wrapping_sub(other) << bits >> bits).wrapping_abs();
    let relative = ((other as f64 - one as f64) / one as f64).abs();
    let verdict = judge(report, [one as f64, other as f64], difference as f64, relative);
    if !report.listens() {
        return Ok(u64::from(!matches!(verdict, Verdict::Equal)));
    }
    tell_integers(&format!("{one:<15} {other:<15} {difference:<15}"), verdict, place, report)
}

fn unsigned([one, other]: [u64; 2], size: u32, place: u64, report: &mut Report<'_>) -> Result<u64> {
    if size == 4 {
        // h5diff compares these as if they had a sign.
        return integers([one, other].map(|number| i64::from(number as i32)), 4, place, report);
    }
    if one == other {
        return Ok(0);
    }
    let difference = one.abs_diff(other);
    let relative = ((other as f64 - one as f64) / one as f64).abs();
    let verdict = judge(report, [one as f64, other as f64], difference as f64, relative);
    if !report.listens() {
        return Ok(u64::from(!matches!(verdict, Verdict::Equal)));
    }
    tell_integers(&format!("{one:<15} {other:<15} {difference:<15}"), verdict, place, report)
}

fn tell_integers(text: &str, verdict: Verdict, place: u64, report: &mut Report<'_>) -> Result<u64> {
    match verdict {
        Verdict::Equal => return Ok(0),
        Verdict::Different => report.tell(place, None, false, text)?,
        Verdict::Relative(share) => {
            let share = format!("{share:.6}");
            report.tell(place, None, true, &format!("{text} {share:<14}"))?;
        }
        Verdict::Incomparable => {
            report.tell(place, None, true, &format!("{text} not comparable"))?;
        }
    }
    Ok(1)
}

fn floats(
    [one, other]: [f64; 2],
    single: bool,
    place: u64,
    report: &mut Report<'_>,
) -> Result<u64> {
    let options = report.options;
    let exact = options.delta.is_none() && options.relative.is_none();
    let difference = match single {
        true => f64::from(one as f32 - other as f32),
        false => one - other,
    };
    // As h5diff has it: what is not less than zero keeps its sign.
    let difference = if difference >= 0.0 { difference } else { -difference };
    let nans = (one.is_nan(), other.is_nan());
    let verdict = match nans {
        (true, true) if options.nans => Verdict::Equal,
        (true, false) | (false, true) if options.nans => Verdict::Different,
        _ if exact && options.epsilon => {
            let epsilon = if single { f64::from(f32::EPSILON) } else { f64::EPSILON };
            if difference < epsilon { Verdict::Equal } else { Verdict::Different }
        }
        _ if exact && one.to_bits() == other.to_bits() => Verdict::Equal,
        _ => judge(report, [one, other], difference, ((other - one) / one).abs()),
    };
    if !report.listens() {
        return Ok(u64::from(!matches!(verdict, Verdict::Equal)));
    }
    let line = |format: &str| {
        let format = FloatFormat::parse(format);
        let mut text = String::new();
        for number in [one, other, difference] {
            let mut part = String::new();
            if let Some(format) = &format {
                format.push(&mut part, number);
            }
            let _ = write!(text, "{part:<15} ");
        }
        text
    };
    match verdict {
        Verdict::Equal => return Ok(0),
        Verdict::Different => {
            let text = line("%g");
            report.tell(place, None, false, &text[..text.len() - 1])?;
        }
        Verdict::Relative(_) => {
            let share = match single {
                true => f64::from((1.0 - other as f32 / one as f32).abs()),
                false => (1.0 - other / one).abs(),
            };
            let mut text = String::new();
            if let Some(format) = FloatFormat::parse("%.10g") {
                format.push(&mut text, share);
            }
            report.tell(place, None, true, &format!("{}{text:<14}", line("%.10g")))?;
        }
        Verdict::Incomparable => {
            let text = format!("{}not comparable", line("%.10g"));
            report.tell(place, None, true, &text)?;
        }
    }
    Ok(1)
}

/// A fixed text in the size of the longer type: up to its end, or filled up.
fn padded(element: &[u8], size: usize, padding: StringPadding) -> Vec<u8> {
    match padding {
        StringPadding::NullTerminate => until_zero(element).to_vec(),
        StringPadding::NullPad | StringPadding::SpacePad => {
            let mut text = element.to_vec();
            text.resize(size, if padding == StringPadding::SpacePad { b' ' } else { 0 });
            text
        }
    }
}

fn until_zero(text: &[u8]) -> &[u8] {
    &text[..text.iter().position(|&byte| byte == 0).unwrap_or(text.len())]
}

fn texts_differ([one, other]: [&[u8]; 2], place: u64, report: &mut Report<'_>) -> Result<u64> {
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    let mut found = u64::from(one.len() != other.len());
    // h5diff names the shorter one first, and does not count what is behind a common beginning.
    if one.len() != other.len() && long.starts_with(short) {
        for (index, &letter) in long.iter().enumerate().skip(short.len()) {
            tell_letters([0, letter], index, place, report)?;
        }
        return Ok(found);
    }
    for (index, (&mine, &yours)) in short.iter().zip(long).enumerate() {
        if mine != yours {
            tell_letters([mine, yours], index, place, report)?;
            found += 1;
        }
    }
    Ok(found)
}

fn tell_letters(letters: [u8; 2], index: usize, place: u64, report: &mut Report<'_>) -> Result<()> {
    let [one, other] = letters.map(letter);
    Ok(report.tell(place, Some(index), false, &format!("  {one}            {other}"))?)
}

fn letter(byte: u8) -> String {
    match byte {
        b'"' => "\\\"".into(),
        b'\\' => "\\\\".into(),
        0x08 => "\\b".into(),
        0x0c => "\\f".into(),
        b'\n' => "\\n".into(),
        b'\r' => "\\r".into(),
        b'\t' => "\\t".into(),
        0x20..0x7f => char::from(byte).to_string(),
        byte => format!("\\{:03o}", i32::from(byte as i8)),
    }
}

/// The bytes of a number as this machine has them.
fn native(bytes: &[u8], order: ByteOrder) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if order != ByteOrder::NATIVE {
        bytes.reverse();
    }
    bytes
}

fn bytes_differ(one: &[u8], other: &[u8], place: u64, report: &mut Report<'_>) -> Result<u64> {
    let mut found = 0;
    for (&one, &other) in one.iter().zip(other) {
        found += unsigned([u64::from(one), u64::from(other)], 1, place, report)?;
    }
    Ok(found)
}

fn enums_differ(
    enumerations: &[Enumeration; 2],
    [one, other]: [&[u8]; 2],
    place: u64,
    report: &mut Report<'_>,
) -> Result<u64> {
    let names = [enumerations[0].name_of(one), enumerations[1].name_of(other)];
    if match names {
        [Some(one), Some(other)] => one == other,
        // Values without names are the same if their bytes are.
        [None, None] => one == other,
        _ => false,
    } {
        return Ok(0);
    }
    let [one, other] = names.map(|name| name.unwrap_or("**INVALID VALUE**"));
    report.tell(place, None, false, &format!("{one:<16} {other:<17}"))?;
    Ok(1)
}
