//! The objects of two files, side by side.

mod listing;

use self::listing::{Found, Listing, Type, kind_of};
use super::options::Options;
use crate::atlas::Atlas;
use crate::failure;
use crate::subset::Subset;
use anyhow::{Result, bail};
use pumice::{File, Group, MemberKind};
use std::cmp::Ordering;
use std::io::Write;
use std::rc::Rc;

/// Compares two files.
pub(super) struct Differ<'a> {
    pub(super) files: [&'a File; 2],
    pub(super) options: &'a Options,
    pub(super) out: &'a mut dyn Write,
    /// Something could not be compared.
    not_comparable: bool,
    /// One has what the other has not.
    pub(super) unlike: bool,
    pub(super) failed: bool,
    /// How many references were followed to where we are.
    pub(super) depth: usize,
    atlases: Option<Rc<[Atlas; 2]>>,
    same_file: bool,
}

impl<'a> Differ<'a> {
    pub(super) fn new(files: [&'a File; 2], options: &'a Options, out: &'a mut dyn Write) -> Self {
        let places = [&options.files[0], &options.files[1]].map(std::fs::canonicalize);
        let same_file = matches!(&places, [Ok(first), Ok(second)] if first == second)
            && options.drivers[0] == options.drivers[1];
        Self {
            files,
            options,
            out,
            not_comparable: false,
            unlike: false,
            failed: false,
            depth: 0,
            atlases: None,
            same_file,
        }
    }

    /// Compares what was asked for; answers how many differences there are.
    pub(super) fn run(&mut self) -> Result<u64> {
        let paths = match &self.options.objects {
            Some([(first, _), (second, _)]) => [first.clone(), second.clone()],
            None => ["/".to_owned(), "/".to_owned()],
        };
        let mut sides = Vec::new();
        for (side, path) in paths.iter().enumerate() {
            let Some(kind) = self.kind_at(self.files[side], path) else {
                let file = &self.options.files[side];
                self.print(&format!("Object <{path}> could not be found in <{file}>\n"))?;
                bail!("Object could not be found");
            };
            sides.push(kind);
        }
        if self.options.follow {
            let dangling: Vec<bool> = (0..2)
                .map(|side| sides[side].is_link() && self.files[side].node(&paths[side]).is_err())
                .collect();
            if dangling[0] || dangling[1] {
                return self.dangling_objects(&paths, &dangling);
            }
            for side in 0..2 {
                sides[side] = Type::of(&self.files[side].node(&paths[side])?);
            }
        }
        let talks = self.options.verbose || self.options.report;
        if !talks && self.same_file && self.same_object(&paths) {
            return Ok(0);
        }
        if sides != [Type::Group, Type::Group] {
            let addresses = [0, 1].map(|side| self.address(side, &paths[side]));
            return self.pair([&paths[0], &paths[1]], [sides[0], sides[1]], addresses);
        }
        self.groups(&paths)
    }

    /// The last words.
    pub(super) fn conclude(&mut self) -> Result<()> {
        let quiet = self.options.quiet || self.failed;
        if quiet || !self.not_comparable || self.options.list_incomparable {
            return Ok(());
        }
        let line = "--------------------------------\n";
        self.print(&format!("{line}Some objects are not comparable\n{line}"))?;
        self.print(match self.options.verbose {
            true => "Use -c for a list of objects without details of differences.\n",
            false => "Use -c for a list of objects.\n",
        })
    }

    pub(super) fn print(&mut self, text: &str) -> Result<()> {
        Ok(self.out.write_all(text.as_bytes())?)
    }

    pub(super) fn found(&mut self, count: u64) -> Result<()> {
        self.print(&format!("{count} differences found\n"))
    }

    /// Notes that something cannot be compared.
    pub(super) fn incomparable(&mut self) -> bool {
        self.not_comparable = true;
        false
    }

    pub(super) fn lists_incomparable(&self) -> bool {
        self.options.verbose || self.options.list_incomparable
    }

    pub(super) fn subsets(&self) -> Option<[Subset; 2]> {
        let [(_, first), (_, second)] = self.options.objects.as_ref()?;
        match (first, second) {
            (None, None) => None,
            (first, second) => {
                let other = first.clone().or_else(|| second.clone())?;
                Some([
                    first.clone().unwrap_or_else(|| other.clone()),
                    second.clone().unwrap_or(other),
                ])
            }
        }
    }

    pub(super) fn atlases(&mut self) -> Rc<[Atlas; 2]> {
        let files = self.files;
        self.atlases.get_or_insert_with(|| Rc::new(files.map(Atlas::of))).clone()
    }

    fn address(&self, side: usize, path: &str) -> Option<u64> {
        // What an external link leads to is no object of this file.
        let kind = self.kind_at(self.files[side], path)?;
        if kind == Type::OtherLink {
            return None;
        }
        self.files[side].node(path).ok().map(|node| node.address())
    }

    fn same_object(&self, paths: &[String; 2]) -> bool {
        let addresses = (self.address(0, &paths[0]), self.address(1, &paths[1]));
        matches!(addresses, (Some(first), Some(second)) if first == second)
    }

    /// What stands at a path, links not followed at its end.
    fn kind_at(&self, file: &File, path: &str) -> Option<Type> {
        if path == "/" {
            return Some(Type::Group);
        }
        let (folder, name) = path.trim_end_matches('/').rsplit_once('/')?;
        let folder =
            if folder.is_empty() { Group::clone(file) } else { file.group(folder).ok()? };
        let found = folder.members().ok()?.into_iter().find(|member| member.name == name)?;
        kind_of(&found.kind)
    }

    fn dangling_objects(&mut self, paths: &[String; 2], dangling: &[bool]) -> Result<u64> {
        for side in 0..2 {
            if !dangling[side] {
                continue;
            }
            let path = &paths[side];
            if self.options.no_dangling {
                if self.options.verbose {
                    self.print(&format!("Warning: <{path}> is a dangling link.\n"))?;
                }
                bail!("{path} is a link that leads nowhere");
            }
            if self.options.verbose {
                self.print(&format!("obj{} <{path}> is a dangling link.\n", side + 1))?;
            }
        }
        if dangling[0] && dangling[1] {
            return self.link_pair([&paths[0], &paths[1]], "dangling link", false);
        }
        self.found(1)?;
        Ok(1)
    }

    /// Tells that one side alone has something.
    pub(super) fn only_in(&mut self, side: usize, what: &str) -> Result<()> {
        match self.options.explains {
            true => self.print(&format!("<{what}> is only in <{}>\n", self.options.files[side])),
            false => Ok(()),
        }
    }

    fn groups(&mut self, paths: &[String; 2]) -> Result<u64> {
        let first = self.listing(self.files[0], &paths[0])?;
        let second = self.listing(self.files[1], &paths[1])?;
        let roots = [0, 1].map(|side| match paths[side].as_str() {
            "/" => String::new(),
            path => path.to_owned(),
        });
        let pairs = self.matched(&roots, &first, &second);
        if self.options.verbose {
            self.table(paths, &roots, &pairs)?;
        }
        if self.options.excluded.is_empty() && first.len() != second.len() {
            self.unlike = true;
        }
        let mut found = 0;
        for (first, second) in pairs {
            let (Some(first), Some(second)) = (first, second) else {
                self.unlike = true;
                if let Some((side, found)) =
                    first.map(|found| (0, found)).or(second.map(|found| (1, found)))
                {
                    self.only_in(side, &found.path)?;
                }
                continue;
            };
            let kinds = [first.kind, second.kind];
            let addresses = [first.address, second.address];
            let done = self.pair([&first.path, &second.path], kinds, addresses);
            found += match done {
                Err(error) if failure::is_broken_pipe(&error) => return Err(error),
                Err(error) => {
                    self.out.flush()?;
                    failure::report(&error);
                    self.failed = true;
                    0
                }
                Ok(found) => found,
            };
        }
        Ok(found)
    }

    fn table(
        &mut self,
        paths: &[String; 2],
        roots: &[String; 2],
        pairs: &[(Option<&Found>, Option<&Found>)],
    ) -> Result<()> {
        if self.options.level > 2 {
            let [first, second] = [&self.options.files[0], &self.options.files[1]];
            self.print(&format!("file1: {first}\nfile2: {second}\n"))?;
        }
        let whole = paths.iter().all(|path| path == "/");
        self.print(if whole { "\nfile1     file2\n" } else { "\ngroup1   group2\n" })?;
        self.print("---------------------------------------\n")?;
        for (first, second) in pairs {
            let mark = |found: bool| if found { 'x' } else { ' ' };
            let name = match (first, second) {
                (Some(first), _) => &first.path[roots[0].len()..],
                (None, Some(second)) => &second.path[roots[1].len()..],
                (None, None) => "",
            };
            let (first, second) = (mark(first.is_some()), mark(second.is_some()));
            self.print(&format!("{first:>5} {second:>6}    {name:<15}\n"))?;
        }
        self.print("\n")
    }

    /// Everything below a group, and itself.
    fn listing(&mut self, file: &File, path: &str) -> Result<Vec<Found>> {
        let listing = Listing::of(file, path, self.options.follow)?;
        if listing.dangling && self.options.no_dangling {
            self.failed = true;
        }
        Ok(listing.found)
    }

    /// The two lists side by side, without what is excluded.
    fn matched<'f>(
        &self,
        roots: &[String; 2],
        first: &'f [Found],
        second: &'f [Found],
    ) -> Vec<(Option<&'f Found>, Option<&'f Found>)> {
        let mut groups: Vec<String> = Vec::new();
        let mut excluded = |path: &str, kind: Type| {
            let inside = |group: &String| {
                path.strip_prefix(group.as_str()).is_some_and(|rest| rest.starts_with('/'))
            };
            if groups.iter().any(inside) {
                return true;
            }
            let hit = self.options.excluded.iter().any(|excluded| excluded == path);
            if hit && kind == Type::Group {
                groups.push(path.to_owned());
            }
            hit
        };
        let (mut one, mut other) = (first.iter().peekable(), second.iter().peekable());
        let mut pairs = Vec::new();
        loop {
            let names = (
                one.peek().map(|found| &found.path[roots[0].len()..]),
                other.peek().map(|found| &found.path[roots[1].len()..]),
            );
            let order = match names {
                (None, None) => return pairs,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(first), Some(second)) => first.cmp(second),
            };
            let pair = match order {
                Ordering::Less => (one.next(), None),
                Ordering::Greater => (None, other.next()),
                Ordering::Equal => (one.next(), other.next()),
            };
            let (name, found) = match (&pair, names) {
                ((Some(found), _), (Some(name), _)) => (name, *found),
                ((None, Some(found)), (_, Some(name))) => (name, *found),
                _ => continue,
            };
            if !excluded(name, found.kind) {
                pairs.push(pair);
            }
        }
    }

    /// Compares two objects.
    fn pair(
        &mut self,
        paths: [&str; 2],
        mut kinds: [Type; 2],
        addresses: [Option<u64>; 2],
    ) -> Result<u64> {
        if kinds[0].is_link() || kinds[1].is_link() {
            let leads = [0, 1].map(|side| self.files[side].node(paths[side]));
            let dangling = leads.each_ref().map(Result::is_err);
            let links = [0, 1].map(|side| kinds[side].is_link());
            if self.options.follow && (0..2).any(|side| links[side] && dangling[side]) {
                return self
                    .dangling_pair(paths, [links[0] && dangling[0], links[1] && dangling[1]]);
            }
            if self.options.follow {
                for (kind, node) in kinds.iter_mut().zip(&leads) {
                    if let Ok(node) = node {
                        *kind = Type::of(node);
                    }
                }
            }
        }
        if kinds[0] != kinds[1] {
            if self.lists_incomparable() {
                self.print(&format!(
                    "Not comparable: <{}> is of type {} and <{}> is of type {}\n",
                    paths[0],
                    kinds[0].name(),
                    paths[1],
                    kinds[1].name()
                ))?;
            }
            self.incomparable();
            return Ok(0);
        }
        let same = self.same_file && addresses[0].is_some() && addresses[0] == addresses[1];
        if same && (self.options.follow || !kinds[0].is_link()) {
            if self.options.verbose || self.options.report {
                self.title(kinds[0].word(), paths)?;
                self.found(0)?;
            }
            return Ok(0);
        }
        match kinds[0] {
            Type::Dataset => self.dataset_pair(paths),
            Type::Datatype => {
                let pair = [0, 1].map(|side| self.files[side].committed_datatype(paths[side]));
                let [first, second] = pair;
                let (first, second) = (first?, second?);
                let found = u64::from(first.datatype() != second.datatype());
                self.announce("datatype", paths, found)?;
                let attributes = [first.attributes(), second.attributes()];
                Ok(found + self.attributes_of(paths, attributes)?)
            }
            Type::Group => {
                self.announce("group", paths, 0)?;
                let pair = [0, 1].map(|side| self.files[side].group(paths[side]));
                let [first, second] = pair;
                let attributes = [first?.attributes(), second?.attributes()];
                self.attributes_of(paths, attributes)
            }
            Type::SoftLink | Type::OtherLink => {
                let targets = [0, 1].map(|side| self.link_at(self.files[side], paths[side]));
                let word = match (&targets[0], &targets[1]) {
                    (Some(MemberKind::SoftLink(_)), _) => "link",
                    (Some(MemberKind::ExternalLink(..)), Some(MemberKind::ExternalLink(..))) => {
                        "external link"
                    }
                    _ => "user defined link",
                };
                let differ = targets[0] != targets[1];
                self.link_pair(paths, word, differ)
            }
        }
    }

    fn link_at(&self, file: &File, path: &str) -> Option<MemberKind> {
        let (folder, name) = path.rsplit_once('/')?;
        let folder =
            if folder.is_empty() { Group::clone(file) } else { file.group(folder).ok()? };
        folder.members().ok()?.into_iter().find(|member| member.name == name).map(|it| it.kind)
    }

    fn dangling_pair(&mut self, paths: [&str; 2], dangling: [bool; 2]) -> Result<u64> {
        if self.options.no_dangling {
            for side in 0..2 {
                if dangling[side] && self.options.verbose {
                    let path = paths[side];
                    self.print(&format!("Warning: <{path}> is a dangling link.\n"))?;
                }
            }
            self.failed = true;
            return Ok(0);
        }
        if dangling == [true, true] {
            if self.options.verbose && !self.options.quiet {
                self.title("dangling link", paths)?;
                self.found(0)?;
            }
            return Ok(0);
        }
        let side = usize::from(dangling[1]);
        if self.options.verbose {
            self.print(&format!("obj{} <{}> is a dangling link.\n", side + 1, paths[side]))?;
        }
        if !self.options.quiet {
            self.found(1)?;
        }
        Ok(1)
    }

    fn link_pair(&mut self, paths: [&str; 2], word: &str, differ: bool) -> Result<u64> {
        let found = u64::from(differ);
        self.announce(word, paths, found)?;
        Ok(found)
    }

    fn dataset_pair(&mut self, paths: [&str; 2]) -> Result<u64> {
        let pair = [0, 1].map(|side| self.files[side].dataset(paths[side]));
        let [first, second] = pair;
        let (first, second) = (first?, second?);
        let talks = self.options.verbose || self.options.report;
        if talks {
            self.title("dataset", paths)?;
        }
        let found = match self.datasets(paths, [&first, &second]) {
            Err(error) if !failure::is_broken_pipe(&error) => {
                self.out.flush()?;
                failure::report(&error);
                self.failed = true;
                0
            }
            other => other?,
        };
        if talks || (found > 0 && !self.options.quiet) {
            if !talks {
                self.title("dataset", paths)?;
            }
            self.found(found)?;
        }
        let attributes = [first.attributes(), second.attributes()];
        Ok(found + self.attributes_of(paths, attributes)?)
    }

    fn attributes_of(
        &mut self,
        paths: [&str; 2],
        attributes: [pumice::Result<Vec<pumice::Attribute>>; 2],
    ) -> Result<u64> {
        let path = paths[0];
        let excluded = self.options.excluded_attributes.iter().any(|excluded| {
            path == excluded
                || path.strip_prefix(excluded.as_str()).is_some_and(|rest| {
                    rest.starts_with('/')
                        && self.kind_at(self.files[0], excluded) == Some(Type::Group)
                })
        });
        if excluded { Ok(0) } else { self.attributes(paths, attributes) }
    }

    /// The line of two objects, if it is wanted, and the number of differences.
    fn announce(&mut self, word: &str, paths: [&str; 2], found: u64) -> Result<()> {
        if (self.options.verbose || found > 0) && !self.options.quiet {
            self.title(word, paths)?;
        }
        if self.options.verbose { self.found(found) } else { Ok(()) }
    }

    fn title(&mut self, word: &str, [first, second]: [&str; 2]) -> Result<()> {
        let gap = if self.options.level >= 1 { "\n" } else { "" };
        self.print(&format!("{gap}{word:<7}: <{first}> and <{second}>\n"))
    }
}
