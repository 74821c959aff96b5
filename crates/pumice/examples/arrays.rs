//! Arrays of the crate `ndarray`, to and from datasets.
//!
//! ```sh
//! cargo run -p pumice --features ndarray --example arrays -- film.h5
//! ```

use ndarray::{Array1, Array2, Array3, Axis, Ix3};
use pumice::File;

fn main() -> pumice::Result<()> {
    let path = std::env::args_os().nth(1).unwrap_or("film.h5".into());
    let film = Array3::from_shape_fn((20, 30, 40), |(t, y, x)| (t * y + x) as i32);
    // The job.
    let file = File::create(path)?;
    let film = file.new_dataset::<i32>().shuffle().deflate(4).create_from("film", &film)?;
    let image: Array2<f64> = film.read_array((3, .., ..))?;
    let thinned: Array3<i32> = film.read_array(((0..20).step_by(5), ..10, &[0, 39]))?;
    let pixel: Array1<i32> = film.read_array((.., 7, 9))?;
    film.write_array((4, .., ..), &(&image * 2.0))?;
    println!("{} {:?} {}", image.sum(), thinned.shape(), pixel.sum());
    println!("{}", film.read_array::<i64, Ix3>(..)?.sum_axis(Axis(0)).sum());
    file.close()
}
