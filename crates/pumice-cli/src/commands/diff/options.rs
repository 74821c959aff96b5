//! The options of `pumice diff` and h5diff.

use crate::driver::Driver;
use crate::flags::{self, Flag, Takes};
use crate::locate::Spot;
use crate::subset::Subset;
use anyhow::{Result, anyhow, ensure};

const NOTHING: Takes = Takes::Nothing;

/// All flags, h5diff's and one more.
pub(in crate::commands) const FLAGS: &[Flag] = &[
    Flag::new('h', "help", NOTHING, "Print this help"),
    Flag::new('V', "version", NOTHING, "Print the version"),
    Flag::new('r', "report", NOTHING, "Print differences"),
    Flag::new(
        'v',
        "verbose",
        Takes::Attached("N"),
        "Print differences and all objects; 1 and 2: attributes, 3: files",
    ),
    Flag::new('q', "quiet", NOTHING, "Print nothing"),
    Flag::new('d', "delta", Takes::Value("D"), "Only differences greater than this count"),
    Flag::new('p', "relative", Takes::Value("R"), "Only relative differences greater than this"),
    Flag::new('e', "use-system-epsilon", NOTHING, "Floats next to each other are equal"),
    Flag::new('n', "count", Takes::Value("C"), "Stop an object after so many differences"),
    Flag::new('N', "nan", NOTHING, "Do not look for NaN"),
    Flag::new('c', "compare", NOTHING, "List objects that cannot be compared"),
    Flag::new('l', "follow-symlinks", NOTHING, "Compare what links lead to"),
    Flag::new('x', "no-dangling-links", NOTHING, "A link that leads nowhere is an error"),
    Flag::new('E', "exclude-path", Takes::Value("P"), "Leave out this object or group"),
    Flag::new('A', "exclude-attribute", Takes::Value("P"), "Leave out an object's attributes"),
    Flag::new('C', "no-compact-subset", NOTHING, "A \"[\" is part of an object's name"),
    Flag::new('=', "defined", NOTHING, "Compare which cells are defined, and only their values"),
    Flag::new('S', "enable-error-stack", Takes::Number("2"), "Accepted: errors are always told"),
    Flag::new('K', "page-buffer-size", Takes::Value("N"), "Accepted, without effect"),
    Flag::new('8', "vfd-name-1", Takes::Value("D"), "How the first file is stored"),
    Flag::new('9', "vfd-info-1", Takes::Value("I"), "More about that"),
    Flag::new('6', "vfd-name-2", Takes::Value("D"), "How the second file is stored"),
    Flag::new('7', "vfd-info-2", Takes::Value("I"), "More about that"),
];

/// Everything that was asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub(super) help: bool,
    pub(super) version: bool,
    pub(super) report: bool,
    pub(super) verbose: bool,
    pub(super) level: i64,
    pub(super) quiet: bool,
    /// Whether members of only one file are reported; h5diff reports them in its table alone.
    pub(super) explains: bool,
    pub(super) delta: Option<f64>,
    pub(super) relative: Option<f64>,
    pub(super) epsilon: bool,
    pub(super) count: Option<u64>,
    pub(super) nans: bool,
    pub(super) list_incomparable: bool,
    pub(super) follow: bool,
    pub(super) no_dangling: bool,
    pub(super) excluded: Vec<String>,
    pub(super) excluded_attributes: Vec<String>,
    pub(super) defined: bool,
    pub(super) files: Vec<String>,
    pub(super) drivers: [Driver; 2],
    /// Paths of the two objects, and parts of them.
    pub(super) objects: Option<[(String, Option<Subset>); 2]>,
}

impl Options {
    pub(super) fn parse(arguments: &[String], program: &str) -> Result<Self> {
        let parsed = flags::parse(FLAGS, arguments)?;
        let mut options = Self { nans: true, ..Self::default() };
        let mut compact = true;
        for (letter, value) in parsed.flags {
            compact &= letter != 'C';
            options.take(letter, value.as_deref().unwrap_or_default())?;
        }
        if options.help || options.version {
            return Ok(options);
        }
        let tolerances = [options.delta.is_some(), options.relative.is_some(), options.epsilon];
        ensure!(
            tolerances.iter().filter(|given| **given).count() <= 1,
            "h5diff error: -d, -p and --use-system-epsilon options are mutually-exclusive;\n\
             use no more than one.\n\
             Try '-h' or '--help' option for more information or see the h5diff entry in the \
             'HDF5 Reference Manual'."
        );
        let mut words = parsed.words.into_iter();
        let spots: Vec<Spot> =
            words.by_ref().take(2).map(|word| Spot::asked(&word, program)).collect();
        ensure!(spots.len() == 2, "missing file names");
        options.files = spots.iter().map(Spot::name).collect();
        let first = words.next();
        let second = words.next().or_else(|| first.clone());
        let [one, other] = [spots[0].object(first.as_deref()), spots[1].object(second.as_deref())];
        // One object is meant in both files.
        if let (Some(one), Some(other)) = (one.clone().or_else(|| other.clone()), other.or(one)) {
            options.objects = Some([object(&one, compact)?, object(&other, compact)?]);
        }
        Ok(options)
    }

