//! Values of Rust types: written for h5py to read, and read where h5py wrote them.

use anyhow::{Result, ensure};
use pumice::{Complex, Dataset, File, FixedLength, FixedText, H5Type, Reference, Scalar};
use std::fmt::Debug;
use std::path::Path;

#[derive(H5Type, Clone, Copy, Debug, PartialEq)]
#[repr(i8)]
enum Kind {
    Rock = -1,
    #[h5(rename = "soft stone")]
    Soft = 5,
}

/// A struct with padding between all of its fields.
#[derive(H5Type, Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Padded {
    small: u8,
    large: f64,
    last: u16,
}

#[derive(H5Type, Clone, Debug, PartialEq)]
struct Sample {
    name: String,
    code: FixedText<4>,
    kind: Kind,
    valid: bool,
    wave: Complex<f32>,
    grid: [[i16; 2]; 3],
    names: [String; 2],
    place: Padded,
    peaks: Vec<f64>,
    tags: Vec<String>,
}

fn sample(number: u8) -> Sample {
    let name = |text: &str| format!("{text} {number}");
    Sample {
        name: if number == 1 { String::new() } else { name("größe") },
        code: FixedText::new(&format!("c{number}")).unwrap_or_else(|| unreachable!("it fits")),
        kind: if number.is_multiple_of(2) { Kind::Rock } else { Kind::Soft },
        valid: number.is_multiple_of(3),
        wave: Complex::new(f32::from(number), -0.5),
        grid: [[1, 2], [3, 4], [5, i16::from(number)]],
        names: [name("one"), name("two")],
        place: Padded { small: number, large: f64::from(number) / 4.0, last: 7 },
        peaks: (0..number).map(|peak| f64::from(peak) + 0.5).collect(),
        tags: (0..number).map(|_| name("tag")).collect(),
    }
}

fn samples() -> Vec<Sample> {
    (0..4).map(sample).collect()
}

/// A row of a table whose members refer to other places of the file.
#[derive(H5Type, Clone, Debug, PartialEq)]
struct Row {
    object: Option<Reference>,
    #[h5(region)]
    part: Option<Reference>,
    label: String,
}

/// Writes a file with values of all kinds.
pub(crate) fn write(path: &Path) -> Result<()> {
    let file = File::create(path)?;
    let put = |name: &str, chunks: bool| -> Result<Dataset> {
        let builder = file.new_dataset::<Sample>().shape([4]);
        let builder = if chunks { builder.chunk([3]).deflate(1) } else { builder };
        Ok(builder.create(name)?)
    };
    put("samples", false)?.write(.., &samples())?;
    let chunked = put("chunked", true)?;
    samples()
        .iter()
        .enumerate()
        .try_for_each(|(at, one)| chunked.write(at as u64, std::slice::from_ref(one)))?;
    fn one<T: H5Type>(file: &File, name: &str, values: &[T]) -> Result<()> {
        let shape = [values.len() as u64];
        Ok(file.new_dataset::<T>().shape(shape).create(name)?.write(.., values)?)
    }
    one(&file, "flags", &[true, false, true])?;
    one(&file, "waves", &[Complex::new(1.5f64, -2.0), Complex::new(0.0, 1.0)])?;
    one(&file, "texts", &["tuff", "", "größe"])?;
    one(&file, "kinds", &[Kind::Soft, Kind::Rock])?;
    one(&file, "walks", &[vec![1i32, 2, 3], vec![], vec![-1]])?;
    one(&file, "padded", &[sample(2).place, sample(3).place])?;
    let rows = vec![
        Row {
            object: Some(file.reference("flags")?),
            part: Some(file.region_reference("walks", 1..3)?),
            label: "both".into(),
        },
        Row { object: None, part: None, label: "none".into() },
    ];
    one(&file, "rows", &rows)?;
    file.set_attribute("title", "größe")?;
    file.set_attribute("code", FixedLength("abc"))?;
    file.set_attribute("names", ["tuff", "basalt"])?;
    file.set_attribute("flag", true)?;
    file.set_attribute("flags", [true, false])?;
    file.set_attribute("wave", Complex::new(1.0f32, 2.0))?;
    file.set_attribute("sample", Scalar(&sample(2)))?;
    Ok(file.close()?)
}

/// Reads a file in which h5py wrote the same values.
pub(crate) fn read(path: &Path) -> Result<()> {
    let file = File::open(path)?;
    fn check<T: H5Type + Debug + PartialEq>(file: &File, name: &str, wanted: &[T]) -> Result<()> {
        let found = file.dataset(name)?.read::<T>(..)?;
        ensure!(found == wanted, "{name}: {found:?}, not {wanted:?}");
        let dataset = file.dataset(name)?;
        for (at, one) in wanted.iter().enumerate() {
            let found = dataset.read::<T>(at as u64)?;
            ensure!(found == std::slice::from_ref(one), "{name}[{at}]: {found:?}, not {one:?}");
        }
        Ok(())
    }
    check(&file, "samples", &samples())?;
    check(&file, "chunked", &samples())?;
    check(&file, "flags", &[true, false, true])?;
    check(&file, "numbers as flags", &[true, false, true])?;
    check(&file, "waves", &[Complex::new(1.5f64, -2.0), Complex::new(0.0, 1.0)])?;
    check(&file, "waves", &[Complex::new(1.5f32, -2.0), Complex::new(0.0, 1.0)])?;
    check(&file, "texts", &["tuff", "", "größe"].map(String::from))?;
    check(&file, "fixed", &["tuff", "", "größe"].map(String::from))?;
    check(&file, "kinds", &[Kind::Soft, Kind::Rock])?;
    check(&file, "walks", &[vec![1i64, 2, 3], vec![], vec![-1]])?;
    check(&file, "padded", &[sample(2).place, sample(3).place])?;
    let rows = file.dataset("rows")?.read::<Row>(..)?;
    ensure!(rows[0].object == Some(file.reference("flags")?), "{rows:?}");
    let Some(part) = &rows[0].part else { anyhow::bail!("{rows:?}") };
    let (walks, part) = file.dereference_region(part)?;
    ensure!(walks.read::<Vec<i32>>(part)? == [vec![], vec![-1]]);
    ensure!(rows[0].label == "both" && rows[1].object.is_none() && rows[1].part.is_none());
    let attribute = |name: &str| file.attribute(name);
    ensure!(attribute("title")?.read_scalar::<String>()? == "größe");
    ensure!(attribute("names")?.read::<String>()? == ["tuff", "basalt"]);
    ensure!(attribute("flag")?.read_scalar::<bool>()?);
    ensure!(attribute("flags")?.read::<bool>()? == [true, false]);
    ensure!(attribute("wave")?.read_scalar::<Complex<f64>>()? == Complex::new(1.0, 2.0));
    ensure!(attribute("sample")?.read_scalar::<Sample>()? == sample(2));
    Ok(())
}
