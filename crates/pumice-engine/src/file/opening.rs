//! Opening an existing file: its superblock, an unfinished commit, its settings.

use super::{Cache, File, looking, with_options};
use crate::extension::Extension;
use crate::file_space::FileSpace;
use crate::members::{self, Form, multi};
use crate::version::CreateOptions;
use crate::{Error, Result};
use pumice_bytes::DecodeError;
use pumice_format::UNDEFINED;
use pumice_format::driver_info::DriverInfo;
use pumice_format::superblock::{MAX_LENGTH, OPEN_FOR_SWMR_WRITING, OPEN_FOR_WRITING, Superblock};
use pumice_medium::journal::{self, Journal};
use pumice_medium::{Medium, Swmr, again};
use pumice_store::Store;
use std::sync::Arc;

impl File {
    /// Opens the HDF5 file in a store, for editing if `writable`.
    pub fn open(store: Arc<dyn Store>, cache: Cache, writable: bool) -> Result<Arc<Self>> {
        Self::open_for(store, cache, writable, &CreateOptions::default())
    }

    /// Opens the HDF5 file in a store, with the options that apply to existing files.
    pub fn open_for(
        store: Arc<dyn Store>,
        cache: Cache,
        writable: bool,
        options: &CreateOptions,
    ) -> Result<Arc<Self>> {
        let form = match (store.member_size(), store.starts().len()) {
            (Some(_), _) => Form::Family,
            (None, 0 | 1) => Form::Single(None),
            (None, _) => Form::Multi,
        };
        Self::open_store(store, cache, writable, form, options)
    }

    /// Opens the HDF5 file in a store, which may be made of several files.
    pub(crate) fn open_store(
        store: Arc<dyn Store>,
        cache: Cache,
        writable: bool,
        form: Form<'_>,
        options: &CreateOptions,
    ) -> Result<Arc<Self>> {
        let (store, (base, total, superblock)) = finished(store, writable, form, options)?;
        let shared = !writable && options.swmr;
        // A multi file has an end for each of its members.
        let stored_end = match form {
            Form::Multi => superblock.end_of_file.min(total),
            // A SWMR writer may not have written the file's end yet, or never will.
            _ if superblock.consistency_flags & OPEN_FOR_SWMR_WRITING != 0 => total,
            Form::Single(_) | Form::Family => superblock.end_of_file,
        };
        let end = stored_end.min(total).saturating_sub(base);
        let medium = Medium::new(store.clone(), base, end, superblock.sizes, writable);
        let medium = Arc::new(with_options(medium, options));
        medium.note_length(total);
        if shared {
            medium.set_swmr(Swmr::Reading);
        }
        let extension = Extension::load(&medium, &superblock);
        if let (Ok(Extension { driver: Some(driver), .. }), Form::Single(path)) = (&extension, form)
        {
            members::refuse(driver, path)?;
        }
        if stored_end > total && !shared {
            let expected = format!("a file of {stored_end} byte(s), as the superblock says");
            let found = format!("{total} (it is truncated)");
            return Err(DecodeError::new("superblock", base, expected, found).into());
        }
        let extension = extension?;
        medium.set_chunk_node_rank(extension.chunk_rank(&superblock));
        let (mut superblock, mut settings) = (superblock, extension.file_space.clone());
        let mut marked = false;
        if writable {
            if form == Form::Multi {
                begin_multi(&medium, &*store, &extension, options)?;
            }
            medium.settle(stored_end)?;
            medium.note_superblock(superblock.encoded_length())?;
            marked = std::mem::take(&mut superblock.consistency_flags) != 0;
        } else {
            settings = None;
        }
        let address = superblock.extension_address;
        let changes = writable && address != UNDEFINED;
        let changes = changes && (settings.is_some() || form == Form::Multi);
        let space = FileSpace::open(&medium, settings, changes.then_some(address))?;
        if writable
            && matches!(form, Form::Single(_))
            && space.is_forgotten()
            && superblock.base_address == base
        {
            let (store, superblock) = (store.clone(), superblock.clone());
            let look = move |allowed| looking::look(&store, base, end, &superblock, allowed);
            medium.look_with(Arc::new(look));
        }
        let file = Self::new(medium, superblock, extension, space, cache, options);
        if writable && (options.mark_open || marked) {
            file.write_marks(if options.mark_open { OPEN_FOR_WRITING } else { 0 })?;
        }
        Ok(file)
    }
}

/// The superblock's address, the length of its store, and the superblock.
type Found = (u64, u64, Superblock);

