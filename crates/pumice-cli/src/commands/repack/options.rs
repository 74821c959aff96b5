//! The options of `pumice repack` and h5repack.

use super::defined::{self, Locations};
use super::request::{KeepRequest, Requests};
use crate::driver::Driver;
use crate::flags::{self, Flag, Takes};
use crate::target;
use anyhow::{Context, Result, anyhow, bail, ensure};
use pumice::{FileSpaceStrategy, LibraryVersion, SharedKind};
use std::path::PathBuf;

const NOTHING: Takes = Takes::Nothing;

/// All flags: h5repack's, and those for sparse datasets.
pub(in crate::commands) const FLAGS: &[Flag] = &[
    Flag::new('h', "help", NOTHING, "Print this help"),
    Flag::new('V', "version", NOTHING, "Print the version"),
    Flag::new('v', "verbose", Takes::Attached("N"), "Print what is done; 2: with times"),
    Flag::new(
        'f',
        "filter",
        Takes::Value("FILT"),
        "Filters, as [NAMES:]FILTER[=PARAMETERS]:\nGZIP=1-9, SHUF, FLET, SZIP=PIXELS,EC|NN, NBIT,\nSOFF=N,IN|DS, ZSTD=1-22, LZF, LZ4, BZIP2=1-9,\nUD=ID,FLAG,COUNT,VALUES, NONE; may be repeated",
    ),
    Flag::new(
        'l',
        "layout",
        Takes::Value("LAYT"),
        "Layout, as [NAMES:]LAYOUT: COMPA, CONTI,\nCHUNK=5x4, SPARSECHUNK=5x4; may be repeated.\nThe next three belong to the -l before them",
    ),
    Flag::new('e', "file", Takes::Value("E"), "A file with -f and -l options"),
    Flag::new(
        '!',
        "defined-elements",
        Takes::Value("LIST"),
        "Cells that are defined in sparse datasets, as\nBLOCK (2,2)-(4,7), (6,0)-(6,2) POINT (5,9), (11,1)\nor @FILE with such a list. The list alone will do",
    ),
    Flag::new(
        '@',
        "exclude",
        Takes::Value("VALUE"),
        "Cells with this value are not defined in sparse\ndatasets",
    ),
    Flag::new(
        '#',
        "sections",
        Takes::Value("LIST"),
        "Sections that the filters after it are for:\nselection, values, references, heap, their\nnumbers, or all",
    ),
    Flag::new(
        '$',
        "keep-defined",
        NOTHING,
        "Write a mask beside datasets that become dense,\nand use it where they become sparse again",
    ),
    Flag::new(
        '%',
        "dry-run",
        NOTHING,
        "Only tell what would be done, and about how large\nthe result would be",
    ),
    Flag::new(
        '*',
        "cloud",
        NOTHING,
        "Put all metadata at the front, so that files in\nobject stores are opened by one request",
    ),
    Flag::new('~', "force", NOTHING, "Replace FILE2 if it exists; h5repack does so anyway"),
    Flag::new('n', "native", NOTHING, "Store numbers as this machine has them"),
    Flag::new('L', "latest", NOTHING, "Use the latest form of the format"),
    Flag::new('j', "low", Takes::Value("BOUND"), "The oldest release to write for, 0 to 6"),
    Flag::new('k', "high", Takes::Value("BOUND"), "The newest release to write for, 0 to 6"),
    Flag::new('X', "merge", NOTHING, "Copy what external links lead to"),
    Flag::new('W', "prune", NOTHING, "Leave out links that lead nowhere, or all"),
    Flag::new('c', "compact", Takes::Value("L1"), "Most links of a group in its header"),
    Flag::new('d', "indexed", Takes::Value("L2"), "Fewest links of a group with an index"),
    Flag::new(
        's',
        "ssize",
        Takes::Value("S[:F]"),
        "Keep messages of so many bytes once for all\nobjects; F: dspace, dtype, fill, pline or attr",
    ),
    Flag::new('m', "minimum", Takes::Value("M"), "Leave datasets of fewer bytes as they are"),
    Flag::new('u', "ublock", Takes::Value("U"), "A file with the user block"),
    Flag::new('b', "block", Takes::Value("B"), "Bytes of the user block"),
    Flag::new(
        'M',
        "metadata_block_size",
        Takes::Value("A"),
        "Bytes to put aside for metadata at a time",
    ),
    Flag::new('t', "threshold", Takes::Value("T"), "Align what has this many bytes, with -a"),
    Flag::new('a', "alignment", Takes::Value("A"), "Let data begin at multiples of this"),
    Flag::new('q', "sort_by", Takes::Value("Q"), "Go by name or creation_order"),
    Flag::new('z', "sort_order", Takes::Value("Z"), "Go ascending or descending"),
    Flag::new(
        'S',
        "fs_strategy",
        Takes::Value("S"),
        "How room is found: FSM_AGGR, PAGE, AGGR or NONE",
    ),
    Flag::new('P', "fs_persist", Takes::Value("P"), "Whether free space is remembered, 0 or 1"),
    Flag::new('T', "fs_threshold", Takes::Value("T"), "The smallest free space that is remembered"),
    Flag::new('G', "fs_pagesize", Takes::Value("G"), "Bytes of a page"),
    Flag::new('E', "enable-error-stack", Takes::Number("2"), "Accepted: errors are always told"),
    Flag::new('K', "page-buffer-size", Takes::Value("N"), "Accepted, without effect"),
    Flag::new('i', "infile", Takes::Value("FILE"), "The file to read"),
    Flag::new('o', "outfile", Takes::Value("FILE"), "The file to write"),
    Flag::new('8', "src-vfd-name", Takes::Value("D"), "How the input is stored, e.g. onion"),
    Flag::new('9', "src-vfd-info", Takes::Value("I"), "More about that: a revision"),
    Flag::new('1', "src-vol-value", Takes::Value("V"), "Accepted, without effect"),
    Flag::new('2', "src-vol-name", Takes::Value("V"), "Accepted, without effect"),
    Flag::new('3', "src-vol-info", Takes::Value("V"), "Accepted, without effect"),
    Flag::new('4', "dst-vol-value", Takes::Value("V"), "Accepted, without effect"),
    Flag::new('5', "dst-vol-name", Takes::Value("V"), "Accepted, without effect"),
    Flag::new('6', "dst-vol-info", Takes::Value("V"), "Accepted, without effect"),
    Flag::new('7', "src-vfd-value", Takes::Value("V"), "Accepted, without effect"),
    Flag::new('0', "dst-vfd-value", Takes::Value("V"), "Accepted, without effect"),
    Flag::new('^', "dst-vfd-name", Takes::Value("V"), "Accepted, without effect"),
    Flag::new('&', "dst-vfd-info", Takes::Value("V"), "Accepted, without effect"),
];

