//! The storage of a dataset as `h5dump -p` prints it: layout, filters, fill value, allocation time.

use super::lexer::{Lexer, Token};
use super::regions::{Region, Subset};
use super::types::{self, Space};
use super::values;
use anyhow::{Context, Result};
use pumice::types::Value;
use pumice::{
    AllocationTime, DatasetBuilder, Datatype, File, FillTime, FilterSpec, Scaling, Section,
    SzipCoding,
};

/// Elements of a chunk, where the text does not say its shape.
const CHUNK: u64 = 1 << 14;

/// Layouts that have chunks.
const CHUNKED: [&str; 3] = ["CHUNKED", "SPARSE_CHUNK", "STRUCTURED_CHUNK"];

/// Filters for sections, which have no other use.
const OWN_FILTERS: std::ops::RangeInclusive<u16> = 302..=304;

/// The properties of a dataset before it is made.
#[derive(Default)]
pub(super) struct New {
    pub(super) datatype: Option<Result<Datatype>>,
    pub(super) space: Option<Space>,
    pub(super) chunk: Option<Vec<u64>>,
    compact: bool,
    /// Whether only some cells are defined.
    pub(super) sparse: bool,
    /// Whether the text says that all cells are defined.
    pub(super) dense: bool,
    filters: Vec<Filter>,
    /// Filters of the sections of sparse chunks, by number.
    section_filters: Vec<(usize, FilterSpec)>,
    sections_told: bool,
    /// The fill value; `None` if the dataset has none of its own.
    pub(super) fill: Option<Value>,
    undefined_fill: bool,
    fill_time: Option<FillTime>,
    allocation: Option<AllocationTime>,
    /// The number of defined cells and of all, if the text has it.
    pub(super) counted: Option<(u64, u64)>,
    /// The regions of defined cells whose values have not been read yet.
    pub(super) regions: Vec<Region>,
    /// The subset that was dumped, if it becomes a dataset.
    pub(super) subset: Option<Subset>,
    /// Whether chunks are structured and dense.
    structured: bool,
    pub(super) has_data: bool,
    pub(super) in_subset: bool,
    pub(super) linked: bool,
    /// Whether it was reported that the dataset cannot be made.
    pub(super) told: bool,
}

enum Filter {
    /// The size of elements belongs to it.
    Shuffle,
    Other(FilterSpec),
}

impl New {
    /// `{ CHUNKED ( 10, 5 ) SIZE 400 ... }`, or `SPARSE_CHUNK`.
    pub(super) fn read_layout(&mut self, lexer: &mut Lexer<'_>) -> Result<()> {
        lexer.expect(b'{')?;
        self.dense = lexer.peek()? != Some(&Token::Word("SPARSE_CHUNK".into()));
        match lexer.peek()? {
            Some(Token::Word(word)) if CHUNKED.contains(&word.as_str()) => {
                self.sparse |= word == "SPARSE_CHUNK";
                self.structured |= word == "STRUCTURED_CHUNK";
                lexer.take()?;
                self.chunk = types::sizes(lexer)?.into_iter().collect();
            }
            Some(Token::Word(word)) => self.compact = word == "COMPACT",
            _ => {}
        }
        lexer.skip_block()
    }

    /// `{ PREPROCESSING SHUFFLE COMPRESSION DEFLATE { LEVEL 9 } CHECKSUM FLETCHER32 }`. Returns the
    /// words that were skipped.
    pub(super) fn read_filters(&mut self, lexer: &mut Lexer<'_>) -> Result<Vec<String>> {
        let section = match lexer.peek()? {
            Some(Token::Word(word)) if word == "SECTION" => {
                lexer.take()?;
                Some(lexer.name()?.parse::<usize>().context("the number of a section")?)
            }
            _ => None,
        };
        lexer.expect(b'{')?;
        self.sections_told |= section.is_some();
        let mut left = Vec::new();
        while !lexer.passes(b'}')? {
            let spec = match lexer.name()?.as_str() {
                "SHUFFLE" if section.is_none() => {
                    self.filters.push(Filter::Shuffle);
                    continue;
                }
                "SHUFFLE" => match &self.datatype {
                    Some(Ok(datatype)) => FilterSpec::shuffle(datatype.size() as u32),
                    _ => continue,
                },
                "FLETCHER32" => FilterSpec::fletcher32(),
                "NBIT" => FilterSpec::nbit(),
                "DEFLATE" => {
                    let words = words(lexer)?;
                    FilterSpec::deflate(number_behind(&words, "LEVEL").context("deflate's level")?)
                }
                "SZIP" => {
                    let words = words(lexer)?;
                    let block = number_behind(&words, "PIXELS_PER_BLOCK");
                    let coding = match words.iter().any(|word| word == "ENTROPY") {
                        true => SzipCoding::Entropy,
                        false => SzipCoding::NearestNeighbour,
                    };
                    FilterSpec::szip(coding, block.context("the pixels of a block of szip")?)
                }
                "SCALEOFFSET" => {
                    words(lexer)?;
                    if !matches!(self.datatype, Some(Ok(Datatype::Integer(_)))) {
                        left.push("scaleoffset, whose digits are not told".to_owned());
                        continue;
                    }
                    FilterSpec::scale_offset(Scaling::Integer)
                }
                "USER_DEFINED_FILTER" => match user_defined(&words(lexer)?)? {
                    spec if is_available(&spec) || OWN_FILTERS.contains(&spec.id) => spec,
                    spec => {
                        left.push(format!("filter {}, which is not available", spec.id));
                        continue;
                    }
                },
                // NONE, and words before the names of filters.
                _ => continue,
            };
            match section {
                Some(section) => self.section_filters.push((section, spec)),
                None => self.filters.push(Filter::Other(spec)),
            }
        }
        Ok(left)
    }

