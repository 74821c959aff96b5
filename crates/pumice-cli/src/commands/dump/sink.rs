//! The targets of a dump: the description, values of datasets and values of attributes go to
//! standard output, to a file or nowhere. h5dump replaces files without being asked.

use super::options::Options;
use crate::target;
use anyhow::Result;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// The kind of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Text,
    Values,
    Attributes,
}

/// The places, by number.
pub(super) struct Sinks {
    places: Vec<Box<dyn Write>>,
    text: usize,
    values: usize,
    attributes: usize,
}

impl Sinks {
    pub(super) fn open(options: &Options, force: bool) -> Result<Self> {
        let inputs: Vec<&Path> = options.files.iter().map(|spot| spot.file.as_path()).collect();
        let places: Vec<Box<dyn Write>> = vec![Box::new(super::super::output())];
        let mut sinks = Self { places, text: 0, values: 0, attributes: 0 };
        if let Some(path) = &options.description {
            sinks.text = sinks.add(path.as_deref(), &inputs, force)?;
        }
        if let Some(path) = &options.output {
            let place = sinks.add(path.as_deref(), &inputs, force)?;
            match options.output_of_attributes && options.binary.is_none() {
                true => sinks.attributes = place,
                false => sinks.values = place,
            }
        }
        Ok(sinks)
    }

    fn add(&mut self, path: Option<&str>, inputs: &[&Path], force: bool) -> Result<usize> {
        let place: Box<dyn Write> = match path.filter(|path| !path.is_empty()) {
            None => Box::new(io::sink()),
            Some(path) => {
                let file = target::stream(Path::new(path), inputs, force)?;
                Box::new(BufWriter::with_capacity(64 << 10, file))
            }
        };
        self.places.push(place);
        Ok(self.places.len() - 1)
    }

    /// The target of a stream.
    pub(super) fn of(&mut self, stream: Stream) -> &mut dyn Write {
        let place = self.place(stream);
        &mut *self.places[place]
    }

    pub(super) fn text(&mut self) -> &mut dyn Write {
        self.of(Stream::Text)
    }

    /// Whether a stream goes to another file than the description.
    pub(super) fn is_apart(&self, stream: Stream) -> bool {
        self.place(stream) != self.text
    }

    fn place(&self, stream: Stream) -> usize {
        match stream {
            Stream::Text => self.text,
            Stream::Values => self.values,
            Stream::Attributes => self.attributes,
        }
    }

    /// Everything has been printed.
    pub(super) fn finish(&mut self, options: &Options) -> io::Result<()> {
        // Values alone on standard output have no description to end their last line.
        if options.description == Some(None) && options.output.is_none() {
            writeln!(self.places[0])?;
        }
        self.places.iter_mut().try_for_each(Write::flush)
    }
}
