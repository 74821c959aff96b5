//! The elements of a dataset: all of them, or the defined ones; in the text, in another file, or as
//! bytes.
//!
//! Defined cells come with their coordinates, line by line, or behind their regions. If all cells
//! of a sparse dataset are listed, those with the fill value become undefined, and a report says
//! that this is a guess.

use super::creation::{New, is_nothing};
use super::outside::{Bytes, Outside};
use super::regions::Region;
use super::{BATCH, Reader, values};
use crate::cells;
use crate::formats::{self, Blocks};
use anyhow::{Context, Result, ensure};
use pumice::types::{Conversion, Value};
use pumice::{Dataset, Datatype, Heaped, Selection, Transfer};

/// About how many bytes an element takes while it is read: blocks have some ten thousand.
const ELEMENT: usize = 1 << 8;

/// The report for a dataset that was only described.
pub(super) const NO_DATA: &str = "the text has no data of it";

/// The report for defined cells whose coordinates were not printed.
const NO_PLACES: &str =
    "the text does not say where its cells are; h5dump -y leaves it out, --sparse tells it before";

/// The form of data between the braces.
enum Listing {
    /// Every cell.
    All,
    /// Every cell of a sparse dataset.
    Filled,
    /// Defined cells with their places, as many as told.
    Places(Option<u64>),
    /// Defined cells, and where they are.
    Regions(Vec<Region>),
}

impl New {
    fn listing(&mut self) -> Listing {
        if !self.regions.is_empty() {
            return Listing::Regions(std::mem::take(&mut self.regions));
        }
        if !self.sparse {
            return Listing::All;
        }
        match self.counted {
            Some((defined, _)) if !self.in_subset => Listing::Places(Some(defined)),
            // Its cells are those of the whole dataset.
            Some(_) if self.subset.is_none() => Listing::Places(None),
            _ => Listing::Filled,
        }
    }
}

