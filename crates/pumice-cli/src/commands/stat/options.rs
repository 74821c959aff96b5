//! The options of `pumice stat` and h5stat.

use crate::flags::{self, Flag, Takes};
use crate::locate::Spot;
use anyhow::{Result, ensure};

const NOTHING: Takes = Takes::Nothing;

/// All flags.
pub(in crate::commands) const FLAGS: &[Flag] = &[
    Flag::new('h', "help", NOTHING, "Print this help"),
    Flag::new('V', "version", NOTHING, "Print the version"),
    Flag::new('f', "file", NOTHING, "Count objects"),
    Flag::new('F', "filemetadata", NOTHING, "Tell what metadata takes"),
    Flag::new('g', "group", NOTHING, "Tell about groups"),
    Flag::new('l', "links", Takes::Value("N"), "Groups with fewer links are small (10)"),
    Flag::new('G', "groupmetadata", NOTHING, "Tell what metadata of groups takes"),
    Flag::new('d', "dset", NOTHING, "Tell about datasets"),
    Flag::new('m', "dims", Takes::Value("N"), "Datasets of fewer cells are small (10)"),
    Flag::new('D', "dsetmetadata", NOTHING, "Tell what metadata of datasets takes"),
    Flag::new('T', "dtypemetadata", NOTHING, "Tell about datatypes of datasets"),
    Flag::new('A', "attribute", NOTHING, "Tell about attributes"),
    Flag::new('a', "numattrs", Takes::Value("N"), "Up to so many attributes are few (10)"),
    Flag::new('s', "freespace", NOTHING, "Tell about free space"),
    Flag::new('S', "summary", NOTHING, "Sum up"),
    Flag::new('E', "enable-error-stack", Takes::Number("2"), "Accepted: errors are always told"),
    Flag::new('K', "page-buffer-size", Takes::Value("N"), "Accepted, without effect"),
];

/// Everything that was asked for.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) help: bool,
    pub(super) version: bool,
    /// Letters of the requested parts; all if empty.
    told: String,
    pub(super) small_group: u64,
    pub(super) small_dataset: u64,
    pub(super) few_attributes: u64,
    pub(super) files: Vec<Spot>,
}

impl Options {
    pub(super) fn parse(arguments: &[String], program: &str) -> Result<Self> {
        let parsed = flags::parse(FLAGS, arguments)?;
        let mut options = Self {
            help: false,
            version: false,
            told: String::new(),
            small_group: 10,
            small_dataset: 10,
            few_attributes: 10,
            files: parsed.words.iter().map(|word| Spot::asked(word, program)).collect(),
        };
        for (letter, value) in parsed.flags {
            let threshold = |what: &str| {
                let number = value.as_deref().and_then(|text| text.parse().ok()).unwrap_or(0);
                ensure!(number > 0, "Invalid threshold for small {what}");
                Ok(number)
            };
            match letter {
                'h' => options.help = true,
                'V' => options.version = true,
                'l' => options.small_group = threshold("groups")?,
                'm' => options.small_dataset = threshold("datasets")?,
                'a' => options.few_attributes = threshold("# of attributes")?,
                'E' | 'K' => {}
                told => options.told.push(told),
            }
        }
        ensure!(!options.files.is_empty() || options.help || options.version, "missing file name");
        Ok(options)
    }

    /// The options for a single object, without the parts about the file.
    pub(super) fn of_object(&self) -> Self {
        let told = match self.all() {
            true => "fgGdTDA".to_owned(),
            false => self.told.chars().filter(|letter| !"FsS".contains(*letter)).collect(),
        };
        Self { told, ..self.clone() }
    }

    /// Whether all parts are printed.
    pub(super) fn all(&self) -> bool {
        self.told.is_empty()
    }

    /// Whether the part of a letter is printed.
    pub(super) fn tells(&self, letter: char) -> bool {
        self.all() || self.told.contains(letter)
    }
}
