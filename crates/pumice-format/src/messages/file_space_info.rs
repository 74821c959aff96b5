//! The file space info message (0x0017) of a superblock extension: how the writer finds room in the
//! file, and where it keeps the free space it knows of. Written as version 1.
//!
//! ```text
//! version 0                            version 1
//! 0  version                           0  version
//! 1  strategy (older numbers)          1  strategy
//! 2  threshold (length)                2  whether free space is kept
//!    six addresses of managers,        3  threshold (length)
//!    if free space is kept                page size (length)
//!                                         page-end threshold, 2 bytes
//!                                         end of the file before managers (address)
//!                                         twelve addresses of managers, if free space is kept
//! ```

use crate::{Context, DecodeError, Sizes, UNDEFINED};
use pumice_bytes::Writer;

/// The number of managers of version 1.
const MANAGERS: usize = 12;

/// libhdf5's settings where a file does not say.
const DEFAULT_THRESHOLD: u64 = 1;
const DEFAULT_PAGE_SIZE: u64 = 4096;

/// A writer's file-space strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileSpaceStrategy {
    /// Free-space managers, then aggregators, then the end of the file.
    #[default]
    FreeSpaceManagers,
    /// Pages, with free-space managers within and of them.
    Paged,
    /// Aggregators, then the end of the file.
    Aggregators,
    /// The end of the file.
    EndOfFile,
}

/// The file-space settings.
///
/// ```
/// use pumice_format::Context;
/// use pumice_format::messages::{FileSpaceInfo, FileSpaceStrategy};
///
/// let info = FileSpaceInfo::decode(&[0, 3, 9, 0, 0, 0, 0, 0, 0, 0], &Context::default())?;
/// assert_eq!(info.strategy, FileSpaceStrategy::Aggregators);
/// assert_eq!(info.page_size, 4096);
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSpaceInfo {
    /// The strategy.
    pub strategy: FileSpaceStrategy,
    /// Whether free space is remembered when the file is closed.
    pub persist: bool,
    /// The smallest free section that is remembered.
    pub threshold: u64,
    /// Bytes of a page.
    pub page_size: u64,
    /// Metadata sections of up to this many bytes at the end of a page are not stored.
    pub page_end_threshold: u16,
    /// The end of the file before the managers were written, or undefined.
    pub end_before_managers: u64,
    /// Free-space managers, each undefined if there is none.
    pub managers: Vec<u64>,
}

impl Default for FileSpaceInfo {
    /// libhdf5's defaults for a file without the message.
    fn default() -> Self {
        Self {
            strategy: FileSpaceStrategy::default(),
            persist: false,
            threshold: DEFAULT_THRESHOLD,
            page_size: DEFAULT_PAGE_SIZE,
            page_end_threshold: 0,
            end_before_managers: UNDEFINED,
            managers: Vec::new(),
        }
    }
}

impl FileSpaceInfo {
    /// Decodes the body of a message.
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader("file space info message", bytes);
        let start = reader.clone();
        match reader.u8()? {
            0 => decode_old(&mut reader, context),
            1 => decode_new(&mut reader, context),
            version => Err(start.unknown("version 0 or 1", 1u8, version)),
        }
    }

    /// Appends the body of a message.
    pub fn encode(&self, sizes: Sizes, out: &mut Vec<u8>) {
        let (offset, length) = (usize::from(sizes.offset), usize::from(sizes.length));
        out.put_u8(1);
        out.put_u8(match self.strategy {
            FileSpaceStrategy::FreeSpaceManagers => 0,
            FileSpaceStrategy::Paged => 1,
            FileSpaceStrategy::Aggregators => 2,
            FileSpaceStrategy::EndOfFile => 3,
        });
        out.put_u8(u8::from(self.persist));
        out.put_uint(self.threshold, length);
        out.put_uint(self.page_size, length);
        out.put_u16(self.page_end_threshold);
        out.put_uint(self.end_before_managers, offset);
        if self.persist {
            let managers = self.managers.iter().copied().chain(std::iter::repeat(UNDEFINED));
            managers.take(MANAGERS).for_each(|address| out.put_uint(address, offset));
        }
    }
}

