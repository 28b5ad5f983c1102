//! The time that charts show, and what each of their columns stands for.

use crate::model::{
    CellId, ConfigurationId, ConfigurationStatus, UnixMs, WindowPoint, format_duration,
};

use super::{
    super::{looks, record::Record, state::State},
    figures::about,
};

/// A window is about a second; a stalled one may be longer, but never covers more, in ms.
const LONGEST_MS: u64 = 3_000;
const WINDOW_MS: u64 = 1_000;

/// A stretch of time.
pub(super) struct Axis {
    from: u64,
    to: u64,
    /// Where columns are counted from: columns keep their windows while the time moves on.
    origin: u64,
    /// Until when anything can have been seen.
    seen: u64,
    pub left: String,
    pub right: String,
}

/// A window of a configuration and the time that it stands for.
pub(super) struct Slice<'a> {
    pub point: &'a WindowPoint,
    pub from: u64,
    pub to: u64,
    /// Whether a cell begins with it, as a step of the rate does.
    pub begins: bool,
}

/// What a column shows of several windows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Worst,
    Mean,
}

impl Axis {
    /// The time that the charts of a configuration are set to; `at` is the newest moment known.
    pub(super) fn of(state: &State, id: &ConfigurationId, at: UnixMs) -> Self {
        let back_s = state.looks.back_s;
        let to = at.0.saturating_sub(back_s.saturating_mul(1_000));
        match state.looks.span {
            looks::Span::Minute => Self::last(to, 60, back_s),
            looks::Span::TenMinutes => Self::last(to, 600, back_s),
            looks::Span::Cell => Self::cell(state.shown_record(), id, to)
                .unwrap_or_else(|| Self::last(to, 60, back_s)),
        }
    }

    /// The same for the charts of one configuration alone: while no cell of it runs, time ends with
    /// its last window, so that what a cell was stays to be seen.
    pub(super) fn of_one(state: &State, status: &ConfigurationStatus, at: UnixMs) -> Self {
        let last = state.shown_record().newest_points(&status.id, 1).last();
        let span = state.looks.span.seconds();
        let (Some(last), Some(span)) = (last, span) else { return Self::of(state, &status.id, at) };
        if status.cell.is_some() || state.looks.back_s > 0 || last.at >= at {
            return Self::of(state, &status.id, at);
        }
        let ended = last.at.time_of_day();
        Self {
            left: format!("{} before", span_words(span)),
            right: format!("{} ended {ended}", last.cell),
            ..Self::last(last.at.0, span, 0)
        }
    }

    fn last(to: u64, span_s: u64, back_s: u64) -> Self {
        let ago = |seconds: u64| format!("{} ago", span_words(seconds));
        Self {
            from: to.saturating_sub(span_s * 1_000),
            to: to.max(1),
            origin: 0,
            seen: to,
            left: ago(span_s + back_s),
            right: if back_s == 0 { "now".to_owned() } else { ago(back_s) },
        }
    }

    /// The whole of the newest cell before a moment: as long as it is to last, so that nothing
    /// moves while it fills up.
    fn cell(record: &Record, id: &ConfigurationId, before: u64) -> Option<Self> {
        let points = || record.newest_points(id, usize::MAX);
        let cell = &points().filter(|point| point.at.0 <= before).last()?.cell;
        let mut of_cell = points().filter(|point| point.cell == *cell);
        let first = of_cell.next()?;
        let last = of_cell.last().unwrap_or(first);
        let from = first.at.0.saturating_sub(WINDOW_MS);
        let ended = record.cells().iter().any(|known| known.cell == *cell);
        let is_last = points().last().is_some_and(|point| point.cell == *cell);
        let planned = record
            .spans(id)
            .filter(|_| is_last && !ended && first.seq == 0)
            .map_or(0, |spans| UnixMs(from).plus_seconds(spans.warmup_s + spans.measure_s).0);
        let to = last.at.0.max(planned).max(from + WINDOW_MS);
        Some(Self {
            from,
            to,
            origin: from,
            seen: last.at.0,
            left: format!("{cell} from {}", UnixMs(from).time_of_day()),
            right: format!("{} later", format_duration(UnixMs(to).seconds_since(UnixMs(from)))),
        })
    }

    /// The columns that a stretch touches, as the shares of a column that it covers there.
    fn columns(
        &self,
        slice: &Slice<'_>,
        columns: usize,
    ) -> impl Iterator<Item = (usize, f64)> + use<> {
        // A time in ms times a screen's columns: far inside 128 bits.
        let count = columns as u128;
        let length = u128::from(self.to.saturating_sub(self.from)).max(1);
        let scaled = |at: u64| u128::from(at.saturating_sub(self.origin)) * count;
        let base = scaled(self.to).div_ceil(length).saturating_sub(count);
        let (from, to) = (scaled(slice.from), scaled(slice.to));
        let first = (from / length).max(base);
        let end = to.div_ceil(length).min(base + count);
        (first..end.max(first)).map(move |column| {
            let covered = to.min((column + 1) * length) - from.max(column * length);
            // Both are below 2^53 for any time of day on any screen, or nearly right above.
            #[allow(clippy::cast_precision_loss)]
            let share = covered as f64 / length as f64;
            (usize::try_from(column - base).unwrap_or(columns), share)
        })
    }

