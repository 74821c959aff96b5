//! The options of `pumice dump` and h5dump.

use crate::driver::Driver;
use crate::flags::{self, Flag, Takes};
use crate::locate::Spot;
use crate::numbers::FloatFormat;
use crate::subset::{self, Subset};
use crate::value::Style;
use crate::walker::Order;
use anyhow::{Result, anyhow, bail, ensure};
use pumice::{Attribute, File, Node};

const NOTHING: Takes = Takes::Nothing;

/// All flags, h5dump's and a few more.
pub(in crate::commands) const FLAGS: &[Flag] = &[
    Flag::new('h', "help", NOTHING, "Print this help"),
    Flag::new('V', "version", NOTHING, "Print the version"),
    Flag::new('H', "header", NOTHING, "Print headers only, no values"),
    Flag::new('n', "contents", Takes::Perhaps("1"), "List what is in the file; 1: attributes, too"),
    Flag::new('B', "superblock", NOTHING, "Print the superblock, too"),
    Flag::new('B', "boot-block", NOTHING, "The same"),
    Flag::new('d', "dataset", Takes::Value("P"), "Print this dataset; may be repeated"),
    Flag::new('g', "group", Takes::Value("P"), "Print this group and what is in it"),
    Flag::new(
        'a',
        "attribute",
        Takes::Value("P"),
        "Print this attribute (a \"/\" in its name: \"\\/\")",
    ),
    Flag::new('l', "soft-link", Takes::Value("P"), "Print where this link leads"),
    Flag::new('t', "datatype", Takes::Value("P"), "Print this committed datatype"),
    Flag::new('N', "any_path", Takes::Value("P"), "Print whatever has this name or path"),
    Flag::new(
        'A',
        "onlyattr",
        Takes::Perhaps("0"),
        "Print values of attributes only; 0: no attributes",
    ),
    Flag::new('p', "properties", NOTHING, "Print layout, filters and fill values"),
    Flag::new('i', "object-ids", NOTHING, "Print addresses of objects"),
    Flag::new(
        's',
        "start",
        Takes::Value("LIST"),
        "First cell to print of the dataset before, e.g. 0,0",
    ),
    Flag::new('S', "stride", Takes::Value("LIST"), "Distance from block to block"),
    Flag::new('c', "count", Takes::Value("LIST"), "How many blocks along each axis"),
    Flag::new('k', "block", Takes::Value("LIST"), "Shape of a block"),
    Flag::new(
        'C',
        "no-compact-subset",
        NOTHING,
        "A \"[\" is part of a dataset's name, not of NAME[start;stride;count;block]",
    ),
    Flag::new(
        'M',
        "packedbits",
        Takes::Value("LIST"),
        "Print these bits of integers: offset,length,...",
    ),
    Flag::new('R', "region", NOTHING, "Print what region references point at"),
    Flag::new('e', "escape", NOTHING, "Print \\n for a line break, and the like"),
    Flag::new('r', "string", NOTHING, "Print 1-byte integers as characters"),
    Flag::new('y', "noindex", NOTHING, "Print no coordinates"),
    Flag::new('m', "format", Takes::Value("T"), "Print floats in this format, e.g. %.3f"),
    Flag::new('w', "width", Takes::Value("N"), "Columns of a line; 0: no limit"),
    Flag::new('q', "sort_by", Takes::Value("Q"), "Sort by name or creation_order"),
    Flag::new('z', "sort_order", Takes::Value("Z"), "Sort ascending or descending"),
    Flag::new('o', "output", Takes::Perhaps("F"), "Write values to this file, or nowhere"),
    Flag::new('b', "binary", Takes::Perhaps("B"), "Write values as bytes: NATIVE, FILE, LE or BE"),
    Flag::new('O', "ddl", Takes::Perhaps("F"), "Write all but values to this file, or nowhere"),
    Flag::new('~', "force", NOTHING, "Replace these files if they exist"),
    Flag::new('f', "filedriver", Takes::Value("D"), "How the file is stored, e.g. family"),
    Flag::new(
        'v',
        "vds-view-first-missing",
        NOTHING,
        "End virtual datasets at the first missing part",
    ),
    Flag::new('G', "vds-gap-size", Takes::Value("N"), "Missing files to skip in virtual datasets"),
    Flag::new('K', "page-buffer-size", Takes::Value("N"), "Accepted, without effect"),
    Flag::new('E', "enable-error-stack", Takes::Number("2"), "Accepted: errors are always told"),
    Flag::new('x', "xml", NOTHING, "Print XML (schema)"),
    Flag::new('u', "use-dtd", NOTHING, "Print XML (DTD)"),
    Flag::new('D', "xml-dtd", Takes::Value("U"), "The DTD or schema to name in XML"),
    Flag::new('X', "xml-ns", Takes::Value("S"), "The namespace of XML"),
    Flag::new('5', "vfd-name", Takes::Value("D"), "How the file is stored, e.g. family"),
    Flag::new('6', "vfd-info", Takes::Value("I"), "More about that: the revision of an onion file"),
    Flag::new('7', "dense", NOTHING, "Print undefined cells of sparse datasets, too"),
    Flag::new('@', "sparse-locations", NOTHING, "Print where cells of sparse datasets are defined"),
    Flag::new('#', "sparse", NOTHING, "Print that and the values there"),
    Flag::new('$', "json", NOTHING, "Print JSON"),
    Flag::new('%', "csv", NOTHING, "Print datasets as comma-separated values"),
];