    /// `{ FILL_TIME H5D_FILL_TIME_IFSET VALUE  -1 }`.
    pub(super) fn read_fill_value(&mut self, lexer: &mut Lexer<'_>) -> Result<()> {
        lexer.expect(b'{')?;
        let Some(Ok(datatype)) = &self.datatype else { return lexer.skip_block() };
        while !lexer.passes(b'}')? {
            match lexer.name()?.as_str() {
                "FILL_TIME" => {
                    self.fill_time = Some(match lexer.name()?.as_str() {
                        "H5D_FILL_TIME_ALLOC" => FillTime::Allocation,
                        "H5D_FILL_TIME_NEVER" => FillTime::Never,
                        _ => FillTime::IfSet,
                    });
                }
                "VALUE" => {
                    if matches!(lexer.peek()?, Some(Token::Word(word)) if word.starts_with("H5D_"))
                    {
                        self.undefined_fill = lexer.name()? == "H5D_FILL_VALUE_UNDEFINED";
                        continue;
                    }
                    lexer.in_data = true;
                    let datatype = values::sized(lexer, datatype.clone())?;
                    let value = values::value(lexer, &datatype).context("the fill value")?;
                    lexer.in_data = false;
                    self.fill = Some(value);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// `SPARSE`, or `SPARSE { DEFINED 10 OF 130 }`.
    pub(super) fn read_sparse(&mut self, lexer: &mut Lexer<'_>) -> Result<()> {
        self.sparse = true;
        if lexer.peek()? != Some(&Token::Mark(b'{')) {
            return Ok(());
        }
        let words = words(lexer)?;
        let behind = |name: &str| {
            let at = words.iter().position(|word| word == name)?;
            words.get(at + 1)?.parse::<u64>().ok()
        };
        // There may be more cells than numbers.
        self.counted = behind("DEFINED").map(|defined| (defined, behind("OF").unwrap_or(u64::MAX)));
        Ok(())
    }

    /// Whether the dump of a part of a sparse dataset has the cells' coordinates in the whole.
    pub(super) fn lists_the_whole(&self, taken: &[u64]) -> bool {
        let Some(space) = &self.space else { return false };
        let taken = taken.iter().fold(1u64, |cells, &side| cells.saturating_mul(side));
        let of = self.counted.map(|(_, of)| of);
        self.sparse && of == Some(space.cells()) && of != Some(taken)
    }

    /// Whether the text should have values.
    pub(super) fn expects_data(&self) -> bool {
        match self.counted {
            Some((defined, _)) => defined > 0,
            None => self.space.as_ref().is_some_and(|space| space.cells() > 0),
        }
    }

    /// `{ H5D_ALLOC_TIME_LATE }`.
    pub(super) fn read_allocation_time(&mut self, lexer: &mut Lexer<'_>) -> Result<()> {
        let word = words(lexer)?.into_iter().next();
        self.allocation = match word.as_deref() {
            Some("H5D_ALLOC_TIME_EARLY") => Some(AllocationTime::Early),
            Some("H5D_ALLOC_TIME_LATE") => Some(AllocationTime::Late),
            Some("H5D_ALLOC_TIME_INCR") => Some(AllocationTime::Incremental),
            _ => None,
        };
        Ok(())
    }

    /// The dataset to make.
    pub(super) fn builder(&self, mut builder: DatasetBuilder, space: &Space) -> DatasetBuilder {
        // A value of no length is what is there without one.
        if let Some(fill) = self.fill.as_ref().filter(|fill| !is_nothing(fill, self.varies())) {
            builder = builder.fill(fill.clone());
        }
        if self.undefined_fill {
            builder = builder.no_fill_value();
        }
        if let Some(time) = self.fill_time {
            builder = builder.fill_time(time);
        }
        self.shaped(builder, space)
    }

    fn shaped(&self, mut builder: DatasetBuilder, space: &Space) -> DatasetBuilder {
        if space.shape.is_empty() {
            return builder;
        }
        builder = builder.shape(space.shape.clone());
        let grows = space.max.iter().zip(&space.shape).any(|(max, &side)| *max != Some(side));
        if grows {
            builder = builder.max_shape(space.max.clone());
        }
        if self.sparse {
            return self.sparse_builder(builder.sparse(), space);
        }
        let chunk = self.chunk.clone().filter(|chunk| chunk.len() == space.shape.len());
        let chunk = chunk.or_else(|| grows.then(|| some_chunk(&space.shape)));
        let Some(chunk) = chunk else {
            return if self.compact { builder.compact() } else { self.allocated(builder) };
        };
        if self.structured {
            let sections = [Section::References, Section::Heap];
            return self.with_sections(builder.variable_length().chunk(chunk), &sections);
        }
        builder = self.allocated(builder.chunk(chunk));
        for filter in &self.filters {
            builder = match filter {
                Filter::Shuffle => builder.shuffle(),
                Filter::Other(spec) => builder.filter(spec.clone()),
            };
        }
        builder
    }

    fn sparse_builder(&self, mut builder: DatasetBuilder, space: &Space) -> DatasetBuilder {
        if let Some(chunk) = self.chunk.clone().filter(|chunk| chunk.len() == space.shape.len()) {
            builder = builder.chunk(chunk);
        }
        match self.varies() {
            true => self
                .with_sections(builder, &[Section::Selection, Section::References, Section::Heap]),
            false => self.with_sections(builder, &[Section::Selection, Section::Values]),
        }
    }

    /// Whether elements have parts of variable length.
    pub(super) fn varies(&self) -> bool {
        matches!(&self.datatype, Some(Ok(datatype)) if datatype.has_varlen())
    }

    /// Gives sections the printed filters; there are none without `-p`.
    fn with_sections(&self, mut builder: DatasetBuilder, sections: &[Section]) -> DatasetBuilder {
        if !self.sections_told {
            return builder;
        }
        builder = builder.no_filters();
        for (number, spec) in &self.section_filters {
            if let Some(section) = sections.get(*number) {
                builder = builder.section_filter(*section, spec.clone());
            }
        }
        builder
    }

    fn allocated(&self, builder: DatasetBuilder) -> DatasetBuilder {
        match self.allocation {
            Some(time) => builder.allocation_time(time),
            None => builder,
        }
    }
}

/// Whether a value of variable length is empty.
pub(super) fn is_nothing(value: &Value, varies: bool) -> bool {
    match value {
        Value::Null => true,
        Value::Text(text) => varies && text.is_empty(),
        Value::Sequence(items) => items.is_empty(),
        _ => false,
    }
}

/// The words between braces.
fn words(lexer: &mut Lexer<'_>) -> Result<Vec<String>> {
    lexer.expect(b'{')?;
    let (mut words, mut depth) = (Vec::new(), 1);
    while depth > 0 {
        match lexer.take()? {
            Token::Mark(b'{') => depth += 1,
            Token::Mark(b'}') => depth -= 1,
            Token::Word(word) => words.push(word),
            // The text configuration of a filter may have blanks.
            Token::Text(text) if words.last().is_some_and(|word| word == CONFIG) => {
                words.push(String::from_utf8_lossy(&text).into_owned());
            }
            _ => {}
        }
    }
    Ok(words)
}

fn number_behind(words: &[String], name: &str) -> Option<u32> {
    let at = words.iter().position(|word| word == name)?;
    words.get(at + 1)?.parse().ok()
}

/// The word before a filter's text configuration.
const CONFIG: &str = "PARAMS_STRING";

/// `FILTER_ID 32000 COMMENT lzf PARAMS { 4 261 800 } PARAMS_STRING "fast"`.
fn user_defined(words: &[String]) -> Result<FilterSpec> {
    let id = number_behind(words, "FILTER_ID").and_then(|id| u16::try_from(id).ok());
    let section = |name: &str| words.iter().position(|word| word == name);
    let parameters = section("PARAMS").map_or(&[][..], |at| &words[at + 1..]);
    let parameters = parameters.iter().take_while(|word| *word != CONFIG);
    let config = section(CONFIG).and_then(|at| words.get(at + 1)).cloned();
    let name = section("COMMENT").map(|at| words[at + 1..].iter());
    let name = name.map(|words| words.take_while(|word| *word != "PARAMS" && *word != CONFIG));
    let name = name.map(|words| words.map(String::as_str).collect::<Vec<_>>().join(" "));
    let parameters: Result<Vec<u32>, _> = parameters.map(|word| word.parse()).collect();
    Ok(FilterSpec {
        id: id.context("a filter without a number")?,
        optional: true,
        name: name.filter(|name| !name.is_empty()),
        config,
        parameters: parameters.context("the parameters of a filter")?,
    })
}

/// Whether a filter can encode, tried on a small dataset.
fn is_available(spec: &FilterSpec) -> bool {
    let tried = || -> pumice::Result<()> {
        let file = File::in_memory()?;
        let spec = FilterSpec { optional: false, ..spec.clone() };
        let dataset = file.new_dataset::<i32>().shape([64]).chunk([64]).filter(spec).create("x")?;
        dataset.write(.., &[7i32; 64])?;
        file.flush()
    };
    tried().is_ok()
}

/// A chunk of some thousand elements, as wide as the dataset where that is possible.
fn some_chunk(shape: &[u64]) -> Vec<u64> {
    let mut room = CHUNK;
    let mut chunk: Vec<u64> = shape
        .iter()
        .rev()
        .map(|&side| {
            let side = side.clamp(1, room.max(1));
            room /= side;
            side
        })
        .collect();
    chunk.reverse();
    chunk
}
