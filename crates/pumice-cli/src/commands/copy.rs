//! `pumice copy`, and h5copy: an object with everything below it, within a file or to another one.

use super::{Outcome, answered, understood};
use crate::driver;
use crate::failure;
use crate::flags::{self, Flag, Takes};
use crate::locate::Spot;
use crate::target;
use crate::walker::{self, Visitor};
use anyhow::{Context, Result, anyhow, bail, ensure};
use pumice::{CopyOptions, Dataset, Error, File, Group, MemberKind};
use std::path::Path;

pub(super) const FLAGS: &[Flag] = &[
    Flag::new('h', "help", Takes::Nothing, "Print this help"),
    Flag::new('V', "version", Takes::Nothing, "Print the version"),
    Flag::new('i', "input", Takes::Value("FILE"), "The file to copy from"),
    Flag::new('o', "output", Takes::Value("FILE"), "The file to copy to; made if it is not there"),
    Flag::new('s', "source", Takes::Value("PATH"), "The object"),
    Flag::new('d', "destination", Takes::Value("PATH"), "Its new name"),
    Flag::new('p', "parents", Takes::Nothing, "Make groups on the way"),
    Flag::new('v', "verbose", Takes::Nothing, "Print what is done"),
    Flag::new(
        'f',
        "flag",
        Takes::Value("FLAG"),
        "shallow: of a group only its members\n\
         soft: what soft links lead to instead of the links\n\
         ext: what external links lead to instead of the links\n\
         ref: also what references lead to\n\
         noattr: no attributes\n\
         allflags: all of these; may be repeated",
    ),
    Flag::new('E', "enable-error-stack", Takes::Number("2"), "Accepted: errors are always told"),
];

#[derive(Default)]
struct Options {
    help: bool,
    version: bool,
    verbose: bool,
    parents: bool,
    copy: CopyOptions,
    flag: Option<String>,
    input: Option<String>,
    output: Option<String>,
    source: Option<String>,
    destination: Option<String>,
}

impl Options {
    fn parse(arguments: &[String], program: &str) -> Result<Self> {
        let mut options = Self::default();
        let parsed = flags::parse(FLAGS, arguments)?;
        for (letter, value) in parsed.flags {
            match letter {
                'h' => options.help = true,
                'V' => options.version = true,
                'v' => options.verbose = true,
                'p' => options.parents = true,
                'i' => options.input = value,
                'o' => options.output = value,
                's' => options.source = value,
                'd' => options.destination = value,
                'f' => {
                    options.copy = with_flag(options.copy, value.as_deref().unwrap_or_default())?;
                    options.flag = value;
                }
                _ => {}
            }
        }
        options.copy = options.copy.leave_newer(true);
        if options.help || options.version {
            return Ok(options);
        }
        if !program.starts_with("h5") {
            options.take_words(&parsed.words)?;
        }
        for (name, value) in [
            ("Input file", &options.input),
            ("Output file", &options.output),
            ("Source object", &options.source),
            ("Destination object", &options.destination),
        ] {
            value.as_ref().ok_or_else(|| anyhow!("{name} name missing"))?;
        }
        Ok(options)
    }
}

impl Options {
    /// Takes `FROM/PATH TO[/PATH]` instead of four options; without a second path, it is the first
    /// one.
    fn take_words(&mut self, words: &[String]) -> Result<()> {
        let [from, to] = words else {
            ensure!(
                words.is_empty(),
                "expected FROM/PATH and TO/PATH, found {} word(s)",
                words.len()
            );
            return Ok(());
        };
        let named = self.input.is_some() || self.output.is_some();
        ensure!(!named, "files are named by -i and -o, or without them");
        let (from, to) = (Spot::of(from), Spot::to_make(to));
        let source = from.object(self.source.as_deref());
        let place = to.object(self.destination.as_deref()).or_else(|| source.clone());
        (self.input, self.output) = (Some(from.name()), Some(to.name()));
        (self.source, self.destination) = (source, place);
        Ok(())
    }
}

fn with_flag(copy: CopyOptions, flag: &str) -> Result<CopyOptions> {
    Ok(match flag {
        "shallow" => copy.shallow(true),
        "soft" => copy.expand_soft_links(true),
        "ext" => copy.expand_external_links(true),
        "ref" => copy.expand_references(true),
        "noattr" => copy.without_attributes(true),
        // Nothing of the kind is kept anyway.
        "nullmsg" => copy,
        "allflags" => {
            let all = ["shallow", "soft", "ext", "ref", "noattr"];
            return all.into_iter().try_fold(copy, with_flag);
        }
        _ => bail!("Error in input flag: {flag}"),
    })
}

