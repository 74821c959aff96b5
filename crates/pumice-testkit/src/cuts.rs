//! What an editing program leaves that ends after each of its writes, or in the middle of it: a file for each, for
//! other programs to open.

use anyhow::{Result, bail};
use pumice::{File, FileOptions, LibraryVersion, MemoryStore};
use pumice_testkit::recording::RecordingStore;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

/// Steps of the program; every second one ends with a commit.
const STEPS: usize = 16;

fn options(kind: &str) -> Result<FileOptions> {
    let old = File::options().library_version(LibraryVersion::Earliest);
    Ok(match kind {
        "earliest" => old,
        "user-block" => old.user_block(512),
        "narrow" => old.widths(4, 4),
        "v18" => File::options().library_version(LibraryVersion::V18),
        "v110" => File::options().library_version(LibraryVersion::V110),
        _ => bail!("no such kind of file: {kind}"),
    })
}

/// Writes a file for every change, `0012.h5`, and for half of the next, `0012-torn.h5`, and the numbers of changes
/// before and after each commit to `commits`.
pub(crate) fn run(kind: &str, folder: &Path) -> Result<()> {
    let store = Arc::new(RecordingStore::default());
    let file = options(kind)?.create_in(store.clone())?;
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
    for count in first..=store.count() {
        for (torn, ending) in [(false, ""), (true, "-torn")] {
            let copy = MemoryStore::default();
            store.play(count, torn, &copy)?;
            std::fs::write(folder.join(format!("{count:05}{ending}.h5")), copy.to_vec())?;
        }
    }
    Ok(())
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
