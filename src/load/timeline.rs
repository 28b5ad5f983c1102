//! A cell's life cut into windows: warm-up, measured span and drain in pieces of one second, of
//! which the last of a phase may be shorter. Every thread follows the same pieces.

use super::clock::SECOND_NS;
use crate::model::Phase;

/// One window's time: from `start` to before `end` on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// 0 for the first window, rising by one.
    pub(super) seq: u64,
    pub(super) phase: Phase,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// When each phase begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeline {
    start: u64,
    measure_from: u64,
    end: u64,
}

impl Timeline {
    /// Warm-up from `start`, the measured span from `measure_from`, drain from `end`.
    pub(super) fn new(start: u64, warmup_ns: u64, measure_ns: u64) -> Self {
        let measure_from = start + warmup_ns;
        Self { start, measure_from, end: measure_from + measure_ns }
    }

    /// When the measured span begins.
    pub(super) const fn measure_from(&self) -> u64 {
        self.measure_from
    }

    /// When the drain begins.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// Lets the drain begin at `at`, unless it begins earlier anyway.
    pub(super) fn stop(&mut self, at: u64) {
        self.end = self.end.min(at);
        self.measure_from = self.measure_from.min(self.end);
    }

    /// The first window.
    pub(super) fn first(&self) -> Span {
        self.from(0, self.start)
    }

    /// When a window ends: a stop cuts one that is not yet of the drain.
    pub(super) fn end_of(&self, span: &Span) -> u64 {
        if span.phase == Phase::Drain { span.end } else { span.end.min(self.end) }
    }

    /// The window after `span`, once `now` has reached its end.
    pub(super) fn after(&self, span: &Span, now: u64) -> Option<(u64, Span)> {
        let end = self.end_of(span);
        (now >= end).then(|| (end, self.from(span.seq + 1, end)))
    }

    fn from(&self, seq: u64, start: u64) -> Span {
        let (phase, phase_end) = if start >= self.end {
            (Phase::Drain, u64::MAX)
        } else if start >= self.measure_from {
            (Phase::Measure, self.end)
        } else {
            (Phase::WarmUp, self.measure_from)
        };
        Span { seq, phase, start, end: phase_end.min(start + SECOND_NS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(timeline: &Timeline, until: u64) -> Vec<(Phase, u64, u64)> {
        let mut all = Vec::new();
        let mut span = timeline.first();
        while let Some((end, next)) = timeline.after(&span, until) {
            all.push((span.phase, span.start, end));
            span = next;
        }
        all
    }

    #[test]
    fn a_window_never_spans_two_phases() {
        let s = SECOND_NS;
        let timeline = Timeline::new(s, s * 3 / 2, 2 * s);
        assert_eq!(
            spans(&timeline, 6 * s),
            [
                (Phase::WarmUp, s, 2 * s),
                (Phase::WarmUp, 2 * s, s * 5 / 2),
                (Phase::Measure, s * 5 / 2, s * 7 / 2),
                (Phase::Measure, s * 7 / 2, s * 9 / 2),
                (Phase::Drain, s * 9 / 2, s * 11 / 2),
            ]
        );
    }

    #[test]
    fn a_stop_cuts_the_window_it_falls_into() {
        let s = SECOND_NS;
        let mut timeline = Timeline::new(0, 2 * s, 10 * s);
        timeline.stop(s * 5 / 2);
        assert_eq!(
            spans(&timeline, 4 * s)[2..],
            [(Phase::Measure, 2 * s, s * 5 / 2), (Phase::Drain, s * 5 / 2, s * 7 / 2)]
        );
        timeline.stop(s);
        assert_eq!(timeline.measure_from(), s, "nothing was measured");
        assert_eq!(spans(&timeline, 2 * s)[1].0, Phase::Drain);
    }
}
