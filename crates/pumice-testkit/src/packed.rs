//! Elements with variable-length parts as one stream of bytes: each such part as its count (8 bytes,
//! all ones for null) and its base elements, which may have such parts again; everything else as it
//! is stored. Gaps of compounds are left out.

use anyhow::{Context, Result, bail};
use pumice::{Datatype, Heaped};

/// Packs elements; those without variable-length parts stay as they are.
pub(crate) fn pack(datatype: &Datatype, heaped: &Heaped) -> Result<Vec<u8>> {
    if !datatype.has_varlen() {
        return Ok(heaped.elements.clone());
    }
    let mut out = Vec::new();
    put(datatype, &heaped.elements, &heaped.heap, &mut out)?;
    Ok(out)
}

fn put(datatype: &Datatype, elements: &[u8], heap: &[u8], out: &mut Vec<u8>) -> Result<()> {
    for element in elements.chunks_exact(datatype.size()) {
        match datatype {
            Datatype::VarLen(varlen) => match varlen.payload(element, heap)? {
                None => out.extend_from_slice(&[0xFF; 8]),
                Some(payload) => {
                    let count = (payload.len() / varlen.base.size()) as u64;
                    out.extend_from_slice(&count.to_le_bytes());
                    put(&varlen.base, payload, heap, out)?;
                }
            },
            Datatype::Array(array) => put(&array.base, element, heap, out)?,
            Datatype::Compound(compound) => {
                for member in &compound.members {
                    let start = member.offset as usize;
                    let part = element.get(start..start + member.datatype.size());
                    put(&member.datatype, part.context("member outside")?, heap, out)?;
                }
            }
            _ => out.extend_from_slice(element),
        }
    }
    Ok(())
}

/// Undoes [`pack`].
pub(crate) fn unpack(datatype: &Datatype, packed: Vec<u8>) -> Result<Heaped> {
    let mut heaped = Heaped::default();
    if !datatype.has_varlen() {
        heaped.elements = packed;
        return Ok(heaped);
    }
    let mut rest = packed.as_slice();
    let mut elements = Vec::new();
    while !rest.is_empty() {
        elements.extend(take(datatype, &mut rest, &mut heaped)?);
    }
    heaped.elements = elements;
    Ok(heaped)
}

/// The next element.
fn take(datatype: &Datatype, rest: &mut &[u8], heaped: &mut Heaped) -> Result<Vec<u8>> {
    match datatype {
        Datatype::VarLen(varlen) => {
            let count = rest.split_off(..8).context("no count")?;
            let count = u64::from_le_bytes(count.try_into()?);
            if count == u64::MAX {
                return Ok(vec![0; varlen.size as usize]);
            }
            if count > rest.len() as u64 {
                bail!("{count} base elements in {} byte(s)", rest.len());
            }
            let mut payload = Vec::new();
            for _ in 0..count {
                payload.extend(take(&varlen.base, rest, heaped)?);
            }
            Ok(heaped.push(&payload, count, varlen.size)?)
        }
        Datatype::Array(array) => {
            let parts = (0..array.count()).map(|_| take(&array.base, rest, heaped));
            Ok(parts.collect::<Result<Vec<_>>>()?.concat())
        }
        Datatype::Compound(compound) => {
            let mut element = vec![0; compound.size as usize];
            for member in &compound.members {
                let part = take(&member.datatype, rest, heaped)?;
                let start = member.offset as usize;
                let place = element.get_mut(start..start + part.len()).context("member outside")?;
                place.copy_from_slice(&part);
            }
            Ok(element)
        }
        other => Ok(rest.split_off(..other.size()).context("too few bytes")?.to_vec()),
    }
}
