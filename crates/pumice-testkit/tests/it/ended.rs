//! Programs that end while they edit a file that consists of several: what they do, and what they leave.

use pumice::File;
use std::collections::BTreeMap;
use std::path::Path;

/// The files of a folder.
pub(crate) type Folder = BTreeMap<String, Vec<u8>>;
/// Everything in a file: values by name.
pub(crate) type Content = BTreeMap<String, Vec<i32>>;

/// Values that tell where they come from.
pub(crate) fn values(seed: usize, count: usize) -> Vec<i32> {
    (0..count).map(|number| (seed * 1000 + number) as i32).collect()
}

/// Step number `step` of so many, after which the file is longer or, sometimes, shorter.
pub(crate) fn apply(file: &File, step: usize, steps: usize) -> pumice::Result<()> {
    let name = |step: usize| format!("d{step}");
    file.set_attribute(&format!("a{step}"), values(step, 5).as_slice())?;
    if step + 1 == steps {
        return file.members()?.iter().try_for_each(|member| file.unlink(&member.name));
    }
    match step % 3 {
        0 => file
            .new_dataset::<i32>()
            .shape([400])
            .create(&name(step))?
            .write(.., &values(step, 400)),
        1 => {
            let new =
                file.new_dataset::<i32>().shape([300]).max_shape([None]).chunk([64]).deflate(1);
            new.create(&name(step))?.write(.., &values(step, 300))
        }
        _ => {
            file.unlink(&name(step - 2))?;
            let grown = file.dataset(&name(step - 1))?;
            grown.resize([350])?;
            grown.write(280..350, &values(step, 70))
        }
    }
}

/// All that a file contains.
pub(crate) fn content(file: &File) -> pumice::Result<Content> {
    let mut found = Content::new();
    for attribute in file.attributes()? {
        found.insert(format!("@{}", attribute.name()), attribute.read::<i32>()?);
    }
    for member in file.members()? {
        found.insert(member.name.clone(), file.dataset(&member.name)?.read::<i32>(..)?);
    }
    Ok(found)
}

/// The files between two changes, or `None` if the change is not one that can be half done.
pub(crate) fn torn(before: &Folder, after: &Folder) -> Option<Folder> {
    let (name, new) = after.iter().find(|(name, bytes)| before.get(*name) != Some(bytes))?;
    let old = before.get(name).filter(|old| old.len() <= new.len())?;
    let same = |at: &usize| old.get(*at) == new.get(*at);
    let from = (0..new.len()).find(|at| !same(at))?;
    let to = (0..new.len()).rev().find(|at| !same(at))? + 1;
    // As small as a superblock is: that is done or not.
    if to - from <= 96 {
        return None;
    }
    let half = from + (to - from) / 2;
    let mut bytes = old.clone();
    bytes.resize(bytes.len().max(half), 0);
    bytes[from..half].copy_from_slice(&new[from..half]);
    let mut folder = before.clone();
    folder.insert(name.clone(), bytes);
    Some(folder)
}

/// These files in a folder of their own.
pub(crate) fn lay_out(files: &Folder) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

/// Lets a file grow.
pub(crate) fn add(path: &Path) -> pumice::Result<Vec<i32>> {
    let (file, more) = (File::edit(path)?, values(7, 600));
    file.new_dataset::<i32>().shape([600]).create("after")?.write(.., &more)?;
    file.close()?;
    Ok(more)
}
