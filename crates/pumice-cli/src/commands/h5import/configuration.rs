//! Configuration files of keywords and values.

use super::{Architecture, Class, Settings, bits, path};
use anyhow::{Context, Result, bail, ensure};
use pumice::types::ByteOrder;
use std::collections::HashSet;
use std::iter::Peekable;

/// Reads the settings in a file.
pub(super) fn read<'a>(
    mut words: Peekable<impl Iterator<Item = &'a str>>,
    settings: &mut Settings,
) -> Result<()> {
    let mut seen = HashSet::new();
    let mut explicit = (None, None);
    let (mut compressed, mut level, mut rank) = (false, 6, None);
    while let Some(keyword) = words.next() {
        ensure!(seen.insert(keyword), "{keyword} keyword appears twice");
        let list = keyword.ends_with("DIMENSION-SIZES") || keyword == "MAXIMUM-DIMENSIONS";
        if list {
            dimensions(keyword, rank, &mut words, settings)?;
            continue;
        }
        let value = words.next().with_context(|| format!("{keyword} has no value"))?;
        match keyword {
            "PATH" => settings.path = path(value)?,
            "INPUT-CLASS" => settings.set_class(value)?,
            "INPUT-SIZE" => settings.set_bits(value)?,
            "INPUT-BYTE-ORDER" => settings.order = Some(order(value)?),
            "RANK" => {
                let number = value.parse().ok().filter(|rank| (1..=32).contains(rank));
                rank = Some(number.context("Invalid value for rank")?);
            }
            "OUTPUT-CLASS" => explicit.0 = Some(output_class(value)?),
            "OUTPUT-SIZE" => explicit.1 = Some(bits(value, "output")?),
            "OUTPUT-ARCHITECTURE" => settings.architecture = architecture(value)?,
            "OUTPUT-BYTE-ORDER" => settings.output_order = Some(order(value)?),
            "COMPRESSION-TYPE" => {
                ensure!(value == "GZIP", "Invalid value for compression: {value}");
                compressed = true;
            }
            "COMPRESSION-PARAM" => {
                let number = value.parse().ok().filter(|level| *level <= 9);
                level = number.context("Invalid value for compression parameter")?;
            }
            "EXTERNAL-STORAGE" => settings.external = Some(value.to_owned()),
            _ => bail!("Unknown keyword: {keyword}"),
        }
    }
    // Wherever they stand, they count more than what follows from the input.
    settings.output_class = explicit.0.unwrap_or(settings.output_class);
    settings.output_bits = explicit.1.unwrap_or(settings.output_bits);
    settings.deflate = compressed.then_some(level);
    Ok(())
}

fn dimensions<'a>(
    keyword: &str,
    rank: Option<usize>,
    words: &mut Peekable<impl Iterator<Item = &'a str>>,
    settings: &mut Settings,
) -> Result<()> {
    let rank = rank.with_context(|| format!("{keyword} cannot appear before RANK is provided"))?;
    let mut sizes: Vec<i64> = Vec::new();
    while let Some(size) = words.peek().and_then(|word| word.parse().ok()) {
        sizes.push(size);
        words.next();
    }
    ensure!(
        sizes.len() == rank,
        "{keyword} has {} sizes, not the provided rank of {rank}",
        sizes.len()
    );
    if keyword == "MAXIMUM-DIMENSIONS" {
        let shape = settings.shape.as_ref();
        let shape = shape.context("MAXIMUM-DIMENSIONS cannot appear before DIMENSION-SIZES")?;
        let max: Vec<Option<u64>> = sizes.iter().map(|&size| u64::try_from(size).ok()).collect();
        let small = max.iter().zip(shape).any(|(max, now)| max.is_some_and(|max| max < *now));
        ensure!(!small, "The MAXIMUM-DIMENSIONS cannot be less than the sizes of DIMENSION-SIZES");
        settings.max_shape = Some(max);
        return Ok(());
    }
    let sizes = sizes.into_iter().map(u64::try_from).collect::<Result<Vec<_>, _>>();
    let sizes = sizes.with_context(|| format!("{keyword} has a negative size"))?;
    if keyword == "DIMENSION-SIZES" {
        settings.shape = Some(sizes);
        return Ok(());
    }
    ensure!(keyword == "CHUNKED-DIMENSION-SIZES", "Unknown keyword: {keyword}");
    let shape = settings.shape.as_ref();
    let shape = shape.context("CHUNKED-DIMENSION-SIZES cannot appear before DIMENSION-SIZES")?;
    let large = sizes.iter().zip(shape).any(|(chunk, now)| chunk > now);
    ensure!(!large, "The CHUNKED-DIMENSION-SIZES cannot exceed the sizes of DIMENSION-SIZES");
    settings.chunk = Some(sizes);
    Ok(())
}

fn order(text: &str) -> Result<ByteOrder> {
    Ok(match text {
        "LE" => ByteOrder::Little,
        "BE" => ByteOrder::Big,
        _ => bail!("Invalid value for byte-order: {text}"),
    })
}

fn output_class(text: &str) -> Result<Class> {
    Ok(match text {
        "IN" => Class::Signed,
        "UIN" => Class::Unsigned,
        "FP" => Class::Float,
        _ => bail!("Invalid value for output class: {text}"),
    })
}

fn architecture(text: &str) -> Result<Architecture> {
    Ok(match text {
        "NATIVE" => Architecture::Native,
        "STD" => Architecture::Standard,
        "IEEE" => Architecture::Ieee,
        "INTEL" | "ALPHA" => Architecture::Little,
        "CRAY" | "MIPS" => Architecture::Big,
        "UNIX" => Architecture::Unix,
        _ => bail!("Invalid value for output architecture: {text}"),
    })
}