impl Reader<'_> {
    /// `DATA { ... }`, behind its first word. Values may be in another file.
    pub(super) fn data(
        &mut self,
        path: &str,
        new: &mut New,
        dataset: &mut Option<Dataset>,
    ) -> Result<()> {
        if self.outside.is_some() {
            self.lexer.expect(b'{')?;
            self.skip_data()?;
            self.data_outside(path, new, dataset)?;
        } else {
            new.has_data = true;
            let places = new.sparse || !new.regions.is_empty();
            (self.lexer.in_data, self.lexer.in_places) = (true, places);
            self.lexer.expect(b'{')?;
            self.values(path, new, dataset)?;
            (self.lexer.in_data, self.lexer.in_places) = (false, false);
        }
        match std::mem::take(&mut new.in_subset) {
            true => self.lexer.expect(b'}'),
            false => Ok(()),
        }
    }

    /// Values that are in another file.
    pub(super) fn data_outside(
        &mut self,
        path: &str,
        new: &mut New,
        dataset: &mut Option<Dataset>,
    ) -> Result<()> {
        let described = std::mem::replace(&mut new.has_data, true);
        let Some(mut outside) = self.outside.take() else { return Ok(()) };
        outside.look(new.bytes())?;
        match &mut outside {
            Outside::Text(text) => {
                std::mem::swap(&mut self.lexer, text);
                self.values(path, new, dataset)?;
                std::mem::swap(&mut self.lexer, text);
            }
            Outside::Bytes(bytes) => {
                if dataset.is_none() {
                    *dataset = self.create(path, new)?;
                }
                let made = dataset.as_ref().with_context(|| format!("{path} cannot be made"))?;
                self.bytes(path, new, made, bytes, described)?;
            }
            Outside::Unknown(_) => {}
        }
        self.outside = Some(outside);
        Ok(())
    }

    /// Passes over elements, up to the brace behind them: references mostly, which have names.
    pub(super) fn skip_data(&mut self) -> Result<()> {
        (self.lexer.in_data, self.lexer.in_places) = (false, false);
        self.lexer.skip_block()
    }

    /// Reads elements as text, up to the text behind them.
    fn values(&mut self, path: &str, new: &mut New, dataset: &mut Option<Dataset>) -> Result<()> {
        if let Some(Ok(datatype)) = new.datatype.take_if(|datatype| datatype.is_ok()) {
            new.datatype = Some(values::sized(&mut self.lexer, datatype));
        }
        if dataset.is_none() {
            *dataset = self.create(path, new)?;
        }
        let Some(made) = dataset else { return self.skip_data() };
        // Only a text with braces can be seen to be empty.
        if self.lexer.bare_name().is_none() && self.lexer.data_ends()? {
            return match new.expects_data() {
                true => self.leave(format!("{path}: {NO_DATA}")),
                false => Ok(()),
            };
        }
        match new.listing() {
            Listing::All => self.elements(made, new)?,
            Listing::Filled => self.filled(path, made, new)?,
            Listing::Places(count) => return self.cells(made, count, &[]),
            Listing::Regions(regions) => {
                let rank = made.shape().len();
                let count = regions.iter().map(|region| region.cells(rank));
                let count = count.fold(0, u64::saturating_add);
                return self.cells(made, Some(count), &regions);
            }
        }
        match self.lexer.bare_name() {
            Some(_) => Ok(()),
            None => self.lexer.expect(b'}'),
        }
    }

    /// Reads all elements of a dataset.
    fn elements(&mut self, dataset: &Dataset, new: &New) -> Result<()> {
        for (start, count) in new.order(dataset) {
            let elements = self.some_elements(dataset, &count)?;
            dataset.write_values(formats::selection(&start, &count)?, &elements)?;
        }
        Ok(())
    }

    fn some_elements(&mut self, dataset: &Dataset, count: &[u64]) -> Result<Vec<Value>> {
        let mut elements: Vec<Value> = Vec::new();
        for _ in 0..count.iter().product::<u64>() {
            elements.push(values::value(&mut self.lexer, dataset.datatype())?);
            self.lexer.passes(b',')?;
        }
        self.progress.add(elements.len() as u64);
        Ok(elements)
    }

    /// Reads all elements of a sparse dataset, and keeps those that are not the fill value.
    fn filled(&mut self, path: &str, dataset: &Dataset, new: &New) -> Result<()> {
        let datatype = dataset.datatype();
        let fill = fill_element(new, datatype)?;
        let mut defined = 0;
        for (start, count) in new.order(dataset) {
            let elements = self.some_elements(dataset, &count)?;
            let is_fill: Vec<bool> = match new.varies() {
                true => elements
                    .iter()
                    .map(|value| match &new.fill {
                        Some(fill) => value == fill,
                        None => is_nothing(value, true),
                    })
                    .collect(),
                false => {
                    let bytes = Heaped::from_values(datatype, &elements)?.elements;
                    bytes.chunks_exact(fill.len().max(1)).map(|element| element == fill).collect()
                }
            };
            let points = kept(&start, &count, is_fill.iter().map(|fill| !fill));
            let kept = elements.into_iter().zip(&is_fill).filter(|(_, fill)| !**fill);
            let kept: Vec<Value> = kept.map(|(value, _)| value).collect();
            defined += kept.len() as u64;
            dataset.write_values(Selection::points(start.len(), points)?, &kept)?;
        }
        self.tell_undefined(path, new, defined);
        Ok(())
    }

    /// Reports that cells with the fill value may have been defined.
    fn tell_undefined(&mut self, path: &str, new: &New, defined: u64) {
        let what = match new.counted {
            Some((told, _)) if told == defined => return,
            Some((told, _)) => format!(
                "{path}: {} of {told} cells may be defined and have the fill value; they stay undefined",
                told.abs_diff(defined)
            ),
            None => format!("{path}: which cells that have the fill value are defined"),
        };
        self.made.left.push(what);
    }

    /// Reads defined cells, each line behind the place of its first one, or at the places of `regions` if
    /// lines have none.
    fn cells(&mut self, dataset: &Dataset, count: Option<u64>, regions: &[Region]) -> Result<()> {
        let rank = dataset.shape().len();
        let bare = self.lexer.bare_name().is_some();
        let (mut places, mut elements): (Vec<u64>, Vec<Value>) = Default::default();
        let mut place: Vec<u64> = Vec::new();
        let mut told = RegionCells { regions, rank, region: 0, cell: 0 };
        let mut read = 0;
        loop {
            let ended = if bare && count == Some(read) { true } else { self.lexer.data_ends()? };
            if ended || elements.len() >= BATCH {
                let cells = Selection::points(rank, std::mem::take(&mut places))?;
                dataset.write_values(cells, &elements)?;
                self.progress.add(elements.len() as u64);
                elements.clear();
            }
            if ended {
                break;
            }
            match self.lexer.take_place()? {
                Some(first) => place = first,
                None if place.is_empty() => {
                    let next = told.next();
                    places.extend(next.context(NO_PLACES)?);
                    elements.push(values::value(&mut self.lexer, dataset.datatype())?);
                    self.lexer.passes(b',')?;
                    read += 1;
                    continue;
                }
                None => place.iter_mut().rev().take(1).for_each(|column| *column += 1),
            }
            ensure!(place.len() == rank, "a cell of {rank} axes has {} coordinates", place.len());
            places.extend_from_slice(&place);
            elements.push(values::value(&mut self.lexer, dataset.datatype())?);
            self.lexer.passes(b',')?;
            read += 1;
        }
        let short = count.filter(|&count| count != read);
        ensure!(short.is_none(), "{} cells are told, {read} found", short.unwrap_or(0));
        Ok(())
    }

    /// Reads elements as bytes, in the order of bytes that most processors have.
    fn bytes(
        &mut self,
        path: &str,
        new: &mut New,
        dataset: &Dataset,
        bytes: &mut Bytes,
        described: bool,
    ) -> Result<()> {
        if new.regions.is_empty() && !new.expects_data() {
            return Ok(());
        }
        let datatype = dataset.datatype();
        ensure!(
            !datatype.has_varlen() && !datatype.has_references(),
            "{path}: its elements are not in a file of bytes; h5dump without -b prints them"
        );
        let from = cells::with_order(datatype, false);
        let shape = dataset.shape();
        let all = new.bytes().context("more bytes than 2^64")?;
        let write = |bytes: &mut Vec<u8>, cells: &Selection| -> Result<()> {
            dataset.write_as(cells, &from, bytes, &Transfer::default())?;
            self.progress.add((bytes.len() / from.size().max(1)) as u64);
            bytes.clear();
            Ok(())
        };
        let (size, mut buffer) = (from.size() as u64, Vec::new());
        let regions = std::mem::take(&mut new.regions);
        if new.sparse && regions.is_empty() {
            return self.filled_bytes(path, new, dataset, bytes);
        }
        if !new.sparse && regions.is_empty() {
            for (start, count) in Blocks::new(shape, from.size()) {
                bytes.take(count.iter().product::<u64>() * size, &mut buffer)?;
                write(&mut buffer, &formats::selection(&start, &count)?)?;
            }
            return Ok(());
        }
        let cells = regions.iter().map(|region| region.cells(shape.len()));
        let told = cells.fold(0u64, u64::saturating_add).saturating_mul(size);
        let whole = match new.counted {
            Some(_) => true,
            None => !described && bytes.length == all && told != all,
        };
        let begin = bytes.place()?;
        for region in &regions {
            let region = match &new.subset {
                Some(subset) => &region.within(subset)?,
                None => region,
            };
            for part in region.parts(shape.len(), from.size()) {
                let part = part?;
                part.check(&shape)?;
                if whole {
                    for run in part.runs(&shape) {
                        bytes.seek(begin + run.start * size)?;
                        bytes.take(run.len * size, &mut buffer)?;
                    }
                } else {
                    bytes.take(part.count(&shape) * size, &mut buffer)?;
                }
                write(&mut buffer, &part)?;
            }
        }
        if whole { bytes.seek(begin + all) } else { Ok(()) }
    }

    /// Reads all cells of a sparse dataset as bytes, and keeps those that are not the fill value.
    fn filled_bytes(
        &mut self,
        path: &str,
        new: &New,
        dataset: &Dataset,
        bytes: &mut Bytes,
    ) -> Result<()> {
        let datatype = dataset.datatype();
        let from = cells::with_order(datatype, false);
        let mut fill = vec![0; from.size()];
        let conversion = Conversion::new(datatype, &from).map_err(pumice::Error::from)?;
        let own = fill_element(new, datatype)?;
        conversion.convert(&own, &mut fill).map_err(pumice::Error::from)?;
        let (mut buffer, mut defined) = (Vec::new(), 0);
        for (start, count) in Blocks::new(dataset.shape(), from.size()) {
            let cells = count.iter().product::<u64>();
            buffer.clear();
            bytes.take(cells * from.size() as u64, &mut buffer)?;
            let elements = || buffer.chunks_exact(fill.len().max(1));
            let points = kept(&start, &count, elements().map(|element| element != fill));
            let kept: Vec<u8> =
                elements().filter(|element| *element != fill).flatten().copied().collect();
            defined += (kept.len() / fill.len().max(1)) as u64;
            let cells = Selection::points(start.len(), points)?;
            dataset.write_as(&cells, &from, &kept, &Transfer::default())?;
            self.progress.add(kept.len() as u64 / fill.len().max(1) as u64);
        }
        self.tell_undefined(path, new, defined);
        Ok(())
    }
}

