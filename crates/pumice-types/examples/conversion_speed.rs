//! The speed of common conversions, beside memcpy of the same bytes: gigabytes read and written a
//! second.
//!
//! ```text
//! cargo run --release -p pumice-types --example conversion_speed
//! ```

use pumice_types::{Conversion, Datatype};
use std::hint::black_box;
use std::time::Instant;

/// Bytes of the larger side: more than any cache.
const BYTES: usize = 64 << 20;

fn main() {
    let pairs = [
        ("f64 (memcpy)", Datatype::f64_le(), Datatype::f64_le()),
        ("i16 to f32", Datatype::i16_le(), Datatype::f32_le()),
        ("u8 to f32", Datatype::u8(), Datatype::f32_le()),
        ("i32 to f64", Datatype::i32_le(), Datatype::f64_le()),
        ("f64 to f32", Datatype::f64_le(), Datatype::f32_le()),
        ("f32 to f64", Datatype::f32_le(), Datatype::f64_le()),
        ("f32 to i16", Datatype::f32_le(), Datatype::i16_le()),
        ("i32 to i64", Datatype::i32_le(), Datatype::i64_le()),
        ("i64 to i32", Datatype::i64_le(), Datatype::i32_le()),
        ("f32 big to little", Datatype::f32_be(), Datatype::f32_le()),
        ("f64 big to little", Datatype::f64_be(), Datatype::f64_le()),
        ("i16 big to little", Datatype::i16_be(), Datatype::i16_le()),
        ("i16 big to f32", Datatype::i16_be(), Datatype::f32_le()),
    ];
    for (name, from, to) in pairs {
        let count = BYTES / from.size().max(to.size());
        let source: Vec<u8> = (0..count * from.size()).map(|at| (at / 3 % 61) as u8).collect();
        let mut target = vec![1u8; count * to.size()];
        let conversion = Conversion::new(&from, &to).expect("numbers convert into each other");
        let mut best = f64::MAX;
        for _ in 0..5 {
            let start = Instant::now();
            conversion.convert(black_box(&source), black_box(&mut target)).expect("equal counts");
            best = best.min(start.elapsed().as_secs_f64());
        }
        let moved = (source.len() + target.len()) as f64;
        println!("{name:20} {:6.1} GB/s", moved / best / 1e9);
    }
}
