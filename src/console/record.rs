//! What the console remembers of a run beyond the last snapshot: points of the charts, events, and
//! how cells ended. All of it is bounded.

use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
};

use crate::{
    link::HISTORY_POINTS,
    model::{
        CellId, ClassLatency, ConfigurationId, Event, EventKind, Load, PerClass, Reason, Snapshot,
        Tps, Verdict, WindowPoint,
    },
};

/// Events kept for the log: a night's, at some hundred bytes each.
const EVENTS: usize = 2_000;
/// Ended cells kept for the summary: far more than a plan has.
const CELLS: usize = 1_000;

/// How a cell ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EndedCell {
    pub cell: CellId,
    pub configuration: ConfigurationId,
    pub load: Load,
    pub tps: Tps,
    pub stage: String,
    pub classes: PerClass<ClassLatency>,
    pub connection_wait_p99_ms: Option<f64>,
    /// Who made the tail, in words.
    pub tail: String,
    pub measured_s: f64,
    pub verdict: Verdict,
    /// The first reason that is its own, empty where there is none.
    pub why: String,
}

/// How long a cell warms up and measures, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spans {
    pub warmup_s: f64,
    pub measure_s: f64,
}

/// The console's memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    points: BTreeMap<ConfigurationId, VecDeque<WindowPoint>>,
    events: VecDeque<Event>,
    cells: VecDeque<EndedCell>,
    spans: BTreeMap<ConfigurationId, Spans>,
    folder: Option<PathBuf>,
}

impl Record {
    /// Replaces a configuration's points by what the engine sent.
    pub(super) fn set_history(&mut self, id: ConfigurationId, points: Vec<WindowPoint>) {
        let skip = points.len().saturating_sub(HISTORY_POINTS);
        self.points.insert(id, points.into_iter().skip(skip).collect());
    }

    /// Takes up what a snapshot has that is new.
    pub(super) fn take_up(&mut self, snapshot: &Snapshot) {
        for configuration in &snapshot.configurations {
            if let Some(point) = &configuration.point {
                self.add_point(&configuration.id, point);
            }
        }
        for event in &snapshot.recent {
            self.add_event(event.clone());
        }
    }

    fn add_point(&mut self, id: &ConfigurationId, point: &WindowPoint) {
        let points = self.points.entry(id.clone()).or_default();
        let known =
            points.back().is_some_and(|last| last.cell == point.cell && last.seq >= point.seq);
        if known {
            return;
        }
        if points.len() == HISTORY_POINTS {
            points.pop_front();
        }
        points.push_back(point.clone());
    }

    /// Adds an event unless it is known; they may come twice, and out of order between the
    /// snapshot's and the stream's.
    pub(super) fn add_event(&mut self, event: Event) {
        let place = self.events.partition_point(|known| known.seq < event.seq);
        if self.events.get(place).is_some_and(|known| known.seq == event.seq) {
            return;
        }
        if place == 0 && self.events.len() == EVENTS {
            return;
        }
        self.learn(&event.kind);
        self.events.insert(place, event);
        if self.events.len() > EVENTS {
            self.events.pop_front();
        }
    }

    fn learn(&mut self, kind: &EventKind) {
        match kind {
            EventKind::CellStarted { configuration, warmup_s, measure_s, .. } => {
                let spans = Spans { warmup_s: *warmup_s, measure_s: *measure_s };
                self.spans.insert(configuration.clone(), spans);
            }
            EventKind::CellEnded {
                cell,
                configuration,
                load,
                verdict,
                tps,
                reasons,
                stage,
                classes,
                connection_wait_p99_ms,
                tail,
                measured_s,
            } => {
                if self.cells.iter().any(|known| known.cell == *cell) {
                    return;
                }
                if self.cells.len() == CELLS {
                    self.cells.pop_front();
                }
                self.cells.push_back(EndedCell {
                    cell: cell.clone(),
                    configuration: configuration.clone(),
                    load: *load,
                    tps: *tps,
                    stage: stage.clone(),
                    classes: classes.clone(),
                    connection_wait_p99_ms: *connection_wait_p99_ms,
                    tail: tail.clone(),
                    measured_s: *measured_s,
                    verdict: *verdict,
                    why: Reason::first_text(reasons).to_owned(),
                });
            }
            EventKind::RunEnded { folder, .. } => self.folder = Some(folder.clone()),
            _ => {}
        }
    }

    /// The newest `count` points of a configuration, oldest first.
    pub(super) fn newest_points(
        &self,
        id: &ConfigurationId,
        count: usize,
    ) -> impl Iterator<Item = &WindowPoint> {
        let points = self.points.get(id);
        let skip = points.map_or(0, |points| points.len().saturating_sub(count));
        points.into_iter().flatten().skip(skip)
    }

    /// The events known, oldest first.
    pub(super) const fn events(&self) -> &VecDeque<Event> {
        &self.events
    }

    /// The cells known to have ended, in the order in which they did.
    pub(super) const fn cells(&self) -> &VecDeque<EndedCell> {
        &self.cells
    }

    /// The spans of the configuration's last cell, or else of any.
    pub(super) fn spans(&self, id: &ConfigurationId) -> Option<Spans> {
        self.spans.get(id).or_else(|| self.spans.values().next()).copied()
    }

    /// The run's folder, once the run has ended.
    pub(super) const fn folder(&self) -> Option<&PathBuf> {
        self.folder.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Level, UnixMs};

    fn event(seq: u64) -> Event {
        let kind = EventKind::Note { level: Level::Info, text: seq.to_string() };
        Event { seq, epoch: 1, at: UnixMs(seq), kind }
    }

    #[test]
    fn events_are_kept_once_in_order_and_bounded() {
        let mut record = Record::default();
        for seq in [3, 1, 2, 3, 1] {
            record.add_event(event(seq));
        }
        let seqs = |record: &Record| record.events().iter().map(|e| e.seq).collect::<Vec<_>>();
        assert_eq!(seqs(&record), [1, 2, 3]);
        for seq in 4..=5_000 {
            record.add_event(event(seq));
        }
        record.add_event(event(5));
        assert_eq!(seqs(&record), (3_001..=5_000).collect::<Vec<_>>());
    }
}
