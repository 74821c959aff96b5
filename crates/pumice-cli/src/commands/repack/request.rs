//! Requests for filters and layouts, and their datasets.
//!
//! Lists of defined cells, excluded values and sections belong to the `-l` before them; those
//! before the first `-l` are for all datasets without their own.

use super::defined::Locations;
use anyhow::{Context, Result, anyhow, bail, ensure};
use pumice::{FilterSpec, Scaling, Section, SzipCoding};

/// A requested layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LayoutRequest {
    Compact,
    Contiguous,
    Chunked(Vec<u64>),
    /// Structured chunks; `None` for the default shape.
    Sparse(Option<Vec<u64>>),
}

/// A filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FilterKind {
    /// Takes all filters away.
    None,
    /// Shuffle; the element size comes from the dataset.
    Shuffle,
    Spec(FilterSpec),
}

/// A filter, and the sections of structured chunks that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FilterRequest {
    pub(super) kind: FilterKind,
    /// The sections; `None` for all.
    pub(super) sections: Option<Vec<SectionRequest>>,
}

/// A section of structured chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SectionRequest {
    Named(Section),
    /// Its place in a chunk, which depends on the datatype.
    Number(usize),
}

impl SectionRequest {
    fn parse(text: &str) -> Result<Self> {
        let all = [Section::Selection, Section::Values, Section::References, Section::Heap];
        if let Some(section) = all.into_iter().find(|section| section.name() == text) {
            return Ok(Self::Named(section));
        }
        match text {
            "0" | "H5Z_FLAG_SPARSE_SELECTION" => Ok(Self::Number(0)),
            "1" | "H5Z_FLAG_SPARSE_FIXED_DATA" => Ok(Self::Number(1)),
            "2" | "H5Z_FLAG_SPARSE_VL_DATA" => Ok(Self::Number(2)),
            _ => Err(anyhow!(
                "--sections {text}: selection, values, references, heap, 0 to 2 and all are known"
            )),
        }
    }
}

/// The requested defined cells of a dataset that becomes sparse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeepRequest {
    Listed(Locations),
    Except(String),
}

impl FilterRequest {
    /// h5repack's name for the filter, and its number.
    pub(super) fn name(&self) -> (&'static str, u16) {
        let id = match &self.kind {
            FilterKind::None => 0,
            FilterKind::Shuffle => 2,
            FilterKind::Spec(spec) => spec.id,
        };
        let name = match id {
            0 => "NONE",
            1 => "GZIP",
            2 => "SHUFFLE",
            3 => "FLETCHER32",
            4 => "SZIP",
            5 => "NBIT",
            6 => "SOFF",
            _ => "UD",
        };
        (name, id)
    }

    /// Its first parameter, as it was given.
    pub(super) fn parameter(&self) -> u32 {
        match &self.kind {
            FilterKind::Spec(spec) if spec.id == 4 => spec.parameters.get(1).copied(),
            FilterKind::Spec(spec) => spec.parameters.first().copied(),
            _ => None,
        }
        .unwrap_or(0)
    }

    /// The filter for elements of a size.
    pub(super) fn spec(&self, element: u32) -> Option<FilterSpec> {
        match &self.kind {
            FilterKind::None => None,
            FilterKind::Shuffle => Some(FilterSpec::shuffle(element)),
            FilterKind::Spec(spec) => Some(spec.clone()),
        }
    }
}

/// The request for one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ObjectRequest {
    pub(super) path: String,
    pub(super) layout: Option<LayoutRequest>,
    pub(super) filters: Vec<FilterRequest>,
    pub(super) keep: Option<KeepRequest>,
}

impl ObjectRequest {
    fn is_sparse(&self) -> bool {
        matches!(self.layout, Some(LayoutRequest::Sparse(_)))
    }

