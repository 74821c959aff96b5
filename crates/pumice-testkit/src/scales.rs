//! Dimension scales: made for h5py to find, and found where h5py and netCDF made them.

use anyhow::{Result, ensure};
use pumice::{Dataset, File};
use std::path::Path;

/// Makes scales, attaches and detaches them, and names an axis.
pub(crate) fn write(path: &Path) -> Result<()> {
    let file = File::create(path)?;
    let image = file.new_dataset::<f32>().shape([2, 3]).create("image")?;
    let other = file.new_dataset::<f32>().shape([3]).create("other")?;
    let scale = |name: &str, length: u64| file.new_dataset::<f64>().shape([length]).create(name);
    let (x, y, second, gone) = (scale("x", 2)?, scale("y", 3)?, scale("y2", 3)?, scale("gone", 3)?);
    x.make_scale("height in mm")?;
    y.make_scale("")?;
    image.attach_scale(0, &x)?;
    image.attach_scale(1, &y)?;
    second.make_scale("second")?;
    image.attach_scale(1, &second)?;
    image.attach_scale(1, &second)?;
    other.attach_scale(0, &y)?;
    gone.make_scale("gone")?;
    other.attach_scale(0, &gone)?;
    other.detach_scale(0, &gone)?;
    image.set_label(1, "column")?;
    Ok(file.close()?)
}

/// Checks the scales that [`write()`] or h5py has made.
pub(crate) fn read(path: &Path) -> Result<()> {
    let file = File::open(path)?;
    let (image, other) = (file.dataset("image")?, file.dataset("other")?);
    ensure!(same(&file, &image.scales(0)?, &["x"])?);
    ensure!(same(&file, &image.scales(1)?, &["y", "y2"])?);
    ensure!(same(&file, &other.scales(0)?, &["y"])?);
    ensure!(image.scales(0)?[0].scale_name()?.as_deref() == Some("height in mm"));
    ensure!(file.dataset("gone")?.is_scale()? && !image.is_scale()?);
    ensure!(image.label(0)?.is_none() && image.label(1)?.as_deref() == Some("column"));
    Ok(())
}

/// Finds the scales of two axes, of which one is a variable and one only a dimension.
pub(crate) fn read_netcdf(path: &Path) -> Result<()> {
    let file = File::open(path)?;
    let image = file.dataset("image")?;
    ensure!(same(&file, &image.scales(0)?, &["x"])? && same(&file, &image.scales(1)?, &["y"])?);
    ensure!(image.scales(1)?[0].is_scale()?);
    Ok(())
}

fn same(file: &File, found: &[Dataset], names: &[&str]) -> Result<bool> {
    let wanted = names.iter().map(|name| Ok(file.dataset(name)?.address()));
    let wanted = wanted.collect::<Result<Vec<_>>>()?;
    Ok(found.iter().map(Dataset::address).eq(wanted))
}
