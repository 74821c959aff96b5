//! h5import: arrays in text and binary files become datasets, as configuration files say.
//!
//! Data streams: memory holds one block of rows. `import/dumped.rs` reads h5dump's output.

mod configuration;

use super::Outcome;
use super::import::dumped::{self, Undo};
use crate::failure::{self, Misuse};
use crate::formats;
use crate::target;
use anyhow::{Context, Result, anyhow, bail, ensure};
use pumice::types::{ByteOrder, CharacterSet, Float, Integer, StringPadding, VarLen};
use pumice::{Datatype, File, FillTime, LibraryVersion, Selection, Transfer};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// About how many cells are in memory at once.
const BLOCK_CELLS: u64 = 1 << 20;

/// The notation of values in an input file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spelling {
    Text,
    Binary,
}

/// The class of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Signed,
    Unsigned,
    Float,
    /// Lines of text, which become strings.
    Lines,
}

/// Names of number formats; some fix the order of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Architecture {
    Native,
    Standard,
    Ieee,
    Little,
    Big,
    Unix,
}

/// All that is known about one input file and its dataset.
#[derive(Clone, Debug)]
struct Settings {
    spelling: Spelling,
    class: Class,
    bits: u32,
    order: Option<ByteOrder>,
    output_class: Class,
    output_bits: u32,
    output_order: Option<ByteOrder>,
    architecture: Architecture,
    path: String,
    shape: Option<Vec<u64>>,
    max_shape: Option<Vec<Option<u64>>>,
    chunk: Option<Vec<u64>>,
    deflate: Option<u32>,
    external: Option<String>,
}

impl Settings {
    fn new(number: usize) -> Self {
        Self {
            spelling: Spelling::Binary,
            class: Class::Float,
            bits: 32,
            order: None,
            output_class: Class::Float,
            output_bits: 32,
            output_order: None,
            architecture: Architecture::Native,
            path: format!("dataset{number}"),
            shape: None,
            max_shape: None,
            chunk: None,
            deflate: None,
            external: None,
        }
    }

    /// Sets the input class by its name, and the output class with it.
    fn set_class(&mut self, name: &str) -> Result<()> {
        (self.spelling, self.class) = match name {
            "TEXTIN" => (Spelling::Text, Class::Signed),
            "TEXTFP" | "TEXTFPE" => (Spelling::Text, Class::Float),
            "FP" => (Spelling::Binary, Class::Float),
            "IN" => (Spelling::Binary, Class::Signed),
            "STR" => (Spelling::Text, Class::Lines),
            "TEXTUIN" => (Spelling::Text, Class::Unsigned),
            "UIN" => (Spelling::Binary, Class::Unsigned),
            _ => bail!("Invalid value for input class: {name}"),
        };
        self.output_class = self.class;
        Ok(())
    }

    fn set_bits(&mut self, text: &str) -> Result<()> {
        self.bits = bits(text, "input")?;
        self.output_bits = self.bits;
        Ok(())
    }

    /// Fails for options that cannot be combined.
    fn check(&self) -> Result<()> {
        if self.class == Class::Lines {
            return Ok(());
        }
        let shape = self.shape.as_ref();
        let shape =
            shape.context("One or more of the required fields (RANK, DIMENSION-SIZES) missing")?;
        let same_rank = |other: usize| other == shape.len();
        ensure!(
            self.chunk.as_ref().is_none_or(|chunk| same_rank(chunk.len()))
                && self.max_shape.as_ref().is_none_or(|max| same_rank(max.len())),
            "The numbers of dimensions differ"
        );
        if self.external.is_some() {
            let other = self.deflate.is_some() || self.chunk.is_some() || self.max_shape.is_some();
            ensure!(
                !other,
                "Cannot specify chunking or compression or extendible data sets with the external file option"
            );
        }
        if (self.deflate.is_some() || self.max_shape.is_some()) && self.chunk.is_none() {
            bail!(
                "Cannot specify the compression or the extendible data sets without the chunking option"
            );
        }
        match (self.architecture, self.output_class) {
            (Architecture::Standard, Class::Float) => {
                bail!("OUTPUT-ARCHITECTURE cannot be STD if OUTPUT-CLASS is floating point (FP)")
            }
            (Architecture::Ieee, Class::Signed | Class::Unsigned) => {
                bail!("OUTPUT-ARCHITECTURE cannot be IEEE if OUTPUT-CLASS is integer (IN)")
            }
            (_, Class::Float) if !matches!(self.output_bits, 32 | 64) => {
                bail!("For OUTPUT-CLASS FP, valid values for OUTPUT-SIZE are (32, 64)")
            }
            _ => Ok(()),
        }
    }