    /// Several lists are one.
    fn add_keep(&mut self, keep: &KeepRequest) -> Result<()> {
        match (&mut self.keep, keep) {
            (None, keep) => self.keep = Some(keep.clone()),
            (Some(KeepRequest::Listed(old)), KeepRequest::Listed(new)) => old.extend(new),
            (Some(KeepRequest::Except(_)), KeepRequest::Except(_)) => {
                bail!("--exclude is given twice for the same datasets");
            }
            _ => bail!("--defined-elements and --exclude say the same in two ways"),
        }
        Ok(())
    }
}

/// The requests for all objects and for single ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    pub(super) all: ObjectRequest,
    pub(super) objects: Vec<ObjectRequest>,
    /// The names of the last `-l`, if it had any.
    scope: Option<String>,
    /// Whether there was a `-l`.
    scoped: bool,
    /// Sections that were named behind it, and before the first.
    sections: Option<Vec<SectionRequest>>,
    sections_of_all: Option<Vec<SectionRequest>>,
}

/// A filter or a layout that cannot be understood, as it was typed.
#[derive(Debug)]
pub(super) struct Quoted(String);

impl std::fmt::Display for Quoted {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "in <{}>", self.0)
    }
}

/// The request for one dataset.
pub(super) struct Asked<'a> {
    pub(super) layout: Option<&'a LayoutRequest>,
    pub(super) filters: &'a [FilterRequest],
    pub(super) keep: Option<&'a KeepRequest>,
}

impl Requests {
    /// Adds `[NAMES:]FILTER[=PARAMETERS]`. Without names it belongs to the sections before it.
    pub(super) fn add_filter(&mut self, text: &str) -> Result<()> {
        let (names, filter) = split(text);
        ensure!(!filter.is_empty(), "input Error: Invalid compression type in <{text}>");
        let kind = filter_kind(filter).with_context(|| Quoted(text.to_owned()))?;
        let (scope, own) = (self.scope.clone(), self.sections.clone());
        let general = self.sections_of_all.clone();
        let names = names.map(str::to_owned).or_else(|| scope.clone().filter(|_| own.is_some()));
        self.each(names.as_deref(), |object| {
            let within = |scope: &String| scope.split(',').any(|name| same(name, &object.path));
            let sections = match &own {
                Some(own) if scope.as_ref().is_none_or(within) => Some(own.clone()),
                _ => general.clone(),
            };
            object.filters.push(FilterRequest { kind: kind.clone(), sections });
            Ok(())
        })
    }

    /// Adds `[NAMES:]LAYOUT`, perhaps with a list of cells behind it.
    pub(super) fn add_layout(&mut self, text: &str) -> Result<()> {
        let (names, layout) = split(text);
        let (layout, list) = match layout.trim().split_once(char::is_whitespace) {
            Some((layout, list)) => (layout, Some(list)),
            None => (layout.trim(), None),
        };
        ensure!(!layout.is_empty(), "in parse layout, no characters after : in <{text}>");
        let request = layout_request(layout).with_context(|| Quoted(text.to_owned()))?;
        self.each(names, |object| {
            object.layout = Some(request.clone());
            Ok(())
        })?;
        (self.scope, self.scoped, self.sections) = (names.map(str::to_owned), true, None);
        match list {
            Some(list) => self.add_keep(&KeepRequest::Listed(Locations::parse(list)?)),
            None => Ok(()),
        }
    }

    /// Adds defined cells for the datasets of the last `-l`.
    pub(super) fn add_keep(&mut self, keep: &KeepRequest) -> Result<()> {
        let scope = self.scope.clone();
        self.each(scope.as_deref(), |object| object.add_keep(keep))
    }

    /// Sets the sections of the filters that follow.
    pub(super) fn set_sections(&mut self, text: &str) -> Result<()> {
        let sections = match text.trim() {
            "all" => None,
            text => {
                let each = text.split(',').map(|name| SectionRequest::parse(name.trim()));
                Some(each.collect::<Result<_>>()?)
            }
        };
        match self.scoped {
            true => self.sections = sections,
            false => self.sections_of_all = sections,
        }
        Ok(())
    }

