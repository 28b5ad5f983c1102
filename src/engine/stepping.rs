//! The rate of a running open cell: steps, ramps, and back. A step ends the cell and starts the
//! next one, which measures after a short settling time, so that levels never mix.

use super::supervisor::{Cut, Request, Supervisor};
use crate::model::{ConfigurationId, EventKind, Level, Load, RateStep, UnixMs};

/// The shortest and the longest ramp, in seconds.
const RAMP_S: (f64, f64) = (1.0, 86_400.0);

/// What a configuration runs, or is about to run after a step that drains.
#[derive(Clone, Copy)]
struct Running {
    rate: f64,
    load: Load,
    measure_s: f64,
    /// The request that the next step takes the place of.
    stepping: bool,
}

impl Supervisor {
    /// A step, by an operator: it ends a ramp.
    pub fn step_rate(
        &mut self,
        id: &ConfigurationId,
        step: RateStep,
        by: &str,
    ) -> Result<(), String> {
        let at = self.position(id)?;
        let running = self.running_rate(at)?;
        let rate = match step {
            RateStep::Times { factor } => {
                (running.rate * factor).min(self.plan.load.max_rate.max(running.rate))
            }
            RateStep::To { rate } => rate,
        };
        self.check_rate(rate)?;
        let now = UnixMs::now();
        self.configurations[at].rates.may_step(now)?;
        self.end_ramp(at, "a step");
        self.configurations[at].rates.stepped(running.rate, now);
        self.step_to(at, running, rate, running.measure_s, by);
        Ok(())
    }

    /// Back to the rate before the last step.
    pub fn undo_step(&mut self, id: &ConfigurationId, by: &str) -> Result<(), String> {
        let at = self.position(id)?;
        let running = self.running_rate(at)?;
        let Some(rate) = self.configurations[at].rates.undo_rate() else {
            return Err(format!("{id} has no step to undo since its cells began"));
        };
        let now = UnixMs::now();
        self.configurations[at].rates.may_step(now)?;
        self.end_ramp(at, "an undo");
        self.configurations[at].rates.undone(now);
        self.step_to(at, running, rate, running.measure_s, by);
        Ok(())
    }

    /// A ramp: the first step at once, the others as they fall due.
    pub fn begin_ramp(
        &mut self,
        id: &ConfigurationId,
        to: f64,
        over_s: f64,
        by: &str,
    ) -> Result<(), String> {
        let at = self.position(id)?;
        let running = self.running_rate(at)?;
        self.check_rate(to)?;
        if !over_s.is_finite() || !(RAMP_S.0..=RAMP_S.1).contains(&over_s) {
            return Err(format!(
                "found a ramp of {over_s} s, allowed: {} to {} s",
                RAMP_S.0, RAMP_S.1
            ));
        }
        let now = UnixMs::now();
        self.configurations[at].rates.may_step(now)?;
        self.end_ramp(at, "another ramp");
        let settle_s = self.plan.load.settle_s;
        let rates = &mut self.configurations[at].rates;
        rates.stepped(running.rate, now);
        rates.begin_ramp(running.rate, to, over_s, settle_s, now);
        self.ramp_on(at, by);
        Ok(())
    }

    /// Ends a ramp where it is.
    pub fn hold_rate(&mut self, id: &ConfigurationId) -> Result<(), String> {
        let at = self.position(id)?;
        if self.configurations[at].rates.hold() {
            Ok(())
        } else {
            Err(format!("{id} has no ramp under way"))
        }
    }

    /// Takes the steps of ramps that are due.
    pub fn look_after_ramps(&mut self) {
        for at in 0..self.configurations.len() {
            self.ramp_on(at, "ramp");
        }
    }

    fn ramp_on(&mut self, at: usize, by: &str) {
        let step_s = self.configurations[at].rates.step_s();
        let Some(rate) = self.configurations[at].rates.due(UnixMs::now()) else { return };
        match self.running_rate(at) {
            Ok(running) => {
                // A cell that ended by itself before the next step would end the ramp.
                let measure_s = running.measure_s.max(step_s.unwrap_or_default());
                self.step_to(at, running, rate, measure_s, by);
            }
            Err(why) => self.end_ramp(at, &why),
        }
    }

    /// Ends a ramp for a reason that is told.
    pub fn end_ramp(&mut self, at: usize, why: &str) {
        let configuration = &mut self.configurations[at];
        if configuration.rates.hold() {
            let text = format!("the ramp of {} has ended: {why}", configuration.plan.id);
            self.journal.note(EventKind::Note { level: Level::Info, text });
        }
    }

    /// Several steps in quick succession build on each other, not on the cell that drains.
    fn running_rate(&self, at: usize) -> Result<Running, String> {
        self.may_start(at)?;
        let configuration = &self.configurations[at];
        let id = &configuration.plan.id;
        let running = configuration.cell.as_ref();
        let stepping = running.is_some_and(|active| active.cut == Some(Cut::Stepped));
        let waiting = configuration.queue.front().filter(|_| stepping);
        let (load, measure_s) = match (waiting, running) {
            (Some(request), _) => (request.load, request.measure_s),
            (None, Some(active)) => (active.tracker.order.load, active.tracker.order.measure_s),
            (None, None) => {
                return Err(format!(
                    "{id} has no running cell whose rate could be stepped: start an open cell first"
                ));
            }
        };
        match load {
            Load::Open { rate, .. } => Ok(Running { rate, load, measure_s, stepping }),
            Load::Closed { .. } => Err(format!(
                "{id} runs a closed loop, which has no rate: start an open cell instead"
            )),
        }
    }

    fn step_to(&mut self, at: usize, running: Running, rate: f64, measure_s: f64, by: &str) {
        let Load::Open { arrivals, connections, .. } = running.load else { return };
        let number = self.next_request();
        let request = Request {
            number,
            load: Load::Open { rate, arrivals, connections },
            warmup_s: self.plan.load.settle_s,
            measure_s,
            stage: "operator".to_owned(),
            by: by.to_owned(),
            planned: None,
        };
        let configuration = &mut self.configurations[at];
        if running.stepping {
            configuration.queue.pop_front();
        }
        configuration.queue.push_front(request);
        if Self::runs(&self.configurations[at]) {
            self.cut(at, Cut::Stepped);
        }
    }
}
