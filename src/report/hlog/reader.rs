//! Reading a cell's histogram log back.

use std::{collections::BTreeMap, fs, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hdrhistogram::{
    Histogram,
    serialization::{
        Deserializer,
        interval_log::{IntervalLogHistogram, IntervalLogIterator, LogEntry},
    },
};

use super::{CELL_COMMENT, CellHeader, LOOP_LAG_TAG, READ_LAG_TAG, WINDOW_COMMENT, WindowLine};
use crate::{
    model::{
        Class, Counts, Part, PartRecordings, PerClass, Phase, Recording, RunnerSample, TailSums,
        UnixMs,
    },
    report::ReportError,
};

/// A cell's log, its measured span merged.
#[derive(Clone, Debug, PartialEq)]
pub struct CellLog {
    /// `None` where the log was cut before it.
    pub header: Option<CellHeader>,
    /// Whole windows of every phase.
    pub windows: u64,
    /// Attempts of every phase: what bills by the attempt.
    pub attempts: u64,
    /// `None` where no window of the measured span was written.
    pub measured: Option<MeasuredSpan>,
}

/// The windows of a cell's measured span, merged. They count by completion, unlike a cell's own
/// result, which counts arrivals by their intended time.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredSpan {
    /// When its first window began.
    pub from: UnixMs,
    /// The windows' lengths together, in seconds.
    pub seconds: f64,
    pub windows: u64,
    /// In flight when the first window began.
    pub in_flight_before: u64,
    /// `in_flight` is the last window's.
    pub counts: Counts,
    pub sqlstates: BTreeMap<String, u64>,
    pub classes: PerClass<PartRecordings>,
    pub failed: PerClass<u64>,
    pub unknown: PerClass<u64>,
    pub tail: TailSums,
    /// Means over the span weighted by time; resident memory is the highest.
    pub runner: RunnerSample,
}

/// Reads a log. A last line or window that was cut short is left out.
///
/// # Errors
/// When the file cannot be read, or a whole line of it makes no sense.
pub(in crate::report) fn read(path: &Path) -> Result<CellLog, ReportError> {
    let bytes = fs::read(path).map_err(ReportError::io("read", path))?;
    let mut replay = Replay::default();
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if line.last() != Some(&b'\n') {
            break;
        }
        replay.take(line).map_err(|what| ReportError::Log {
            path: path.to_owned(),
            line: index + 1,
            what,
        })?;
    }
    Ok(CellLog {
        header: replay.header,
        windows: replay.windows,
        attempts: replay.attempts,
        measured: replay.measured.map(Accumulated::finish),
    })
}

#[derive(Default)]
struct Replay {
    header: Option<CellHeader>,
    windows: u64,
    attempts: u64,
    /// The measured histograms of the window whose closing line has not come yet.
    open: Open,
    measured: Option<Accumulated>,
}

#[derive(Default)]
struct Open {
    classes: Vec<(Class, Part, Recording)>,
    loop_lag: Option<Recording>,
    read_lag: Option<Recording>,
}

impl Replay {
    fn take(&mut self, line: &[u8]) -> Result<(), String> {
        if let Some(json) = comment(line, CELL_COMMENT) {
            self.header = Some(serde_json::from_slice(json).map_err(|e| e.to_string())?);
            return Ok(());
        }
        if let Some(json) = comment(line, WINDOW_COMMENT) {
            let window = serde_json::from_slice(json).map_err(|e| e.to_string())?;
            self.close_window(&window);
            return Ok(());
        }
        match IntervalLogIterator::new(line).next() {
            Some(Ok(LogEntry::Interval(interval))) => self.take_interval(&interval),
            Some(Ok(LogEntry::StartTime(_) | LogEntry::BaseTime(_))) | None => Ok(()),
            Some(Err(_)) => Err("neither a comment nor an interval".to_owned()),
        }
    }

