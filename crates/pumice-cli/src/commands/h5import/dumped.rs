//! Configurations that h5dump printed: the description of one dataset.

use super::{Architecture, Class, Settings, Spelling, path};
use anyhow::{Context, Result, bail, ensure};
use pumice::types::ByteOrder;

/// Reads what the words of a description say.
pub(super) fn read<'a>(
    mut words: impl Iterator<Item = &'a str>,
    settings: &mut Settings,
) -> Result<()> {
    settings.from_dump = true;
    while let Some(word) = words.next() {
        match word {
            "DATASET" => settings.path = path(next(&mut words)?)?,
            "DATATYPE" => datatype(&mut words, settings)?,
            "DATASPACE" => dataspace(&mut words, settings)?,
            "STORAGE_LAYOUT" => layout(&mut words, settings)?,
            "COMPRESSION" => compression(&mut words, settings)?,
            "SUBSET" => subset(&mut words, settings)?,
            "DATA" | "ATTRIBUTE" => break,
            _ => {}
        }
    }
    Ok(())
}

fn next<'a>(words: &mut impl Iterator<Item = &'a str>) -> Result<&'a str> {
    words.next().context("The description ends too early")
}

/// A name such as `H5T_STD_I32LE`. The values themselves are in the order of this machine.
fn datatype<'a>(words: &mut impl Iterator<Item = &'a str>, settings: &mut Settings) -> Result<()> {
    let name = next(words)?;
    settings.spelling = Spelling::Binary;
    if name == "H5T_STRING" {
        (settings.spelling, settings.class) = (Spelling::Text, Class::Lines);
        settings.output_class = Class::Lines;
        return Ok(());
    }
    let unknown = || format!("datatype {name} cannot be imported");
    let (architecture, rest) = if let Some(rest) = name.strip_prefix("H5T_STD_") {
        (Architecture::Standard, rest)
    } else if let Some(rest) = name.strip_prefix("H5T_IEEE_") {
        (Architecture::Ieee, rest)
    } else if let Some(rest) = name.strip_prefix("H5T_NATIVE_") {
        (Architecture::Native, rest)
    } else {
        bail!(unknown());
    };
    settings.architecture = architecture;
    (settings.class, settings.bits) = if architecture == Architecture::Native {
        native(rest).with_context(unknown)?
    } else {
        let (digits, order) = match (rest.strip_suffix("LE"), rest.strip_suffix("BE")) {
            (Some(digits), _) => (digits, ByteOrder::Little),
            (_, Some(digits)) => (digits, ByteOrder::Big),
            _ => bail!(unknown()),
        };
        settings.output_order = Some(order);
        let class = match digits.chars().next() {
            Some('I') => Class::Signed,
            Some('U' | 'B') => Class::Unsigned,
            Some('F') => Class::Float,
            _ => bail!(unknown()),
        };
        (class, digits[1..].parse().ok().with_context(unknown)?)
    };
    ensure!(matches!(settings.bits, 8 | 16 | 32 | 64), unknown());
    (settings.output_class, settings.output_bits) = (settings.class, settings.bits);
    Ok(())
}

fn native(name: &str) -> Option<(Class, u32)> {
    Some(match name {
        "SCHAR" | "CHAR" => (Class::Signed, 8),
        "UCHAR" => (Class::Unsigned, 8),
        "SHORT" => (Class::Signed, 16),
        "USHORT" => (Class::Unsigned, 16),
        "INT" => (Class::Signed, 32),
        "UINT" => (Class::Unsigned, 32),
        "LONG" | "LLONG" => (Class::Signed, 64),
        "ULONG" | "ULLONG" => (Class::Unsigned, 64),
        "FLOAT" => (Class::Float, 32),
        "DOUBLE" => (Class::Float, 64),
        _ => return None,
    })
}

/// `SCALAR`, or `SIMPLE { ( 5, 3 ) / ( H5S_UNLIMITED, 3 ) }`.
fn dataspace<'a>(words: &mut impl Iterator<Item = &'a str>, settings: &mut Settings) -> Result<()> {
    match next(words)? {
        "SCALAR" => {
            settings.shape = Some(Vec::new());
            return Ok(());
        }
        "SIMPLE" => {}
        other => bail!("dataspace {other} cannot be imported"),
    }
    next(words)?;
    let shape = list(words)?;
    let shape = shape.into_iter().collect::<Option<Vec<_>>>().context("a shape without limit")?;
    if next(words)? == "/" {
        let max = list(words)?;
        if max.contains(&None) {
            settings.max_shape = Some(max);
        }
    }
    settings.shape = Some(shape);
    Ok(())
}

/// `( 5, H5S_UNLIMITED )`; without limit is nothing.
fn list<'a>(words: &mut impl Iterator<Item = &'a str>) -> Result<Vec<Option<u64>>> {
    ensure!(next(words)? == "(", "a list begins with a parenthesis");
    let mut sizes = Vec::new();
    loop {
        let word = next(words)?;
        if word.starts_with(')') {
            return Ok(sizes);
        }
        ensure!(sizes.len() < 32, "Invalid value for rank");
        let word = word.trim_end_matches(',');
        sizes.push(match word {
            "H5S_UNLIMITED" => None,
            _ => Some(word.parse().with_context(|| format!("not a size: {word}"))?),
        });
    }
}

fn sizes<'a>(words: &mut impl Iterator<Item = &'a str>) -> Result<Vec<u64>> {
    list(words)?.into_iter().collect::<Option<_>>().context("a size without limit")
}

fn layout<'a>(words: &mut impl Iterator<Item = &'a str>, settings: &mut Settings) -> Result<()> {
    next(words)?;
    if next(words)? == "CHUNKED" {
        settings.chunk = Some(sizes(words)?);
    }
    Ok(())
}

/// `DEFLATE { LEVEL 6 }`.
fn compression<'a>(
    words: &mut impl Iterator<Item = &'a str>,
    settings: &mut Settings,
) -> Result<()> {
    if next(words)? != "DEFLATE" {
        return Ok(());
    }
    let mut level = words.skip_while(|word| *word != "LEVEL").skip(1);
    let level = next(&mut level)?.parse().ok().filter(|level| *level <= 9);
    settings.deflate = Some(level.context("Invalid value for compression parameter")?);
    Ok(())
}

/// `{ START ( 1 ); STRIDE ( 1 ); COUNT ( 3 ); BLOCK ( 1 ); }`: the dataset has what was taken.
fn subset<'a>(words: &mut impl Iterator<Item = &'a str>, settings: &mut Settings) -> Result<()> {
    loop {
        match next(words)? {
            "}" => return Ok(()),
            "COUNT" => settings.shape = Some(sizes(words)?),
            "BLOCK" => {
                let block = sizes(words)?;
                let shape = settings.shape.iter_mut().flatten();
                shape.zip(block).for_each(|(size, block)| *size = size.saturating_mul(block));
            }
            _ => {}
        }
    }
}
