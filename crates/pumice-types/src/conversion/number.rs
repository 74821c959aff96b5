//! Numbers of the sizes that machines have: one vector loop per pair of types.
//!
//! The loops work in this machine's byte order. Elements in the other order are swapped block by
//! block, the source into a small buffer and the target in place, while they are in the nearest
//! cache; that keeps the number of loops at one per pair of types instead of four.

use super::Number;
use super::cast::{Brain, Half, cast_all};
use crate::model::{ByteOrder, Float};

/// Elements that are swapped and converted at a time.
const BLOCK: usize = 256;
/// Largest element of a block, in bytes.
const WIDEST: usize = 8;

/// Numbers that only differ in byte order, or numbers of two machine types.
#[derive(Debug, Clone)]
pub(super) enum NumberKernel {
    /// Elements of this many bytes are reversed.
    Reverse(usize),
    /// Elements are cast.
    Cast(CastKernel),
}

/// A loop for two machine types, with byte swaps around it.
#[derive(Debug, Clone)]
pub(super) struct CastKernel {
    cast: fn(&[u8], &mut [u8]),
    source_size: usize,
    target_size: usize,
    swap_source: bool,
    swap_target: bool,
}

impl NumberKernel {
    pub(super) fn choose(from: &Number, to: &Number) -> Option<Self> {
        if from.order() != ByteOrder::Vax
            && to.order() != ByteOrder::Vax
            && from.with_order(to.order()) == *to
        {
            return Some(Self::Reverse(from.size()));
        }
        Some(Self::Cast(CastKernel {
            cast: Machine::of(from)?.cast_to(Machine::of(to)?),
            source_size: from.size(),
            target_size: to.size(),
            swap_source: needs_swap(from),
            swap_target: needs_swap(to),
        }))
    }

    pub(super) fn run(&self, source: &[u8], target: &mut [u8]) {
        match self {
            Self::Reverse(size) => reverse_all(*size, source, target),
            Self::Cast(kernel) => kernel.run(source, target),
        }
    }
}

impl CastKernel {
    fn run(&self, source: &[u8], target: &mut [u8]) {
        if !self.swap_source && !self.swap_target {
            (self.cast)(source, target);
            return;
        }
        let mut swapped = [0u8; BLOCK * WIDEST];
        let blocks = source.chunks(BLOCK * self.source_size);
        for (from, to) in blocks.zip(target.chunks_mut(BLOCK * self.target_size)) {
            if self.swap_source {
                let swapped = &mut swapped[..from.len()];
                reverse_all(self.source_size, from, swapped);
                (self.cast)(swapped, to);
            } else {
                (self.cast)(from, to);
            }
            if self.swap_target {
                reverse_in_place(self.target_size, to);
            }
        }
    }
}

fn needs_swap(number: &Number) -> bool {
    number.size() > 1 && number.order() != ByteOrder::NATIVE
}

/// Writes each element of `size` bytes with its bytes in reverse order.
fn reverse_all(size: usize, source: &[u8], target: &mut [u8]) {
    match size {
        2 => reverse_each::<2>(source, target),
        4 => reverse_each::<4>(source, target),
        8 => reverse_each::<8>(source, target),
        16 => reverse_each::<16>(source, target),
        _ => {
            for (from, to) in source.chunks_exact(size).zip(target.chunks_exact_mut(size)) {
                to.copy_from_slice(from);
                to.reverse();
            }
        }
    }
}

fn reverse_each<const SIZE: usize>(source: &[u8], target: &mut [u8]) {
    let elements = source.as_chunks::<SIZE>().0.iter();
    for (from, to) in elements.zip(target.as_chunks_mut::<SIZE>().0) {
        *to = *from;
        to.reverse();
    }
}

fn reverse_in_place(size: usize, elements: &mut [u8]) {
    match size {
        2 => elements.as_chunks_mut::<2>().0.iter_mut().for_each(|element| element.reverse()),
        4 => elements.as_chunks_mut::<4>().0.iter_mut().for_each(|element| element.reverse()),
        _ => elements.as_chunks_mut::<8>().0.iter_mut().for_each(|element| element.reverse()),
    }
}

/// The number types that machines have.
#[derive(Debug, Clone, Copy)]
enum Machine {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    Bf16,
    F32,
    F64,
}

impl Machine {
    /// The machine type of a number, whatever its byte order.
    fn of(number: &Number) -> Option<Self> {
        match number {
            Number::Integer(integer) if integer.is_full() && integer.order != ByteOrder::Vax => {
                match (integer.signed, integer.size) {
                    (true, 1) => Some(Self::I8),
                    (true, 2) => Some(Self::I16),
                    (true, 4) => Some(Self::I32),
                    (true, 8) => Some(Self::I64),
                    (false, 1) => Some(Self::U8),
                    (false, 2) => Some(Self::U16),
                    (false, 4) => Some(Self::U32),
                    (false, 8) => Some(Self::U64),
                    _ => None,
                }
            }
            Number::Float(float) if float.order != ByteOrder::Vax => {
                let order = float.order;
                match float.size {
                    2 if *float == Float::half(order) => Some(Self::F16),
                    2 if *float == Float::bfloat16(order) => Some(Self::Bf16),
                    4 if *float == Float::single(order) => Some(Self::F32),
                    8 if *float == Float::double(order) => Some(Self::F64),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn cast_to(self, target: Self) -> fn(&[u8], &mut [u8]) {
        macro_rules! from {
            ($source:ty) => {
                match target {
                    Self::I8 => cast_all::<$source, i8>,
                    Self::I16 => cast_all::<$source, i16>,
                    Self::I32 => cast_all::<$source, i32>,
                    Self::I64 => cast_all::<$source, i64>,
                    Self::U8 => cast_all::<$source, u8>,
                    Self::U16 => cast_all::<$source, u16>,
                    Self::U32 => cast_all::<$source, u32>,
                    Self::U64 => cast_all::<$source, u64>,
                    Self::F16 => cast_all::<$source, Half>,
                    Self::Bf16 => cast_all::<$source, Brain>,
                    Self::F32 => cast_all::<$source, f32>,
                    Self::F64 => cast_all::<$source, f64>,
                }
            };
        }
        match self {
            Self::I8 => from!(i8),
            Self::I16 => from!(i16),
            Self::I32 => from!(i32),
            Self::I64 => from!(i64),
            Self::U8 => from!(u8),
            Self::U16 => from!(u16),
            Self::U32 => from!(u32),
            Self::U64 => from!(u64),
            Self::F16 => from!(Half),
            Self::Bf16 => from!(Brain),
            Self::F32 => from!(f32),
            Self::F64 => from!(f64),
        }
    }
}
