//! What h5dump printed becomes a file again: groups, datasets, attributes, links and committed
//! datatypes, as far as the text says.
//!
//! Elements stream: a bounded number is in memory. What a text cannot carry is left out and told:
//! references, datatypes without a name, data that h5dump did not print. Floats have the digits that
//! were printed: h5dump prints six unless `-m %.17g` asks for more. With `-p`, chunks, filters, fill
//! values and allocation times come along (`dumped/creation.rs`).

mod creation;
mod lexer;
mod types;
mod values;

use crate::formats::dense::{self, Blocks};
use crate::formats::{self, Input};
use crate::progress::Progress;
use anyhow::{Context, Result, anyhow, bail, ensure};
use creation::New;
use lexer::{Lexer, Token};
use pumice::types::Value;
use pumice::{Dataset, Datatype, File, Selection, VariableLength};
use std::io::BufRead;
use types::{Committed, Space};

/// About how many bytes an element takes while it is read: blocks have some ten thousand.
const ELEMENT: usize = 1 << 8;
/// Cells that are written at once.
const BATCH: usize = 1 << 14;
/// Groups within groups, at most.
const DEPTH: usize = 200;
/// Elements of one attribute, at most.
const MAX_ATTRIBUTE: u64 = 1 << 24;

/// What became of a text.
#[derive(Default)]
pub(super) struct Made {
    pub(super) datasets: u64,
    pub(super) groups: u64,
    pub(super) attributes: u64,
    /// Paths of what was left out, and why.
    pub(super) left: Vec<String>,
}

/// Makes a file of what h5dump printed.
pub(super) fn import(input: &Input<'_>, file: &File, progress: &Progress) -> Result<Made> {
    let committed = committed(open(input)?)?;
    let lexer = Lexer::new(open(input)?);
    let mut reader = Reader { lexer, file, committed, made: Made::default(), progress };
    match reader.whole() {
        Ok(()) => Ok(reader.made),
        Err(error) => Err(anyhow!("{}: line {}: {error:#}", input.name(), reader.lexer.line())),
    }
}

fn open<'a>(input: &Input<'a>) -> Result<Box<dyn BufRead + 'a>> {
    ensure!(!input.is_standard_input(), "what h5dump printed is read from a file, not from a pipe");
    let file = std::fs::File::open(input.path).with_context(|| input.name())?;
    formats::unpacked(file)
}

/// Finds the committed datatypes, which datasets name before they are defined.
fn committed(input: Box<dyn BufRead + '_>) -> Result<Committed> {
    let mut lexer = Lexer::new(input);
    let (mut known, mut path) = (Committed::new(), Vec::new());
    // The names of the groups and other blocks that are open.
    while let Ok(Some(token)) = lexer.next() {
        match token {
            Token::Word(word) if word == "GROUP" => {
                if let Ok(name) = lexer.quoted()
                    && lexer.passes(b'{')?
                {
                    path.push(name);
                }
            }
            Token::Word(word) if word == "DATATYPE" => {
                if !matches!(lexer.peek()?, Some(Token::Text(_))) {
                    continue;
                }
                let name = lexer.quoted()?;
                // A dataset that names one, or a definition.
                if matches!(lexer.peek()?, Some(Token::Word(word)) if word.starts_with("H5T_"))
                    && let Ok(datatype) = types::datatype(&mut lexer, &known, 0)
                {
                    known.insert(joined(&path.join("/"), &name), datatype);
                }
            }
            Token::Mark(b'{') => path.push(String::new()),
            Token::Mark(b'}') => drop(path.pop()),
            _ => {}
        }
    }
    Ok(known)
}

/// A path below another.
fn joined(path: &str, name: &str) -> String {
    let parts = path.split('/').chain(name.split('/')).filter(|part| !part.is_empty());
    parts.fold(String::new(), |path, part| path + "/" + part)
}

struct Reader<'a> {
    lexer: Lexer<'a>,
    file: &'a File,
    committed: Committed,
    made: Made,
    progress: &'a Progress,
}

