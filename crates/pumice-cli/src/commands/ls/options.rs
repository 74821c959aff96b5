//! The options of `pumice ls` and h5ls.

use crate::driver::Driver;
use crate::flags::{self, Flag, Takes};
use anyhow::{Result, ensure};

const NOTHING: Takes = Takes::Nothing;

/// Columns of a line that has no limit: each value has a line of its own.
pub(super) const NO_LIMIT: usize = 65_535;

/// All flags.
pub(in crate::commands) const FLAGS: &[Flag] = &[
    Flag::new('h', "help", NOTHING, "Print this help"),
    Flag::new('V', "version", NOTHING, "Print the version"),
    Flag::new('r', "recursive", NOTHING, "List groups inside groups, too"),
    Flag::new('v', "verbose", NOTHING, "Tell more about each object"),
    Flag::new('d', "data", NOTHING, "Print values of datasets"),
    Flag::new('f', "full", NOTHING, "Print whole paths"),
    Flag::new('g', "group", NOTHING, "List a group itself, not what is in it"),
    Flag::new('S', "simple", NOTHING, "Use no names of this machine's types"),
    Flag::new('w', "width", Takes::Value("N"), "Columns of a line of values; 0: no limit"),
    Flag::new('1', "follow-symlinks", NOTHING, "Follow soft and external links"),
    Flag::new('2', "no-dangling-links", NOTHING, "A link that leads nowhere is an error"),
    Flag::new('E', "external", NOTHING, "Follow external links"),
    Flag::new('a', "address", NOTHING, "With -v: where the elements are, chunk by chunk"),
    Flag::new('e', "errors", NOTHING, "Accepted: errors are always told"),
    Flag::new('4', "enable-error-stack", Takes::Number("2"), "Accepted: errors are always told"),
    Flag::new('3', "page-buffer-size", Takes::Value("N"), "Accepted, without effect"),
    Flag::new('5', "tree", NOTHING, "Draw a tree; the default on a terminal without other options"),
    Flag::new('6', "json", NOTHING, "Print everything as JSON"),
    Flag::new('l', "label", NOTHING, "Print the names of compounds' members with values"),
    Flag::new('s', "string", NOTHING, "Print integers of one byte as text"),
    Flag::new('x', "hexdump", NOTHING, "Print values as bytes in hexadecimal"),
    Flag::new('7', "vfd", Takes::Value("D"), "How the file is stored, e.g. family"),
    Flag::new('8', "vfd-name", Takes::Value("D"), "The same"),
    Flag::new('9', "vfd-value", Takes::Value("D"), "Accepted, without effect"),
    Flag::new('0', "vfd-info", Takes::Value("I"), "More about that: a revision"),
    Flag::new('!', "vol-name", Takes::Value("V"), "Accepted, without effect"),
    Flag::new('@', "vol-value", Takes::Value("V"), "Accepted, without effect"),
    Flag::new('#', "vol-info", Takes::Value("I"), "Accepted, without effect"),
];

/// Everything that was asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub(super) help: bool,
    pub(super) version: bool,
    pub(super) recursive: bool,
    pub(super) verbose: bool,
    pub(super) data: bool,
    pub(super) address: bool,
    pub(super) labels: bool,
    pub(super) characters: bool,
    pub(super) raw: bool,
    pub(super) full: bool,
    pub(super) literal: bool,
    pub(super) portable: bool,
    pub(super) columns: usize,
    pub(super) follow_soft: bool,
    pub(super) follow_external: bool,
    pub(super) no_dangling: bool,
    pub(super) tree: bool,
    pub(super) json: bool,
    pub(super) driver: Driver,
    /// Whether no option of h5ls was given.
    pub(super) plain: bool,
    pub(super) targets: Vec<String>,
}

impl Options {
    pub(super) fn parse(arguments: &[String]) -> Result<Self> {
        let parsed = flags::parse(FLAGS, arguments)?;
        let plain = parsed.flags.is_empty();
        let mut options = Self { targets: parsed.words, columns: 80, plain, ..Self::default() };
        for (letter, value) in parsed.flags {
            match letter {
                'h' => options.help = true,
                'V' => options.version = true,
                'r' => options.recursive = true,
                'v' => options.verbose = true,
                'd' => options.data = true,
                'f' => options.full = true,
                'g' => options.literal = true,
                'S' => options.portable = true,
                'w' => {
                    let columns = value.and_then(|value| value.parse().ok()).unwrap_or(0);
                    options.columns = if columns == 0 { NO_LIMIT } else { columns };
                }
                '1' => (options.follow_soft, options.follow_external) = (true, true),
                '2' => options.no_dangling = true,
                'E' => options.follow_external = true,
                '5' => options.tree = true,
                '6' => options.json = true,
                'a' => options.address = true,
                'l' => options.labels = true,
                's' => options.characters = true,
                'x' => options.raw = true,
                '7' | '8' => options.driver.set_name(&value.unwrap_or_default())?,
                '0' => options.driver.set_info(&value.unwrap_or_default()),
                _ => {}
            }
        }
        ensure!(
            !options.recursive || !options.literal,
            "-r (--recursive) does not go together with -g (--group)"
        );
        let follows = options.follow_soft || options.follow_external;
        ensure!(
            !options.no_dangling || follows,
            "--no-dangling-links must be used along with --follow-symlinks option"
        );
        ensure!(
            !options.targets.is_empty() || options.help || options.version,
            "missing file name"
        );
        Ok(options)
    }
}
