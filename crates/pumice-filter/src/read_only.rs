//! Filters of which only decoding is built in: a plugin encodes, where there is one.

use crate::{Filter, FilterError, registry};

/// Decodes a chunk with these parameters: input, the most bytes of the result, and the result.
pub(crate) type Decode = fn(&[u32], &[u8], usize, &mut Vec<u8>) -> Result<(), FilterError>;

/// A compressor that is read.
pub(crate) struct ReadOnly {
    pub(crate) id: u16,
    pub(crate) name: &'static str,
    pub(crate) decode: Decode,
}

impl Filter for ReadOnly {
    fn id(&self) -> u16 {
        self.id
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn encodes(&self) -> bool {
        registry::plugin(self.id).is_some()
    }

    fn encode(
        &self,
        parameters: &[u32],
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        match registry::plugin(self.id) {
            Some(plugin) => plugin.encode(parameters, input, out),
            None => Err(FilterError::encode(
                self.name,
                "only reading is built in: choose another filter, for example zstd behind shuffle, or build with the \
                 feature `plugins` and put the filter's HDF5 plugin into a folder of HDF5_PLUGIN_PATH",
            )),
        }
    }

    fn decode(
        &self,
        parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        (self.decode)(parameters, input, limit, out)
    }

    fn is_gain(&self, input: &[u8], encoded: &[u8]) -> bool {
        encoded.len() < input.len()
    }
}
