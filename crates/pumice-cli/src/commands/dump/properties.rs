//! Layout, filters, fill value and allocation time of a dataset.

use super::objects::Dumper;
use crate::ddl::memory_size;
use crate::sections;
use anyhow::Result;
use pumice::types::Heaped;
use pumice::{AllocationTime, Dataset, Datatype, Fill, FillTime, FilterSpec, LayoutKind};

impl Dumper<'_> {
    pub(super) fn properties(&mut self, dataset: &Dataset) -> Result<()> {
        self.begin("STORAGE_LAYOUT {")?;
        self.layout(dataset)?;
        self.end()?;
        let elsewhere = dataset.layout() == LayoutKind::Virtual;
        if elsewhere {
            // The filters of its sources are theirs.
        } else if dataset.sections().len() > 1 {
            let all = dataset.section_filters();
            for (number, section) in dataset.sections().into_iter().enumerate() {
                self.filters(&format!("FILTERS SECTION {number} {{"), all.of(section))?;
            }
        } else {
            self.filters("FILTERS {", &dataset.filters())?;
        }
        let creation = dataset.creation()?;
        self.begin("FILLVALUE {")?;
        let time = match creation.fill_time {
            FillTime::Allocation => "ALLOC",
            FillTime::Never => "NEVER",
            FillTime::IfSet => "IFSET",
        };
        self.line(&format!("FILL_TIME H5D_FILL_TIME_{time}"))?;
        let value = self.fill_value(dataset, &creation.fill)?;
        self.line(&format!("VALUE  {value}"))?;
        self.end()?;
        if elsewhere {
            return Ok(());
        }
        self.begin("ALLOCATION_TIME {")?;
        let time = match creation.allocation_time {
            AllocationTime::Early => "EARLY",
            AllocationTime::Late => "LATE",
            AllocationTime::Incremental => "INCR",
            AllocationTime::Default => "DEFAULT",
        };
        self.line(&format!("H5D_ALLOC_TIME_{time}"))?;
        self.end()
    }

    fn filters(&mut self, title: &str, filters: &[FilterSpec]) -> Result<()> {
        self.begin(title)?;
        if filters.is_empty() {
            self.line("NONE")?;
        }
        for filter in filters {
            self.filter(filter)?;
        }
        self.end()
    }

    /// The chunks of a structured dataset, section by section.
    fn structured(&mut self, dataset: &Dataset) -> Result<()> {
        let kind = if dataset.is_sparse() { "SPARSE_CHUNK" } else { "STRUCTURED_CHUNK" };
        let chunk = dataset.chunk().unwrap_or_default();
        let chunk: Vec<_> = chunk.iter().map(u64::to_string).collect();
        self.line(&format!("{kind} ( {} )", chunk.join(", ")))?;
        for (number, sizes) in sections::sizes(dataset)?.iter().enumerate() {
            let (name, stored, ratio) = (sizes.section.name(), sizes.stored, sizes.ratio());
            self.line(&format!(
                "SECTION {number} {name} SIZE {stored} ({ratio:.3}:1 COMPRESSION)"
            ))?;
        }
        Ok(())
    }

    fn layout(&mut self, dataset: &Dataset) -> Result<()> {
        match dataset.layout() {
            LayoutKind::Compact => {
                self.line("COMPACT")?;
                self.line(&format!("SIZE {}", dataset.storage_size()?))
            }
            LayoutKind::Contiguous => {
                self.line("CONTIGUOUS")?;
                self.line(&format!("SIZE {}", dataset.storage_size()?))?;
                let address = dataset.creation()?.address;
                let base = self.file.info()?.user_block_size;
                let address =
                    address.map_or("HADDR_UNDEF".into(), |address| (address + base).to_string());
                self.line(&format!("OFFSET {address}"))
            }
            LayoutKind::External => {
                self.line("CONTIGUOUS")?;
                self.begin("EXTERNAL {")?;
                for piece in dataset.external_pieces()? {
                    let size = match piece.size {
                        u64::MAX => "H5F_UNLIMITED".to_owned(),
                        size => size.to_string(),
                    };
                    let (name, offset) = (&piece.name, piece.offset);
                    self.line(&format!("FILENAME {name} SIZE {size} OFFSET {offset}"))?;
                }
                self.end()
            }
            LayoutKind::Chunked => self.chunked(dataset),
            LayoutKind::Sparse | LayoutKind::VariableLength => self.structured(dataset),
            LayoutKind::Virtual => self.mappings(dataset),
            _ => self.line("UNKNOWN"),
        }
    }

    fn chunked(&mut self, dataset: &Dataset) -> Result<()> {
        let chunk: Vec<_> =
            dataset.chunk().unwrap_or_default().iter().map(u64::to_string).collect();
        self.line(&format!("CHUNKED ( {} )", chunk.join(", ")))?;
        let stored = dataset.storage_size()?;
        if dataset.filters().is_empty() {
            return self.line(&format!("SIZE {stored}"));
        }
        let cells = dataset.extent()?.cells().unwrap_or(u64::MAX);
        let logical = cells.saturating_mul(memory_size(dataset.datatype()));
        let ratio = if stored > 0 { logical as f64 / stored as f64 } else { 0.0 };
        self.line(&format!("SIZE {stored} ({ratio:.3}:1 COMPRESSION)"))
    }

    fn fill_value(&mut self, dataset: &Dataset, fill: &Fill) -> Result<String> {
        let Fill::Value(bytes) = fill else {
            let name = if *fill == Fill::Undefined { "UNDEFINED" } else { "DEFAULT" };
            return Ok(format!("H5D_FILL_VALUE_{name}"));
        };
        // Its objects are elsewhere in the file.
        let heaped = match dataset.datatype().has_varlen() {
            true => dataset.fill_heaped()?,
            false => None,
        };
        let plain = || Heaped { elements: bytes.clone(), heap: Vec::new() };
        let Heaped { elements, heap } = heaped.unwrap_or_else(plain);
        let mut text = String::new();
        let level = self.indent / crate::value::INDENT;
        self.renderer(dataset.datatype())?.push_lines(&mut text, &elements, &heap, level);
        let variable = matches!(dataset.datatype(), Datatype::VarLen(_));
        Ok(if variable && text == "NULL" { "\"\"".to_owned() } else { text })
    }

    fn filter(&mut self, filter: &FilterSpec) -> Result<()> {
        let value = |index: usize| filter.parameters.get(index).copied().unwrap_or(0);
        match filter.id {
            1 => self.line(&format!("COMPRESSION DEFLATE {{ LEVEL {} }}", value(0))),
            2 => self.line("PREPROCESSING SHUFFLE"),
            3 => self.line("CHECKSUM FLETCHER32"),
            4 => self.szip(value(0), value(1)),
            5 => self.line("COMPRESSION NBIT"),
            // h5dump prints the kind of scaling here.
            6 => self.line(&format!("COMPRESSION SCALEOFFSET {{ MIN BITS {} }}", value(0))),
            id => {
                self.begin("USER_DEFINED_FILTER {")?;
                self.line(&format!("FILTER_ID {id}"))?;
                if let Some(name) = filter.name.as_deref().filter(|name| !name.is_empty()) {
                    self.line(&format!("COMMENT {name}"))?;
                }
                if !filter.parameters.is_empty() {
                    let list: Vec<_> = filter.parameters.iter().map(u32::to_string).collect();
                    self.line(&format!("PARAMS {{ {} }}", list.join(" ")))?;
                }
                if let Some(config) = &filter.config {
                    let config = config.replace('\\', "\\\\").replace('"', "\\\"");
                    self.line(&format!("PARAMS_STRING \"{config}\""))?;
                }
                self.end()
            }
        }
    }

    fn szip(&mut self, options: u32, pixels: u32) -> Result<()> {
        let has = |bit: u32| options & bit != 0;
        self.begin("COMPRESSION SZIP {")?;
        self.line(&format!("PIXELS_PER_BLOCK {pixels}"))?;
        if has(2) {
            self.line("MODE HARDWARE")?;
        } else if has(1) {
            self.line("MODE K13")?;
        }
        self.line(if has(4) { "CODING ENTROPY" } else { "CODING NEAREST NEIGHBOUR" })?;
        self.line(if has(16) { "BYTE_ORDER MSB" } else { "BYTE_ORDER LSB" })?;
        if has(128) {
            self.line("HEADER RAW")?;
        }
        self.end()
    }
}
