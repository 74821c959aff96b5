//! `pumice repack`, and h5repack: a file anew, with other layouts and filters, without lost space.
//!
//! Unchanged datasets are copied as stored, without decoding chunks. The new file gets its name
//! when it is complete; with one file only, it replaces that one.

mod cloud;
mod defined;
mod estimate;
mod mask;
mod options;
mod plan;
mod request;
mod verbose;

use super::{Outcome, answered, understood};
use crate::failure;
use crate::flags;
use crate::locate::{self, Spot};
use crate::progress::{Progress, Unit};
use crate::remote;
use crate::target::{self, Target};
use crate::walker::{self, Order, Visitor};
use anyhow::{Context, Result, bail, ensure};
pub(super) use options::FLAGS;
use options::{Options, SpaceRequest};
use plan::Planner;
use pumice::{
    CopyOptions, Dataset, Error, File, FileOptions, FileSpaceStrategy, Group, GroupOptions,
    LibraryVersion, MemberKind, ObjectPath,
};
use request::Quoted;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Runs with the words behind the command's name.
pub(super) fn run(arguments: &[String], program: &str) -> Result<Outcome> {
    let parsed = Options::parse(arguments);
    // Release 1.10 says so of every wrong option but filters and layouts, which are quoted.
    if parsed.as_ref().is_err_and(|error| !error.is::<Quoted>()) && program == "h5repack" {
        println!("Error occurred while parsing command-line options");
    }
    let mut options = understood(parsed, program)?;
    if answered(program, options.help.then_some(help), options.version) {
        return Ok(Outcome::Complete);
    }
    let spot = Spot::asked(&options.input, program);
    (options.input, options.inside) = (spot.name(), spot.object(None));
    if options.output.is_none() {
        ensure!(program != "h5repack", "file names missing");
        ensure!(!options.driver.is_onion(), "an onion file is not replaced; name a second file");
    }
    let done = repack(&mut options, program);
    if done.is_err() && program == "h5repack" {
        println!("Error occurred while repacking");
    }
    done
}

fn repack(options: &mut Options, program: &str) -> Result<Outcome> {
    if options.inside.is_none() {
        verbose::requests(options)?;
    }
    let opened = options.driver.open(&options.input);
    let input = opened.with_context(|| format!("unable to open file \"{}\"", options.input))?;
    if let Some(path) = options.inside.take() {
        let datasets = locate::datasets_at(&input, Some(&path), |_| true)?;
        options.requests.narrow(datasets.iter().map(Dataset::path))?;
        verbose::requests(options)?;
    }
    let options = &*options;
    let table = Table::of(&input, options)?;
    verbose::objects(options, &table)?;
    let outcome = left_behind(options, &table)?;
    let planner = Planner::new(options, &input)?;
    if options.dry_run {
        estimate::print(&planner, &input, &table)?;
        return Ok(outcome);
    }
    let target = target(options, program)?;
    if options.verbose > 0 {
        println!("Making new file ...");
    }
    verbose::head(options);
    let made = match options.cloud {
        true => cloud::make(options, &input, &target.partial, &table, &planner),
        false => make(options, &input, &target.partial, &table, &planner),
    };
    if let Err(error) = made {
        verbose::begun(options, &planner, &table);
        return Err(error);
    }
    drop(planner);
    drop(table);
    drop(input);
    match options.output.as_deref().filter(|name| remote::is_address(name)) {
        // Dropped afterwards: the file here was only on its way.
        Some(address) => remote::upload(&target.partial, address, options.force)?,
        None => target.publish()?,
    }
    Ok(outcome)
}

/// Names the objects that are left out because they are newer than this program. The only file is
/// never changed so.
fn left_behind(options: &Options, table: &Table) -> Result<Outcome> {
    let Some(first) = table.newer.first() else { return Ok(Outcome::Complete) };
    if options.output.is_none() {
        let count = table.newer.len();
        bail!(
            "{first}; {count} object(s) of {} are newer than this program and would be lost; name a second file to \
             copy the others to",
            options.input
        );
    }
    for error in &table.newer {
        failure::warn(&format!("{error}; it is newer than this program and stays behind"));
    }
    Ok(Outcome::Incomplete)
}

