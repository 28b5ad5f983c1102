//! The summary of a run whose engine is gone, from the journal, the cells' records and their logs.

use std::collections::BTreeMap;

use super::{
    CellLog, CellStart, JournalReader, MeasuredSpan, RemainingItem, ReportError, RunFolder,
    Summary, TeardownRecord, TeardownSummary, cell_summary, summary::place_cells,
};
use crate::model::{
    Acknowledged, CellEnd, CellRecord, CellResult, Conditions, Counts, PerClass, Reason,
    ReasonCode, Resource, ResourceState, RunnerSample, TailSums, UnixMs, Verdict,
};

/// Brings the folder's `summary.json` up to what the journal, the cells' records and their logs
/// say, and returns it without writing it. Configurations, SLO and costs are those of the summary
/// that is there: the engine writes one as the run starts and after every cell.
///
/// # Errors
/// When the folder has no summary yet, or a file of it cannot be read.
pub fn rebuild(folder: &RunFolder) -> Result<Summary, ReportError> {
    if !folder.summary().exists() {
        return Err(ReportError::NoSummary { path: folder.summary() });
    }
    rebuild_from(folder, folder.read_summary()?)
}

/// Like [`rebuild`], from a summary of the caller's: for a run whose engine did not live to write
/// its first one. The cells of `base` are replaced.
///
/// # Errors
/// When a file of the folder cannot be read.
pub fn rebuild_from(folder: &RunFolder, base: Summary) -> Result<Summary, ReportError> {
    let journal = folder.read_journal()?;
    let mut records = folder.read_cells()?;
    for start in journal.cells_started() {
        if !records.iter().any(|record| record.result.cell == start.cell) {
            records.push(lost_cell(folder, &journal, &start)?);
        }
    }
    records.sort_by_key(|record| record.result.started);
    let mut summary = base;
    for configuration in &mut summary.configurations {
        configuration.cells.clear();
    }
    let cells = records.iter().map(|record| (record.configuration.clone(), cell_summary(record)));
    place_cells(&mut summary.configurations, cells);
    if let Some(teardown) = journal.teardown() {
        summary.teardown = Some(teardown_summary(&teardown, &journal.resources()));
    }
    if let Some(ended) = ended(&journal) {
        summary.run.ended = Some(ended.rfc3339());
    }
    Ok(summary)
}

/// When the run ended: as it says itself, or else when its teardown ended.
fn ended(journal: &JournalReader) -> Option<UnixMs> {
    let torn_down = journal.teardown().and_then(|teardown| teardown.ended).map(|end| end.at);
    journal.run_ended().map(|(at, _)| at).or(torn_down)
}

/// The record of a cell that was started and has none: INVALID, with what its log still tells.
fn lost_cell(
    folder: &RunFolder,
    journal: &JournalReader,
    start: &CellStart,
) -> Result<CellRecord, ReportError> {
    let (log, unreadable) = match folder.read_hlog(&start.cell) {
        Ok(log) => (log, None),
        // One spoilt log must not keep the other cells out of the summary.
        Err(error @ ReportError::Log { .. }) => (None, Some(error)),
        Err(error) => return Err(error),
    };
    let attempt = journal
        .attempts()
        .filter(|(cell, _)| **cell == start.cell)
        .map(|(_, range)| range.ordinal)
        .last();
    let (header, measured) =
        log.map_or((None, None), |CellLog { header, measured, .. }| (header, measured));
    let conditions = header.map_or_else(
        || Conditions {
            build: journal.run().map(|run| run.build).unwrap_or_default(),
            beside: start.beside.clone(),
            ..Conditions::default()
        },
        |header| header.conditions,
    );
    let mut text = lost_text(start, measured.as_ref());
    if let Some(error) = unreadable {
        text = format!("the engine died while the cell ran, and its log cannot be read: {error}");
    }
    Ok(CellRecord {
        configuration: start.configuration.clone(),
        stage: start.stage.clone(),
        attempt: attempt.unwrap_or(0),
        load: start.load,
        warmup_s: start.warmup_s,
        measure_s: start.measure_s,
        conditions,
        result: lost_result(start, measured, &text),
        invariants: None,
        verdict: Verdict::Invalid,
        reasons: vec![Reason { code: ReasonCode::EngineLost, text }],
    })
}

fn lost_text(start: &CellStart, measured: Option<&MeasuredSpan>) -> String {
    let Some(span) = measured else {
        return "the engine died while the cell ran; nothing was measured".to_owned();
    };
    format!(
        "the engine died while the cell ran; the figures are of the {:.1} s of {:.1} s that were \
         logged, counted by completion ({} that were in flight as the span began are counted as \
         offered)",
        span.seconds, start.measure_s, span.in_flight_before
    )
}

fn lost_result(start: &CellStart, measured: Option<MeasuredSpan>, why: &str) -> CellResult {
    let mut result = CellResult {
        cell: start.cell.clone(),
        end: CellEnd::Failed { why: why.to_owned() },
        started: start.at,
        measured_from: start.at,
        measured_s: 0.0,
        counts: Counts::default(),
        sqlstates: BTreeMap::new(),
        classes: PerClass::default(),
        failed: PerClass::default(),
        unknown: PerClass::default(),
        tail: TailSums::default(),
        acknowledged: Acknowledged::default(),
        runner: RunnerSample::default(),
        round_trip_ms: None,
    };
    if let Some(span) = measured {
        result.measured_from = span.from;
        result.measured_s = span.seconds;
        result.counts = span.counts;
        // A cell's counts begin with nothing in flight: so its identities hold here as well.
        result.counts.offered += span.in_flight_before;
        result.sqlstates = span.sqlstates;
        result.classes = span.classes;
        result.failed = span.failed;
        result.unknown = span.unknown;
        result.tail = span.tail;
        result.runner = span.runner;
    }
    result
}

fn teardown_summary(teardown: &TeardownRecord, present: &[Resource]) -> TeardownSummary {
    let told = teardown.ended.as_ref();
    let why = |id: &str| {
        let line = told?.remaining.iter().find(|line| line.contains(id))?;
        Some(line.clone())
    };
    let remaining: Vec<_> = present
        .iter()
        .map(|resource| RemainingItem {
            kind: resource.kind,
            id: resource.id.clone(),
            state: match resource.state {
                ResourceState::Intended => "intended",
                ResourceState::Made => "made",
                ResourceState::Gone => "gone",
            }
            .to_owned(),
            why: why(&resource.id).unwrap_or_default(),
        })
        .collect();
    TeardownSummary {
        started: teardown.started.rfc3339(),
        ended: told.map(|end| end.at.rfc3339()),
        remaining_count: told.map_or(remaining.len() as u64, |end| end.remaining_count),
        // A teardown that counted none has looked for itself, by more than the journal.
        remaining: if told.is_some_and(|end| end.remaining_count == 0) {
            Vec::new()
        } else {
            remaining
        },
    }
}

#[cfg(test)]
mod tests;
