//! Making a file of h5dump's output: groups, datasets, attributes, links and committed datatypes,
//! as far as the text has them.
//!
//! Elements stream: a bounded number is in memory. References, datatypes without a name, and data
//! that h5dump did not print are left out and reported. Floats have the printed digits: h5dump
//! prints six unless `-m %.17g` asks for more. With `-p`, chunks, filters, fill values and
//! allocation times are kept (`dumped/creation.rs`).

mod apart;
mod creation;
mod data;
mod dataset;
mod lexer;
mod outside;
mod regions;
mod types;
mod values;

pub(in crate::commands) use apart::{Undo, import_apart};

use crate::formats::{self, Input};
use crate::progress::Progress;
use anyhow::{Context, Result, anyhow, bail, ensure};
use lexer::{Lexer, Token};
use outside::Outside;
use pumice::types::Value;
use pumice::{Datatype, File, VariableLength};
use std::io::BufRead;
use types::Committed;

/// Cells that are written at once.
const BATCH: usize = 1 << 14;
/// Groups within groups, at most.
const DEPTH: usize = 200;
/// Elements of one attribute, at most.
const MAX_ATTRIBUTE: u64 = 1 << 24;

/// The result of importing a text.
#[derive(Default)]
pub(in crate::commands) struct Made {
    pub(super) datasets: u64,
    pub(super) groups: u64,
    pub(super) attributes: u64,
    /// Paths of omitted objects, and the reasons.
    pub(in crate::commands) left: Vec<String>,
}

/// Makes a file of h5dump's output.
pub(super) fn import(input: &Input<'_>, file: &File, progress: &Progress) -> Result<Made> {
    let mut undo = Undo::default();
    Reader::new(input, file, progress, &mut undo)?.run()
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
    name: String,
    lexer: Lexer<'a>,
    file: &'a File,
    committed: Committed,
    made: Made,
    progress: &'a Progress,
    /// The source of values that are not in the text.
    outside: Option<Outside<'a>>,
    /// Whether everything must be made, and datasets must have their data.
    strict: bool,
    undo: &'a mut Undo,
}

impl<'a> Reader<'a> {
    fn new(
        input: &Input<'a>,
        file: &'a File,
        progress: &'a Progress,
        undo: &'a mut Undo,
    ) -> Result<Self> {
        let committed = committed(open(input)?)?;
        let lexer = Lexer::new(open(input)?);
        let (name, made) = (input.name(), Made::default());
        let (outside, strict) = (None, false);
        Ok(Self { name, lexer, file, committed, made, progress, outside, strict, undo })
    }

    fn run(mut self) -> Result<Made> {
        match self.whole() {
            Ok(()) => Ok(self.made),
            Err(error) => {
                let name = self.lexer.bare_name().unwrap_or(&self.name);
                Err(anyhow!("{name}: line {}: {error:#}", self.lexer.line()))
            }
        }
    }

    /// Something is left out: fails if everything must be made.
    fn leave(&mut self, what: String) -> Result<()> {
        ensure!(!self.strict, what);
        self.made.left.push(what);
        Ok(())
    }

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
                    self.undo.note(self.file, path);
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
            self.undo.note(self.file, &path);
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
                // The link's target was printed as well.
                "LINKCLASS" => drop(self.lexer.name()?),
                _ => {
                    self.lexer.take()?;
                    if self.lexer.passes(b'{')? {
                        self.lexer.skip_block()?;
                    }
                }
            }
        }
        self.undo.note(self.file, &path);
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
        self.undo.note(self.file, &path);
        // A datatype that no link leads to is printed under its number.
        let nameless = path.strip_prefix("/#").is_some_and(|name| name.parse::<u64>().is_ok());
        if !nameless && let Err(error) = self.file.commit_datatype(&path, &datatype) {
            self.leave(format!("{path}: {error}"))?;
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
                    let (known, count) = (known.clone(), space.cells());
                    self.lexer.in_data = true;
                    if self.lexer.passes(b'}')? {
                        self.lexer.in_data = false;
                        let known = self.attribute_outside(known, count, &mut values)?;
                        datatype = Some(Ok(known));
                        continue;
                    }
                    datatype = Some(Ok(self.attribute_values(known, count, &mut values)?));
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

    fn attribute_values(
        &mut self,
        datatype: Datatype,
        count: u64,
        values: &mut Vec<Value>,
    ) -> Result<Datatype> {
        let datatype = values::sized(&mut self.lexer, datatype)?;
        for _ in 0..count {
            values.push(values::value(&mut self.lexer, &datatype)?);
            self.lexer.passes(b',')?;
        }
        Ok(datatype)
    }

    /// Reads an attribute's values if they stand behind those of datasets.
    fn attribute_outside(
        &mut self,
        datatype: Datatype,
        count: u64,
        values: &mut Vec<Value>,
    ) -> Result<Datatype> {
        let more = match &mut self.outside {
            Some(Outside::Text(text)) => text.peek()?.is_some(),
            _ => false,
        };
        let Some(Outside::Text(mut text)) = self.outside.take_if(|_| more) else {
            return Ok(datatype);
        };
        std::mem::swap(&mut self.lexer, &mut text);
        let datatype = self.attribute_values(datatype, count, values)?;
        std::mem::swap(&mut self.lexer, &mut text);
        self.outside = Some(Outside::Text(text));
        Ok(datatype)
    }

    fn set_attribute(&self, owner: &str, name: &str, value: VariableLength) -> Result<()> {
        match self.file.node(at(owner))? {
            pumice::Node::Group(group) => group.set_attribute(name, value)?,
            pumice::Node::Dataset(dataset) => dataset.set_attribute(name, value)?,
            pumice::Node::Datatype(datatype) => datatype.set_attribute(name, value)?,
        }
        Ok(())
    }

    /// A datatype, or the reason why it cannot be made. The text behind it can be read in both
    /// cases.
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
}

/// The root group's path is never empty.
fn at(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}