    /// What a figure was in each column; `None` where there was no window, or none that has it.
    pub(super) fn values(
        &self,
        slices: &[Slice<'_>],
        columns: usize,
        by: By,
        value: impl Fn(&WindowPoint) -> Option<f64>,
    ) -> Vec<Option<f64>> {
        let mut sums = vec![(0.0_f64, 0.0_f64); columns];
        for slice in slices {
            let Some(value) = value(slice.point).filter(|value| value.is_finite()) else {
                continue;
            };
            for (column, share) in self.columns(slice, columns) {
                let Some((sum, weight)) = sums.get_mut(column) else { continue };
                match by {
                    By::Worst => *sum = if *weight > 0.0 { sum.max(value) } else { value },
                    By::Mean => *sum += value * share,
                }
                *weight += share;
            }
        }
        sums.into_iter()
            .map(|(sum, weight)| {
                (weight > 0.0).then(|| if by == By::Mean { sum / weight } else { sum })
            })
            .collect()
    }

    /// The columns in which a cell begins.
    pub(super) fn marks(&self, slices: &[Slice<'_>], columns: usize) -> Vec<bool> {
        let mut marks = vec![false; columns];
        for slice in slices.iter().filter(|slice| slice.begins && slice.from >= self.from) {
            if let Some((column, _)) = self.columns(slice, columns).next()
                && let Some(mark) = marks.get_mut(column)
            {
                *mark = true;
            }
        }
        marks
    }

    /// The windows of a configuration in this time, oldest first.
    pub(super) fn slices<'a>(&self, record: &'a Record, id: &ConfigurationId) -> Vec<Slice<'a>> {
        let mut slices = Vec::new();
        let mut before: Option<(&CellId, u64, u64)> = None;
        for point in record.newest_points(id, usize::MAX) {
            let at = point.at.0;
            let follows = before.filter(|(cell, seq, _)| {
                **cell == point.cell && seq.checked_add(1) == Some(point.seq)
            });
            let from = match follows {
                Some((_, _, end)) => end.max(at.saturating_sub(LONGEST_MS)),
                None => at.saturating_sub(WINDOW_MS),
            };
            let begins = before.is_some_and(|(cell, ..)| *cell != point.cell) || point.seq == 0;
            before = Some((&point.cell, point.seq, at));
            if at > self.from && from < self.to && from < at {
                slices.push(Slice { point, from, to: at, begins });
            }
        }
        slices
    }

    /// The newest window, if it is of the end of this time and not of before a gap.
    pub(super) fn newest<'a>(&self, slices: &[Slice<'a>]) -> Option<&'a WindowPoint> {
        let last = slices.last()?;
        let end = self.to.min(self.seen);
        (end.saturating_sub(last.to) <= LONGEST_MS).then_some(last.point)
    }
}

/// A length of time in words.
pub(super) fn span_words(seconds: u64) -> String {
    match (seconds / 60, seconds % 60) {
        (0, rest) => format!("{rest} s"),
        (_, 0) => about(seconds),
        (minutes, rest) => format!("{minutes} min {rest} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        console::fixture::{NOW, id, snapshot, state_of},
        link::ServerFrame,
    };

    const D1: &str = "D1";

    /// Windows of a second each that ended so many seconds ago, with their rates.
    fn state(windows: &[(u64, u64, f64)]) -> State {
        let mut state = state_of(snapshot());
        let like = state.record.newest_points(&id(D1), 1).next().unwrap().clone();
        let points = windows.iter().map(|&(ago, seq, rate)| WindowPoint {
            at: UnixMs(NOW.0 - ago * 1_000),
            seq,
            offered: rate,
            ..like.clone()
        });
        let history = ServerFrame::History { configuration: id(D1), points: points.collect() };
        crate::console::update::update(&mut state, crate::console::update::Msg::Frame(history));
        state
    }

    fn columns(state: &State, count: usize, by: By) -> Vec<Option<f64>> {
        let axis = Axis::of(state, &id(D1), NOW);
        let slices = axis.slices(&state.record, &id(D1));
        axis.values(&slices, count, by, |point| Some(point.offered))
    }

    #[test]
    fn a_column_has_the_worst_or_the_mean_of_its_windows() {
        // NOW is a multiple of two seconds, so that each column has two whole windows.
        let state = state(&[(3, 0, 10.0), (2, 1, 30.0), (1, 2, 50.0), (0, 3, 20.0)]);
        assert_eq!(columns(&state, 30, By::Worst)[28..], [Some(30.0), Some(50.0)]);
        assert_eq!(columns(&state, 30, By::Mean)[28..], [Some(20.0), Some(35.0)]);
        assert!(columns(&state, 30, By::Mean)[..28].iter().all(Option::is_none));
    }

    #[test]
    fn a_gap_stays_a_gap_and_a_wide_chart_has_none_between_neighbours() {
        let state = state(&[(9, 0, 1.0), (8, 1, 1.0), (3, 2, 1.0), (2, 9, 1.0)]);
        let shown: String = columns(&state, 60, By::Mean)
            .iter()
            .map(|value| if value.is_some() { '#' } else { '.' })
            .collect();
        // The third follows the second by its number but took no longer than a window may.
        assert!(shown.ends_with("##..####.."), "{shown}");
        let wide = columns(&state, 120, By::Mean);
        assert!(wide[100..104].iter().all(Option::is_some));
        assert!(wide[104..108].iter().all(Option::is_none));
    }

    #[test]
    fn a_figure_from_before_a_gap_is_not_the_newest() {
        let newest = |ago| {
            let state = state(&[(ago, 0, 1.0)]);
            let axis = Axis::of(&state, &id(D1), NOW);
            axis.newest(&axis.slices(&state.record, &id(D1))).is_some()
        };
        assert!(newest(2));
        assert!(!newest(4));
    }
}