/// An object to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Attribute(String),
    Dataset(String, Option<Subset>),
    Group(String),
    Link(String),
    Datatype(String),
    Any(String),
}

impl Wanted {
    /// The requested name.
    pub(super) fn path(&self) -> &str {
        match self {
            Self::Attribute(path) | Self::Dataset(path, _) | Self::Group(path) => path,
            Self::Link(path) | Self::Datatype(path) | Self::Any(path) => path,
        }
    }
}

/// The form of values in a binary file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Native,
    File,
    Little,
    Big,
}

/// The schema language of an XML file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Schema {
    Schema,
    Definition,
}

/// Everything that was asked for.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) help: bool,
    pub(super) version: bool,
    pub(super) contents: bool,
    pub(super) contents_attributes: bool,
    pub(super) superblock: bool,
    pub(super) wanted: Vec<Wanted>,
    pub(super) values: bool,
    pub(super) attribute_values: bool,
    pub(super) attributes: bool,
    pub(super) properties: bool,
    pub(super) identifiers: bool,
    pub(super) escape: bool,
    pub(super) characters: bool,
    pub(super) indices: bool,
    /// Columns of a line; 0: a value a line.
    pub(super) columns: usize,
    pub(super) by_creation: bool,
    pub(super) descending: bool,
    /// `Some(None)`: nowhere.
    pub(super) output: Option<Option<String>>,
    /// Whether only values of attributes were requested before the output was named.
    pub(super) output_of_attributes: bool,
    pub(super) binary: Option<Binary>,
    /// `Some(None)`: nowhere.
    pub(super) description: Option<Option<String>>,
    /// Whether files that exist may be replaced.
    pub(super) force: bool,
    pub(super) dense: bool,
    /// Whether the places of defined cells are printed instead of a list of all cells.
    pub(super) sparse_locations: bool,
    pub(super) sparse_values: bool,
    pub(super) json: bool,
    pub(super) csv: bool,
    pub(super) xml: bool,
    pub(super) schema: Schema,
    pub(super) schema_place: Option<String>,
    /// The prefix of XML elements.
    pub(super) namespace: String,
    pub(super) float: Option<FloatFormat>,
    /// Ranges of bits to print: the lowest one, how many.
    pub(super) bits: Vec<(u32, u32)>,
    pub(super) regions: bool,
    pub(super) error_stack: bool,
    pub(super) driver: Driver,
    pub(super) files: Vec<Spot>,
    /// The part of the objects behind the names of files, if there are any.
    pub(super) inside: Option<Subset>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            help: false,
            version: false,
            contents: false,
            contents_attributes: false,
            superblock: false,
            wanted: Vec::new(),
            values: true,
            attribute_values: true,
            attributes: true,
            properties: false,
            identifiers: false,
            escape: false,
            characters: false,
            indices: true,
            columns: 80,
            by_creation: false,
            descending: false,
            output: None,
            output_of_attributes: false,
            binary: None,
            description: None,
            force: false,
            dense: false,
            sparse_locations: false,
            sparse_values: false,
            json: false,
            csv: false,
            xml: false,
            schema: Schema::Schema,
            schema_place: None,
            namespace: "hdf5:".into(),
            float: None,
            bits: Vec::new(),
            regions: false,
            error_stack: false,
            driver: Driver::default(),
            files: Vec::new(),
            inside: None,
        }
    }
}

