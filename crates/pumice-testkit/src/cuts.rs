//! Files as an editing program leaves them that ends after each of its writes, or in the middle of
//! it, for other programs to open.

use anyhow::{Result, bail};
use pumice::{ByKind, File, FileOptions, LibraryVersion};
use pumice_store::Store;
use pumice_testkit::recording::RecordingStore;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Steps of the program; every second one ends with a commit.
const STEPS: usize = 16;

/// Bytes of each member of a family.
const MEMBER: u64 = 2048;

fn options(kind: &str) -> Result<FileOptions> {
    let old = File::options().library_version(LibraryVersion::Earliest);
    Ok(match kind {
        "earliest" => old,
        "user-block" => old.user_block(512),
        "narrow" => old.widths(4, 4),
        "v18" => File::options().library_version(LibraryVersion::V18),
        "v110" => File::options().library_version(LibraryVersion::V110),
        "split" => File::options().by_kind(ByKind::Split),
        "split-earliest" => old.by_kind(ByKind::Split),
        "family" => File::options().family(MEMBER),
        "family-earliest" => old.family(MEMBER),
        _ => bail!("no such kind of file: {kind}"),
    })
}

/// Writes a file for every change, `00012.h5`, and for half of the next, `00012-torn.h5`; the names of all, without
/// ending, to `states`, and the numbers of changes before and after each commit to `commits`. Split files are
/// `00012-m.h5` and `00012-r.h5`, members of a family `00012-0.h5` and so on.
pub(crate) fn run(kind: &str, folder: &Path) -> Result<()> {
    let (split, family) = (kind.starts_with("split"), kind.starts_with("family"));
    let store = Arc::new(match split {
        true => RecordingStore::of_parts(&ByKind::Split.starts()),
        false => RecordingStore::default(),
    });
    let file = match family {
        true => options(kind)?.create_in(Arc::new(Family(store.clone())))?,
        false => options(kind)?.create_in(store.clone())?,
    };
    file.flush()?;
    let (first, mut commits) = (store.count(), format!("0 {}\n", store.count()));
    for step in 0..STEPS {
        change(&file, step)?;
        if step % 2 == 1 {
            let before = store.count();
            file.flush()?;
            writeln!(commits, "{before} {}", store.count())?;
        }
    }
    let before = store.count();
    file.close()?;
    writeln!(commits, "{before} {}", store.count())?;
    std::fs::write(folder.join("commits"), commits)?;
    let mut states = String::new();
    for count in first..=store.count() {
        for (torn, ending) in [(false, ""), (true, "-torn")] {
            let copy = store.blank();
            store.play(count, torn, &copy)?;
            let name = format!("{count:05}{ending}");
            writeln!(states, "{name}")?;
            for (ending, bytes) in members(&copy.to_vecs(), family) {
                std::fs::write(folder.join(format!("{name}{ending}.h5")), bytes)?;
            }
        }
    }
    Ok(std::fs::write(folder.join("states"), states)?)
}

/// The files of a state, by the ends of their names.
fn members(parts: &[Vec<u8>], family: bool) -> Vec<(String, &[u8])> {
    match parts {
        [meta, raw] => vec![("-m".into(), meta), ("-r".into(), raw)],
        [all] if family => {
            let numbered = all.chunks(MEMBER as usize).enumerate();
            numbered.map(|(number, bytes)| (format!("-{number}"), bytes)).collect()
        }
        _ => parts.iter().map(|bytes| (String::new(), bytes.as_slice())).collect(),
    }
}

/// A store that is one of a family: pieces of one size, one after another.
struct Family(Arc<RecordingStore>);

impl Store for Family {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_at(offset, bytes)
    }

    fn member_size(&self) -> Option<u64> {
        Some(MEMBER)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}

/// One step of the program: groups and attributes come and go, datasets are made, grow and are deleted.
fn change(file: &File, step: usize) -> Result<()> {
    let values: Vec<i32> = (0..40).map(|number| (step * 1000 + number) as i32).collect();
    file.set_attribute("step", step as i32)?;
    file.create_group(&format!("groups/a group with number {step}"))?;
    let built = file.new_dataset::<i32>().shape([40]).max_shape([None]).chunk([8]);
    let made = built.deflate(1).create(&format!("chunked {step}"))?;
    made.write(.., &values)?;
    made.set_attribute("of", step as i32)?;
    drop(made);
    if step >= 2 {
        let grown = file.dataset(&format!("chunked {}", step - 2))?;
        grown.resize([60])?;
        grown.write(40..60, &values[..20])?;
        grown.set_attribute("grown", &values[..9])?;
    }
    if step >= 4 {
        file.unlink(&format!("chunked {}", step - 4))?;
        file.unlink(&format!("groups/a group with number {}", step - 3))?;
    }
    // What a symbol table cannot have: the root group becomes another.
    if step == 9 {
        file.create_external_link("elsewhere", "nowhere.h5", "/")?;
    }
    Ok(())
}
