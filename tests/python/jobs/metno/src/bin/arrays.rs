//! The counterpart of crates/pumice/examples/arrays.rs: arrays to and from a dataset, in hdf5-metno.

use hdf5_metno::{File, Result};
use ndarray::{Array1, Array2, Array3, Axis, Ix3, s};

fn main() -> Result<()> {
    let path = std::env::args_os().nth(1).unwrap_or("film.h5".into());
    let film = Array3::from_shape_fn((20, 30, 40), |(t, y, x)| (t * y + x) as i32);
    // The job.
    let file = File::create(path)?;
    let film = file.new_dataset_builder().with_data(&film).shuffle().deflate(4).create("film")?;
    let image: Array2<f64> = film.read_slice(s![3, .., ..])?;
    // It takes steps, but no list of indices.
    let steps: Array3<i32> = film.read_slice(s![..20;5, ..10, ..])?;
    let thinned = steps.select(Axis(2), &[0, 39]);
    let pixel: Array1<i32> = film.read_slice(s![.., 7, 9])?;
    film.write_slice(&(&image * 2.0), s![4, .., ..])?;
    println!("{} {:?} {}", image.sum(), thinned.shape(), pixel.sum());
    println!("{}", film.read::<i64, Ix3>()?.sum_axis(Axis(0)).sum());
    file.close()
}
