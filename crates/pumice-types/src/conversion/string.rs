//! Strings of fixed size: cut or padded, byte for byte, whatever their character set.

use super::Kernel;
use crate::model::{FixedString, StringPadding};

/// Strings of two sizes and paddings.
#[derive(Debug, Clone)]
pub(super) struct StringKernel {
    source_size: usize,
    source_padding: StringPadding,
    target_size: usize,
    target_padding: StringPadding,
}

impl StringKernel {
    pub(super) fn choose(from: &FixedString, to: &FixedString) -> Kernel {
        if from.size == to.size && from.padding == to.padding {
            return Kernel::Copy;
        }
        Kernel::String(Self {
            source_size: from.size as usize,
            source_padding: from.padding,
            target_size: to.size as usize,
            target_padding: to.padding,
        })
    }

    pub(super) fn run(&self, source: &[u8], target: &mut [u8]) {
        let fill = if self.target_padding == StringPadding::SpacePad { b' ' } else { 0 };
        let strings = source.chunks_exact(self.source_size);
        for (from, to) in strings.zip(target.chunks_exact_mut(self.target_size)) {
            let text = content(from, self.source_padding);
            let kept = text.len().min(to.len());
            to[..kept].copy_from_slice(&text[..kept]);
            to[kept..].fill(fill);
            if self.target_padding == StringPadding::NullTerminate
                && let Some(last) = to.last_mut()
            {
                *last = 0;
            }
        }
    }
}

/// A string without its padding.
fn content(bytes: &[u8], padding: StringPadding) -> &[u8] {
    let length = match padding {
        StringPadding::NullTerminate | StringPadding::NullPad => {
            bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len())
        }
        StringPadding::SpacePad => {
            bytes.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1)
        }
    };
    &bytes[..length]
}
