//! Command-line flags in the manner of the HDF5 tools.
//!
//! Flags come in an order that matters (`-d one -s 3 -d two`); words that are neither flags nor values
//! of flags are files. The HDF5 tools want all flags before the first file; here they may also follow. Long flags may be cut short and take their
//! value after `=` or as the next word. A value that is optional is taken from the next word unless
//! that is a flag or the last word. One table per tool serves parsing, help and completion.

use anyhow::{Result, anyhow, bail};

/// Whether a flag has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// No value.
    Nothing,
    /// A value; the help calls it so.
    Value(&'static str),
    /// Perhaps a value; the help calls it so.
    Perhaps(&'static str),
    /// It may have one in the same word; the help calls it so.
    Attached(&'static str),
    /// Perhaps a number; the help calls it so.
    Number(&'static str),
}

/// One flag of a tool.
pub(crate) struct Flag {
    /// The letter after a dash, which also names the flag in the answer; some flags, named by a
    /// digit or a sign, have only their long form.
    pub(crate) letter: char,
    pub(crate) long: &'static str,
    pub(crate) takes: Takes,
    pub(crate) help: &'static str,
}

impl Flag {
    pub(crate) const fn new(
        letter: char,
        long: &'static str,
        takes: Takes,
        help: &'static str,
    ) -> Self {
        Self { letter, long, takes, help }
    }
}

/// The parsed command line: flags with their values, in order, and the other words.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parsed {
    pub(crate) flags: Vec<(char, Option<String>)>,
    pub(crate) words: Vec<String>,
}

/// Divides the words of a command line.
pub(crate) fn parse(table: &[Flag], arguments: &[String]) -> Result<Parsed> {
    let mut parsed = Parsed::default();
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        if word == "--" {
            rest = after;
            break;
        }
        if !word.starts_with('-') || word == "-" {
            parsed.words.push(word.clone());
            rest = after;
            continue;
        }
        rest = match word.strip_prefix("--").or_else(|| only_long(table, &word[1..])) {
            Some(name) => long(table, name, after, &mut parsed)?,
            None => letters(table, &word[1..], after, &mut parsed)?,
        };
    }
    parsed.words.extend_from_slice(rest);
    Ok(parsed)
}

/// A flag that has no letter may also be named behind one dash: `-sparse`, `-exclude 0`.
fn only_long<'a>(table: &[Flag], word: &'a str) -> Option<&'a str> {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    let found = table.iter().any(|flag| flag.long == name && !flag.letter.is_alphabetic());
    found.then_some(word)
}

fn long<'a>(
    table: &[Flag],
    text: &str,
    after: &'a [String],
    parsed: &mut Parsed,
) -> Result<&'a [String]> {
    let (name, given) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    let exact = table.iter().find(|flag| flag.long == name);
    let flag = exact.or_else(|| table.iter().find(|flag| flag.long.starts_with(name)));
    let flag = flag.ok_or_else(|| anyhow!("unknown option \"--{name}\""))?;
    // A number below 0 is a value: no flag of one dash has a digit.
    let is_flag =
        |word: &str| word.starts_with('-') && !word[1..].starts_with(|c: char| c.is_ascii_digit());
    let next = after.split_first().filter(|(word, _)| !is_flag(word));
    let (value, rest) = match (flag.takes, given, next) {
        (Takes::Nothing, Some(_), _) => bail!("option \"--{}\" has no value", flag.long),
        (Takes::Nothing | Takes::Attached(_), None, _) => (None, after),
        (_, Some(value), _) => (Some(value), after),
        (Takes::Value(_), None, Some((word, rest))) => (Some(word.clone()), rest),
        (Takes::Value(_), None, None) => bail!("option \"--{}\" needs a value", flag.long),
        (Takes::Perhaps(_), None, _) => perhaps(after),
        (Takes::Number(_), None, _) => perhaps_number(after),
    };
    parsed.flags.push((flag.letter, value));
    Ok(rest)
}

/// One or more letters behind one dash; the rest of the word may be the last one's value.
fn letters<'a>(
    table: &[Flag],
    word: &str,
    after: &'a [String],
    parsed: &mut Parsed,
) -> Result<&'a [String]> {
    for (at, letter) in word.char_indices() {
        let flag = table.iter().find(|flag| flag.letter == letter && letter.is_alphabetic());
        let flag = flag.ok_or_else(|| anyhow!("unknown option \"-{letter}\""))?;
        let attached = &word[at + letter.len_utf8()..];
        let (value, rest) = match flag.takes {
            Takes::Nothing => {
                parsed.flags.push((letter, None));
                continue;
            }
            _ if !attached.is_empty() => (Some(attached.to_owned()), after),
            Takes::Attached(_) => (None, after),
            Takes::Perhaps(_) => perhaps(after),
            Takes::Number(_) => perhaps_number(after),
            Takes::Value(_) => match after.split_first() {
                Some((word, rest)) => (Some(word.clone()), rest),
                None => bail!("option \"-{letter}\" needs a value"),
            },
        };
        parsed.flags.push((letter, value));
        return Ok(rest);
    }
    Ok(after)
}

