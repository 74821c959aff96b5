//! The path of an object: the object that it was found from, and the name that led on from there.
//!
//! Going one group deeper takes the memory of a name, not of all names before it, and the text is
//! built on demand: in files of many levels all paths together are far longer than the file.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// The absolute path of an object, as text. A clone takes no memory; paths share their common
/// beginning.
///
/// ```
/// let file = pumice::File::in_memory()?;
/// let group = file.create_group("a")?.create_group("b")?;
/// assert_eq!(&**group.object_path(), "/a/b");
/// assert_eq!(group.object_path().child("c").to_string(), "/a/b/c");
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Clone)]
pub struct ObjectPath(Arc<Step>);

struct Step {
    /// The path that it continues; `None` for an absolute one.
    from: Option<ObjectPath>,
    /// The name below that object.
    names: Box<str>,
    /// The whole text, once it was built.
    whole: OnceLock<Box<str>>,
}

impl ObjectPath {
    /// The path of the root group.
    pub(crate) fn root() -> Self {
        Self::from("/".to_owned())
    }

    /// The path of `path` from here; an absolute one begins at the root.
    pub fn child(&self, path: &str) -> Self {
        let names = path.trim_matches('/');
        if path.starts_with('/') {
            return Self::from(format!("/{names}"));
        }
        if names.is_empty() {
            return self.clone();
        }
        Self::new(Some(self.clone()), names.into())
    }

    fn new(from: Option<Self>, names: Box<str>) -> Self {
        Self(Arc::new(Step { from, names, whole: OnceLock::new() }))
    }
}

impl From<String> for ObjectPath {
    /// A path that is absolute.
    fn from(absolute: String) -> Self {
        Self::new(None, absolute.into())
    }
}

impl Deref for ObjectPath {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0.from {
            None => &self.0.names,
            Some(_) => self.0.whole.get_or_init(|| self.0.put_together()),
        }
    }
}

impl fmt::Display for ObjectPath {
    /// Keeps no text in memory, unlike using the path as a `str`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0.put_together())
    }
}

impl fmt::Debug for ObjectPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0.put_together(), formatter)
    }
}

impl Eq for ObjectPath {}

impl PartialEq for ObjectPath {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl Step {
    fn put_together(&self) -> Box<str> {
        let (mut steps, mut step) = (vec![self], self);
        while let Some(from) = &step.from {
            step = &from.0;
            steps.push(step);
        }
        let length = steps.iter().map(|step| step.names.len() + 1).sum();
        let mut whole = String::with_capacity(length);
        for step in steps.into_iter().rev() {
            if step.from.is_some() && !whole.ends_with('/') {
                whole.push('/');
            }
            whole.push_str(&step.names);
        }
        whole.into()
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        // One after another: recursion could overflow the stack.
        let mut next = self.from.take();
        while let Some(mut step) = next.and_then(|path| Arc::into_inner(path.0)) {
            next = step.from.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_made_of_its_steps() {
        let root = ObjectPath::root();
        assert_eq!(&*root.child("a/b/"), "/a/b");
        assert_eq!(&*root.child("a").child("").child("b"), "/a/b");
        assert_eq!(&*root.child("a").child("/c"), "/c");
        assert_eq!(&*root.child("a").child("/"), "/");
        assert_eq!(&*root, "/");
        assert!(root.child("a").child("b") == root.child("a/b"));
    }

    #[test]
    fn paths_of_a_million_steps_come_and_go() {
        let mut path = ObjectPath::root();
        for _ in 0..1_000_000 {
            path = path.child("g");
        }
        assert_eq!(path.len(), 2_000_000);
    }
}
