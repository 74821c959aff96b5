//! Colours for terminals; none elsewhere, and none if `NO_COLOR` is set.

use std::env;
use std::io::{self, IsTerminal};

/// Whether and how text is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    on: bool,
}

/// The role of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Group,
    Dataset,
    Sparse,
    Link,
    Failure,
    Good,
    Quiet,
    Number,
}

impl Style {
    /// Colours if standard output is a terminal, unless `NO_COLOR` forbids or `CLICOLOR_FORCE` asks.
    pub(crate) fn of_output() -> Self {
        let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        let forced = set("CLICOLOR_FORCE");
        Self { on: !set("NO_COLOR") && (forced || (io::stdout().is_terminal() && !dumb)) }
    }

    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { on: false }
    }

    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    /// The text in the colour of its role.
    pub(crate) fn paint(self, role: Role, text: &str) -> String {
        if !self.on || text.is_empty() {
            return text.to_owned();
        }
        let code = match role {
            Role::Group => "1;34",
            Role::Dataset => "1",
            Role::Sparse => "1;32",
            Role::Link => "36",
            Role::Failure => "1;31",
            Role::Good => "32",
            Role::Quiet => "2",
            Role::Number => "33",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
