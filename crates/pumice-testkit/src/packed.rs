//! Elements with variable-length parts as one stream of bytes: each such part as its count (8 bytes,
//! all ones for null) and its base elements, which may have such parts again; everything else as it
//! is stored. Gaps of compounds are left out.

use anyhow::{Context, Result};
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
