//! Edits a file that another program wrote, in place: a kill at any moment leaves the old file or the new one.
//!
//! ```sh
//! cargo run -p pumice --example edit_in_place -- images.h5
//! ```
//!
//! The file has images of 8 x 8 in `raw/images`, their times in `raw/times`, and `raw/dark`; `tests/python/jobs` makes
//! one with h5py.

use pumice::File;

fn main() -> pumice::Result<()> {
    let path = std::env::args_os().nth(1).unwrap_or("images.h5".into());
    let frame = vec![9u16; 64];
    // The job.
    let file = File::edit(path)?;
    let (images, times) = (file.dataset("raw/images")?, file.dataset("raw/times")?);
    images.write_scalar((2, 3..5, ..), 7u16)?;
    images.append(0, &frame)?;
    times.append(0, &[4.5])?;
    images.set_attribute("unit", "counts")?;
    images.attach_scale(0, &times)?;
    file.rename("raw/images", "calibrated/images")?;
    file.unlink("raw/dark")?;
    println!("{:?}, {} counts", images.shape(), images.read::<u64>(..)?.iter().sum::<u64>());
    file.close()
}