    fn each(
        &mut self,
        names: Option<&str>,
        mut change: impl FnMut(&mut ObjectRequest) -> Result<()>,
    ) -> Result<()> {
        let Some(names) = names else { return change(&mut self.all) };
        for name in names.split(',').filter(|name| !name.is_empty()) {
            let place = self.objects.iter().position(|object| same(&object.path, name));
            let place = place.unwrap_or_else(|| {
                self.objects.push(ObjectRequest { path: name.to_owned(), ..Default::default() });
                self.objects.len() - 1
            });
            change(&mut self.objects[place])?;
        }
        Ok(())
    }

    /// Fails for requests that exclude each other.
    pub(super) fn check(&self) -> Result<()> {
        let chunks = |object: &ObjectRequest| {
            matches!(&object.layout, Some(LayoutRequest::Chunked(_) | LayoutRequest::Sparse(_)))
        };
        let mixed = self.all.layout.is_some() && self.objects.iter().any(chunks);
        ensure!(!mixed, "invalid chunking input: 'all' option is present with other objects");
        let filtered = self.objects.iter().any(|object| !object.filters.is_empty());
        let mixed = !self.all.filters.is_empty() && filtered;
        ensure!(!mixed, "invalid compression input: 'all' option is present with other objects");
        let idle = |object: &ObjectRequest| object.keep.is_some() && !object.is_sparse();
        if let Some(object) = self.objects.iter().find(|object| idle(object)) {
            bail!("cells of {} are listed or excluded, but it is no SPARSECHUNK", object.path);
        }
        ensure!(
            !idle(&self.all) || self.objects.iter().any(ObjectRequest::is_sparse),
            "cells are listed or excluded, but no layout is SPARSECHUNK"
        );
        Ok(())
    }

    /// Turns requests for all objects into requests for these alone.
    pub(super) fn narrow<'a>(&mut self, paths: impl Iterator<Item = &'a str>) -> Result<()> {
        let all = std::mem::take(&mut self.all);
        ensure!(all != ObjectRequest::default(), "an object is named, but nothing is asked for it");
        for path in paths {
            if self.objects.iter().all(|object| !same(&object.path, path)) {
                self.objects.push(ObjectRequest { path: path.to_owned(), ..all.clone() });
            }
        }
        Ok(())
    }

    /// Whether there is no request.
    pub(super) fn is_empty(&self) -> bool {
        self.all.layout.is_none() && self.all.filters.is_empty() && self.objects.is_empty()
    }

    /// The request for the object at a path.
    pub(super) fn of(&self, path: &str) -> Asked<'_> {
        let own = self.objects.iter().find(|object| same(&object.path, path));
        let layout = own.and_then(|own| own.layout.as_ref()).or(self.all.layout.as_ref());
        let filters = match own {
            Some(own) if self.all.filters.is_empty() => &own.filters,
            _ => &self.all.filters,
        };
        let keep = own.and_then(|own| own.keep.as_ref()).or(self.all.keep.as_ref());
        Asked { layout, filters, keep }
    }
}

/// Whether two paths are the same but for a slash at their beginning.
fn same(one: &str, other: &str) -> bool {
    one.trim_start_matches('/') == other.trim_start_matches('/')
}

/// The names before the first colon, if there is one, and the rest.
fn split(text: &str) -> (Option<&str>, &str) {
    match text.split_once(':') {
        Some((names, rest)) => (Some(names), rest),
        None => (None, text),
    }
}

