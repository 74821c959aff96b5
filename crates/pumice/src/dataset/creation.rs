//! The creation properties of a dataset.

use super::Dataset;
use pumice_engine::Result;
use pumice_engine::object::Object;
use pumice_format::UNDEFINED;
use pumice_format::messages::{FillValue, Layout, Message, kind};

pub use pumice_format::messages::{AllocationTime, Fill, FillTime};

/// The creation properties of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Creation {
    /// The value of unwritten cells.
    pub fill: Fill,
    /// When the fill value is written.
    pub fill_time: FillTime,
    /// When space is allocated.
    pub allocation_time: AllocationTime,
    /// The address of the elements, if they are in one piece of the file.
    pub address: Option<u64>,
    /// The address of the index of its chunks, or of the chunks if they need none, as it was when the dataset was opened.
    pub index_address: Option<u64>,
    /// Whether chunks that reach beyond the shape are stored without filters.
    pub dont_filter_partial_chunks: bool,
}

impl Dataset {
    /// The creation properties of the dataset.
    ///
    /// ```
    /// use pumice::{AllocationTime, Fill, File};
    /// let file = File::in_memory()?;
    /// let dataset = file.new_dataset::<u8>().shape([100]).chunk([10]).create("x")?;
    /// let creation = dataset.creation()?;
    /// assert_eq!(creation.fill, Fill::Default);
    /// assert_eq!(creation.allocation_time, AllocationTime::Incremental);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn creation(&self) -> Result<Creation> {
        let message = fill_message(self.state.object())?;
        let layout = self.state.layout_message();
        let allocation_time = match (message.allocation, layout) {
            (AllocationTime::Default, Layout::Compact { .. }) => AllocationTime::Early,
            (AllocationTime::Default, Layout::Contiguous { .. }) => AllocationTime::Late,
            (AllocationTime::Default, _) => AllocationTime::Incremental,
            (said, _) => said,
        };
        let address = match layout {
            Layout::Contiguous { address, .. } if *address != UNDEFINED => Some(*address),
            _ => None,
        };
        let index_address = match layout {
            Layout::Chunked { address, .. } | Layout::Structured { address, .. }
                if *address != UNDEFINED =>
            {
                Some(*address)
            }
            _ => None,
        };
        let dont_filter_partial_chunks = match layout {
            Layout::Chunked { dont_filter_partial, .. }
            | Layout::Structured { dont_filter_partial, .. } => *dont_filter_partial,
            _ => false,
        };
        let (fill, fill_time) = (message.value, message.write);
        Ok(Creation {
            fill,
            fill_time,
            allocation_time,
            address,
            index_address,
            dont_filter_partial_chunks,
        })
    }

    /// The address of the committed datatype that it shares, if it does.
    pub fn committed_datatype(&self) -> Option<u64> {
        pumice_engine::attribute::committed_datatype(&self.owner.0, self.state.object())
    }

    /// The number of hard links to it.
    pub fn link_count(&self) -> u32 {
        self.state.object().link_count()
    }

    /// The time of its last change in seconds since 1970, if it keeps that.
    pub fn modified(&self) -> Option<u32> {
        self.state.object().modified()
    }

    /// The comment that was given to the dataset.
    pub fn comment(&self) -> Option<String> {
        comment(self.state.object())
    }
}

fn fill_message(object: &Object) -> Result<FillValue> {
    if let Some(raw) = object.message(kind::FILL_VALUE) {
        return Ok(FillValue::decode(&raw.body, &object.context(&raw))?);
    }
    match object.message(kind::FILL_VALUE_OLD) {
        Some(raw) => Ok(FillValue::decode_old(&raw.body, &object.context(&raw))?),
        None => Ok(FillValue { allocation: AllocationTime::Default, ..FillValue::default() }),
    }
}

/// The comment of an object.
/// Gives an object a comment, or takes it away.
pub(crate) fn set_comment(object: &Object, text: Option<&str>) -> Result<()> {
    match text {
        Some(text) => {
            let raw = Message::Comment(text.into()).to_raw(Default::default(), 0)?;
            object.set(raw.kind, 0, raw.body)
        }
        None => object.change(|all| all.retain(|message| message.kind != kind::COMMENT)),
    }
}

pub(crate) fn comment(object: &Object) -> Option<String> {
    let raw = object.message(kind::COMMENT)?;
    match Message::decode(raw.kind, raw.flags, &raw.body, &object.context(&raw)) {
        Ok(Message::Comment(text)) => Some(text),
        _ => None,
    }
}