/// Settings of the new file's space that differ from the old file's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SpaceRequest {
    pub(super) strategy: Option<FileSpaceStrategy>,
    pub(super) persist: Option<bool>,
    pub(super) threshold: Option<u64>,
    pub(super) page: Option<u64>,
}

/// Everything that was asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub(super) help: bool,
    pub(super) version: bool,
    pub(super) verbose: u8,
    pub(super) requests: Requests,
    pub(super) keep_defined: bool,
    pub(super) dry_run: bool,
    pub(super) force: bool,
    /// Whether metadata comes first.
    pub(super) cloud: bool,
    pub(super) native: bool,
    pub(super) low: Option<LibraryVersion>,
    /// Whether chunk indexes are those of HDF5 1.8.
    pub(super) old_indexes: bool,
    pub(super) merge: bool,
    pub(super) prune: bool,
    pub(super) phase_change: Option<(u16, u16)>,
    /// The least size for which messages of a kind are shared.
    pub(super) shared: Vec<(SharedKind, u32)>,
    /// The alignment: from how many bytes on, and to multiples of which number.
    pub(super) alignment: Option<(u64, u64)>,
    /// Bytes that are set aside for metadata at a time.
    pub(super) metadata_block: Option<u64>,
    pub(super) minimum: u64,
    pub(super) user_block_file: Option<PathBuf>,
    pub(super) user_block: u64,
    pub(super) by_name: bool,
    pub(super) descending: bool,
    pub(super) space: SpaceRequest,
    pub(super) driver: Driver,
    pub(super) input: String,
    /// The object that requests without names are for, if not all.
    pub(super) inside: Option<String>,
    /// The output; `None` replaces the input.
    pub(super) output: Option<String>,
}

/// Numbers that only make sense together.
#[derive(Default)]
struct Bounds {
    low: Option<u8>,
    high: Option<u8>,
    latest: bool,
    compact: Option<u16>,
    indexed: Option<u16>,
    threshold: Option<u64>,
    alignment: Option<u64>,
    shared: Vec<(SharedKind, u32)>,
}