/// The store with its last commit finished, and its superblock.
fn finished(
    store: Arc<dyn Store>,
    writable: bool,
    form: Form<'_>,
    options: &CreateOptions,
) -> Result<(Arc<dyn Store>, Found)> {
    let found = match options.swmr && !writable {
        true => again(|| find_superblock(&*store)),
        false => find_superblock(&*store),
    };
    if let Ok((_, _, superblock)) = &found {
        check_shared(superblock, writable, options)?;
        if options.swmr && !writable {
            // A journal is the writer's, and of one moment.
            return Ok((store, found?));
        }
    }
    if store.is_unlocked() {
        let io = |source| Error::Io { action: "read the superblock".into(), source };
        let store = journal::seen_through_any(store).map_err(io)?;
        let found = find_superblock(&*store)?;
        return Ok((store, found));
    }
    // A journal is behind the end of the file, which is out of reach while blocks are replaced; and it may be all
    // there is of a superblock.
    let longer = found.as_ref().map_or(true, |(_, total, block)| *total != block.end_of_file);
    // The oldest multi files say where the last of their members ends.
    if (longer || form == Form::Multi)
        && let Some(done) = journal_done(&store, writable)?
    {
        let found = find_superblock(&*done)?;
        check_mark(&found.2, writable, options)?;
        return Ok((done, found));
    }
    let found = found?;
    check_mark(&found.2, writable, options)?;
    Ok((store, found))
}

/// Tells a medium of the members of the file that is to be edited.
fn begin_multi(
    medium: &Medium,
    store: &dyn Store,
    extension: &Extension,
    options: &CreateOptions,
) -> Result<()> {
    let Some(DriverInfo::Multi(members)) = &extension.driver else {
        let what = "the store has several parts, but the file has no driver information about them";
        return Err(Error::Invalid(what.into()));
    };
    extension.file_space.as_ref().map_or(Ok(()), multi::check_space)?;
    multi::check_lengths(store, members)?;
    multi::divide(medium, &store.starts(), members)?;
    if let Some(alignment) = options.alignment {
        medium.align(alignment);
    }
    Ok(())
}

/// Fails if the file is to be edited and is marked as open for writing.
fn check_mark(superblock: &Superblock, writable: bool, options: &CreateOptions) -> Result<()> {
    let marks = OPEN_FOR_WRITING | OPEN_FOR_SWMR_WRITING;
    let marked = superblock.version >= 3 && superblock.consistency_flags & marks != 0;
    if !writable || options.ignore_mark || !marked {
        return Ok(());
    }
    Err(Error::Locked(
        "the file is marked as open for writing: a program has it open, or ended without closing \
         it; if none has, clear the mark with `h5clear -s` or open it with `ignore_mark`"
            .into(),
    ))
}

/// Fails if the file is marked for SWMR and was not asked for as such. Comes before all else: the
/// journal belongs to the writer.
fn check_shared(superblock: &Superblock, writable: bool, options: &CreateOptions) -> Result<()> {
    let flags = if superblock.version < 3 { 0 } else { superblock.consistency_flags };
    let (open, shared) = (flags & OPEN_FOR_WRITING != 0, flags & OPEN_FOR_SWMR_WRITING != 0);
    if options.ignore_mark {
        return Ok(());
    }
    match (writable, options.swmr) {
        (false, true) if open && !shared => Err(Error::Locked(
            "a program has the file open for writing, not beside readers (SWMR), or ended without closing it".into(),
        )),
        (false, false) if shared => Err(Error::BeingWritten(
            "a program writes the file beside readers (SWMR), or ended without closing it: open it with \
             `swmr(true)`; if no program has it open, `pumice recover --clear` removes the mark",
        )),
        (true, _) if shared => Err(Error::Locked(
            "a program writes the file beside readers (SWMR), or ended without closing it; if no program has it \
             open, `pumice recover --clear` or `h5clear -s` removes the mark, or open it with `ignore_mark`"
                .into(),
        )),
        _ => Ok(()),
    }
}

/// The store with its last commit finished, for good or as a view, if there is a journal.
fn journal_done(store: &Arc<dyn Store>, writable: bool) -> Result<Option<Arc<dyn Store>>> {
    let io = |source| Error::Io { action: "finish the last commit".into(), source };
    let Some(journal) = Journal::find(&**store).map_err(io)? else { return Ok(None) };
    if writable {
        journal.apply(&**store).map_err(io)?;
        return Ok(Some(store.clone()));
    }
    Ok(Some(journal.seen_through(store.clone())))
}

/// The first superblock in a store.
pub(crate) fn find_superblock(store: &dyn Store) -> Result<Found> {
    let io = |source| Error::Io { action: "read the superblock".into(), source };
    let total = store.len().map_err(io)?;
    for offset in Superblock::candidates(total) {
        let mut bytes = vec![0; MAX_LENGTH.min((total - offset) as usize)];
        store.read_at(offset, &mut bytes).map_err(io)?;
        if Superblock::is_signature(&bytes) {
            return Ok((offset, total, placed(Superblock::decode(&bytes, offset)?, offset)));
        }
    }
    let found = format!("none in {total} byte(s)");
    Err(DecodeError::new("superblock", 0, "an HDF5 signature at 0, 512, 1024, ...", found).into())
}

/// The superblock with addresses for the place where it was found. A user block may have been added
/// or removed since it was written: addresses count from the superblock, the end of the file from
/// the start of the file.
fn placed(mut superblock: Superblock, offset: u64) -> Superblock {
    let end = i128::from(superblock.end_of_file) - i128::from(superblock.base_address);
    let end = u64::try_from(end + i128::from(offset)).unwrap_or(superblock.end_of_file);
    (superblock.base_address, superblock.end_of_file) = (offset, end);
    superblock
}