/// The file to make. h5repack replaces one that exists without being asked.
fn target(options: &Options, program: &str) -> Result<Target> {
    let input = Path::new(&options.input);
    let Some(output) = &options.output else {
        ensure!(
            !remote::is_address(&options.input),
            "an object is not replaced by itself; name a second file"
        );
        return Target::instead_of(input);
    };
    if remote::is_address(output) {
        let passing = std::env::temp_dir().join(format!("pumice-upload-{}.h5", std::process::id()));
        return Target::new(&passing, input, true);
    }
    let target = Target::new(Path::new(output), input, options.force || program == "h5repack")?;
    if let Some(block) = &options.user_block_file {
        ensure!(!target::same_file(block, &target.path), "{output} has the user block to write");
    }
    Ok(target)
}

/// The objects of the input, in the order of h5repack.
#[derive(Default)]
struct Table {
    objects: Vec<(Kind, ObjectPath)>,
    /// The groups on the way to the visited object.
    way: Vec<ObjectPath>,
    /// Bytes of all elements.
    bytes: u64,
    /// Errors of objects that are left out because they are newer than this program.
    newer: Vec<Error>,
    failed: Option<Error>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Group,
    Dataset,
    Datatype,
    Link,
}

impl Table {
    fn of(input: &File, options: &Options) -> Result<Self> {
        let mut table = Self::default();
        let order = Order { by_creation: !options.by_name, descending: options.descending };
        walker::walk_in_order(input, order, &mut table)?;
        match table.failed.take() {
            Some(error) => bail!(error),
            None => Ok(table),
        }
    }

    fn paths(&self, kind: Kind) -> impl Iterator<Item = String> {
        let of_kind = self.objects.iter().filter(move |(own, _)| *own == kind);
        of_kind.map(|(_, path)| path.to_string())
    }
}

impl Visitor for Table {
    fn enter_group(&mut self, _path: &str, group: &Group) -> Result<bool> {
        self.objects.push((Kind::Group, group.object_path().clone()));
        self.way.push(group.object_path().clone());
        Ok(true)
    }

    fn leave_group(&mut self, _path: &str) -> Result<()> {
        self.way.pop();
        Ok(())
    }

    fn dataset(&mut self, _path: &str, dataset: &Dataset) -> Result<()> {
        self.objects.push((Kind::Dataset, dataset.object_path().clone()));
        let cells = dataset.extent()?.cells().unwrap_or(0);
        self.bytes =
            self.bytes.saturating_add(cells.saturating_mul(dataset.datatype().size() as u64));
        Ok(())
    }

    fn datatype(&mut self, _path: &str, datatype: &pumice::CommittedDatatype) -> Result<()> {
        self.objects.push((Kind::Datatype, datatype.object_path().clone()));
        Ok(())
    }

    fn other(&mut self, path: &str, kind: &MemberKind) -> Result<()> {
        if matches!(kind, MemberKind::SoftLink(_) | MemberKind::ExternalLink(..))
            && let Some(group) = self.way.last()
        {
            self.objects.push((Kind::Link, group.child(walker::name(path))));
        }
        Ok(())
    }

    fn failed(&mut self, _path: &str, error: Error) -> Result<()> {
        // Nothing is left out in silence.
        match error.is_newer() {
            true => self.newer.push(error),
            false => _ = self.failed.get_or_insert(error),
        }
        Ok(())
    }
}

fn make(
    options: &Options,
    input: &File,
    path: &Path,
    table: &Table,
    planner: &Planner<'_>,
) -> Result<()> {
    let user_block = user_block(options, input)?;
    let file = creation(options, input, user_block)?.create(path)?;
    let progress = Progress::new(table.bytes, Unit::Bytes);
    let mut times = verbose::Times::default();
    input.copy_whole(
        &file,
        &CopyOptions::new().leave_newer(true),
        |dataset| {
            planner
                .remade(&file, dataset)
                .map_err(|error| Error::Invalid(format!("{error:#}")).at(dataset.path()))
        },
        |path, bytes| {
            times.note(path);
            progress.add(bytes);
        },
    )?;
    drop(progress);
    links(options, input, &file, table)?;
    mask::finish(planner, input, &file, table)?;
    verbose::copied(options, planner, input, &file, table, &times)?;
    if !options.shared.is_empty() {
        file.share_messages()?;
    }
    file.close()?;
    write_user_block(options, path, user_block)
}