/// A value that may be left out: not a flag, and not the last word, which is a file.
fn perhaps(after: &[String]) -> (Option<String>, &[String]) {
    match after.split_first() {
        Some((word, rest)) if !word.starts_with('-') && !rest.is_empty() => {
            (Some(word.clone()), rest)
        }
        _ => (None, after),
    }
}

/// A number that may be left out.
fn perhaps_number(after: &[String]) -> (Option<String>, &[String]) {
    match perhaps(after) {
        (Some(word), rest) if word.bytes().all(|byte| byte.is_ascii_digit()) => (Some(word), rest),
        _ => (None, after),
    }
}

/// The table as text, a line or more for each flag.
pub(crate) fn describe(table: &[Flag]) -> String {
    let mut text = String::new();
    for flag in table {
        let letter = match flag.letter {
            letter if letter.is_alphabetic() => format!("-{letter}, "),
            _ => "    ".into(),
        };
        let value = match flag.takes {
            Takes::Nothing => String::new(),
            Takes::Value(name) => format!("={name}"),
            Takes::Perhaps(name) | Takes::Attached(name) | Takes::Number(name) => {
                format!("[={name}]")
            }
        };
        let left = format!("  {letter}--{}{value}", flag.long);
        let mut lines = flag.help.lines();
        let gap =
            if left.len() > 27 { format!("\n{:28}", "") } else { " ".repeat(28 - left.len()) };
        text += &format!("{left}{gap}{}\n", lines.next().unwrap_or_default());
        for line in lines {
            text += &format!("{:28}{line}\n", "");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Flag] = &[
        Flag::new('d', "dataset", Takes::Value("P"), "a dataset"),
        Flag::new('H', "header", Takes::Nothing, "no values"),
        Flag::new('A', "onlyattr", Takes::Perhaps("0"), "only attributes"),
        Flag::new('1', "vol-name", Takes::Value("N"), "only long"),
        Flag::new('E', "errors", Takes::Number("2"), "how many"),
    ];

    fn asked(line: &str) -> Result<(String, String)> {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        let parsed = parse(TABLE, &words)?;
        let flags = parsed.flags.iter().map(|(letter, value)| {
            format!("{letter}{}", value.as_deref().map_or(String::new(), |v| format!("={v}")))
        });
        Ok((flags.collect::<Vec<_>>().join(" "), parsed.words.join(" ")))
    }

    #[test]
    fn flags_keep_their_order_and_files_theirs() {
        let answer = asked("-Hd one --dataset two a.h5 --data=three -dfour b.h5").unwrap();
        assert_eq!(answer, ("H d=one d=two d=three d=four".into(), "a.h5 b.h5".into()));
        assert_eq!(asked("-H -- -d").unwrap(), ("H".into(), "-d".into()));
    }

    #[test]
    fn an_optional_value_is_never_the_last_word() {
        assert_eq!(asked("-A 0 a.h5").unwrap(), ("A=0".into(), "a.h5".into()));
        assert_eq!(asked("-A a.h5").unwrap(), ("A".into(), "a.h5".into()));
        assert_eq!(asked("--onlyattr -H a.h5").unwrap(), ("A H".into(), "a.h5".into()));
    }

    #[test]
    fn an_optional_number_is_no_file() {
        assert_eq!(asked("-E a.h5 b.h5").unwrap(), ("E".into(), "a.h5 b.h5".into()));
        assert_eq!(asked("-E 2 a.h5").unwrap(), ("E=2".into(), "a.h5".into()));
        assert_eq!(asked("--errors 1 a.h5").unwrap(), ("E=1".into(), "a.h5".into()));
    }

    #[test]
    fn a_flag_without_a_letter_may_have_one_dash() {
        assert_eq!(asked("-vol-name x a.h5").unwrap(), ("1=x".into(), "a.h5".into()));
        assert_eq!(asked("-vol-name=x a.h5").unwrap(), ("1=x".into(), "a.h5".into()));
    }

    #[test]
    fn unknown_flags_and_missing_values_are_errors() {
        for line in ["-x a.h5", "--nothing a.h5", "-d", "--dataset", "--header=1 a", "-1 a b"] {
            assert!(asked(line).is_err(), "{line}");
        }
    }
}
