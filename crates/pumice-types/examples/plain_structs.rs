//! The time for a million structs of 24 bytes as bytes, and field by field.
//!
//! `cargo run --release -p pumice-types --example plain_structs`

use pumice_types::{Datatype, H5Type, Heap, TypeError, from_elements, plain, to_elements};
use std::hint::black_box;
use std::time::Instant;

const COUNT: usize = 1 << 20;

macro_rules! hit {
    ($name:ident, $plain:literal) => {
        #[derive(Clone, Copy, Default)]
        #[repr(C)]
        struct $name {
            time: f64,
            position: [f32; 3],
            detector: u16,
            flags: u16,
        }

        // SAFETY: the fields are plain, in the order of the datatype, and there is no padding.
        unsafe impl H5Type for $name {
            const PLAIN: bool = $plain;
            const SIZE: usize = 24;
            const OWNED: bool = true;

            fn datatype() -> Datatype {
                Datatype::compound([
                    ("time", f64::datatype()),
                    ("position", <[f32; 3]>::datatype()),
                    ("detector", u16::datatype()),
                    ("flags", u16::datatype()),
                ])
            }

            fn put(&self, place: &mut [u8], heap: &mut Heap) -> Result<(), TypeError> {
                self.time.put(&mut place[..8], heap)?;
                self.position.put(&mut place[8..20], heap)?;
                self.detector.put(&mut place[20..22], heap)?;
                self.flags.put(&mut place[22..24], heap)
            }

            fn take(place: &[u8], heap: &Heap) -> Result<Self, TypeError> {
                Ok(Self {
                    time: f64::take(&place[..8], heap)?,
                    position: <[f32; 3]>::take(&place[8..20], heap)?,
                    detector: u16::take(&place[20..22], heap)?,
                    flags: u16::take(&place[22..24], heap)?,
                })
            }
        }
    };
}

hit!(Plain, true);
hit!(ByField, false);

fn main() -> Result<(), TypeError> {
    let (plain_hits, hits) = (vec![Plain::default(); COUNT], vec![ByField::default(); COUNT]);
    println!(
        "written, plain: {:.2} ms",
        best(|| {
            black_box(plain::bytes(&plain_hits));
        })
    );
    println!("written, by field: {:.2} ms", best(|| drop(black_box(to_elements(&hits)))));
    let bytes = to_elements(&hits)?.0;
    let read = best(|| {
        if let Some(Ok(mut all)) = plain::zeroed::<Plain>(COUNT) {
            plain::bytes_mut(&mut all).unwrap_or_default().copy_from_slice(&bytes);
            black_box(all);
        }
    });
    println!("read, plain: {read:.2} ms");
    let heap = Heap::default();
    println!(
        "read, by field: {:.2} ms",
        best(|| drop(black_box(from_elements::<ByField>(&bytes, &heap))))
    );
    Ok(())
}

/// The shortest of some times, in milliseconds.
fn best(mut act: impl FnMut()) -> f64 {
    let times = (0..9).map(|_| {
        let start = Instant::now();
        act();
        start.elapsed().as_secs_f64() * 1e3
    });
    times.fold(f64::MAX, f64::min)
}
