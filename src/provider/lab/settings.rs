//! The lab's `postgresql.conf`.
//!
//! All settings are in the file, none on the command line, so that a server that an operator
//! restarts by hand is the same one. What is acknowledged must outlive the server's own crash,
//! which the operating system survives: for that a COMMIT has to be in the system's cache, not on
//! the disk, so nothing is forced to the disk, but no COMMIT is acknowledged before it is written.

use std::{collections::BTreeMap, path::Path};

use super::folder::PORT;

/// Connections besides the load's: checks, the engine's own, autovacuum's head-room.
const OWN_CONNECTIONS: u32 = 20;

/// The settings as lines, the plan's on top of the lab's own. What the lab itself needs to find
/// its server again cannot be overridden.
pub(super) fn lines(
    sockets: &Path,
    load_connections: u32,
    from_plan: &BTreeMap<String, String>,
) -> String {
    let mut settings: BTreeMap<String, String> = BTreeMap::new();
    let mut set = |name: &str, value: &str| settings.insert(name.into(), value.into());
    for (name, value) in [
        ("shared_buffers", "256MB"),
        ("fsync", "off"),
        ("full_page_writes", "off"),
        ("synchronous_commit", "on"),
        ("wal_level", "minimal"),
        ("max_wal_senders", "0"),
        ("max_wal_size", "4GB"),
        ("checkpoint_timeout", "15min"),
        ("autovacuum", "on"),
        ("jit", "off"),
        ("maintenance_work_mem", "128MB"),
        ("max_parallel_workers_per_gather", "0"),
        ("timezone", "UTC"),
        ("log_timezone", "UTC"),
        ("lc_messages", "C"),
    ] {
        set(name, value);
    }
    set("max_connections", &(load_connections.saturating_add(OWN_CONNECTIONS)).to_string());
    for (name, value) in from_plan {
        set(&name.to_ascii_lowercase(), value);
    }
    for (name, value) in [
        ("listen_addresses", ""),
        ("unix_socket_permissions", "0700"),
        ("external_pid_file", ""),
        ("logging_collector", "on"),
        ("log_directory", "log"),
        ("log_filename", "server.log"),
        ("log_rotation_age", "0"),
        ("log_rotation_size", "0"),
        ("log_truncate_on_rotation", "off"),
    ] {
        set(name, value);
    }
    set("port", &PORT.to_string());
    // A list of folders: each is quoted by itself, for blanks and commas in it.
    let folder = sockets.to_string_lossy().replace('"', "\"\"");
    set("unix_socket_directories", &format!("\"{folder}\""));
    settings.iter().map(|(name, value)| format!("{name} = '{}'\n", escaped(value))).collect()
}

/// The most notable settings in a line, for the record.
pub(super) fn note(load_connections: u32) -> String {
    format!(
        "shared_buffers 256MB, fsync off, synchronous_commit on, room for {load_connections} + \
         {OWN_CONNECTIONS} connections"
    )
}

/// A value between single quotes of `postgresql.conf`.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('\'', "''").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_overrides_but_not_what_the_lab_needs() {
        let plan = [("Shared_Buffers", "1GB"), ("port", "1"), ("listen_addresses", "*")];
        let plan = plan.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let lines = lines(Path::new("/a b/it's \"here\""), 64, &plan);
        for line in [
            "shared_buffers = '1GB'\n",
            "port = '5432'\n",
            "listen_addresses = ''\n",
            "max_connections = '84'\n",
            "synchronous_commit = 'on'\n",
            "unix_socket_directories = '\"/a b/it''s \"\"here\"\"\"'\n",
        ] {
            assert!(lines.contains(line), "{line} in {lines}");
        }
    }
}
