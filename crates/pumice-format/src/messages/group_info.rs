//! The group info message (0x000A): limits and estimates for the links of a new-style group.

use crate::{Context, DecodeError};
use pumice_bytes::Writer;

const STRUCTURE: &str = "group info message";

const HAS_PHASE_CHANGE: u8 = 0x01;
const HAS_ESTIMATES: u8 = 0x02;

/// Limits and estimates of a group; `None` for libhdf5's own.
///
/// ```
/// use pumice_format::Context;
/// use pumice_format::messages::GroupInfo;
///
/// let mut bytes = Vec::new();
/// GroupInfo::default().encode(&mut bytes);
/// assert_eq!(bytes, [0, 0]);
/// assert_eq!(GroupInfo::decode(&bytes, &Context::default())?, GroupInfo::default());
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupInfo {
    /// More links than the first number (8) are stored densely; fewer than the second (6) come
    /// back into messages.
    pub phase_change: Option<(u16, u16)>,
    /// The expected number of links (4), and the length of their names (8).
    pub estimates: Option<(u16, u16)>,
}

impl GroupInfo {
    /// Decodes the body of a message.
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader(STRUCTURE, bytes);
        let start = reader.clone();
        let [version, flags] = reader.array()?;
        if version != 0 {
            return Err(start.unknown("version 0", 0u8, version));
        }
        if flags & !(HAS_PHASE_CHANGE | HAS_ESTIMATES) != 0 {
            return Err(start.reserved("flags of bits 0 and 1", flags));
        }
        let mut info = Self::default();
        if flags & HAS_PHASE_CHANGE != 0 {
            info.phase_change = Some((reader.u16()?, reader.u16()?));
        }
        if flags & HAS_ESTIMATES != 0 {
            info.estimates = Some((reader.u16()?, reader.u16()?));
        }
        Ok(info)
    }

    /// Appends the body of a message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let phase_change = if self.phase_change.is_some() { HAS_PHASE_CHANGE } else { 0 };
        let estimates = if self.estimates.is_some() { HAS_ESTIMATES } else { 0 };
        out.put_bytes(&[0, phase_change | estimates]);
        for (first, second) in [self.phase_change, self.estimates].into_iter().flatten() {
            out.put_u16(first);
            out.put_u16(second);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_fields_survive_a_round_trip() {
        for phase_change in [None, Some((8, 6))] {
            for estimates in [None, Some((4, 300))] {
                let info = GroupInfo { phase_change, estimates };
                let mut bytes = Vec::new();
                info.encode(&mut bytes);
                assert_eq!(GroupInfo::decode(&bytes, &Context::default()).unwrap(), info);
            }
        }
        assert!(GroupInfo::decode(&[0, 1, 8, 0], &Context::default()).is_err());
    }
}