/// Runs with the words behind the command's name.
pub(super) fn run(arguments: &[String], program: &str) -> Result<Outcome> {
    let options = understood(Options::parse(arguments, program), program)?;
    if answered(program, options.help.then_some(help), options.version) {
        return Ok(Outcome::Complete);
    }
    let name = |name: &Option<String>| name.clone().unwrap_or_default();
    let (input, output) = (name(&options.input), name(&options.output));
    let (source, destination) = (name(&options.source), name(&options.destination));
    target::editable(Path::new(&output))?;
    // The other one first: they may be the same file.
    let to = File::edit(&output);
    let from =
        driver::open(&input).with_context(|| format!("Could not open input file <{input}>"))?;
    let to = match to {
        Ok(to) => to,
        // An existing file that is no HDF5 file, or is in use, is not destroyed.
        Err(error) if Path::new(&output).exists() => {
            return Err(error).with_context(|| format!("Could not open output file <{output}>"));
        }
        Err(_) => File::create_new(&output)
            .with_context(|| format!("Could not open output file <{output}>"))?,
    };
    if options.verbose {
        println!(
            "Copying file <{input}> and object <{source}> to file <{output}> and object \
             <{destination}>"
        );
        if let Some(flag) = &options.flag {
            println!("Using {flag} flag");
        }
        if options.parents {
            println!("{program}: Creating parent groups");
        }
    }
    let told = program == "h5copy";
    if told && options.verbose && source != "/" && link(&from, &source).is_none() {
        println!("Warning: link <{source}> doesn't exist ");
    }
    let parents = if options.parents { Ok(()) } else { parents(&to, &destination) };
    let copied = parents
        .and_then(|()| copy(&from, &source, &to, &destination, &options.copy))
        .and_then(|()| Ok(to.close()?));
    if copied.is_err() && told {
        println!("Error in copy...Exiting");
    }
    copied?;
    left_behind(&from, &source)
}

/// Names the objects that were not copied because they are newer than this program.
fn left_behind(from: &File, source: &str) -> Result<Outcome> {
    struct Newer(Outcome);

    impl Visitor for Newer {
        fn enter_group(&mut self, _path: &str, _group: &Group) -> Result<bool> {
            Ok(true)
        }

        fn dataset(&mut self, _path: &str, _dataset: &Dataset) -> Result<()> {
            Ok(())
        }

        fn failed(&mut self, _path: &str, error: Error) -> Result<()> {
            if error.is_newer() {
                failure::warn(&format!("{error}; it is newer than this program and stays behind"));
                self.0 = Outcome::Incomplete;
            }
            Ok(())
        }
    }

    let mut newer = Newer(Outcome::Complete);
    let group = match source.trim_matches('/') {
        "" => Group::clone(from),
        source => match from.group(source) {
            Ok(group) => group,
            Err(_) => return Ok(Outcome::Complete),
        },
    };
    walker::walk(&group, &mut newer)?;
    Ok(newer.0)
}

/// Fails where a group on the way is missing.
fn parents(to: &File, path: &str) -> Result<()> {
    let ends = path.char_indices().skip(1).filter(|(_, letter)| *letter == '/');
    for (end, _) in ends {
        let parent = &path[..end];
        if !to.contains(parent) {
            bail!("group <{parent}> doesn't exist. Use -p to create parent groups.");
        }
    }
    Ok(())
}

fn copy(from: &File, source: &str, to: &File, path: &str, options: &CopyOptions) -> Result<()> {
    if from.node(source).is_err()
        && let Some(kind) = link(from, source)
    {
        // A link that leads nowhere is copied as it is.
        match kind {
            MemberKind::SoftLink(target) => to.create_soft_link(path, &target)?,
            MemberKind::ExternalLink(file, target) => {
                to.create_external_link(path, &file, &target)?;
            }
            _ => bail!("<{source}> leads nowhere"),
        }
        return Ok(());
    }
    Ok(from.copy_object(source, to, path, options)?)
}

/// The link at a path.
fn link(file: &File, path: &str) -> Option<MemberKind> {
    let path = path.trim_end_matches('/');
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = match folder.is_empty() {
        true => Group::clone(file),
        false => file.group(folder).ok()?,
    };
    let member = folder.members().ok()?.into_iter().find(|member| member.name == name)?;
    Some(member.kind)
}

fn help(program: &str) -> String {
    // HDF5's tools know files alone.
    let (short, example) = match program.starts_with("h5") {
        true => (String::new(), String::new()),
        false => (
            format!("\n       {program} [OPTIONS] FROM/PATH TO[/PATH]"),
            format!("\n  {program} a.h5/runs/first b.h5/first{:31}the same", ""),
        ),
    };
    format!(
        "\
Copy an object with everything below it, within a file or to another one.

Usage: {program} [OPTIONS] -i FILE -o FILE -s PATH -d PATH{short}

What is linked more than once is copied once. Chunks are copied without decoding them.

Options:
{}
Examples:
  {program} -i a.h5 -o b.h5 -s /runs/first -d /first{example}
  {program} -p -i a.h5 -o b.h5 -s /runs -d /archive/2026/runs      make /archive/2026
  {program} -f ext -f soft -i a.h5 -o b.h5 -s /runs -d /runs       what links lead to

Exit codes: 0 success, 1 failure, 2 wrong usage.
",
        flags::describe(FLAGS)
    )
}
