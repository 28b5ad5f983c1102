//! Where a plan's text comes from, and reading it.

use std::{
    fs::File,
    io::{self, Read},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

use super::problem::{Place, Problems};

/// A plan longer than this is a mistake (a data file, a device), not a plan.
const MAX_BYTES: u64 = 1024 * 1024;

/// Where a plan comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanSource {
    /// A file of the operator's.
    File(PathBuf),
    /// The rehearsal that is built in: `configs/rehearse.toml`.
    Rehearse,
    /// The short measurement of one database that is built in: `configs/quick.toml`.
    Quick,
}

impl PlanSource {
    /// The name that messages show.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Rehearse | Self::Quick => format!("{} (built in)", self.argument()),
        }
    }

    /// The text of a built-in plan, to show it or to start a plan of one's own from it; `None` for
    /// a file.
    #[must_use]
    pub const fn built_in_text(&self) -> Option<&'static str> {
        match self {
            Self::File(_) => None,
            Self::Rehearse => Some(include_str!("../../configs/rehearse.toml")),
            Self::Quick => Some(include_str!("../../configs/quick.toml")),
        }
    }

    /// How a shell is told of it.
    pub(super) fn argument(&self) -> String {
        match self {
            Self::File(path) => shell_word(&path.display().to_string()),
            Self::Rehearse => "configs/rehearse.toml".to_owned(),
            Self::Quick => "configs/quick.toml".to_owned(),
        }
    }

    /// The plan's text; `None` with a problem reported when there is none.
    pub(super) fn read(&self, problems: &Problems) -> Option<String> {
        let bytes = match self {
            Self::File(path) => match read_limited(path) {
                Ok(bytes) => bytes,
                Err(text) => {
                    problems.add(Place::Whole, "", text);
                    return None;
                }
            },
            Self::Rehearse | Self::Quick => {
                return self.built_in_text().map(ToOwned::to_owned);
            }
        };
        decode(bytes).map_err(|(place, text)| problems.add(place, "", text)).ok()
    }
}

fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

fn read_limited(path: &PathBuf) -> Result<Vec<u8>, String> {
    let unreadable = |error: &io::Error| match error.kind() {
        io::ErrorKind::NotFound => "found no such file, allowed: a TOML file".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "found a file that this user may not read, allowed: a readable TOML file".to_owned()
        }
        io::ErrorKind::IsADirectory => "found a directory, allowed: a TOML file".to_owned(),
        _ => format!("found a file that cannot be read ({error}), allowed: a TOML file"),
    };
    let file = File::open(path).map_err(|e| unreadable(&e))?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|e| unreadable(&e))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("found more than {MAX_BYTES} bytes, allowed: at most {MAX_BYTES}"));
    }
    Ok(bytes)
}

/// Byte order marks, the longer ones before their own beginnings.
const MARKS: [(&[u8], &str); 4] = [
    (&[0xff, 0xfe, 0, 0], "UTF-32 (little-endian)"),
    (&[0, 0, 0xfe, 0xff], "UTF-32 (big-endian)"),
    (&[0xff, 0xfe], "UTF-16 (little-endian)"),
    (&[0xfe, 0xff], "UTF-16 (big-endian)"),
];

fn decode(mut bytes: Vec<u8>) -> Result<String, (Place, String)> {
    if let Some((_, encoding)) = MARKS.iter().find(|(mark, _)| bytes.starts_with(mark)) {
        return Err((Place::Whole, format!("found text in {encoding}, allowed: UTF-8")));
    }
    if bytes.starts_with(&[0xef, 0xbb, 0xbf]) {
        bytes.drain(..3);
    }
    let line_of = |offset: usize, bytes: &[u8]| {
        Place::Line(1 + bytes.iter().take(offset).filter(|b| **b == b'\n').count())
    };
    if let Some(offset) = bytes.iter().position(|b| *b == 0) {
        let text = format!(
            "found a NUL byte at byte {offset} (UTF-16, or not a text), allowed: text in UTF-8"
        );
        return Err((line_of(offset, &bytes), text));
    }
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let byte = bytes.get(offset).copied().unwrap_or_default();
        let text = format!(
            "found a byte {byte:#04x} that is not UTF-8 at byte {offset}, allowed: text in UTF-8"
        );
        (line_of(offset, bytes), text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(bytes: &[u8]) -> String {
        let problems = Problems::new("p.toml");
        let (place, text) = decode(bytes.to_vec()).unwrap_err();
        problems.add(place, "", text);
        problems.into_errors().to_string()
    }

    #[test]
    fn other_encodings_are_named() {
        assert_eq!(
            complaint(b"\xff\xfen\0a\0"),
            "p.toml: found text in UTF-16 (little-endian), allowed: UTF-8"
        );
        assert!(complaint(b"\xfe\xff\0n").contains("UTF-16 (big-endian)"));
        assert!(complaint(b"\xff\xfe\0\0n\0\0\0").contains("UTF-32 (little-endian)"));
        assert!(complaint(b"n\0a\0").contains("NUL byte at byte 1"));
        assert_eq!(
            complaint(b"a = 1\nb = \"\xe9\"\n"),
            "p.toml:2: found a byte 0xe9 that is not UTF-8 at byte 11, allowed: text in UTF-8"
        );
        assert_eq!(decode(b"\xef\xbb\xbfa".to_vec()).unwrap(), "a");
    }

    #[test]
    fn a_path_is_quoted_for_the_shell() {
        assert_eq!(shell_word("a/b.toml"), "a/b.toml");
        assert_eq!(shell_word("it's b"), r"'it'\''s b'");
    }
}
