//! The property of dataset creation lists that asks for structured chunks: what kind, of which shape, and the filters of
//! each section.
//!
//! A stock libhdf5 does not know it: it is a property like those that programs insert themselves (`H5Pinsert2`), which
//! is copied with its list. Chunk shape and filters of the ordinary kind are in the list as well, so that functions
//! such as `H5Pset_deflate` can be used; these filters are for all sections, and come before those of one section.

use crate::abi::*;
use crate::creation;
use crate::fault::{Fault, Result, checked};
use crate::library::Api;
use pumice::{FilterSpec, Section, SectionFilters, Sections};
use pumice_engine::dataset::LayoutSpec;
use pumice_types::Datatype;
use std::ffi::{CStr, c_int, c_void};

/// `H5D_SPARSE_CHUNK`.
pub(crate) const SPARSE: u32 = 1;
/// `H5D_VL_CHUNK`.
pub(crate) const VARIABLE_LENGTH: u32 = 2;

const NAME: &CStr = c"pumice_struct_chunk";
const MAX_RANK: usize = 32;
const MAX_SECTIONS: usize = 3;
const MAX_FILTERS: usize = 16;
const MAX_PARAMETERS: usize = 64;

/// One filter of a section.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    id: u32,
    optional: u32,
    count: u32,
    parameters: [u32; MAX_PARAMETERS],
}

/// The property: plain bytes, which libhdf5 copies.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct StructChunk {
    pub(crate) kind: u32,
    rank: u32,
    dims: [u64; MAX_RANK],
    counts: [u32; MAX_SECTIONS],
    /// How many of the list's ordinary filters are among those of the sections.
    known: u32,
    filters: [[Entry; MAX_FILTERS]; MAX_SECTIONS],
}

impl StructChunk {
    /// Chunks of a kind and a shape, without filters.
    pub(crate) fn new(kind: u32, dims: &[u64]) -> Result<Self> {
        if dims.is_empty() || dims.len() > MAX_RANK || dims.contains(&0) {
            return Err(Fault::Invalid(format!("chunks of the shape {dims:?}")));
        }
        if kind != SPARSE && kind != VARIABLE_LENGTH {
            return Err(Fault::Invalid(format!("structured chunks of the kind {kind}")));
        }
        let none = Entry { id: 0, optional: 0, count: 0, parameters: [0; MAX_PARAMETERS] };
        let mut sides = [0; MAX_RANK];
        sides[..dims.len()].copy_from_slice(dims);
        Ok(Self {
            kind,
            rank: dims.len() as u32,
            dims: sides,
            counts: [0; MAX_SECTIONS],
            known: 0,
            filters: [[none; MAX_FILTERS]; MAX_SECTIONS],
        })
    }

    /// The property of a list, if it has it.
    pub(crate) fn find(api: &Api, list: Hid) -> Result<Option<Box<Self>>> {
        let mut found = Box::new(Self::new(SPARSE, &[1])?);
        // SAFETY: the property has this size: it is only ever inserted by `put`.
        unsafe {
            if list == DEFAULT || (api.H5Pexist)(list, NAME.as_ptr()) <= 0 {
                return Ok(None);
            }
            let to: *mut Self = &mut *found;
            checked((api.H5Pget)(list, NAME.as_ptr(), to.cast()), "H5Pget")?;
        }
        Ok(Some(found))
    }

    /// Puts the property into a list, in place of one that is there.
    pub(crate) fn put(&self, api: &Api, list: Hid) -> Result<()> {
        let value: *const Self = self;
        let value = value.cast::<c_void>().cast_mut();
        let none = std::ptr::null();
        // SAFETY: libhdf5 copies so many bytes; without functions of its own a property is plain bytes.
        let done = unsafe {
            match (api.H5Pexist)(list, NAME.as_ptr()) {
                1.. => (api.H5Pset)(list, NAME.as_ptr(), value),
                _ => (api.H5Pinsert2)(
                    list,
                    NAME.as_ptr(),
                    size_of::<Self>(),
                    value,
                    none,
                    none,
                    none,
                    none,
                    none,
                    none,
                ),
            }
        };
        checked(done, "H5Pinsert2").map(drop)
    }

    pub(crate) fn dims(&self) -> &[u64] {
        &self.dims[..(self.rank as usize).min(MAX_RANK)]
    }

    /// The sections that chunks have for elements of a type.
    fn sections(&self, datatype: Option<&Datatype>) -> Vec<Section> {
        let varies = datatype.is_some_and(Datatype::has_varlen);
        match (self.kind, varies) {
            (SPARSE, false) => vec![Section::Selection, Section::Values],
            (SPARSE, true) => vec![Section::Selection, Section::References, Section::Heap],
            _ => vec![Section::References, Section::Heap],
        }
    }