impl New {
    /// The bytes of all elements, if they can be computed.
    fn bytes(&self) -> Option<u64> {
        let Some(Ok(datatype)) = &self.datatype else { return None };
        let cells = self.space.as_ref()?.shape.iter();
        cells.copied().try_fold(datatype.size() as u64, u64::checked_mul)
    }

    /// Blocks of elements in the order in which h5dump prints them.
    fn order(&self, dataset: &Dataset) -> Box<dyn Iterator<Item = (Vec<u64>, Vec<u64>)> + '_> {
        match self.subset.as_ref().and_then(|subset| subset.thick()) {
            Some(rows) => Box::new(rows),
            None => Box::new(Blocks::new(dataset.shape(), ELEMENT)),
        }
    }
}

/// The fill value as a dataset stores it.
fn fill_element(new: &New, datatype: &Datatype) -> Result<Vec<u8>> {
    match &new.fill {
        Some(fill) if !datatype.has_varlen() => {
            Ok(Heaped::from_values(datatype, std::slice::from_ref(fill))?.elements)
        }
        _ => Ok(vec![0; datatype.size()]),
    }
}

/// The coordinates of the kept cells of a block.
fn kept(start: &[u64], count: &[u64], keep: impl Iterator<Item = bool>) -> Vec<u64> {
    let (mut points, mut place) = (Vec::new(), Vec::new());
    for (index, _) in (0u64..).zip(keep).filter(|(_, keep)| *keep) {
        cells::coordinates(index, count, &mut place);
        points.extend(place.iter().zip(start).map(|(at, start)| at + start));
    }
    points
}

/// The cells of regions, one after the other.
struct RegionCells<'a> {
    regions: &'a [Region],
    rank: usize,
    region: usize,
    cell: u64,
}

impl Iterator for RegionCells<'_> {
    type Item = Vec<u64>;

    fn next(&mut self) -> Option<Vec<u64>> {
        loop {
            let region = self.regions.get(self.region)?;
            if let Some(cell) = region.cell(self.rank, self.cell) {
                self.cell += 1;
                return Some(cell);
            }
            (self.region, self.cell) = (self.region + 1, 0);
        }
    }
}