    fn take_interval(&mut self, interval: &IntervalLogHistogram<'_>) -> Result<(), String> {
        let Some(tag) = interval.tag() else { return Ok(()) };
        if tag.as_str() == LOOP_LAG_TAG {
            self.open.loop_lag = Some(decode(interval.encoded_histogram())?);
        } else if tag.as_str() == READ_LAG_TAG {
            self.open.read_lag = Some(decode(interval.encoded_histogram())?);
        } else if let Some((class, part)) = measured_tag(tag.as_str()) {
            let recording = decode(interval.encoded_histogram())?;
            self.open.classes.push((class, part, recording));
        }
        Ok(())
    }

    fn close_window(&mut self, window: &WindowLine) {
        let open = std::mem::take(&mut self.open);
        self.windows += 1;
        self.attempts += window.counts.attempts;
        if window.phase == Phase::Measure {
            self.measured.get_or_insert_with(|| Accumulated::begin(window)).add(window, open);
        }
    }
}

/// The text between a comment's beginning and its closing bracket.
fn comment<'a>(line: &'a [u8], beginning: &str) -> Option<&'a [u8]> {
    line.trim_ascii_end().strip_prefix(beginning.as_bytes())?.strip_suffix(b"]")
}

/// The class and part of a tag of the measured span; other phases' tags have three words.
fn measured_tag(tag: &str) -> Option<(Class, Part)> {
    let (class, part) = tag.split_once('.')?;
    let class = Class::ALL.into_iter().find(|c| c.name() == class)?;
    let part = Part::ALL.into_iter().find(|p| p.name() == part)?;
    Some((class, part))
}

fn decode(payload: &str) -> Result<Recording, String> {
    let bytes = STANDARD.decode(payload).map_err(|error| format!("payload: {error}"))?;
    let histogram: Histogram<u32> = Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| format!("payload: {error}"))?;
    Ok(Recording::from_histogram(&histogram))
}

struct Accumulated {
    span: MeasuredSpan,
    cpu_seconds: f64,
    host_cpu_seconds: f64,
    /// Seconds in which the host's processor time was told.
    host_seconds: f64,
}

impl Accumulated {
    fn begin(first: &WindowLine) -> Self {
        Self {
            span: MeasuredSpan {
                from: first.start,
                seconds: 0.0,
                windows: 0,
                in_flight_before: first.in_flight_before,
                counts: Counts::default(),
                sqlstates: BTreeMap::new(),
                classes: PerClass::default(),
                failed: PerClass::default(),
                unknown: PerClass::default(),
                tail: TailSums::default(),
                runner: RunnerSample::default(),
            },
            cpu_seconds: 0.0,
            host_cpu_seconds: 0.0,
            host_seconds: 0.0,
        }
    }

    fn add(&mut self, window: &WindowLine, open: Open) {
        let span = &mut self.span;
        span.seconds += window.length_s;
        span.windows += 1;
        span.counts.add(&window.counts);
        span.counts.in_flight = window.counts.in_flight;
        for (state, count) in &window.sqlstates {
            *span.sqlstates.entry(state.clone()).or_default() += count;
        }
        for (class, part, recording) in open.classes {
            span.classes[class].part_mut(part).merge(&recording);
        }
        for class in Class::ALL {
            span.failed[class] += window.failed[class];
            span.unknown[class] += window.unknown[class];
        }
        span.tail.merge(&window.tail);
        if let Some(lag) = open.loop_lag {
            span.runner.loop_lag.merge(&lag);
        }
        if let Some(lag) = open.read_lag {
            span.runner.read_lag.merge(&lag);
        }
        span.runner.rss_mib = span.runner.rss_mib.max(window.rss_mib);
        span.runner.processors = window.processors;
        self.cpu_seconds += window.cpu_percent * window.length_s;
        if let Some(host) = window.host_cpu_percent {
            self.host_cpu_seconds += host * window.length_s;
            self.host_seconds += window.length_s;
        }
    }

    fn finish(mut self) -> MeasuredSpan {
        if self.span.seconds > 0.0 {
            self.span.runner.cpu_percent = self.cpu_seconds / self.span.seconds;
        }
        if self.host_seconds > 0.0 {
            self.span.runner.host_cpu_percent = Some(self.host_cpu_seconds / self.host_seconds);
        }
        self.span
    }
}
