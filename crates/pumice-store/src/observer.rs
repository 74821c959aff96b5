//! An observer of a store of several files, called before it changes one.

/// A function to call before every change, if there is one.
#[derive(Default)]
pub(crate) struct Observer(Option<Box<dyn Fn() + Send + Sync>>);

impl Observer {
    /// Calls `before`.
    pub(crate) fn new(before: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(before)))
    }

    /// Whether there is a function to call.
    pub(crate) fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// To be called before a change.
    pub(crate) fn before_change(&self) {
        if let Some(before) = &self.0 {
            before();
        }
    }
}