    /// The datatype of values in memory: values of texts are little-endian.
    fn input_type(&self) -> Result<Datatype> {
        let order = match self.spelling {
            Spelling::Text => ByteOrder::Little,
            Spelling::Binary => self.order.unwrap_or(ByteOrder::Little),
        };
        number(self.class, self.bits, order)
    }

    /// The datatype of the dataset.
    fn output_type(&self) -> Result<Datatype> {
        let order = match self.architecture {
            Architecture::Native => self.output_order.unwrap_or(ByteOrder::Little),
            Architecture::Standard | Architecture::Ieee | Architecture::Unix => {
                self.output_order.unwrap_or(ByteOrder::Big)
            }
            Architecture::Little => ByteOrder::Little,
            Architecture::Big => ByteOrder::Big,
        };
        number(self.output_class, self.output_bits, order)
    }
}

fn number(class: Class, bits: u32, order: ByteOrder) -> Result<Datatype> {
    Ok(match (class, bits) {
        (Class::Float, 32) => Datatype::Float(Float::single(order)),
        (Class::Float, 64) => Datatype::Float(Float::double(order)),
        (Class::Float, _) => bail!("Invalid size of floating-point values: {bits}"),
        (class, bits) => Datatype::Integer(Integer::new(bits / 8, order, class == Class::Signed)),
    })
}

fn bits(text: &str, what: &str) -> Result<u32> {
    match text.parse() {
        Ok(bits @ (8 | 16 | 32 | 64)) => Ok(bits),
        _ => bail!("Invalid value for {what} size: {text}"),
    }
}

/// One input file.
struct Input {
    data: PathBuf,
    configuration: Option<PathBuf>,
    settings: Settings,
}

/// The request.
enum Request {
    Help,
    Version,
    Import { inputs: Vec<Input>, output: PathBuf },
}

/// Runs the tool.
pub(crate) fn run(arguments: &[String], program: &str) -> Result<Outcome> {
    let request = parse(arguments)
        .map_err(|error| Misuse(format!("{error:#}; `{program} -h` tells what can be asked")))?;
    let (inputs, output) = match request {
        Request::Help => {
            print!("{}", help(program));
            return Ok(Outcome::Complete);
        }
        Request::Version => {
            println!("{program}: Version {}", env!("CARGO_PKG_VERSION"));
            return Ok(Outcome::Complete);
        }
        Request::Import { inputs, output } => (inputs, output),
    };
    let output = Output::open(&output)?;
    let mut undo = Undo::wanted();
    let done = inputs.into_iter().try_for_each(|input| one(&output.file, input, &mut undo));
    output.finish(done, undo)?;
    Ok(Outcome::Complete)
}

/// The file that gets the datasets.
struct Output {
    file: File,
    path: PathBuf,
    /// Whether the file did not exist, or was empty.
    new: bool,
}

impl Output {
    fn open(path: &Path) -> Result<Self> {
        target::editable(path)?;
        // An existing file that is no HDF5 file, or is in use, is not destroyed.
        let new = fs::metadata(path).map_or(true, |there| there.len() == 0);
        let file = match new {
            true => File::options().library_version(LibraryVersion::Earliest).create(path),
            false => File::edit(path),
        };
        let action = || format!("Error creating HDF output file {}", path.display());
        Ok(Self { file: file.with_context(action)?, path: path.to_owned(), new })
    }

    /// Closes the file; after a failure it is as it was before.
    fn finish(self, done: Result<()>, undo: Undo) -> Result<()> {
        let Err(error) = done else {
            let closed = self.file.close();
            if closed.is_err() && self.new {
                // The cause of the failed close counts.
                let _ = fs::remove_file(&self.path);
            }
            return Ok(closed?);
        };
        if self.new {
            drop(self.file);
            let _ = fs::remove_file(&self.path);
            return Err(error);
        }
        let back = undo.all(&self.file).and_then(|()| self.file.close());
        Err(match back {
            Ok(()) => error,
            Err(back) => error.context(format!("{}: {back}", self.path.display())),
        })
    }
}