impl Options {
    pub(super) fn order(&self) -> Order {
        Order { by_creation: self.by_creation, descending: self.descending }
    }

    /// The style of values.
    pub(super) fn style(&self) -> Style {
        Style { escape: self.escape, float: self.float.clone(), ..Style::default() }
    }

    /// Attributes in the order asked for.
    pub(super) fn sorted(&self, mut attributes: Vec<Attribute>) -> Vec<Attribute> {
        let tracked = attributes.iter().all(|attribute| attribute.creation_order().is_some());
        if self.by_creation && tracked {
            attributes.sort_by_key(Attribute::creation_order);
        }
        if self.descending {
            attributes.reverse();
        }
        attributes
    }

    pub(super) fn parse(arguments: &[String], program: &str) -> Result<Self> {
        let parsed = flags::parse(FLAGS, arguments)?;
        let files = parsed.words.iter().map(|word| Spot::asked(word, program)).collect::<Vec<_>>();
        let named = files.iter().any(|spot| spot.object(None).is_some());
        let inside = named.then(Subset::default);
        let mut options = Self { files, inside, ..Self::default() };
        let compact = !parsed.flags.iter().any(|(letter, _)| *letter == 'C');
        let mut after_dataset = false;
        for (letter, value) in parsed.flags {
            let value = value.as_deref();
            options.take(letter, value, compact, after_dataset)?;
            // A subset belongs to the dataset right before it.
            after_dataset = match letter {
                'd' => true,
                'B' | 'n' | 'H' | 'A' | 'i' | 'w' | 'N' | 'a' | 'g' | 'l' | 't' | 'o' => false,
                _ => after_dataset,
            };
        }
        if options.help || options.version {
            return Ok(options);
        }
        ensure!(!options.files.is_empty(), "missing file name");
        ensure!(
            options.binary.is_none() || options.output.as_ref().is_some_and(Option::is_some),
            "binary output requires a file name, use -o <filename>"
        );
        options.check_xml()?;
        Ok(options)
    }

    /// The request for a file, with the object behind its name and the part that was asked for.
    pub(super) fn of(&self, spot: &Spot, file: &File) -> Result<Self> {
        let mut options = self.clone();
        let Some(path) = spot.object(None) else { return Ok(options) };
        let (path, part) = match file.contains(&path) {
            true => (path, None),
            // Nothing has that name, but perhaps what is before a bracket.
            false => Subset::split(&path, true)?,
        };
        let part = part.or_else(|| self.inside.clone().filter(|part| *part != Subset::default()));
        options.wanted.push(match file.node(&path) {
            Ok(Node::Group(_)) => Wanted::Group(path),
            Ok(Node::Datatype(_)) => Wanted::Datatype(path),
            _ => Wanted::Dataset(path, part),
        });
        Ok(options)
    }

    /// Fails for requests that XML cannot have.
    fn check_xml(&self) -> Result<()> {
        if !self.xml {
            return Ok(());
        }
        let refused = [
            ("to display selected objects", !self.wanted.is_empty()),
            ("--boot-block", self.superblock),
            ("--object-ids", self.identifiers),
            ("--string", self.characters),
            ("--output", self.output.is_some()),
        ];
        if let Some((what, _)) = refused.iter().find(|(_, asked)| *asked) {
            bail!("option \"{what}\" not available for XML");
        }
        let qualified = self.schema == Schema::Schema && !self.namespace.is_empty();
        ensure!(
            self.schema_place.is_none() || !qualified,
            "Cannot set Schema URL for a qualified namespace--use -X or -U option with -D"
        );
        Ok(())
    }