impl Reader<'_> {
    /// `HDF5 "name" { ... }`, once or several times.
    fn whole(&mut self) -> Result<()> {
        while let Some(token) = self.lexer.next()? {
            ensure!(token == Token::Word("HDF5".into()), "expected HDF5, found {token:?}");
            self.lexer.quoted()?;
            self.lexer.expect(b'{')?;
            self.members("", 0)?;
        }
        Ok(())
    }

    /// Everything up to the brace that ends a group.
    fn members(&mut self, path: &str, depth: usize) -> Result<()> {
        ensure!(depth < DEPTH, "groups within {DEPTH} others");
        loop {
            let word = match self.lexer.take()? {
                Token::Mark(b'}') => return Ok(()),
                Token::Mark(b';') => continue,
                Token::Word(word) => word,
                other => bail!("expected a member of a group, found {other:?}"),
            };
            match word.as_str() {
                "GROUP" => self.group(path, depth)?,
                "DATASET" => self.dataset(path)?,
                "ATTRIBUTE" if depth == 0 && path.is_empty() => self.lone_attribute()?,
                "ATTRIBUTE" => self.attribute(path)?,
                "DATATYPE" => self.committed(path)?,
                "SOFTLINK" | "EXTERNAL_LINK" | "USERDEFINED_LINK" => self.link(path, &word)?,
                "HARDLINK" => {
                    let target = self.lexer.quoted()?;
                    self.file.create_hard_link(path, &target)?;
                }
                "COMMENT" => {
                    let comment = self.lexer.quoted()?;
                    if let Ok(group) = self.file.group(at(path)) {
                        group.set_comment(Some(&comment))?;
                    }
                }
                // SUPER_BLOCK, USER_BLOCK and the like: nothing that a new file has.
                _ => {
                    self.lexer.expect(b'{')?;
                    self.lexer.skip_block()?;
                }
            }
        }
    }

    fn group(&mut self, parent: &str, depth: usize) -> Result<()> {
        let path = joined(parent, &self.lexer.quoted()?);
        self.lexer.expect(b'{')?;
        let linked = matches!(self.lexer.peek()?, Some(Token::Word(word)) if word == "HARDLINK");
        if !linked && !path.is_empty() && !self.file.contains(&path) {
            self.file.create_group(&path)?;
        }
        self.made.groups += u64::from(!linked);
        self.members(&path, depth + 1)
    }

    fn link(&mut self, parent: &str, kind: &str) -> Result<()> {
        let path = joined(parent, &self.lexer.quoted()?);
        self.lexer.expect(b'{')?;
        let (mut file, mut target) = (String::new(), String::new());
        while !self.lexer.passes(b'}')? {
            match self.lexer.name()?.as_str() {
                "LINKTARGET" | "TARGETPATH" => target = self.lexer.quoted()?,
                "TARGETFILE" => file = self.lexer.quoted()?,
                // What the link leads to was printed as well.
                "LINKCLASS" => drop(self.lexer.name()?),
                _ => {
                    self.lexer.take()?;
                    if self.lexer.passes(b'{')? {
                        self.lexer.skip_block()?;
                    }
                }
            }
        }
        match kind {
            "SOFTLINK" => self.file.create_soft_link(&path, &target)?,
            "EXTERNAL_LINK" => self.file.create_external_link(&path, &file, &target)?,
            _ => self.made.left.push(format!("{path}: a link of a user's own kind")),
        }
        Ok(())
    }

    /// `DATATYPE "name" H5T_...;`, with attributes perhaps.
    fn committed(&mut self, parent: &str) -> Result<()> {
        let path = joined(parent, &self.lexer.quoted()?);
        if matches!(self.lexer.peek()?, Some(Token::Word(word)) if word == "HARDLINK") {
            self.lexer.take()?;
            let target = self.lexer.quoted()?;
            return Ok(self.file.create_hard_link(&path, &target)?);
        }
        let datatype = types::datatype(&mut self.lexer, &self.committed, 0)?;
        // A datatype that no link leads to is printed under its number.
        let nameless = path.strip_prefix("/#").is_some_and(|name| name.parse::<u64>().is_ok());
        if !nameless && let Err(error) = self.file.commit_datatype(&path, &datatype) {
            self.made.left.push(format!("{path}: {error}"));
        }
        if self.lexer.passes(b'{')? {
            self.members(&path, 0)?;
        }
        Ok(())
    }

    /// `h5dump -a` prints the whole path of an attribute, outside of any object.
    fn lone_attribute(&mut self) -> Result<()> {
        let path = self.lexer.quoted()?;
        match path.rsplit_once('/') {
            Some((owner, name)) if self.file.contains(at(owner)) => {
                self.named_attribute(owner, name)
            }
            _ => self.named_attribute("", &path),
        }
    }

    fn attribute(&mut self, owner: &str) -> Result<()> {
        let name = self.lexer.quoted()?;
        self.named_attribute(owner, &name)
    }

    fn named_attribute(&mut self, owner: &str, name: &str) -> Result<()> {
        self.lexer.expect(b'{')?;
        let (mut datatype, mut space) = (None, None);
        let mut values = Vec::new();
        while !self.lexer.passes(b'}')? {
            match self.lexer.name()?.as_str() {
                "DATATYPE" => datatype = Some(self.datatype()?),
                "DATASPACE" => space = Some(types::dataspace(&mut self.lexer)?),
                "DATA" => {
                    self.lexer.expect(b'{')?;
                    let (Some(Ok(known)), Some(space)) = (&datatype, &space) else {
                        self.skip_data()?;
                        continue;
                    };
                    ensure!(space.cells() <= MAX_ATTRIBUTE, "the attribute {name} is too large");
                    self.lexer.in_data = true;
                    let known = values::sized(&mut self.lexer, known.clone())?;
                    for _ in 0..space.cells() {
                        values.push(values::value(&mut self.lexer, &known)?);
                        self.lexer.passes(b',')?;
                    }
                    datatype = Some(Ok(known));
                    self.lexer.in_data = false;
                    self.lexer.expect(b'}')?;
                }
                _ => {
                    self.lexer.expect(b'{')?;
                    self.lexer.skip_block()?;
                }
            }
        }
        let told = format!("{}@{name}", at(owner));
        match (datatype, space) {
            (Some(Ok(datatype)), Some(space))
                if values.len() as u64 == space.cells() && !space.null =>
            {
                let value = VariableLength::values(datatype, &space.shape, &values)?;
                self.set_attribute(owner, name, value).context(told)?;
                self.made.attributes += 1;
            }
            (Some(Err(error)), _) => self.made.left.push(format!("{told}: {error:#}")),
            _ => self.made.left.push(format!("{told}: it has no data")),
        }
        Ok(())
    }

    fn set_attribute(&self, owner: &str, name: &str, value: VariableLength) -> Result<()> {
        match self.file.node(at(owner))? {
            pumice::Node::Group(group) => group.set_attribute(name, value)?,
            pumice::Node::Dataset(dataset) => dataset.set_attribute(name, value)?,
            pumice::Node::Datatype(datatype) => datatype.set_attribute(name, value)?,
        }
        Ok(())
    }

    /// A datatype that can be made, or why it cannot. What follows can be read in both cases.
    fn datatype(&mut self) -> Result<Result<Datatype>> {
        let line = self.lexer.line();
        match types::datatype(&mut self.lexer, &self.committed, 0) {
            Ok(datatype) => Ok(Ok(datatype)),
            Err(error) => {
                // Passes over the rest of it: everything before the dataspace.
                loop {
                    match self.lexer.peek()? {
                        Some(Token::Word(word)) if word == "DATASPACE" => break,
                        Some(_) => drop(self.lexer.take()?),
                        None => bail!("the datatype on line {line} does not end"),
                    }
                }
                Ok(Err(error))
            }
        }
    }

    fn dataset(&mut self, parent: &str) -> Result<()> {
        let path = joined(parent, &self.lexer.quoted()?);
        self.lexer.expect(b'{')?;
        let mut new = New::default();
        let mut dataset: Option<Dataset> = None;
        while !self.lexer.passes(b'}')? {
            match self.lexer.name()?.as_str() {
                "HARDLINK" => {
                    let target = self.lexer.quoted()?;
                    self.file.create_hard_link(&path, &target)?;
                    new.linked = true;
                }
                "DATATYPE" => new.datatype = Some(self.datatype()?),
                "DATASPACE" => new.space = Some(types::dataspace(&mut self.lexer)?),
                "STORAGE_LAYOUT" => new.read_layout(&mut self.lexer)?,
                "FILTERS" => {
                    let left = new.read_filters(&mut self.lexer)?;
                    self.made.left.extend(left.iter().map(|what| format!("{path}: {what}")));
                }
                "FILLVALUE" => {
                    let left = new.read_fill_value(&mut self.lexer)?;
                    self.made.left.extend(left.iter().map(|what| format!("{path}: {what}")));
                }
                "ALLOCATION_TIME" => new.read_allocation_time(&mut self.lexer)?,
                "SUBSET" => self.subset(&mut new)?,
                "SPARSE" => {
                    new.sparse = true;
                    if self.lexer.passes(b'{')? {
                        self.lexer.skip_block()?;
                    }
                }
                "REGION_TYPE" => {
                    new.sparse = true;
                    self.skip_region()?;
                }
                "DATA" if new.sparse => dataset = self.cells(&path, &mut new, dataset.take())?,
                "DATA" => {
                    self.lexer.expect(b'{')?;
                    dataset = self.elements(&path, &mut new)?;
                }
                "ATTRIBUTE" => {
                    if dataset.is_none() {
                        dataset = self.create(&path, &mut new)?;
                    }
                    match dataset {
                        Some(_) => self.attribute(&path)?,
                        None => self.skip_named()?,
                    }
                }
                "COMMENT" => drop(self.lexer.quoted()?),
                _ => {
                    self.lexer.expect(b'{')?;
                    self.lexer.skip_block()?;
                }
            }
        }
        if dataset.is_none() && !new.linked {
            self.create(&path, &mut new)?;
        }
        Ok(())
    }

    /// `BLOCK  (2,2)-(4,7)` or `POINT  (5,9), (11,1)`: the elements behind it tell where they are.
    fn skip_region(&mut self) -> Result<()> {
        loop {
            match self.lexer.peek()? {
                Some(Token::Mark(b'}')) | None => return Ok(()),
                Some(Token::Word(word))
                    if ["REGION_TYPE", "DATA", "ATTRIBUTE"].contains(&word.as_str()) =>
                {
                    return Ok(());
                }
                Some(_) => drop(self.lexer.take()?),
            }
        }
    }

    /// Reads defined cells, each line behind the place of its first one, up to the brace behind them.
    fn cells(
        &mut self,
        path: &str,
        new: &mut New,
        made: Option<Dataset>,
    ) -> Result<Option<Dataset>> {
        (self.lexer.in_data, self.lexer.in_places) = (true, true);
        self.lexer.expect(b'{')?;
        let made = match made {
            Some(dataset) => Some(dataset),
            None => self.create(path, new)?,
        };
        if let Some(dataset) = &made {
            self.read_cells(dataset)?;
        } else {
            self.lexer.skip_block()?;
        }
        (self.lexer.in_data, self.lexer.in_places) = (false, false);
        self.close_subset(new)?;
        Ok(made)
    }

    fn read_cells(&mut self, dataset: &Dataset) -> Result<()> {
        let rank = dataset.shape().len();
        let (mut places, mut elements): (Vec<u64>, Vec<Value>) = Default::default();
        let mut place: Vec<u64> = Vec::new();
        loop {
            let ended = self.lexer.passes(b'}')?;
            if ended || elements.len() >= BATCH {
                let cells = Selection::points(rank, std::mem::take(&mut places))?;
                dataset.write_values(cells, &elements)?;
                self.progress.add(elements.len() as u64);
                elements.clear();
            }
            if ended {
                return Ok(());
            }
            match self.lexer.take_place()? {
                Some(first) => place = first,
                None => place.iter_mut().rev().take(1).for_each(|column| *column += 1),
            }
            ensure!(place.len() == rank, "a cell of {rank} axes has {} coordinates", place.len());
            places.extend_from_slice(&place);
            elements.push(values::value(&mut self.lexer, dataset.datatype())?);
            self.lexer.passes(b',')?;
        }
    }

    /// Passes over elements, up to the brace behind them: references mostly, which have names.
    fn skip_data(&mut self) -> Result<()> {
        self.lexer.in_data = false;
        self.lexer.skip_block()
    }

    /// `"name" { ... }`.
    fn skip_named(&mut self) -> Result<()> {
        self.lexer.quoted()?;
        self.lexer.expect(b'{')?;
        self.lexer.skip_block()
    }

    /// `{ START ( 1 ); STRIDE ( 1 ); COUNT ( 3 ); BLOCK ( 1 ); DATA { ... } }`: the dataset has what
    /// was taken.
    fn subset(&mut self, new: &mut New) -> Result<()> {
        self.lexer.expect(b'{')?;
        let mut taken: Vec<u64> = Vec::new();
        loop {
            let word = match self.lexer.peek()? {
                Some(Token::Word(word)) if word == "DATA" => break,
                Some(Token::Word(word)) => word.clone(),
                _ => bail!("expected the parts of a subset"),
            };
            self.lexer.take()?;
            let sizes: Option<Vec<u64>> = types::sizes(&mut self.lexer)?.into_iter().collect();
            let sizes = sizes.context("a subset without limit")?;
            match word.as_str() {
                "COUNT" => taken = sizes,
                "BLOCK" => taken.iter_mut().zip(sizes).for_each(|(side, block)| *side *= block),
                _ => {}
            }
            self.lexer.passes(b';')?;
        }
        new.in_subset = true;
        // Defined cells have their places in the whole.
        if new.sparse {
            return Ok(());
        }
        new.space = Some(Space {
            max: taken.iter().copied().map(Some).collect(),
            shape: taken,
            null: false,
        });
        new.chunk = None;
        Ok(())
    }

    /// Makes a dataset; notes why, if it cannot be made.
    fn create(&mut self, path: &str, new: &mut New) -> Result<Option<Dataset>> {
        if new.told {
            return Ok(None);
        }
        let reason = match (&new.datatype, &new.space) {
            (Some(Ok(_)), Some(space)) if space.null => "it has no dataspace".to_owned(),
            (Some(Ok(Datatype::Opaque(opaque))), _) if opaque.size == 0 => {
                "the size of its elements is not told".to_owned()
            }
            (Some(Ok(datatype)), Some(space)) => {
                let builder = new.builder(self.file.new_dataset_of(datatype.clone()), space);
                match builder.create(path) {
                    Ok(dataset) => {
                        self.made.datasets += 1;
                        return Ok(Some(dataset));
                    }
                    Err(error) => error.to_string(),
                }
            }
            (Some(Err(error)), _) => format!("{error:#}"),
            _ => "its datatype or dataspace is not told".to_owned(),
        };
        new.told = true;
        self.made.left.push(format!("{path}: {reason}"));
        Ok(None)
    }

    /// Reads the elements of a dataset, up to the brace behind them.
    fn elements(&mut self, path: &str, new: &mut New) -> Result<Option<Dataset>> {
        self.lexer.in_data = true;
        if let Some(Ok(datatype)) = new.datatype.take_if(|datatype| datatype.is_ok()) {
            new.datatype = Some(values::sized(&mut self.lexer, datatype));
        }
        let Some(dataset) = self.create(path, new)? else {
            self.skip_data()?;
            self.close_subset(new)?;
            return Ok(None);
        };
        if self.lexer.passes(b'}')? {
            self.lexer.in_data = false;
            self.close_subset(new)?;
            return Ok(Some(dataset));
        }
        for (start, count) in Blocks::new(dataset.shape(), ELEMENT) {
            let mut elements: Vec<Value> = Vec::new();
            for _ in 0..count.iter().product::<u64>() {
                elements.push(values::value(&mut self.lexer, dataset.datatype())?);
                self.lexer.passes(b',')?;
            }
            dataset.write_values(dense::selection(&start, &count)?, &elements)?;
            self.progress.add(elements.len() as u64);
        }
        self.lexer.in_data = false;
        self.lexer.expect(b'}')?;
        self.close_subset(new)?;
        Ok(Some(dataset))
    }

    fn close_subset(&mut self, new: &mut New) -> Result<()> {
        match std::mem::take(&mut new.in_subset) {
            true => self.lexer.expect(b'}'),
            false => Ok(()),
        }
    }
}

/// The root group's path is never empty.
fn at(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}