/// Imports one file.
fn one(file: &File, mut input: Input, undo: &mut Undo) -> Result<()> {
    let reading = |data: &Path| format!("Error in reading the input file: {}", data.display());
    target::regular(&input.data).with_context(|| reading(&input.data))?;
    if let Some(path) = &input.configuration {
        let action = || format!("Error in processing the configuration file: {}", path.display());
        target::regular(path).with_context(action)?;
    }
    let whole = input.configuration.is_none() && input.settings.shape.is_none();
    if whole && formats::is_dump(&input.data) {
        input.configuration = Some(input.data.clone());
    }
    if let Some(path) = &input.configuration {
        let action = || format!("Error in processing the configuration file: {}", path.display());
        if formats::is_dump(path) {
            // Opened here, so that it can be told which of the two is missing.
            fs::File::open(&input.data).with_context(|| reading(&input.data))?;
            let made = dumped::import_apart(path, &input.data, file, undo)?;
            made.left.iter().for_each(|left| failure::warn(&format!("left out: {left}")));
            return Ok(());
        }
        configure(path, &mut input.settings).with_context(action)?;
    }
    input.settings.check().with_context(|| format!("{}", input.data.display()))?;
    undo.note(file, &input.settings.path);
    let beside = input.settings.external.as_deref().map(Path::new);
    let beside = beside.filter(|path| !path.exists());
    import(file, &input).with_context(|| reading(&input.data)).inspect_err(|_| {
        // The file of values was made here.
        if let Some(path) = beside {
            let _ = fs::remove_file(path);
        }
    })
}

fn configure(path: &Path, settings: &mut Settings) -> Result<()> {
    let text = fs::read(path).context("Unable to open the configuration file for reading")?;
    let text = String::from_utf8_lossy(&text);
    configuration::read(text.split_whitespace().peekable(), settings)
}

/// Divides the command line into files with their options.
fn parse(arguments: &[String]) -> Result<Request> {
    let mut inputs: Vec<Input> = Vec::new();
    let mut output = None;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(flag) = word.strip_prefix('-').filter(|flag| !flag.is_empty()) else {
            let settings = Settings::new(inputs.len());
            inputs.push(Input { data: word.into(), configuration: None, settings });
            continue;
        };
        let known = ["outfile", "config", "help", "dims", "path", "type", "size", "Version"];
        let flag = flag.trim_start_matches('-');
        let name = known.into_iter().find(|name| name.starts_with(flag));
        let name = name.ok_or_else(|| anyhow!("Illegal argument: {word}"))?;
        match name {
            "help" => return Ok(Request::Help),
            "Version" => return Ok(Request::Version),
            _ => {}
        }
        let value = words.next().ok_or_else(|| anyhow!("{word} needs a value"))?;
        if name == "outfile" {
            output = Some(PathBuf::from(value));
            continue;
        }
        let input = inputs.last_mut().ok_or_else(|| anyhow!("{word} follows no input file"))?;
        match name {
            "config" => input.configuration = Some(value.into()),
            "dims" => input.settings.shape = Some(numbers(value.split(','))?),
            "path" => input.settings.path = path(value)?,
            "type" => input.settings.set_class(value)?,
            _ => input.settings.set_bits(value)?,
        }
    }
    ensure!(!inputs.is_empty(), "Invalid number of arguments");
    let output = output.context("No output file given")?;
    Ok(Request::Import { inputs, output })
}

fn numbers<'a>(words: impl Iterator<Item = &'a str>) -> Result<Vec<u64>> {
    words.map(|word| word.trim().parse().with_context(|| format!("not a size: {word}"))).collect()
}

/// A path in the file, without quotes and without slashes at its ends.
fn path(text: &str) -> Result<String> {
    let parts: Vec<&str> = text.split(['/', '"']).filter(|part| !part.is_empty()).collect();
    ensure!(!parts.is_empty(), "Invalid path {text}");
    Ok(parts.join("/"))
}

fn import(file: &File, input: &Input) -> Result<()> {
    let data = fs::File::open(&input.data)?;
    let data = BufReader::with_capacity(1 << 20, data);
    if input.settings.class == Class::Lines {
        return lines(file, &input.settings, data);
    }
    array(file, &input.settings, data)
}

