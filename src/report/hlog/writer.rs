//! Writing a cell's histogram log as it runs.

use std::{fmt::Write as _, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};

use super::{
    CELL_COMMENT, CellHeader, LOOP_LAG_TAG, READ_LAG_TAG, WINDOW_COMMENT, WindowLine, tag_prefix,
};
use crate::{
    model::{Class, Part, Recording, UnixMs, Window},
    report::{ReportError, append::AppendFile},
};

/// Nanoseconds in the millisecond that `Interval_Max` is given in.
const NS_PER_MS: f64 = 1e6;

/// Writes a cell's windows as they come. Each is handed to the system whole and at once, so an
/// engine that is killed loses at most the window it was writing.
pub struct HlogWriter {
    file: AppendFile,
    started: UnixMs,
    serializer: V2DeflateSerializer,
    payload: Vec<u8>,
    text: String,
}

impl HlogWriter {
    pub(in crate::report) fn create(path: &Path, header: &CellHeader) -> Result<Self, ReportError> {
        let mut file = AppendFile::open(path)?;
        // A cell's name is used once in a run: what an earlier try left under it is not its log.
        file.cut_to(0)?;
        file.append(header_text(path, header)?.as_bytes())?;
        Ok(Self {
            file,
            started: header.started,
            serializer: V2DeflateSerializer::new(),
            payload: Vec::new(),
            text: String::new(),
        })
    }

    /// Appends one window.
    ///
    /// # Errors
    /// When it cannot be written; nothing of it is left in the file then.
    pub fn append(&mut self, window: &Window) -> Result<(), ReportError> {
        self.text.clear();
        let prefix = tag_prefix(window.phase);
        for class in Class::ALL {
            for part in Part::ALL {
                let tag = format!("{prefix}{}.{}", class.name(), part.name());
                self.add_interval(&tag, window, window.classes[class].part(part))?;
            }
        }
        self.add_interval(&format!("{prefix}{LOOP_LAG_TAG}"), window, &window.runner.loop_lag)?;
        self.add_interval(&format!("{prefix}{READ_LAG_TAG}"), window, &window.runner.read_lag)?;
        let line = serde_json::to_string(&WindowLine::of(window))
            .map_err(ReportError::json(self.file.path()))?;
        self.text.push_str(WINDOW_COMMENT);
        self.text.push_str(&line);
        self.text.push_str("]\n");
        self.file.append(self.text.as_bytes())
    }

    /// Waits until the log is on the disk.
    ///
    /// # Errors
    /// When it cannot be synced.
    pub fn finish(self) -> Result<(), ReportError> {
        self.file.sync()
    }

    fn add_interval(
        &mut self,
        tag: &str,
        window: &Window,
        recording: &Recording,
    ) -> Result<(), ReportError> {
        if recording.count() == 0 {
            return Ok(());
        }
        self.payload.clear();
        self.serializer.serialize(recording.histogram(), &mut self.payload).map_err(|error| {
            ReportError::Histogram {
                path: self.file.path().to_owned(),
                tag: tag.to_owned(),
                what: error.to_string(),
            }
        })?;
        #[allow(clippy::cast_precision_loss)] // 120 s in nanoseconds is far below 2^53
        let max_ms = recording.histogram().max() as f64 / NS_PER_MS;
        let start = window.start.seconds_since(self.started);
        // Writing to a String cannot fail.
        let _ = write!(self.text, "Tag={tag},{start:.3},{:.3},{max_ms:.3},", window.length_s);
        STANDARD.encode_string(&self.payload, &mut self.text);
        self.text.push('\n');
        Ok(())
    }
}

fn header_text(path: &Path, header: &CellHeader) -> Result<String, ReportError> {
    let cell = serde_json::to_string(header).map_err(ReportError::json(path))?;
    let (seconds, ms) = (header.started.0 / 1000, header.started.0 % 1000);
    Ok(format!(
        "#[Histogram log format version 1.3]\n\
         #[rampdeck cell {}: values in nanoseconds, Interval_Max in milliseconds; tags without a \
         phase are the measured span]\n\
         {CELL_COMMENT}{cell}]\n\
         #[StartTime: {seconds}.{ms:03} (seconds since epoch), {}]\n\
         #[BaseTime: {seconds}.{ms:03} (seconds since epoch)]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\
         \"Interval_Compressed_Histogram\"\n",
        header.cell, header.started
    ))
}
