//! What a run has made, and its removal.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{ConfigurationId, UnixMs};

/// A process that can be told apart from a later one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pub pid: u32,
    /// Start time in the system's own unit (Linux: clock ticks since boot, `/proc/PID/stat` 22).
    pub start: u64,
}

/// What kind of thing a resource is. Removal goes in the order of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// The load agent's process.
    Agent,
    /// A gate's process.
    Gate,
    /// rampdeck's own schema in a database of the operator's.
    Schema,
    /// The lab's PostgreSQL server process.
    Server,
    /// A database of the lab's server; it goes with the server's data folder.
    Database,
    /// The lab's data and socket folder.
    Folder,
}

impl ResourceKind {
    /// A thing of this kind by its name, the kind said once: `gate D1`, `PostgreSQL server`.
    #[must_use]
    pub fn named(self, id: &str) -> String {
        let words = self.words();
        if id.starts_with(words) {
            id.to_owned()
        } else if words.ends_with(id) {
            words.to_owned()
        } else {
            format!("{words} {id}")
        }
    }

    /// The kind in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Agent => "load agent",
            Self::Gate => "gate",
            Self::Schema => "schema",
            Self::Server => "PostgreSQL server",
            Self::Database => "database",
            Self::Folder => "data folder",
        }
    }
}

/// Where a resource is in its life, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceState {
    /// In the journal, not yet known to exist.
    Intended,
    Made,
    Gone,
}

/// A thing that a run made or is about to make. The journal has it before it is made, with all
/// that is needed to find it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    pub kind: ResourceKind,
    /// Unique within the run, for example `gate D1` or the folder's path.
    pub id: String,
    pub configuration: Option<ConfigurationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessIdentity>,
    /// Data folder of a server, or the folder itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// What else an operator wants to know: version, binary, settings.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    pub state: ResourceState,
    pub since: UnixMs,
}

/// One line of a teardown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeardownItem {
    pub kind: ResourceKind,
    pub id: String,
    /// `waiting`, `deleting`, `retrying`, `gone`, `remains` and, after a colon, why.
    pub state: String,
    pub gone: bool,
    pub since: UnixMs,
}

/// A teardown as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeardownStatus {
    pub started: UnixMs,
    pub ended: Option<UnixMs>,
    pub items: Vec<TeardownItem>,
    pub remaining_count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_thing_is_said_once() {
        let named = |kind: ResourceKind, id| kind.named(id);
        assert_eq!(named(ResourceKind::Gate, "gate D1"), "gate D1");
        assert_eq!(named(ResourceKind::Server, "server"), "PostgreSQL server");
        assert_eq!(named(ResourceKind::Database, "shop"), "database shop");
        assert_eq!(named(ResourceKind::Folder, "/var/tmp/lab"), "data folder /var/tmp/lab");
    }
}