/// A new file for the objects of `input`, in the same format as far as possible.
pub(super) fn create_like(input: &File, path: &Path, new: &Path) -> Result<File> {
    let options = as_it_is(path);
    let made = user_block(&options, input).and_then(|bytes| creation(&options, input, bytes));
    Ok(made.unwrap_or_else(|_| File::options()).create(new)?)
}

/// Writes a file anew for programs of HDF5 1.8, in its own place.
pub(super) fn for_older_programs(path: &Path) -> Result<()> {
    let space = SpaceRequest {
        strategy: Some(FileSpaceStrategy::FreeSpaceManagers),
        persist: Some(false),
        threshold: Some(1),
        page: Some(4096),
    };
    // A superblock that is older stays.
    let version = File::open(path)?.info()?.superblock_version;
    let low = (version >= 2).then_some(LibraryVersion::V18);
    let mut options = Options { low, space, old_indexes: true, ..as_it_is(path) };
    repack(&mut options, "h5format_convert").map(drop)
}

/// The user block of `input`, for a file that was made like it.
pub(super) fn copy_user_block(input: &File, path: &Path, new: &Path) -> Result<()> {
    let options = as_it_is(path);
    match File::open(new)?.info()?.user_block_size {
        0 => Ok(()),
        _ => write_user_block(&options, new, user_block(&options, input)?),
    }
}

/// Options that change nothing.
fn as_it_is(path: &Path) -> Options {
    Options { input: path.display().to_string(), ..Options::default() }
}

/// The options of the new file: those of the old one, unless others were asked for.
fn creation(options: &Options, input: &File, user_block: u64) -> Result<FileOptions> {
    let info = input.info()?;
    // A newer superblock may only be there for what is said about file space.
    let superblock = if input.header_version() == 1 { 0 } else { info.superblock_version };
    let low = options.low.unwrap_or(match superblock {
        0 | 1 => LibraryVersion::Earliest,
        2 => LibraryVersion::V18,
        _ => LibraryVersion::V110,
    });
    let tracked = |orders: &mut dyn Iterator<Item = bool>| {
        let mut orders = orders.peekable();
        orders.peek().is_some() && orders.all(|tracked| tracked)
    };
    let (members, attributes) = (input.members()?, input.attributes()?);
    let members = tracked(&mut members.iter().map(|member| member.creation_order.is_some()));
    let attributes =
        tracked(&mut attributes.iter().map(|attribute| attribute.creation_order().is_some()));
    let mut root = GroupOptions::new();
    if members {
        root = root.track_order(true);
    }
    if attributes {
        root = root.track_attribute_order(true);
    }
    if let Some((compact, indexed)) = options.phase_change {
        root = root.phase_change(compact, indexed);
    }
    let (old, new) = (info.file_space, options.space);
    let mut file = File::options().library_version(low).user_block(user_block).root(&root);
    // The usual ones need no superblock that says so.
    if (info.group_leaf_k, info.group_internal_k) != (4, 16) {
        file = file.group_ranks(info.group_leaf_k, info.group_internal_k);
    }
    if info.chunk_internal_k != 32 {
        file = file.chunk_rank(info.chunk_internal_k);
    }
    if let Some((threshold, bytes)) = options.alignment {
        file = file.alignment(threshold, bytes);
    }
    if let Some(bytes) = options.metadata_block {
        file = file.metadata_block(bytes);
    }
    for (kind, bytes) in &options.shared {
        file = file.shared_messages(*kind, *bytes);
    }
    let strategy = new.strategy.unwrap_or(old.strategy);
    // Others know of no free space that could be remembered; h5repack says nothing, too.
    let remembers =
        matches!(strategy, FileSpaceStrategy::FreeSpaceManagers | FileSpaceStrategy::Paged);
    Ok(file
        .space_strategy(strategy)
        .persist_free_space(remembers && new.persist.unwrap_or(old.persist))
        .free_space_threshold(new.threshold.unwrap_or(old.threshold))
        .page_size(new.page.unwrap_or(old.page_size)))
}

