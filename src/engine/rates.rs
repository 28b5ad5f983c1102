//! An open loop's rate on its way: ramps, the steps that can be undone, and how often one may step.
//! Pure: it is told the time.

use crate::model::{RampStatus, UnixMs};

/// The shortest time between two steps of a configuration, in milliseconds: each ends a cell, and a
/// key that is held down must not run away.
const STEP_GAP_MS: u64 = 1_000;
/// The shortest step of a ramp beyond its settling, in seconds: so long a level is looked at.
const LEAST_LEVEL_S: f64 = 3.0;
/// The most steps of a ramp.
const MOST_STEPS: u32 = 20;
/// Steps that can be undone.
const UNDOS: usize = 20;

/// A ramp under way.
#[derive(Clone, Debug, PartialEq)]
struct Ramp {
    from: f64,
    to: f64,
    step: u32,
    of: u32,
    step_ms: u64,
    next_at: UnixMs,
}

/// The steps of a configuration's running chain of cells.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    ramp: Option<Ramp>,
    /// Rates before each step, the newest last.
    before: Vec<f64>,
    stepped: Option<UnixMs>,
}

impl Rates {
    /// Whether a step may be taken now.
    ///
    /// # Errors
    /// When the last one is too fresh.
    pub fn may_step(&self, now: UnixMs) -> Result<(), String> {
        match self.stepped {
            Some(at) if now.0 < at.0 + STEP_GAP_MS => {
                Err("one step a second: the last one has just begun".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// A step was taken from this rate.
    pub fn stepped(&mut self, from: f64, now: UnixMs) {
        self.stepped = Some(now);
        if self.before.len() == UNDOS {
            self.before.remove(0);
        }
        self.before.push(from);
    }

    /// The rate that an undo goes back to.
    pub fn undo_rate(&self) -> Option<f64> {
        self.before.last().copied()
    }

    /// An undo was carried out.
    pub fn undone(&mut self, now: UnixMs) {
        self.stepped = Some(now);
        self.before.pop();
    }

    /// The chain of cells has ended: there is nothing to go back to or to ramp.
    pub fn clear(&mut self) {
        *self = Self { stepped: self.stepped, ..Self::default() };
    }

    /// Begins a ramp; its first step is due at once. Each step lasts `settle_s` and at least three
    /// seconds more, so a short ramp has fewer of them.
    pub fn begin_ramp(&mut self, from: f64, to: f64, over_s: f64, settle_s: f64, now: UnixMs) {
        let most = (over_s / (settle_s + LEAST_LEVEL_S)).floor();
        // Between 1 and 20: nothing is cut.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let of = most.clamp(1.0, f64::from(MOST_STEPS)) as u32;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most a day
        let step_ms = (over_s * 1_000.0 / f64::from(of)) as u64;
        self.ramp = Some(Ramp { from, to, step: 0, of, step_ms, next_at: now });
    }

    /// The rate of the ramp's next step once it is due; the last one ends the ramp.
    pub fn due(&mut self, now: UnixMs) -> Option<f64> {
        let ramp = self.ramp.as_mut()?;
        if now < ramp.next_at {
            return None;
        }
        ramp.step += 1;
        ramp.next_at = UnixMs(now.0 + ramp.step_ms);
        let share = f64::from(ramp.step) / f64::from(ramp.of);
        let rate = ramp.from + (ramp.to - ramp.from) * share;
        if ramp.step == ramp.of {
            let to = ramp.to;
            self.ramp = None;
            return Some(to);
        }
        Some(rate)
    }

    /// Ends a ramp at the rate that it has reached. Whether there was one.
    pub fn hold(&mut self) -> bool {
        self.ramp.take().is_some()
    }

    pub fn ramp(&self) -> Option<RampStatus> {
        self.ramp.as_ref().map(|ramp| RampStatus {
            to: ramp.to,
            step: ramp.step,
            of: ramp.of,
            next_at: ramp.next_at,
        })
    }

    /// How long a step of the ramp under way lasts, in seconds.
    #[allow(clippy::cast_precision_loss)] // at most a day
    pub fn step_s(&self) -> Option<f64> {
        self.ramp.as_ref().map(|ramp| ramp.step_ms as f64 / 1_000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_goes_in_equal_steps_the_first_at_once() {
        let mut rates = Rates::default();
        rates.begin_ramp(100.0, 500.0, 20.0, 2.0, UnixMs(0));
        assert_eq!(rates.ramp().unwrap().of, 4);
        let mut seen = Vec::new();
        for second in 0..=20 {
            if let Some(rate) = rates.due(UnixMs(second * 1_000)) {
                seen.push((second, rate));
            }
        }
        assert_eq!(seen, [(0, 200.0), (5, 300.0), (10, 400.0), (15, 500.0)]);
        assert!(rates.ramp().is_none());
    }

    #[test]
    fn a_ramp_has_a_step_at_least_and_twenty_at_most_and_ends_exactly() {
        for (over_s, of) in [(1.0, 1), (9.9, 1), (10.0, 2), (3_600.0, 20)] {
            let mut rates = Rates::default();
            rates.begin_ramp(1_000.0, 333.0, over_s, 2.0, UnixMs(0));
            assert_eq!(rates.ramp().unwrap().of, of, "{over_s}");
            let last = (0..10_000_000).step_by(1_000).find_map(|ms| {
                let rate = rates.due(UnixMs(ms));
                rate.filter(|_| rates.ramp().is_none())
            });
            assert_eq!(last, Some(333.0));
        }
    }

    #[test]
    fn steps_are_undone_in_turn_and_come_once_a_second() {
        let mut rates = Rates::default();
        assert!(rates.may_step(UnixMs(0)).is_ok());
        rates.stepped(100.0, UnixMs(10_000));
        assert!(rates.may_step(UnixMs(10_999)).is_err());
        assert!(rates.may_step(UnixMs(11_000)).is_ok());
        rates.stepped(200.0, UnixMs(11_000));
        assert_eq!(rates.undo_rate(), Some(200.0));
        rates.undone(UnixMs(12_000));
        assert_eq!(rates.undo_rate(), Some(100.0));
        rates.clear();
        assert_eq!(rates.undo_rate(), None);
        assert!(rates.may_step(UnixMs(12_500)).is_err(), "the pace is kept from chain to chain");
        for step in 0..50 {
            rates.stepped(f64::from(step), UnixMs(0));
        }
        assert_eq!(rates.before.len(), UNDOS);
    }
}
