//! Whose the lab's server is: PostgreSQL refuses to run as root.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

/// The account that the server runs as and that owns its files, where it is not our own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// Root, and nobody to be instead.
#[derive(Debug, thiserror::Error)]
#[error(
    "PostgreSQL does not run as root, and /etc/passwd names no account to run it as: add an \
     account `postgres`, or run rampdeck as another user"
)]
pub struct NoAccount;

impl Account {
    /// `None`: the server runs as whoever we are. As root: `postgres` if there is one, else
    /// `nobody`.
    ///
    /// # Errors
    /// When we are root and there is neither.
    pub(super) fn for_server() -> Result<Option<Self>, NoAccount> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        choose(&passwd).map(Some).ok_or(NoAccount)
    }

    /// The first folder on the way to `path` that this account may not pass, if there is one.
    pub(super) fn first_closed<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let mut ancestors: Vec<_> = path.ancestors().collect();
        ancestors.reverse();
        ancestors.into_iter().find(|folder| {
            fs::metadata(folder).is_ok_and(|meta| {
                let pass = if meta.uid() == self.uid {
                    0o100
                } else if meta.gid() == self.gid {
                    0o010
                } else {
                    0o001
                };
                meta.mode() & pass == 0
            })
        })
    }
}

fn choose(passwd: &str) -> Option<Account> {
    // `_postgres` is macOS's.
    ["postgres", "_postgres", "nobody"].into_iter().find_map(|name| {
        passwd.lines().find_map(|line| {
            let fields: Vec<_> = line.split(':').collect();
            let [found, _, uid, gid, ..] = fields[..] else { return None };
            if found != name {
                return None;
            }
            let (uid, gid) = (number(uid)?, number(gid)?);
            (uid != 0).then(|| Account { name: name.to_owned(), uid, gid })
        })
    })
}

/// An account's number; some systems write `nobody` as -2.
fn number(text: &str) -> Option<u32> {
    text.parse().ok().or_else(|| text.parse::<i32>().ok().map(i32::cast_unsigned))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn postgres_comes_before_nobody_and_never_root() {
        let passwd = "root:x:0:0::/root:/bin/sh\nnobody:*:-2:-2::/:/bin/false\n\
                      postgres:x:101:104::/var/lib:/bin/bash\n";
        let account = choose(passwd).unwrap();
        assert_eq!((account.name.as_str(), account.uid, account.gid), ("postgres", 101, 104));
        let account = choose("nobody:*:-2:-2::/:/bin/false").unwrap();
        assert_eq!(account.uid, 4_294_967_294);
        assert_eq!(choose("postgres:x:0:0::/:/bin/sh"), None);
        assert_eq!(choose("garbage"), None);
    }

    #[test]
    fn a_closed_folder_on_the_way_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let closed = folder.path().join("closed");
        fs::create_dir_all(closed.join("below")).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
        let stranger = Account { name: "x".into(), uid: 4_000_000, gid: 4_000_000 };
        let below = closed.join("below");
        // Folders above the test's own may be closed as well.
        let found = stranger.first_closed(&below).unwrap();
        assert!(closed.starts_with(found), "{}", found.display());
    }
}
