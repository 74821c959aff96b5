//! Lists of cells, as `h5dump --sparse-locations` prints them.

use anyhow::{Context, Result, bail, ensure};
use pumice::Selection;

/// The words that may begin a list.
const KEYWORDS: [&str; 3] = ["REGION_TYPE", "BLOCK", "POINT"];

/// Blocks and points by their first and last cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Locations(Vec<(Vec<u64>, Vec<u64>)>);

impl Locations {
    /// Reads `BLOCK (2,2)-(4,7), (6,0)-(6,2) POINT (5,9), (11,1)`, or such a list from `@FILE`, which
    /// may be a dump. `REGION_TYPE` may stand before each part.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        match text.trim().strip_prefix('@') {
            Some(path) => {
                let action = || format!("read locations from {path}");
                crate::target::regular(path.as_ref()).with_context(action)?;
                let text = std::fs::read_to_string(path).with_context(action)?;
                Self::listed(&regions(&text).unwrap_or(text))
            }
            None => Self::listed(text),
        }
    }

    fn listed(text: &str) -> Result<Self> {
        let mut cells: Vec<(Vec<u64>, Vec<u64>)> = Vec::new();
        let mut rest = text.trim();
        let mut points = false;
        // Whether the next tuple may end the block that the last one begins.
        let mut open = false;
        while !rest.is_empty() {
            if let Some((word, after)) = keyword(rest) {
                (points, open) = (word == "POINT" || (word == "REGION_TYPE" && points), false);
                rest = after.trim_start();
                continue;
            }
            let ends = rest.strip_prefix('-').filter(|_| open && !points);
            let (tuple, after) = tuple(ends.unwrap_or(rest).trim_start(), text)?;
            match (ends, cells.last_mut()) {
                (Some(_), Some(last)) => {
                    close(last, tuple)?;
                    open = false;
                }
                _ => {
                    cells.push((tuple.clone(), tuple));
                    open = true;
                }
            }
            let after = after.trim_start();
            rest = match after.strip_prefix(',') {
                Some(after) => {
                    open = false;
                    after.trim_start()
                }
                None => after,
            };
        }
        if cells.is_empty() {
            bail!("no cells in \"{text}\"");
        }
        Ok(Self(cells))
    }

    /// Adds the cells of another list.
    pub(super) fn extend(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// The cells in a dataset of a shape.
    pub(crate) fn selection(&self, shape: &[u64]) -> Result<Selection> {
        let block = |(first, last): &(Vec<u64>, Vec<u64>)| -> Result<Selection> {
            let inside =
                first.len() == shape.len() && last.iter().zip(shape).all(|(at, side)| at < side);
            ensure!(inside, "{first:?} to {last:?} is not in a shape of {shape:?}");
            let size: Vec<u64> = first.iter().zip(last).map(|(from, to)| to - from + 1).collect();
            Ok(Selection::block(first, &size)?)
        };
        let blocks = self.0.iter().map(block).collect::<Result<Vec<_>>>()?;
        Ok(Selection::union_of(shape.len(), blocks, shape)?)
    }
}

/// Ends a block.
fn close(block: &mut (Vec<u64>, Vec<u64>), last: Vec<u64>) -> Result<()> {
    ensure!(block.0.len() == last.len(), "a block between different ranks");
    let ordered = block.0.iter().zip(&last).all(|(first, last)| first <= last);
    ensure!(ordered, "a block that ends before it begins: {last:?}");
    block.1 = last;
    Ok(())
}

/// A keyword at the beginning of a text, and the rest.
fn keyword(text: &str) -> Option<(&'static str, &str)> {
    let found = KEYWORDS.into_iter().find_map(|word| Some((word, text.strip_prefix(word)?)));
    found.filter(|(_, after)| !after.starts_with(|next: char| next.is_alphanumeric()))
}

/// Coordinates at the beginning of a part of a list, and the rest.
fn tuple<'a>(part: &'a str, list: &str) -> Result<(Vec<u64>, &'a str)> {
    let wrong = || match part.is_empty() {
        true => format!("\"{list}\" is not complete"),
        false => format!("no coordinates: \"{part}\""),
    };
    let (inside, after) =
        part.strip_prefix('(').and_then(|part| part.split_once(')')).with_context(wrong)?;
    let numbers = inside.split(',').map(|word| word.trim().parse::<u64>());
    Ok((numbers.collect::<Result<_, _>>().with_context(wrong)?, after))
}

