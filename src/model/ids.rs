//! Names of runs, configurations and cells.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps a name that its maker has already checked.
            #[must_use]
            pub fn new(name: impl Into<String>) -> Self {
                Self(name.into())
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

name!(
    /// One execution of a plan, for example `rehearse-1130-a7f3`: lower-case letters, digits and
    /// `-`, at most 40 characters, unique on this machine.
    RunId
);
name!(
    /// A configuration of a plan, for example `D1`: letters, digits, `-`, `_` and `+`, at most 12
    /// characters.
    ConfigurationId
);
name!(
    /// One cell of a run, for example `D1-003`: the configuration and the cell's ordinal in it.
    CellId
);