    fn take(
        &mut self,
        letter: char,
        value: Option<&str>,
        compact: bool,
        after_dataset: bool,
    ) -> Result<()> {
        let text = || value.unwrap_or_default().to_owned();
        match letter {
            'h' => self.help = true,
            'V' => self.version = true,
            'n' => (self.contents, self.contents_attributes) = (true, value == Some("1")),
            'B' => self.superblock = true,
            'H' => (self.values, self.attribute_values) = (false, false),
            'A' if value.is_some() => self.attributes = number(&text()) != 0,
            'A' => (self.values, self.attribute_values) = (false, true),
            'p' => self.properties = true,
            'i' => self.identifiers = true,
            'e' => self.escape = true,
            'r' => self.characters = true,
            'y' => self.indices = false,
            'w' => self.columns = usize::try_from(number(&text())).map_or(65_535, columns),
            'd' => self.wanted.push(dataset(&text(), compact)?),
            'a' => self.wanted.push(Wanted::Attribute(text())),
            'g' => self.wanted.push(Wanted::Group(text())),
            'l' => self.wanted.push(Wanted::Link(text())),
            't' => self.wanted.push(Wanted::Datatype(text())),
            'N' => self.wanted.push(Wanted::Any(text())),
            's' | 'S' | 'c' | 'k' => self.subset(letter, &text(), after_dataset)?,
            'q' => self.by_creation = one_of("sort_by", &text(), ["name", "creation_order"])?,
            'z' => self.descending = one_of("sort_order", &text(), ["ascending", "descending"])?,
            'o' => {
                self.output = Some(value.map(str::to_owned));
                self.output_of_attributes = self.attribute_values && !self.values;
            }
            'b' => self.binary = Some(binary(value)?),
            '~' => self.force = true,
            'O' => self.description = Some(value.map(str::to_owned)),
            '7' => self.dense = true,
            '@' => self.sparse_locations = true,
            '#' => (self.sparse_locations, self.sparse_values) = (true, true),
            '$' => self.json = true,
            '%' => self.csv = true,
            'x' => (self.xml, self.schema, self.columns) = (true, Schema::Schema, 0),
            'u' => {
                (self.xml, self.schema, self.columns) = (true, Schema::Definition, 0);
                self.namespace.clear();
            }
            'D' => (self.schema_place, self.columns) = (Some(text()), 0),
            'X' if self.schema == Schema::Definition => bail!("a DTD has no namespaces"),
            'X' => {
                self.namespace = if text() == ":" { String::new() } else { text() };
                self.columns = 0;
            }
            'm' => {
                self.columns = 0;
                let format = FloatFormat::parse(&text());
                self.float = Some(format.ok_or_else(|| anyhow!("{:?} formats no floats", text()))?);
            }
            'M' if after_dataset => self.bits = bits(&text())?,
            'M' => bail!("option \"-M\" can only be used after --dataset option"),
            'R' => self.regions = true,
            'E' => self.error_stack = true,
            'f' | '5' => self.driver.set_name(&text())?,
            '6' => self.driver.set_info(&text()),
            'v' => self.driver.set_view(|view| view.first_missing = true),
            'G' => {
                let gap = u64::try_from(number(&text()));
                let gap = gap.map_err(|_| anyhow!("--vds-gap-size {}: less than none", text()))?;
                self.driver.set_view(|view| view.gap = gap);
            }
            // Flags without effect.
            _ => {}
        }
        Ok(())
    }

    fn subset(&mut self, letter: char, text: &str, after_dataset: bool) -> Result<()> {
        let inside = self.inside.is_some();
        let last = self.wanted.last_mut().filter(|_| after_dataset);
        let part = match last {
            Some(Wanted::Dataset(_, wanted)) => wanted.get_or_insert_default(),
            // That of the object behind the file's name.
            None if inside => self.inside.get_or_insert_default(),
            _ => bail!("option \"-{letter}\" can only be used after --dataset option"),
        };
        match letter {
            's' => part.start = Some(subset::list(text)?),
            'S' => part.stride = Some(subset::list(text)?),
            'c' => part.count = Some(subset::list(text)?),
            _ => part.block = Some(subset::list(text)?),
        }
        Ok(())
    }
}