/// Bytes of the user block.
fn user_block(options: &Options, input: &File) -> Result<u64> {
    let bytes = match (options.user_block, &options.user_block_file) {
        (0, Some(_)) => 1024,
        (0, None) => input.info()?.user_block_size,
        (bytes, _) => bytes,
    };
    Ok(bytes)
}

/// The user block of a file that was named, or of the input.
fn write_user_block(options: &Options, path: &Path, bytes: u64) -> Result<()> {
    let source = match (&options.user_block_file, options.user_block) {
        (Some(file), _) => file.clone(),
        // Only its room was asked for.
        (None, 1..) => return Ok(()),
        (None, 0) => PathBuf::from(&options.input),
    };
    if bytes == 0 {
        return Ok(());
    }
    let action = || format!("copy the user block of {}", source.display());
    let mut block = Vec::new();
    fs::File::open(&source)
        .and_then(|file| file.take(bytes).read_to_end(&mut block))
        .with_context(action)?;
    let mut file = fs::OpenOptions::new().write(true).open(path).with_context(action)?;
    file.write_all(&block).with_context(action)
}

/// Links that are to be followed or left out.
fn links(options: &Options, input: &File, file: &File, table: &Table) -> Result<()> {
    if !options.merge && !options.prune {
        return Ok(());
    }
    let expand = CopyOptions::new().expand_external_links(true).expand_references(true);
    for path in table.paths(Kind::Link) {
        let path = path.as_str();
        let leads = options.merge && input.node(path).is_ok();
        if leads {
            file.unlink(path)?;
            input.copy_object(path, file, path, &expand)?;
        } else if options.prune {
            println!("Pruned {path}.");
            file.unlink(path)?;
        }
    }
    Ok(())
}

fn help(program: &str) -> String {
    // HDF5's tools know files alone.
    let (inside, meaning) = match program.starts_with("h5") {
        true => ("", ""),
        false => (
            "[/PATH]",
            " FILE1/PATH: options without NAMES are for that dataset, or that group's, alone.",
        ),
    };
    format!(
        "\
Write a file anew: without lost space, with other layouts and filters.

Usage: {program} [OPTIONS] FILE1{inside} [FILE2]

Without FILE2, FILE1 is replaced when the new file is complete. NAMES in options are datasets,
separated by commas; without them, an option is for all datasets. What does not change is copied as it
is.{meaning}

Options:
{}
Examples:
  {program} old.h5 new.h5                                     without lost space
  {program} -f SHUF -f GZIP=4 old.h5 new.h5                   compress everything
  {program} -l /a,/b:CHUNK=20x10 -f /c:NONE old.h5 new.h5     single datasets
  {program} -l SPARSECHUNK=512x512 --exclude 0 m.h5 s.h5      make a sparse file
  {program} -l m:SPARSECHUNK=5x4 --defined-elements BLOCK '(2,2)-(4,7)' POINT '(5,9)' m.h5 s.h5
  {program} -l a:SPARSECHUNK=5x4 'POINT (5,9)' -l b:SPARSECHUNK=5x4 --exclude 0 m.h5 s.h5
  {program} -l SPARSECHUNK --sections values -f SHUF -f ZSTD=9 m.h5 s.h5
  {program} -l CONTI --keep-defined s.h5 d.h5                 dense, and a mask of what was defined
  {program} -l SPARSECHUNK --keep-defined d.h5 s.h5           sparse again, as it was
  {program} --dry-run -f ZSTD=9 old.h5                        about how large would it be?
  {program} --cloud old.h5 s3://bucket/new.h5                 for object stores, and into one

Exit codes: 0 success, 1 failure, 2 wrong usage.
",
        flags::describe(FLAGS)
    )
}