impl Options {
    pub(super) fn parse(arguments: &[String]) -> Result<Self> {
        let parsed = flags::parse(FLAGS, &defined::joined(arguments))?;
        let mut options = Self::default();
        let mut bounds = Bounds::default();
        let mut named = (None, None);
        for (letter, value) in parsed.flags {
            let text = value.unwrap_or_default();
            match letter {
                'e' => options.read_file(&text)?,
                'i' => named.0 = Some(text),
                'o' => named.1 = Some(text),
                _ if bounds.take(letter, &text)? || options.request(letter, &text)? => {}
                _ => options.take(letter, &text)?,
            }
        }
        if options.help || options.version {
            return Ok(options);
        }
        bounds.settle(&mut options)?;
        options.requests.check()?;
        let mut words = parsed.words.into_iter();
        let missing = "file names missing";
        (options.input, options.output) = match named {
            (None, None) => (words.next().context(missing)?, words.next()),
            (Some(input), Some(output)) => (input, Some(output)),
            _ => bail!("filenames must be either both -i -o or both positional"),
        };
        ensure!(words.next().is_none(), "more than two files");
        ensure!(options.output.as_ref() != Some(&options.input), "file names cannot be the same");
        Ok(options)
    }

    fn take(&mut self, letter: char, text: &str) -> Result<()> {
        let number = || text.parse::<u64>().with_context(|| format!("not a number: {text}"));
        match letter {
            'h' => self.help = true,
            'V' => self.version = true,
            'v' => self.verbose = if text == "2" { 2 } else { 1 },
            '$' => self.keep_defined = true,
            '%' => self.dry_run = true,
            '*' => self.cloud = true,
            '~' => self.force = true,
            'n' => self.native = true,
            'X' => self.merge = true,
            'W' => self.prune = true,
            'm' => {
                self.minimum = number()
                    .ok()
                    .filter(|&bytes| bytes > 0)
                    .ok_or_else(|| anyhow!("invalid minimum compress size <{text}>"))?;
            }
            'u' => self.user_block_file = Some(text.into()),
            'b' => self.user_block = number()?,
            'M' => {
                let bytes =
                    number().map_err(|_| anyhow!("invalid metadata block size <{text}>"))?;
                // None: as many as usual.
                self.metadata_block = Some(bytes).filter(|&bytes| bytes > 0);
            }
            'q' => {
                self.by_name = match text {
                    "name" => true,
                    "creation_order" => false,
                    _ => bail!("failed to set sort by form <{text}>"),
                }
            }
            'z' => {
                self.descending = match text {
                    "ascending" => false,
                    "descending" => true,
                    _ => bail!("failed to set sort order form <{text}>"),
                }
            }
            'S' => self.space.strategy = Some(strategy(text)?),
            'P' => self.space.persist = Some(number()? != 0),
            'T' => self.space.threshold = Some(number()?),
            'G' => self.space.page = Some(number()?),
            '8' => self.driver.set_name(text)?,
            '9' => self.driver.set_info(text),
            // Flags without effect.
            _ => {}
        }
        Ok(())
    }