    /// The filters of a section's own.
    pub(crate) fn own(&self, section: usize) -> Vec<FilterSpec> {
        let count = self.counts.get(section).map_or(0, |&count| count as usize);
        let entries = self.filters.get(section).into_iter().flatten().take(count);
        let spec = |entry: &Entry| FilterSpec {
            id: entry.id as u16,
            optional: entry.optional != 0,
            name: None,
            config: None,
            parameters: entry.parameters[..(entry.count as usize).min(MAX_PARAMETERS)].to_vec(),
        };
        entries.map(spec).collect()
    }

    /// Makes these the filters of a section's own.
    pub(crate) fn set_own(&mut self, section: usize, filters: &[FilterSpec]) -> Result<()> {
        let (Some(count), Some(entries)) =
            (self.counts.get_mut(section), self.filters.get_mut(section))
        else {
            return Err(Fault::Invalid(format!("a chunk has no section {section}")));
        };
        if filters.len() > MAX_FILTERS {
            return Err(Fault::Unsupported(format!(
                "more than {MAX_FILTERS} filters of a section"
            )));
        }
        for (entry, filter) in entries.iter_mut().zip(filters) {
            let Some(room) = entry.parameters.get_mut(..filter.parameters.len()) else {
                let what = format!("more than {MAX_PARAMETERS} parameters of a filter");
                return Err(Fault::Unsupported(what));
            };
            room.copy_from_slice(&filter.parameters);
            (entry.id, entry.optional) = (filter.id.into(), filter.optional.into());
            entry.count = filter.parameters.len() as u32;
        }
        *count = filters.len() as u32;
        Ok(())
    }

    /// Makes ordinary filters of a list filters of the sections: what is asked for one section comes behind them.
    pub(crate) fn take_in(&mut self, ordinary: &[FilterSpec]) -> Result<()> {
        let new = ordinary.get(self.known as usize..).unwrap_or_default();
        self.known = ordinary.len() as u32;
        for section in 0..MAX_SECTIONS {
            let mut own = self.own(section);
            // A checksum is of use for values of fixed size alone: locations and references have one.
            let suits = |filter: &&FilterSpec| filter.id != FLETCHER32 || section == 1;
            own.extend(new.iter().filter(suits).cloned());
            self.set_own(section, &own)?;
        }
        Ok(())
    }

    /// How a new dataset is stored.
    pub(crate) fn layout(
        mut self: Box<Self>,
        api: &Api,
        list: Hid,
        datatype: &Datatype,
        dont_filter_partial: bool,
    ) -> Result<LayoutSpec> {
        self.take_in(&creation::filters(api, list)?)?;
        let (chunk, sections) = (self.dims().to_vec(), self.sections(Some(datatype)));
        let mut filters = SectionFilters::none(&sections, datatype.size() as u32);
        for (at, section) in sections.iter().enumerate() {
            for mut filter in self.own(at) {
                if filter.id == SHUFFLE && filter.parameters.is_empty() {
                    let size = if at == 0 { 8 } else { datatype.size() as u32 };
                    filter.parameters = vec![size];
                }
                filters.add(Sections::One(*section), filter)?;
            }
        }
        let of = |section| filters.of(section).to_vec();
        if self.kind == VARIABLE_LENGTH && !datatype.has_varlen() {
            let what = "H5D_VL_CHUNK for elements without data of variable length";
            return Err(Fault::Invalid(what.into()));
        }
        Ok(match datatype.has_varlen() {
            false => LayoutSpec::Sparse {
                chunk,
                locations: of(Section::Selection),
                values: of(Section::Values),
                dont_filter_partial,
            },
            true => LayoutSpec::VariableLength {
                chunk,
                locations: (self.kind == SPARSE).then(|| of(Section::Selection)),
                references: of(Section::References),
                heap: of(Section::Heap),
                dont_filter_partial,
            },
        })
    }

    /// Takes note that a list's ordinary filters are among those of the sections.
    pub(crate) fn know(&mut self, ordinary: usize) {
        self.known = ordinary as u32;
    }
}

/// Identifiers of filters that sections are particular about.
const SHUFFLE: u16 = 2;
const FLETCHER32: u16 = 3;

/// A section's number, which may be a flag of the RFC that has the same value.
pub(crate) fn section(number: u64) -> Result<usize> {
    match usize::try_from(number) {
        Ok(number) if number < MAX_SECTIONS => Ok(number),
        _ => Err(Fault::Invalid(format!("a chunk has no section {number}"))),
    }
}

/// `H5D_layout_t` of chunks.
pub(crate) fn set_chunk(api: &Api, list: Hid, dims: &[u64]) -> Result<()> {
    // SAFETY: the list is open, the chunk has as many sides as is said.
    let set = unsafe { (api.H5Pset_chunk)(list, dims.len() as c_int, dims.as_ptr()) };
    checked(set, "H5Pset_chunk").map(drop)
}