/// Numbers become a dataset, block of rows by block of rows.
fn array(file: &File, settings: &Settings, mut data: impl BufRead) -> Result<()> {
    let shape = settings.shape.clone().unwrap_or_default();
    let (from, to) = (settings.input_type()?, settings.output_type()?);
    let mut builder = file.new_dataset_of(to.clone()).shape(shape.clone());
    if let Some(chunk) = &settings.chunk {
        builder = builder.chunk(chunk.clone());
    }
    if let Some(max) = &settings.max_shape {
        builder = builder.max_shape(max.clone());
    }
    if let Some(level) = settings.deflate {
        builder = builder.deflate(level);
    }
    if let Some(name) = &settings.external {
        let cells = shape.iter().try_fold(to.size() as u64, |bytes, side| bytes.checked_mul(*side));
        builder = builder.external(name, 0, Some(cells.context("more bytes than 2^64")?));
    }
    let dataset = builder.create(&settings.path)?;
    let row: u64 = shape.iter().skip(1).product();
    let rows = shape.first().copied().unwrap_or(1);
    let step = (BLOCK_CELLS / row.max(1)).max(1);
    // Chunks are filled as a whole.
    let side = settings.chunk.as_ref().and_then(|chunk| chunk.first()).copied().unwrap_or(1);
    let step = step.next_multiple_of(side.max(1));
    let mut values = Vec::new();
    let mut start = 0;
    while start < rows && row > 0 {
        let count = step.min(rows - start);
        values.clear();
        match settings.spelling {
            Spelling::Text => texts(&mut data, settings, count * row, &mut values)?,
            Spelling::Binary => {
                let bytes = count * row * from.size() as u64;
                let read = data.by_ref().take(bytes).read_to_end(&mut values)? as u64;
                ensure!(read == bytes, "Unable to get value from file: it ends too early");
            }
        }
        let mut offset = vec![0; shape.len()];
        let mut size = shape.clone();
        if let (Some(offset), Some(size)) = (offset.first_mut(), size.first_mut()) {
            (*offset, *size) = (start, count);
        }
        let rows = match shape.is_empty() {
            true => Selection::all(),
            false => Selection::block(&offset, &size)?,
        };
        dataset.write_as(rows, &from, &values, &Transfer::default())?;
        start += count;
    }
    Ok(())
}

/// Appends numbers that are separated by white space.
fn texts(
    data: &mut impl BufRead,
    settings: &Settings,
    count: u64,
    values: &mut Vec<u8>,
) -> Result<()> {
    let mut word = Vec::new();
    for _ in 0..count {
        next_word(data, &mut word)?;
        let text = String::from_utf8_lossy(&word);
        let wrong = || format!("Unable to get value from file: \"{text}\"");
        let size = (settings.bits / 8) as usize;
        match settings.class {
            Class::Float if settings.bits == 32 => {
                values.extend(text.parse::<f32>().with_context(wrong)?.to_le_bytes());
            }
            Class::Float => values.extend(text.parse::<f64>().with_context(wrong)?.to_le_bytes()),
            // As C has it: what does not fit loses its upper bits.
            Class::Signed | Class::Lines => {
                let number = text.parse::<i64>().with_context(wrong)?;
                values.extend(&number.to_le_bytes()[..size]);
            }
            Class::Unsigned => {
                let number = text.parse::<u64>().with_context(wrong)?;
                values.extend(&number.to_le_bytes()[..size]);
            }
        }
    }
    Ok(())
}

fn next_word(data: &mut impl BufRead, word: &mut Vec<u8>) -> Result<()> {
    word.clear();
    loop {
        let buffer = data.fill_buf()?;
        ensure!(!buffer.is_empty() || !word.is_empty(), "it ends too early");
        let blank = if word.is_empty() {
            buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
        } else {
            0
        };
        let rest = &buffer[blank..];
        let end = rest.iter().position(u8::is_ascii_whitespace);
        let length = end.unwrap_or(rest.len());
        word.extend_from_slice(&rest[..length]);
        ensure!(word.len() < 1024, "a number of more than 1024 letters");
        let done = buffer.is_empty() || (end.is_some() && !word.is_empty());
        data.consume(blank + length);
        if done {
            return Ok(());
        }
    }
}

