//! In place of [`Wide`] where there is no such processor.

/// There is none.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wide {}

impl Wide {
    pub(super) fn detect() -> Option<Self> {
        None
    }

    pub(super) fn sum_low(self, _: &mut [u32], _: u32, _: u32, _: &[u8], _: u64) -> (usize, u64) {
        match self {}
    }
}