    fn take(&mut self, letter: char, text: &str) -> Result<()> {
        let invalid = || anyhow!("<-{letter} {text}> is not a valid option");
        match letter {
            'h' => self.help = true,
            'V' => self.version = true,
            'r' => self.report = true,
            'v' => (self.verbose, self.level) = (true, text.parse().unwrap_or(0)),
            'q' => self.quiet = true,
            'd' => self.delta = Some(number(text).ok_or_else(invalid)?),
            'p' => {
                let number = number(text).ok_or_else(invalid)?;
                // No tolerance at all is the same as none asked for.
                self.relative = Some(number).filter(|number| *number >= f64::EPSILON);
            }
            'e' => self.epsilon = true,
            'n' => {
                let digits = text.bytes().all(|digit| digit.is_ascii_digit());
                let count = text.parse().ok().filter(|_| digits && !text.starts_with('0'));
                self.count = Some(count.ok_or_else(invalid)?);
            }
            'N' => self.nans = false,
            'c' => self.list_incomparable = true,
            'l' => self.follow = true,
            'x' => self.no_dangling = true,
            'E' => self.excluded.push(text.to_owned()),
            'A' => self.excluded_attributes.push(text.to_owned()),
            '=' => self.defined = true,
            '8' => self.drivers[0].set_name(text)?,
            '6' => self.drivers[1].set_name(text)?,
            '9' => self.drivers[0].set_info(text),
            '7' => self.drivers[1].set_info(text),
            // Flags without effect.
            _ => {}
        }
        Ok(())
    }

    /// The reason why options exclude each other, if they do.
    pub(super) fn contradiction(&self) -> Option<&'static str> {
        if self.quiet && (self.verbose || self.report) {
            return Some("Error: -q (quiet mode) cannot be added to verbose or report modes");
        }
        if self.no_dangling && !self.follow {
            return Some(
                "Error: --no-dangling-links must be used along with --follow-symlinks option.",
            );
        }
        None
    }

    /// Whether differing values are printed.
    pub(super) fn shows_values(&self) -> bool {
        (self.report || self.verbose) && !self.quiet
    }
}

/// A tolerance as C's `atof` reads it: a text that begins no number is 0.
fn number(text: &str) -> Option<f64> {
    if text.len() > 2 && text.starts_with("0x") {
        return None;
    }
    let ends = (1..=text.len()).rev().filter(|&end| text.is_char_boundary(end));
    let number = ends.filter_map(|end| text[..end].trim().parse::<f64>().ok()).next();
    Some(number.unwrap_or(0.0)).filter(|number| *number >= 0.0)
}

fn object(text: &str, compact: bool) -> Result<(String, Option<Subset>)> {
    let (path, subset) = Subset::split(text, compact)?;
    let path = if path.starts_with('/') { path } else { format!("/{path}") };
    Ok((path, subset))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options> {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        Options::parse(&words, "h5diff")
    }

    #[test]
    fn one_object_is_meant_in_both_files() {
        let options = parsed("-v2 a.h5 b.h5 x").unwrap();
        assert_eq!((options.verbose, options.level), (true, 2));
        assert_eq!(options.objects.unwrap().map(|(path, _)| path), ["/x", "/x"]);
        assert_eq!(parsed("-v a.h5 b.h5").unwrap().level, 0);
    }

    #[test]
    fn wrong_numbers_are_refused() {
        for line in ["-d -1 a b", "-d 0x1 a b", "-n 0 a b", "-n 0x1 a b", "-d 1 -p 1 a b", "a"] {
            assert!(parsed(line).is_err(), "{line}");
        }
        assert_eq!(parsed("-p u a b").unwrap().relative, None);
        assert_eq!(parsed("-d 1.5x a b").unwrap().delta, Some(1.5));
    }
}
