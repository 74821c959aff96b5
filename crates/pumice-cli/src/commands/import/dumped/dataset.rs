//! One dataset of a text, up to the brace behind it.

use super::creation::New;
use super::data::NO_DATA;
use super::regions::{Region, Subset};
use super::types::{self, Space};
use super::{Reader, joined};
use crate::commands::import::dumped::lexer::Token;
use anyhow::{Context, Result, bail, ensure};
use pumice::{Dataset, Datatype};

impl Reader<'_> {
    pub(super) fn dataset(&mut self, parent: &str) -> Result<()> {
        let path = joined(parent, &self.lexer.quoted()?);
        self.lexer.expect(b'{')?;
        let mut new = New::default();
        let mut dataset: Option<Dataset> = None;
        while !self.lexer.passes(b'}')? {
            match self.lexer.name()?.as_str() {
                "HARDLINK" => {
                    let target = self.lexer.quoted()?;
                    self.undo.note(self.file, &path);
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
                "FILLVALUE" => new.read_fill_value(&mut self.lexer)?,
                "ALLOCATION_TIME" => new.read_allocation_time(&mut self.lexer)?,
                "SUBSET" => self.subset(&mut new)?,
                "SPARSE" => new.read_sparse(&mut self.lexer)?,
                "REGION_TYPE" => {
                    // Of a dense dataset, everything is one block.
                    new.sparse |= !new.dense;
                    let rank = new.space.as_ref().map_or(0, |space| space.shape.len());
                    Region::read(&mut self.lexer, rank, &mut new.regions)?;
                }
                "DATA" => self.data(&path, &mut new, &mut dataset)?,
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
        self.complete(&path, &mut new, &mut dataset)
    }

    /// Completes a dataset at the end of its text.
    fn complete(&mut self, path: &str, new: &mut New, dataset: &mut Option<Dataset>) -> Result<()> {
        if new.linked {
            return Ok(());
        }
        if !new.has_data && self.outside.is_some() {
            return self.data_outside(path, new, dataset);
        }
        if dataset.is_none() {
            *dataset = self.create(path, new)?;
        }
        if !new.has_data && dataset.is_some() && new.expects_data() {
            self.leave(format!("{path}: {NO_DATA}"))?;
        }
        Ok(())
    }

    /// `{ START ( 1 ); STRIDE ( 1 ); COUNT ( 3 ); BLOCK ( 1 ); DATA { ... } }`: the dataset has the
    /// dumped subset.
    fn subset(&mut self, new: &mut New) -> Result<()> {
        self.lexer.expect(b'{')?;
        let mut subset = Subset::default();
        loop {
            let word = match self.lexer.peek()? {
                Some(Token::Word(word)) if word == "DATA" || word == "PACKED_BITS" => break,
                Some(Token::Mark(b'}')) => break,
                Some(Token::Word(word)) => word.clone(),
                _ => bail!("expected the parts of a subset"),
            };
            self.lexer.take()?;
            let sizes: Option<Vec<u64>> = types::sizes(&mut self.lexer)?.into_iter().collect();
            let sizes = sizes.context("a subset without limit")?;
            match word.as_str() {
                "START" => subset.start = sizes,
                "STRIDE" => subset.stride = sizes,
                "COUNT" => subset.count = sizes,
                "BLOCK" => subset.block = sizes,
                _ => {}
            }
            self.lexer.passes(b';')?;
        }
        new.in_subset = true;
        let taken = subset.shape();
        let rank = new.space.as_ref().map_or(0, |space| space.shape.len());
        ensure!(taken.len() == rank, "a subset of {} axes of a dataset of {rank}", taken.len());
        if new.lists_the_whole(&taken) {
            return Ok(());
        }
        new.chunk = match new.sparse {
            true => new.chunk.take().map(|chunk| {
                chunk.iter().zip(&taken).map(|(&side, &taken)| side.min(taken).max(1)).collect()
            }),
            false => None,
        };
        new.space = Some(Space {
            max: taken.iter().copied().map(Some).collect(),
            shape: taken,
            null: false,
        });
        new.subset = Some(subset);
        Ok(())
    }

    /// Makes a dataset; notes why, if it cannot be made.
    pub(super) fn create(&mut self, path: &str, new: &mut New) -> Result<Option<Dataset>> {
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
                self.undo.note(self.file, path);
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
        self.leave(format!("{path}: {reason}"))?;
        Ok(None)
    }

    /// `"name" { ... }`.
    fn skip_named(&mut self) -> Result<()> {
        self.lexer.quoted()?;
        self.lexer.expect(b'{')?;
        self.lexer.skip_block()
    }
}
