//! Attributes of two objects, by name.

use super::elements::Plan;
use super::objects::Differ;
use super::references::are_references;
use super::report::Report;
use crate::cells;
use anyhow::Result;
use pumice::Attribute;
use std::cmp::Ordering;

impl Differ<'_> {
    /// Compares the attributes of two objects; answers how many values differ.
    pub(super) fn attributes(
        &mut self,
        paths: [&str; 2],
        attributes: [pumice::Result<Vec<Attribute>>; 2],
    ) -> Result<u64> {
        let [first, second] = attributes;
        let (mut first, mut second) = (first?, second?);
        first.sort_by(|one, other| one.name().cmp(other.name()));
        second.sort_by(|one, other| one.name().cmp(other.name()));
        let pairs = paired(&first, &second);
        let only = |side: fn(&Pair<'_>) -> bool| pairs.iter().filter(|pair| side(pair)).count();
        let (only_first, only_second) =
            (only(|pair| pair.1.is_none()), only(|pair| pair.0.is_none()));
        if self.options.level == 2 {
            self.print("   obj1   obj2\n --------------------------------------\n")?;
            for (first, second) in &pairs {
                let name = first.or(*second).map_or("", |attribute| attribute.name());
                let mark = |found: bool| if found { 'x' } else { ' ' };
                let (first, second) = (mark(first.is_some()), mark(second.is_some()));
                self.print(&format!("{first:>5} {second:>6}    {name:<15}\n"))?;
            }
        }
        if self.options.level >= 1 {
            let common = pairs.len() - only_first - only_second;
            self.print(&format!(
                "Attributes status:  {common} common, {only_first} only in obj1, {only_second} \
                 only in obj2\n"
            ))?;
        }
        self.unlike |= only_first + only_second > 0;
        for (first, second) in &pairs {
            let side = usize::from(first.is_none());
            if let (Some(attribute), None) | (None, Some(attribute)) = (first, second) {
                self.only_in(side, &format!("{} of {}", attribute.name(), paths[side]))?;
            }
        }
        let mut found = 0;
        for (first, second) in pairs {
            if let (Some(first), Some(second)) = (first, second) {
                found += self.attribute(paths, [first, second])?;
            }
        }
        Ok(found)
    }

    pub(super) fn attribute(&mut self, paths: [&str; 2], pair: [&Attribute; 2]) -> Result<u64> {
        let [first, second] = pair;
        let types = [first.datatype(), second.datatype()];
        let name = first.name();
        // The greatest extent of an attribute is its extent.
        if !self.comparable([name, name], types, [first.extent(), second.extent()], false)? {
            return Ok(0);
        }
        let names = paths.map(|path| format!("{name} of <{path}>"));
        let title = format!("{:<7}: <{}> and <{}>\n", "attribute", names[0], names[1]);
        let talks = self.options.verbose || self.options.report;
        if talks {
            self.print(&title)?;
        }
        let found = self.attribute_values(names, pair)?;
        if talks || (found > 0 && !self.options.quiet) {
            if !talks {
                self.print(&title)?;
            }
            self.found(found)?;
        }
        Ok(found)
    }

    fn attribute_values(&mut self, names: [String; 2], pair: [&Attribute; 2]) -> Result<u64> {
        let [first, second] = pair;
        if are_references([first.datatype(), second.datatype()]) {
            let lists = [first.read_references()?, second.read_references()?];
            return self.reference_lists(&names, lists);
        }
        let plan = Plan::new(first.datatype(), second.datatype())?;
        let values = [cells::read_attribute(first)?, cells::read_attribute(second)?];
        let dims = first.extent().dims().to_vec();
        self.wants_header = true;
        if plan.has_references() {
            return self.linked_values(&names, &dims, &plan, 0.., &values, 0);
        }
        let (options, most) = (self.options, self.options.count);
        let mut report = Report::new(&mut *self.out, options, names, &dims);
        let mut none = Vec::new();
        plan.compare_block(&values[0], &values[1], 0, most, &mut report, &mut none)
    }
}

type Pair<'a> = (Option<&'a Attribute>, Option<&'a Attribute>);

/// Two sorted lists, side by side.
fn paired<'a>(first: &'a [Attribute], second: &'a [Attribute]) -> Vec<Pair<'a>> {
    let (mut first, mut second) = (first.iter().peekable(), second.iter().peekable());
    let mut pairs = Vec::new();
    loop {
        let order = match (first.peek(), second.peek()) {
            (None, None) => return pairs,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(one), Some(other)) => one.name().cmp(other.name()),
        };
        pairs.push(match order {
            Ordering::Less => (first.next(), None),
            Ordering::Greater => (None, second.next()),
            Ordering::Equal => (first.next(), second.next()),
        });
    }
}