/// The number that C's `atoi` makes of a text.
fn number(text: &str) -> i64 {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '-');
    text[..end.unwrap_or(text.len())].parse().unwrap_or(0)
}

/// Pairs of a lowest bit and a number of bits.
fn bits(text: &str) -> Result<Vec<(u32, u32)>> {
    let digits = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let begins = |word: &str| word.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    let words: Vec<&str> = text.split(',').collect();
    ensure!(words.iter().all(|word| begins(word)), "Bad mask list({text})");
    ensure!(
        words.len().is_multiple_of(2) && words.iter().all(|word| digits(word)),
        "Bad mask list({text}), missing expected comma separator."
    );
    let numbers: Vec<u32> = words.iter().map(|word| word.parse().unwrap_or(u32::MAX)).collect();
    let mut pairs = Vec::new();
    for pair in numbers.chunks_exact(2) {
        let (low, count) = (pair[0], pair[1]);
        ensure!(low < 64, "Packed Bit offset value({low}) must be between 0 and 63");
        ensure!(count > 0, "Packed Bit length value({count}) must be positive.");
        let end = low.saturating_add(count);
        ensure!(end <= 64, "Packed Bit offset+length value({end}) too large. Max is 64");
        pairs.push((low, count));
    }
    ensure!(pairs.len() <= 8, "Too many masks requested (max. 8). Mask list({text})");
    Ok(pairs)
}

fn columns(columns: usize) -> usize {
    if columns == 0 { 65_535 } else { columns }
}

/// Whether the second of two words was chosen.
fn one_of(flag: &str, text: &str, words: [&str; 2]) -> Result<bool> {
    let found = words.iter().position(|word| *word == text);
    let found = found.ok_or_else(|| anyhow!("--{flag} is {} or {}", words[0], words[1]))?;
    Ok(found == 1)
}

fn binary(form: Option<&str>) -> Result<Binary> {
    Ok(match form {
        None | Some("NATIVE" | "MEMORY") => Binary::Native,
        Some("FILE") => Binary::File,
        Some("LE") => Binary::Little,
        Some("BE") => Binary::Big,
        Some(other) => bail!("binary form \"{other}\" is none of NATIVE, FILE, LE, BE"),
    })
}

/// A dataset, perhaps with a subset as in `name[start;stride;count;block]`.
fn dataset(text: &str, compact: bool) -> Result<Wanted> {
    let (name, subset) = Subset::split(text, compact)?;
    Ok(Wanted::Dataset(name, subset))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options> {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        Options::parse(&words, "h5dump")
    }

    #[test]
    fn subsets_belong_to_the_dataset_before_them() {
        let options = parsed("-d a -s 1,2 -c 3,4 -d b[0;;2,2] a.h5").unwrap();
        let first =
            Subset { start: Some(vec![1, 2]), count: Some(vec![3, 4]), ..Subset::default() };
        let second = Subset { start: Some(vec![0]), count: Some(vec![2, 2]), ..Subset::default() };
        let wanted =
            [Wanted::Dataset("a".into(), Some(first)), Wanted::Dataset("b".into(), Some(second))];
        assert_eq!(options.wanted, wanted);
        assert!(parsed("-s 1 a.h5").is_err());
        assert!(parsed("-d a -H -s 1 a.h5").is_err());
    }

    #[test]
    fn brackets_can_be_part_of_a_name() {
        let options = parsed("--no-compact-subset -d a[0] a.h5").unwrap();
        assert_eq!(options.wanted, [Wanted::Dataset("a[0]".into(), None)]);
    }

    #[test]
    fn a_file_is_needed() {
        assert!(parsed("-H").is_err());
        assert!(parsed("-h").unwrap().help);
    }
}