/// Lines become strings.
fn lines(file: &File, settings: &Settings, mut data: impl BufRead) -> Result<()> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    let mut line = Vec::new();
    while data.read_until(b'\n', &mut line)? > 0 {
        if line.pop_if(|last| *last == b'\n').is_some() {
            found.push(line.clone());
        }
        line.clear();
    }
    let shape = vec![found.len() as u64];
    let strings =
        VarLen::string(file.reference_size(), StringPadding::NullTerminate, CharacterSet::Ascii);
    // As libhdf5 has it for elements of variable length.
    let builder = file.new_dataset_of(Datatype::VarLen(strings)).shape(shape);
    let builder = builder.fill_time(FillTime::Allocation);
    builder.create(&settings.path)?.write_strings(.., &found)?;
    Ok(())
}

fn help(program: &str) -> String {
    format!(
        "\
usage: {program} INFILE -c[onfig] CONFIGFILE [INFILE -c[onfig] CONFIGFILE...] -o[utfile] OUTFILE
       {program} INFILE -d[ims] D1,D2,... [-p[ath] PATH] [-t[ype] TYPE] [-s[ize] BITS] -o[utfile] OUTFILE

  Stores arrays of text and binary files as datasets of an HDF5 file, which is made if it is not
  there.

  -c[onfig] FILE    what h5dump printed when it wrote INFILE (`h5dump -p -d DATASET -o INFILE`, as text
                    or, with -b, as bytes; of sparse datasets with --sparse, too), or INFILE itself if
                    that is a whole dump, or lines of a keyword and its value:
                      PATH                     groups and dataset
                      INPUT-CLASS              TEXTIN, TEXTUIN, TEXTFP, TEXTFPE, IN, UIN, FP or STR
                      INPUT-SIZE               8, 16, 32 or 64 bits
                      INPUT-BYTE-ORDER         LE or BE
                      RANK, DIMENSION-SIZES    the shape
                      OUTPUT-CLASS             IN, UIN or FP
                      OUTPUT-SIZE              8, 16, 32 or 64 bits
                      OUTPUT-ARCHITECTURE      NATIVE, STD, IEEE, INTEL, CRAY, MIPS, ALPHA or UNIX
                      OUTPUT-BYTE-ORDER        BE or LE
                      CHUNKED-DIMENSION-SIZES  the shape of a chunk
                      COMPRESSION-TYPE         GZIP
                      COMPRESSION-PARAM        the level, 0 to 9
                      MAXIMUM-DIMENSIONS       the largest shape; -1 for without limit
                      EXTERNAL-STORAGE         the file for the dataset's values
  -d[ims] D1,...    the shape
  -p[ath] PATH      where the dataset is made
  -t[ype] CLASS     as INPUT-CLASS
  -s[ize] BITS      as INPUT-SIZE
  -o[utfile] FILE   the HDF5 file
  -h[elp]           print this
  -V                print the version

Examples:
  {program} temperatures.txt -c temperatures.conf -o weather.h5
  {program} image.bin -d 512,512 -t UIN -s 16 -p images/first -o images.h5
  h5dump -p -d /a -o a.bin -b NATIVE old.h5 > a.ddl; {program} a.bin -c a.ddl -o new.h5
  h5dump -p --sparse old.h5 > all.ddl; {program} all.ddl -o new.h5
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_across_the_ends_of_buffers() {
        let mut data = BufReader::with_capacity(3, &b"  12345 6\n\n 789"[..]);
        let mut word = Vec::new();
        for expected in ["12345", "6", "789"] {
            next_word(&mut data, &mut word).unwrap();
            assert_eq!(word, expected.as_bytes());
        }
        assert!(next_word(&mut data, &mut word).is_err());
    }

    #[test]
    fn files_are_followed_by_what_belongs_to_them() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let request = parse(&words("a.txt -c a.conf b.bin -d 2,3 -t UIN -s 16 -p /g/b -o out.h5"));
        let Ok(Request::Import { inputs, output }) = request else { panic!("not understood") };
        assert_eq!(output, Path::new("out.h5"));
        assert_eq!(inputs[0].configuration.as_deref(), Some(Path::new("a.conf")));
        assert_eq!(inputs[1].settings.shape, Some(vec![2, 3]));
        assert_eq!(inputs[1].settings.output_type().unwrap(), Datatype::u16_le());
        assert_eq!(inputs[1].settings.path, "g/b");
        for wrong in ["a.txt", "-o out.h5", "a.txt -x 3 -o b", "a.txt -s 12 -o b", "-c a.conf"] {
            assert!(parse(&words(wrong)).is_err(), "{wrong}");
        }
    }
}
