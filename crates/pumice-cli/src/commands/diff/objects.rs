//! The objects of two files, side by side.

mod listing;

use self::listing::{Files, Identity, Listing, Type, kind_of};
use super::options::Options;
use crate::atlas::Atlas;
use crate::failure;
use crate::subset::Subset;
use anyhow::{Result, anyhow, bail};
use pumice::{Attribute, Dataset, File, Group, MemberKind, Node};
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
    /// Whether one side has an object that the other lacks.
    pub(super) unlike: bool,
    pub(super) failed: bool,
    /// The number of references that were followed to this object.
    pub(super) depth: usize,
    /// Whether the next reported difference needs the header before it.
    pub(super) wants_header: bool,
    atlases: Option<Rc<[Atlas; 2]>>,
    identities: Files,
}

/// One of two objects that are compared.
struct Side<'a> {
    path: &'a str,
    kind: Type,
    /// The link, if it is one that was not followed.
    link: Option<MemberKind>,
    identity: Option<Identity>,
    /// The object, links followed.
    node: pumice::Result<Node>,
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
            wants_header: true,
            atlases: None,
            identities: Files::new(files, same_file),
        }
    }

    /// Compares the requested objects; returns the number of differences.
    pub(super) fn run(&mut self) -> Result<u64> {
        let paths = match &self.options.objects {
            Some([(first, _), (second, _)]) => [first.clone(), second.clone()],
            None => ["/".to_owned(), "/".to_owned()],
        };
        let mut links = Vec::new();
        for (side, path) in paths.iter().enumerate() {
            let Some(link) = self.link_at(self.files[side], path) else {
                let file = &self.options.files[side];
                self.print(&format!("Object <{path}> could not be found in <{file}>\n"))?;
                bail!("Object could not be found");
            };
            links.push(link);
        }
        let mut sides = [0, 1].map(|side| self.named(side, &paths[side], links[side].clone()));
        if self.options.follow {
            let dangling = sides.each_ref().map(|side| side.kind.is_link() && side.node.is_err());
            if dangling[0] || dangling[1] {
                return self.dangling_objects(&paths, &dangling);
            }
            for side in &mut sides {
                if let Ok(node) = &side.node {
                    (side.kind, side.link) = (Type::of(node), None);
                }
            }
        }
        let talks = self.options.verbose || self.options.report;
        if !talks && sides[0].identity.is_some() && sides[0].identity == sides[1].identity {
            return Ok(0);
        }
        if sides.iter().any(|side| side.kind != Type::Group) {
            return self.pair(sides);
        }
        self.groups(&paths)
    }

    /// The object at a path of a file.
    fn named<'p>(&self, side: usize, path: &'p str, link: MemberKind) -> Side<'p> {
        let node = match path {
            "/" => Ok(Node::Group(Group::clone(self.files[side]))),
            path => self.files[side].node(path),
        };
        let kind = kind_of(&link).unwrap_or(Type::OtherLink);
        let identity = match &node {
            Ok(node) => self.identities.identity(side, node, kind == Type::OtherLink),
            Err(_) => None,
        };
        let link = kind.is_link().then_some(link);
        Side { path, kind, link, identity, node }
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

    /// The member at a path, links not followed at its end.
    fn link_at(&self, file: &File, path: &str) -> Option<MemberKind> {
        let path = path.trim_end_matches('/');
        let Some((folder, name)) = path.rsplit_once('/') else { return Some(MemberKind::Group) };
        let folder =
            if folder.is_empty() { Group::clone(file) } else { file.group(folder).ok()? };
        let found = folder.members().ok()?.into_iter().find(|member| member.name == name)?;
        kind_of(&found.kind).map(|_| found.kind)
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

    /// Reports that only one side has something.
    pub(super) fn only_in(&mut self, side: usize, what: &str) -> Result<()> {
        match self.options.explains {
            true => self.print(&format!("<{what}> is only in <{}>\n", self.options.files[side])),
            false => Ok(()),
        }
    }

    fn groups(&mut self, paths: &[String; 2]) -> Result<u64> {
        let lists = [self.listing(0, &paths[0])?, self.listing(1, &paths[1])?];
        let pairs = self.matched(&lists);
        if self.options.verbose {
            self.table(paths, &lists, &pairs)?;
        }
        let counts = lists.each_ref().map(|list| list.found.len());
        if self.options.excluded.is_empty() && counts[0] != counts[1] {
            self.unlike = true;
        }
        let mut cursors = lists.each_ref().map(Listing::cursor);
        let mut found = 0;
        for pair in pairs {
            for (cursor, index) in cursors.iter_mut().zip(pair) {
                index.map(|index| cursor.go(index));
            }
            let [Some(first), Some(second)] = pair else {
                self.unlike = true;
                let side = usize::from(pair[0].is_none());
                self.only_in(side, cursors[side].path())?;
                continue;
            };
            let sides = [(0, first), (1, second)].map(|(side, index)| {
                let (list, path) = (&lists[side], cursors[side].path());
                let entry = &list.found[index];
                let (kind, link, identity) = (entry.kind, entry.link.clone(), entry.identity);
                // A link that was to be followed leads nowhere.
                let node = match &link {
                    Some(_) => Err(pumice::Error::Invalid("a link".into())),
                    None => list.open(entry),
                };
                Side { path, kind, link, identity, node }
            });
            found += match self.pair(sides) {
                Err(error) if failure::is_broken_pipe(&error) => return Err(error),
                Err(error) => self.fail(&error)?,
                Ok(found) => found,
            };
        }
        Ok(found)
    }

    /// Reports an error and goes on.
    fn fail(&mut self, error: &anyhow::Error) -> Result<u64> {
        self.out.flush()?;
        failure::report(error);
        self.failed = true;
        Ok(0)
    }

    fn table(
        &mut self,
        paths: &[String; 2],
        lists: &[Listing; 2],
        pairs: &[[Option<usize>; 2]],
    ) -> Result<()> {
        if self.options.level > 2 {
            let [first, second] = [&self.options.files[0], &self.options.files[1]];
            self.print(&format!("file1: {first}\nfile2: {second}\n"))?;
        }
        let whole = paths.iter().all(|path| path == "/");
        self.print(if whole { "\nfile1     file2\n" } else { "\ngroup1   group2\n" })?;
        self.print("---------------------------------------\n")?;
        let mut cursors = lists.each_ref().map(Listing::cursor);
        for pair in pairs {
            for (cursor, index) in cursors.iter_mut().zip(pair) {
                index.map(|index| cursor.go(index));
            }
            let name = cursors[usize::from(pair[0].is_none())].relative();
            let [first, second] = pair.map(|index| if index.is_some() { 'x' } else { ' ' });
            self.print(&format!("{first:>5} {second:>6}    {name:<15}\n"))?;
        }
        self.print("\n")
    }

    /// Everything below a group, and itself.
    fn listing(&mut self, side: usize, path: &str) -> Result<Listing> {
        let (file, follow) = (self.files[side], self.options.follow);
        let listing = Listing::of(file, path, side, follow, &self.identities)?;
        if listing.dangling && self.options.no_dangling {
            self.failed = true;
        }
        for reason in &listing.unreadable {
            self.fail(&anyhow!("{}: {reason}", self.options.files[side]))?;
        }
        Ok(listing)
    }

    /// The two lists side by side, without excluded objects.
    fn matched(&self, lists: &[Listing; 2]) -> Vec<[Option<usize>; 2]> {
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
        let mut cursors = lists.each_ref().map(Listing::cursor);
        let (mut next, mut alike, mut pairs) = ([0, 0], 0, Vec::new());
        loop {
            let more = [0, 1].map(|side| next[side] < lists[side].found.len());
            let order = match more {
                [false, false] => return pairs,
                [true, false] => Ordering::Less,
                [false, true] => Ordering::Greater,
                [true, true] => {
                    for (cursor, next) in cursors.iter_mut().zip(next) {
                        alike = cursor.go(next).min(alike);
                    }
                    order(cursors[0].relative(), cursors[1].relative(), &mut alike)
                }
            };
            let pair = [(0, Ordering::Greater), (1, Ordering::Less)]
                .map(|(side, without)| (order != without).then_some(next[side]));
            let side = usize::from(pair[0].is_none());
            alike = cursors[side].go(next[side]).min(alike);
            if !excluded(cursors[side].relative(), lists[side].found[next[side]].kind) {
                pairs.push(pair);
            }
            for (next, index) in next.iter_mut().zip(pair) {
                *next += usize::from(index.is_some());
            }
        }
    }

    /// Compares two objects.
    fn pair(&mut self, mut sides: [Side<'_>; 2]) -> Result<u64> {
        let paths = sides.each_ref().map(|side| side.path);
        if self.options.follow && sides.iter().any(|side| side.kind.is_link()) {
            let dangling = sides.each_ref().map(|side| side.kind.is_link() && side.node.is_err());
            if dangling[0] || dangling[1] {
                return self.dangling_pair(paths, dangling);
            }
            for side in &mut sides {
                if let Ok(node) = &side.node {
                    (side.kind, side.link) = (Type::of(node), None);
                }
            }
        }
        let kinds = sides.each_ref().map(|side| side.kind);
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
        if let [Side { link: Some(one), .. }, Side { link: Some(other), .. }] = &sides {
            let word = match (one, other) {
                (MemberKind::SoftLink(_), _) => "link",
                (MemberKind::ExternalLink(..), MemberKind::ExternalLink(..)) => "external link",
                _ => "user defined link",
            };
            return self.link_pair(paths, word, one != other);
        }
        if sides[0].identity.is_some() && sides[0].identity == sides[1].identity {
            if self.options.verbose || self.options.report {
                self.title(kinds[0].word(), paths)?;
                self.found(0)?;
            }
            return Ok(0);
        }
        let [first, second] = sides.map(|side| side.node);
        self.nodes(paths, (first?, second?))
    }

    fn nodes(&mut self, paths: [&str; 2], nodes: (Node, Node)) -> Result<u64> {
        match nodes {
            (Node::Dataset(first), Node::Dataset(second)) => {
                self.dataset_pair(paths, [&first, &second])
            }
            (Node::Datatype(first), Node::Datatype(second)) => {
                let found = u64::from(first.datatype() != second.datatype());
                self.announce("datatype", paths, found)?;
                let attributes = [first.attributes(), second.attributes()];
                Ok(found + self.attributes_of(paths, attributes)?)
            }
            (Node::Group(first), Node::Group(second)) => {
                self.announce("group", paths, 0)?;
                let attributes = [first.attributes(), second.attributes()];
                self.attributes_of(paths, attributes)
            }
            _ => Ok(0),
        }
    }

    fn dangling_pair(&mut self, paths: [&str; 2], dangling: [bool; 2]) -> Result<u64> {
        if self.options.no_dangling {
            if self.options.verbose {
                let path = paths[usize::from(!dangling[0])];
                self.print(&format!("Warning: <{path}> is a dangling link.\n"))?;
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

    fn dataset_pair(&mut self, paths: [&str; 2], pair: [&Dataset; 2]) -> Result<u64> {
        let [first, second] = pair;
        let talks = self.options.verbose || self.options.report;
        if talks {
            self.title("dataset", paths)?;
        }
        let found = match self.datasets(paths, pair) {
            Err(error) if !failure::is_broken_pipe(&error) => self.fail(&error)?,
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
        attributes: [pumice::Result<Vec<Attribute>>; 2],
    ) -> Result<u64> {
        let path = paths[0];
        let excluded = self.options.excluded_attributes.iter().any(|excluded| {
            path == excluded
                || path.strip_prefix(excluded.as_str()).is_some_and(|rest| {
                    rest.starts_with('/')
                        && self.link_at(self.files[0], excluded) == Some(MemberKind::Group)
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

/// Compares two texts that are known to begin with `alike` equal bytes; updates that number.
fn order(one: &str, other: &str, alike: &mut usize) -> Ordering {
    let (one, other) = (&one.as_bytes()[*alike..], &other.as_bytes()[*alike..]);
    let more = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    *alike += more;
    one[more..].first().cmp(&other[more..].first())
}
