//! Data outside the file: pieces of external files, sources of virtual datasets.

use super::{Lister, escaped};
use anyhow::Result;
use pumice::{Dataset, LayoutKind};
use std::io::Write;

impl<W: Write> Lister<'_, W> {
    /// Lists the places of a dataset's data outside the file.
    pub(super) fn elsewhere(&mut self, dataset: &Dataset) -> Result<()> {
        match dataset.layout() {
            LayoutKind::External => self.pieces(dataset),
            LayoutKind::Virtual => self.maps(dataset),
            _ => Ok(()),
        }
    }

    fn pieces(&mut self, dataset: &Dataset) -> Result<()> {
        let pieces = dataset.external_pieces()?;
        let plural = if pieces.len() == 1 { "" } else { "s" };
        self.detail("Extern", &format!("{} external file{plural}", pieces.len()))?;
        let widest = pieces.iter().map(|piece| escaped(&piece.name).len()).max().unwrap_or(0);
        let row = |id: &str, cells: [&str; 3], name: &str| {
            format!("        {id:>4} {:>10} {:>10} {:>10} {name}", cells[0], cells[1], cells[2])
        };
        let line = row("----", ["----------"; 3], &"-".repeat(widest));
        writeln!(self.out, "{}", row("ID", ["DSet-Addr", "File-Addr", "Bytes"], "File"))?;
        writeln!(self.out, "{line}")?;
        let mut before = 0u64;
        for (number, piece) in pieces.iter().enumerate() {
            let size = match piece.size {
                u64::MAX => "INF".to_owned(),
                size => size.to_string(),
            };
            let (id, offset) = (format!("#{number:03}"), piece.offset.to_string());
            let cells = [before.to_string(), offset, size];
            let cells = cells.each_ref().map(String::as_str);
            writeln!(self.out, "{}", row(&id, cells, &escaped(&piece.name)))?;
            before = before.saturating_add(piece.size);
        }
        Ok(writeln!(self.out, "{line}")?)
    }

    fn maps(&mut self, dataset: &Dataset) -> Result<()> {
        let maps = dataset.virtual_mappings();
        if maps.is_empty() {
            return Ok(());
        }
        self.detail("Maps", &format!("{{{}}} Source {{", maps.len()))?;
        for map in maps {
            let (file, source) = (escaped(&map.file), escaped(&map.dataset));
            writeln!(self.out, "{:22}{file}   {source}", "")?;
        }
        Ok(writeln!(self.out, "{:15}}}", "")?)
    }
}