fn filter_kind(text: &str) -> Result<FilterKind> {
    let (name, parameters) = match text.split_once('=') {
        Some((name, parameters)) => (name, Some(parameters)),
        None => (text, None),
    };
    let number = || -> Result<u32> {
        let text = parameters.context("missing compression parameter")?;
        text.parse().ok().context("compression parameter is not a digit")
    };
    if parameters.is_some() && matches!(name, "NONE" | "SHUF" | "FLET" | "NBIT" | "LZF" | "LZ4") {
        bail!("extra parameter in {name}");
    }
    Ok(FilterKind::Spec(match name {
        "NONE" => return Ok(FilterKind::None),
        "SHUF" => return Ok(FilterKind::Shuffle),
        "FLET" => FilterSpec::fletcher32(),
        "NBIT" => FilterSpec::nbit(),
        "LZF" => FilterSpec::lzf(),
        "LZ4" => FilterSpec::lz4(0),
        "GZIP" => {
            let level = number()?;
            ensure!(level <= 9, "invalid compression parameter");
            FilterSpec::deflate(level)
        }
        "ZSTD" => FilterSpec::zstd(number()?),
        "BZIP2" => FilterSpec::bzip2(number()?),
        "SZIP" => szip(parameters.context("missing compression parameter")?)?,
        "SOFF" => scale_offset(parameters.context("missing compression parameter")?)?,
        "UD" => user_defined(parameters.unwrap_or_default())?,
        _ => bail!("invalid filter type"),
    }))
}

fn szip(text: &str) -> Result<FilterSpec> {
    let (pixels, coding) = text.split_once(',').context("szip mask must be 'NN' or 'EC'")?;
    let pixels: u32 = pixels.parse().ok().context("compression parameter not digit")?;
    ensure!(pixels.is_multiple_of(2), "pixels_per_block is not even");
    ensure!((2..=32).contains(&pixels), "pixels_per_block is too large");
    let coding = match coding {
        "NN" => SzipCoding::NearestNeighbour,
        "EC" => SzipCoding::Entropy,
        _ => bail!("szip mask must be 'NN' or 'EC'"),
    };
    Ok(FilterSpec::szip(coding, pixels))
}

fn scale_offset(text: &str) -> Result<FilterSpec> {
    let (factor, kind) = text.split_once(',').context("scale type must be 'IN' or 'DS'")?;
    let factor: u32 = factor.parse().ok().context("compression parameter is not a digit")?;
    Ok(FilterSpec::scale_offset(match kind {
        "IN" if factor == 0 => Scaling::Integer,
        "IN" => Scaling::IntegerBits(factor),
        "DS" => Scaling::Decimal(i32::try_from(factor).context("scale factor too large")?),
        _ => bail!("scale type must be 'IN' or 'DS'"),
    }))
}

/// `ID,FLAG,COUNT,VALUES`.
fn user_defined(text: &str) -> Result<FilterSpec> {
    let numbers: Option<Vec<u32>> = text.split(',').map(|word| word.parse().ok()).collect();
    let numbers = numbers.context("filter number parameter is not a digit")?;
    let [id, flag, count, parameters @ ..] = numbers.as_slice() else {
        bail!("incorrect number of compression parameters");
    };
    ensure!(*count as usize == parameters.len(), "incorrect number of compression parameters");
    let id = u16::try_from(*id).context("a filter number above 65535")?;
    let parameters = parameters.to_vec();
    Ok(FilterSpec { id, optional: flag % 2 == 1, name: None, config: None, parameters })
}

fn layout_request(text: &str) -> Result<LayoutRequest> {
    let (name, shape) = match text.split_once('=') {
        Some((name, shape)) => (name, Some(shape)),
        None => (text, None),
    };
    let sides = |text: &str| -> Result<Vec<u64>> {
        let side = |word: &str| {
            let side = word.parse().ok().filter(|&side| side > 0);
            side.with_context(|| format!("in parse layout, <{word}> conversion to number"))
        };
        text.split('x').map(side).collect()
    };
    Ok(match (name, shape) {
        ("COMPA", None) => LayoutRequest::Compact,
        ("CONTI", None) | ("CHUNK", Some("NONE")) => LayoutRequest::Contiguous,
        ("CHUNK", Some(shape)) => LayoutRequest::Chunked(sides(shape)?),
        ("CHUNK", None) => bail!("in parse layout, Chunk dimensions missing"),
        ("SPARSECHUNK", None) => LayoutRequest::Sparse(None),
        ("SPARSECHUNK", Some(shape)) => LayoutRequest::Sparse(Some(sides(shape)?)),
        _ => bail!("in parse layout, not a valid layout"),
    })
}