/// The lists of a dump: values and attributes have parentheses, too.
fn regions(text: &str) -> Option<String> {
    let mut list = String::new();
    // A list goes on in the next line.
    let mut open = false;
    for line in text.lines().map(str::trim) {
        let begins = line.starts_with("REGION_TYPE");
        let tuples = |letter: char| letter.is_ascii_digit() || "(), -".contains(letter);
        open = begins || (open && line.starts_with('(') && line.chars().all(tuples));
        if open {
            list.push_str(line);
            list.push('\n');
        }
    }
    (!list.is_empty()).then_some(list)
}

/// Lists may be several words of a command line, as h5dump prints them: each becomes one, with its option.
pub(super) fn joined(arguments: &[String]) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        let flag = ["--defined-elements", "-defined-elements"].contains(&word.as_str());
        let begins = flag || keyword(word).is_some();
        let list = begins.then(|| list(if flag { after } else { rest }));
        match list.filter(|(list, _)| list.contains('(') || (flag && !list.is_empty())) {
            Some((list, after)) => {
                words.push(format!("--defined-elements={list}"));
                rest = after;
            }
            None => {
                words.push(word.clone());
                rest = after;
            }
        }
    }
    words
}

/// The list at the beginning of these words, and the rest of them.
fn list(words: &[String]) -> (String, &[String]) {
    if let Some((file, rest)) = words.split_first().filter(|(file, _)| file.starts_with('@')) {
        return (file.clone(), rest);
    }
    let mut list = String::new();
    let (mut count, mut inside) = (0, false);
    for word in words {
        let part = |letter: char| letter.is_ascii_digit() || letter.is_whitespace();
        let known = |letter: char| part(letter) || "(),-".contains(letter);
        let text = KEYWORDS.iter().fold(word.clone(), |text, keyword| text.replace(keyword, ""));
        let begins = inside || !word.starts_with(|first: char| first.is_ascii_digit());
        if !begins || !text.chars().all(known) || text.starts_with("--") {
            break;
        }
        list.push(' ');
        list.push_str(word);
        count += 1;
        inside = match word.rfind(['(', ')']) {
            Some(last) => word[last..].starts_with('('),
            None => inside,
        };
    }
    (list.trim().to_owned(), &words[count..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_points_are_read_as_they_are_printed() {
        let text =
            "REGION_TYPE BLOCK  (2,2)-(4,7)\n REGION_TYPE BLOCK (6,0) - (6,2) POINT (5,9), (11, 1)";
        let locations = Locations::parse(text).unwrap();
        assert_eq!(locations.0.len(), 4);
        let selection = locations.selection(&[13, 10]).unwrap();
        assert_eq!(selection.count(&[13, 10]), 18 + 3 + 2);
        assert!(locations.selection(&[5, 10]).is_err());
        for wrong in [
            "",
            "BLOCK",
            "POINT (1",
            "POINT (a)",
            "BLOCK (3,3)-(1,1)",
            "POINT (1)-(2)",
            "BLOCK (1)-",
            "BLOCK (1)-(2)-(3)",
            "BLOCK (1), -(2)",
            "POINT (1) and (2)",
            "POINTS (1)",
            "POINT (1,)",
            "POINT 1",
        ] {
            assert!(Locations::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_list_in_a_dump_goes_on_in_the_next_line() {
        let dump = "DATASET {\n  ATTRIBUTE { (0): 7 }\n   REGION_TYPE POINT  (5,9), (11,1),\n     (12,8)\n\
                    DATA {\n (5,9) 2\n }\n REGION_TYPE BLOCK (0,0)-(1,1)\n}";
        let list = regions(dump).unwrap();
        assert_eq!(Locations::parse(&list).unwrap().0.len(), 4);
        assert_eq!(regions("POINT (1,2)"), None);
    }

    #[test]
    fn lists_are_found_however_they_are_quoted() {
        let one = "--defined-elements=BLOCK (2,2)-(4,7), (6,0)-(6,2) POINT (5,9), (11, 1)";
        let words = |parts: &[&str]| parts.iter().map(|&part| part.to_owned()).collect::<Vec<_>>();
        let split = words(&one[19..].split(' ').collect::<Vec<_>>());
        let expected = words(&["-l", "A:SPARSECHUNK", one, "in.h5", "1.h5"]);
        for middle in [split, words(&[&one[19..]]), words(&["BLOCK", &one[25..]])] {
            let around =
                [&words(&["-l", "A:SPARSECHUNK"])[..], &middle, &words(&["in.h5", "1.h5"])];
            assert_eq!(joined(&around.concat()), expected);
        }
        let spaced = words(&["BLOCK", "(", "2", ",", "2", ")", "-", "(4,7)", "2.h5", "3"]);
        assert_eq!(joined(&spaced).len(), 3);
        // Files may have such names.
        for plain in [words(&["BLOCK", "POINT"]), words(&["-v", "BLOCK.h5", "(1).h5"])] {
            assert_eq!(joined(&plain), plain);
        }
    }
}
