//! A file that grows by whole records: what a full disk cuts off is taken back.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::ReportError;

/// A file that is only ever appended to.
#[derive(Debug)]
pub(super) struct AppendFile {
    file: File,
    path: PathBuf,
    /// The file's length after the last whole record.
    whole: u64,
    /// A record was cut short and could not be taken back yet.
    torn: bool,
}

impl AppendFile {
    /// Opens a file for appending, made where there is none.
    pub(super) fn open(path: &Path) -> Result<Self, ReportError> {
        let file = OpenOptions::new()
            .append(true)
            .read(true)
            .create(true)
            .open(path)
            .map_err(ReportError::io("open", path))?;
        let whole = file.metadata().map_err(ReportError::io("examine", path))?.len();
        Ok(Self { file, path: path.to_owned(), whole, torn: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Cuts the file to this many bytes.
    pub(super) fn cut_to(&mut self, bytes: u64) -> Result<(), ReportError> {
        self.file.set_len(bytes).map_err(ReportError::io("shorten", &self.path))?;
        self.whole = bytes;
        self.torn = false;
        Ok(())
    }

    /// Appends one record, handed to the system when this returns: it outlives this process.
    /// Nothing of the record is left when it fails.
    pub(super) fn append(&mut self, record: &[u8]) -> Result<(), ReportError> {
        self.check_owner()?;
        if let Err(source) = self.file.write_all(record) {
            self.torn = self.file.set_len(self.whole).is_err();
            return Err(ReportError::Io { act: "write", path: self.path.clone(), source });
        }
        self.whole += record.len() as u64;
        Ok(())
    }

    /// Waits until everything appended is on the disk.
    pub(super) fn sync(&self) -> Result<(), ReportError> {
        self.file.sync_data().map_err(ReportError::io("sync", &self.path))
    }

    /// Only one process appends: a file that is not as long as we left it has been taken over.
    fn check_owner(&mut self) -> Result<(), ReportError> {
        let examine = |file: &File| -> io::Result<u64> { Ok(file.metadata()?.len()) };
        let found = examine(&self.file).map_err(ReportError::io("examine", &self.path))?;
        if found == self.whole {
            return Ok(());
        }
        if self.torn {
            let whole = self.whole;
            return self.cut_to(whole);
        }
        Err(ReportError::TakenOver { path: self.path.clone(), found, ours: self.whole })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_another_hand_has_lengthened_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let mut hung = AppendFile::open(&path).unwrap();
        hung.append(b"one\n").unwrap();
        AppendFile::open(&path).unwrap().append(b"two\n").unwrap();
        let error = hung.append(b"three\n").unwrap_err();
        assert!(matches!(error, ReportError::TakenOver { found: 8, ours: 4, .. }), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    }

    #[test]
    fn a_full_disk_is_an_error_that_says_where() {
        let full = Path::new("/dev/full");
        if !full.exists() {
            return;
        }
        let error = AppendFile::open(full).unwrap().append(b"record\n").unwrap_err();
        assert!(error.to_string().starts_with("cannot write /dev/full: "), "{error}");
    }
}