    /// Takes a flag if it says how datasets are stored.
    fn request(&mut self, letter: char, text: &str) -> Result<bool> {
        match letter {
            'f' => self.requests.add_filter(text)?,
            'l' => self.requests.add_layout(text)?,
            '#' => self.requests.set_sections(text)?,
            '!' => self.requests.add_keep(&KeepRequest::Listed(Locations::parse(text)?))?,
            '@' => self.requests.add_keep(&KeepRequest::Except(text.to_owned()))?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Options in a file: `-f` and `-l`, with their arguments.
    fn read_file(&mut self, path: &str) -> Result<()> {
        let action = || format!("cannot open options file {path}");
        target::regular(path.as_ref()).with_context(action)?;
        let text = std::fs::read_to_string(path).with_context(action)?;
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let parsed = flags::parse(FLAGS, &defined::joined(&words))
            .with_context(|| format!("bad file format for {path}"))?;
        ensure!(parsed.words.is_empty(), "bad file format for {path}");
        for (letter, value) in parsed.flags {
            let known = self.request(letter, &value.unwrap_or_default())?;
            ensure!(known, "bad file format for {path}");
        }
        Ok(())
    }
}

impl Bounds {
    /// `-s SIZE[:KIND]`.
    fn share(&mut self, text: &str) -> Result<()> {
        const KINDS: [(&str, SharedKind); 5] = [
            ("dspace", SharedKind::Dataspace),
            ("dtype", SharedKind::Datatype),
            ("fill", SharedKind::FillValue),
            ("pline", SharedKind::Filters),
            ("attr", SharedKind::Attribute),
        ];
        let (size, wanted) = text.split_once(':').unwrap_or((text, ""));
        let size = size.parse().with_context(|| format!("invalid shared message size `{text}`"))?;
        let kinds = KINDS.iter().filter(|(name, _)| wanted.is_empty() || wanted.starts_with(name));
        let before = self.shared.len();
        self.shared.extend(kinds.map(|(_, kind)| (*kind, size)));
        ensure!(
            self.shared.len() > before,
            "-s {text}: dspace, dtype, fill, pline and attr are known"
        );
        Ok(())
    }

    /// Takes a flag if it is one of these.
    fn take(&mut self, letter: char, text: &str) -> Result<bool> {
        let number = || text.parse().with_context(|| format!("not a number: {text}"));
        let bound = |which: &str| {
            let bound = text.parse().ok().filter(|bound| *bound <= 6u8);
            bound.ok_or_else(|| anyhow!("in parsing {which} bound"))
        };
        match letter {
            'L' => self.latest = true,
            'j' => self.low = Some(bound("low")?),
            'k' => self.high = Some(bound("high")?),
            'c' => self.compact = Some(number()?),
            'd' => self.indexed = Some(number()?),
            's' => {
                self.share(text)?;
                self.latest = true;
            }
            't' => self.threshold = text.parse().ok().filter(|&bytes| bytes > 0),
            'a' => {
                self.alignment = text.parse().ok().filter(|&bytes| bytes > 0);
                ensure!(self.alignment.is_some(), "invalid alignment size `{text}`");
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn settle(self, options: &mut Options) -> Result<()> {
        let (compact, indexed) = (self.compact.unwrap_or(0), self.indexed.unwrap_or(0));
        ensure!(
            indexed <= compact,
            "minimum indexed size is greater than the maximum compact size"
        );
        ensure!(
            self.alignment.is_some() || self.threshold.is_none(),
            "alignment for H5Pset_alignment missing"
        );
        options.alignment = self.alignment.map(|bytes| (self.threshold.unwrap_or(1), bytes));
        if self.low.zip(self.high).is_some_and(|(low, high)| low > high) {
            bail!("the low bound is above the high one");
        }
        options.shared = self.shared;
        options.phase_change = (compact > 0).then_some((compact, indexed));
        let latest = self.latest || compact > 0 || indexed > 0;
        options.low = match (latest, self.low) {
            (true, _) => Some(LibraryVersion::LATEST),
            (false, low) => low.map(version),
        };
        Ok(())
    }
}

fn version(bound: u8) -> LibraryVersion {
    match bound {
        0 => LibraryVersion::Earliest,
        1 => LibraryVersion::V18,
        2 => LibraryVersion::V110,
        3 => LibraryVersion::V112,
        4 => LibraryVersion::V114,
        5 => LibraryVersion::V200,
        _ => LibraryVersion::V300,
    }
}

fn strategy(text: &str) -> Result<FileSpaceStrategy> {
    Ok(match text {
        "FSM_AGGR" => FileSpaceStrategy::FreeSpaceManagers,
        "PAGE" => FileSpaceStrategy::Paged,
        "AGGR" => FileSpaceStrategy::Aggregators,
        "NONE" => FileSpaceStrategy::EndOfFile,
        _ => bail!("invalid file space management strategy `{text}`"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options> {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn lists_of_locations_end_where_the_files_begin() {
        let line = "-l Sparse:SPARSECHUNK=5x4 --defined-elements BLOCK (2,2)-(4,7), (6,0)-(6,2) \
                    POINT (5,9), (11, 1), (12,8) dense.h5 sparse.h5";
        let options = parsed(line).unwrap();
        assert_eq!(
            (options.input.as_str(), options.output.as_deref()),
            ("dense.h5", Some("sparse.h5"))
        );
        let keep = |options: &Options| options.requests.of("Sparse").keep.cloned();
        let plain = parsed(&line.replace("--defined-elements ", "")).unwrap();
        assert_eq!(keep(&plain), keep(&options));
        assert!(keep(&options).is_some());
        assert!(options.requests.of("Other").keep.is_none());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "a",
            "-f GZIP=10 a b",
            "-f GZIP a b",
            "-f a:FOO a b",
            "-l CHUNK a b",
            "-l a: a b",
            "-m 0 a b",
            "-S x a b",
            "-d 3 -c 2 a b",
            "-t 1 a b",
            "--low=7 a b",
            "-f SZIP=3,NN a b",
            "-l x a b",
            "a a",
            "-f GZIP=1 -f a:SHUF b c",
            "-q x a b",
            "--exclude 0 --defined-elements POINT (1) -l SPARSECHUNK a b",
            "-l SPARSECHUNK --exclude 0 --exclude 1 a b",
            "-l x:CHUNK=5 POINT (1) a b",
            "--exclude 0 a b",
            "-l x:SPARSECHUNK=5 --sections 3 -f GZIP=1 a b",
            "-l x:SPARSECHUNK=5 --sections chunk -f GZIP=1 a b",
        ] {
            let words = parsed(line);
            assert!(words.is_err() || line == "a", "{line}");
        }
        assert_eq!(parsed("a").unwrap().output, None);
    }
}