type Reader<'b> = pumice_bytes::Reader<'b>;

fn decode_old(reader: &mut Reader<'_>, context: &Context) -> Result<FileSpaceInfo, DecodeError> {
    let start = reader.clone();
    let strategy = reader.u8()?;
    let threshold = reader.uint(context.length_width())?;
    let mut info = FileSpaceInfo::default();
    match strategy {
        1 => {
            (info.persist, info.threshold) = (true, threshold);
            info.managers = addresses(reader, 6, context)?;
            info.managers.resize(MANAGERS, UNDEFINED);
        }
        2 => info.threshold = threshold,
        3 => info.strategy = FileSpaceStrategy::Aggregators,
        4 => info.strategy = FileSpaceStrategy::EndOfFile,
        other => return Err(start.error("a strategy from 1 to 4", other)),
    }
    Ok(info)
}

fn decode_new(reader: &mut Reader<'_>, context: &Context) -> Result<FileSpaceInfo, DecodeError> {
    let start = reader.clone();
    let strategy = match reader.u8()? {
        0 => FileSpaceStrategy::FreeSpaceManagers,
        1 => FileSpaceStrategy::Paged,
        2 => FileSpaceStrategy::Aggregators,
        3 => FileSpaceStrategy::EndOfFile,
        other => return Err(start.error("a strategy from 0 to 3", other)),
    };
    let persist = reader.u8()? != 0;
    let threshold = reader.uint(context.length_width())?;
    let page_size = reader.uint(context.length_width())?;
    let page_end_threshold = reader.u16()?;
    let end_before_managers = reader.offset(context.offset_width())?;
    let managers = if persist { addresses(reader, MANAGERS, context)? } else { Vec::new() };
    Ok(FileSpaceInfo {
        strategy,
        persist,
        threshold,
        page_size,
        page_end_threshold,
        end_before_managers,
        managers,
    })
}

fn addresses(
    reader: &mut Reader<'_>,
    count: usize,
    context: &Context,
) -> Result<Vec<u64>, DecodeError> {
    (0..count).map(|_| reader.offset(context.offset_width())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_has_pages_and_managers() {
        let mut bytes = vec![1, 1, 1];
        bytes.extend(7u64.to_le_bytes());
        bytes.extend(8192u64.to_le_bytes());
        bytes.extend([0, 0]);
        for address in (0..13u64).map(|place| if place == 5 { u64::MAX } else { 100 + place }) {
            bytes.extend(address.to_le_bytes());
        }
        let info = FileSpaceInfo::decode(&bytes, &Context::default()).unwrap();
        assert_eq!((info.strategy, info.persist), (FileSpaceStrategy::Paged, true));
        assert_eq!((info.threshold, info.page_size, info.end_before_managers), (7, 8192, 100));
        assert_eq!((info.managers.len(), info.managers[4]), (12, UNDEFINED));
        let mut again = Vec::new();
        info.encode(Sizes::default(), &mut again);
        assert_eq!(again, bytes);
        for end in 0..bytes.len() {
            assert!(FileSpaceInfo::decode(&bytes[..end], &Context::default()).is_err(), "{end}");
        }
    }

    #[test]
    fn version_0_strategies_become_those_of_version_1() {
        let decode = |strategy| {
            let mut bytes = vec![0, strategy, 9, 0, 0, 0, 0, 0, 0, 0];
            bytes.extend([0xFF; 48]);
            FileSpaceInfo::decode(&bytes, &Context::default())
        };
        let persistent = decode(1).unwrap();
        assert_eq!((persistent.persist, persistent.threshold), (true, 9));
        assert_eq!(persistent.managers, [UNDEFINED; MANAGERS]);
        assert_eq!(decode(2).unwrap().threshold, 9);
        assert_eq!(decode(4).unwrap().strategy, FileSpaceStrategy::EndOfFile);
        assert!(decode(0).is_err());
    }
}
