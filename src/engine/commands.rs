//! The operator's commands: done, or refused with why and what would be accepted.

use super::supervisor::{Cut, Request, Supervisor};
use crate::model::{
    Command, ConfigurationId, ConfigurationState, EventKind, GuardState, Load, RateStep, RunState,
    When,
};

/// Longest warm-up or measured span of an operator's cell: a day.
const LONGEST_SPAN_S: f64 = 86_400.0;

impl Supervisor {
    /// Carries a command out; gives why not where it is refused. Either way it is in the journal.
    pub fn command(&mut self, command: Command, by: &'static str) -> Option<String> {
        let text = command.to_string();
        let refused = self.carry_out(command, by).err();
        self.journal.note(EventKind::Command { text, by: by.to_owned(), refused: refused.clone() });
        self.advance();
        refused
    }

    fn carry_out(&mut self, command: Command, by: &'static str) -> Result<(), String> {
        if let Command::Teardown { confirm } = &command {
            return self.teardown_asked(confirm, by);
        }
        if matches!(self.state, RunState::TearingDown | RunState::Ended { .. }) {
            return Err("the run is being torn down: no further command is taken".to_owned());
        }
        match command {
            Command::StartCell { configuration, load, warmup_s, measure_s, when } => {
                let times = (warmup_s, measure_s);
                self.start_asked(&configuration, load, times, when, by)
            }
            Command::StopCell { configuration } => {
                let at = self.position(&configuration)?;
                let waiting = std::mem::take(&mut self.configurations[at].queue);
                if self.configurations[at].cell.is_none() && waiting.is_empty() {
                    return Err(format!("{configuration} has no running cell to stop"));
                }
                self.cut(at, Cut::StoppedByOperator);
                Ok(())
            }
            Command::StepRate { configuration, step } => self.step_rate(&configuration, step, by),
            Command::Ramp { .. }
            | Command::HoldRate { .. }
            | Command::UndoStep { .. }
            | Command::RepeatCell { .. }
            | Command::MoveCell { .. }
            | Command::DropCell { .. }
            | Command::AskControl
            | Command::GiveControl
            | Command::KeepControl
            | Command::RetryTeardown => Err("not yet".to_owned()),
            Command::Pause => self.pause(),
            Command::Resume => self.resume(),
            Command::Answer { decision, option } => self.answer(&decision, &option, by),
            Command::Extend { decision, seconds } => self.extend(&decision, seconds),
            Command::Stop => {
                self.stop_plan();
                Ok(())
            }
            Command::Teardown { .. } => Ok(()),
        }
    }

    fn teardown_asked(&mut self, confirm: &str, by: &'static str) -> Result<(), String> {
        let name = self.header.id.as_str();
        if confirm != name {
            return Err(format!(
                "teardown needs the run's name: found `{confirm}`, allowed: `{name}`"
            ));
        }
        if matches!(self.state, RunState::TearingDown | RunState::Ended { .. }) {
            return Ok(());
        }
        self.begin_teardown(by, 0);
        Ok(())
    }

    fn position(&self, id: &ConfigurationId) -> Result<usize, String> {
        self.configurations.iter().position(|c| c.plan.id == *id).ok_or_else(|| {
            let known: Vec<_> = self.configurations.iter().map(|c| c.plan.id.as_str()).collect();
            format!("found configuration `{id}`, allowed: {}", known.join(", "))
        })
    }

    fn start_asked(
        &mut self,
        id: &ConfigurationId,
        load: Load,
        (warmup_s, measure_s): (f64, f64),
        when: When,
        by: &'static str,
    ) -> Result<(), String> {
        let at = self.position(id)?;
        self.may_start(at)?;
        self.check_load(at, load)?;
        check_span("warm-up", warmup_s, 0.0)?;
        check_span("measured span", measure_s, 1.0)?;
        let request =
            Request { load, warmup_s, measure_s, stage: "operator".to_owned(), by, planned: None };
        let busy = Self::runs(&self.configurations[at]);
        if when == When::Now {
            self.configurations[at].queue.clear();
            if busy {
                self.cut(at, Cut::Replaced);
            }
        }
        self.configurations[at].queue.push_back(request);
        Ok(())
    }

    fn may_start(&self, at: usize) -> Result<(), String> {
        let configuration = &self.configurations[at];
        let id = &configuration.plan.id;
        if self.no_new_cells || self.guard.state() >= GuardState::NoNewCells {
            return Err("the guard allows no new cells: the budget's threshold is near".to_owned());
        }
        match &configuration.base {
            ConfigurationState::SettingUp { step } => {
                Err(format!("{id} is still being set up ({step}): wait until it is IDLE"))
            }
            ConfigurationState::Removed => {
                Err(format!("{id} was taken out of the plan and removed"))
            }
            ConfigurationState::Failed { why } => Err(format!("{id} has failed: {why}")),
            _ => Ok(()),
        }
    }

    fn check_load(&self, at: usize, load: Load) -> Result<(), String> {
        let most = self.plan.load.max_connections;
        let connections = load.connections();
        if connections == 0 || connections > most {
            return Err(format!("found {connections} connections, allowed: 1 to {most}"));
        }
        let plan = &self.configurations[at].plan;
        if plan.shape.applied_to(load) != load {
            return Err(format!(
                "found {connections} connections, allowed: {}, those of {}'s pool",
                plan.shape.connections(load),
                plan.id
            ));
        }
        load.rate().map_or(Ok(()), |rate| self.check_rate(rate))
    }

    fn check_rate(&self, rate: f64) -> Result<(), String> {
        let most = self.plan.load.max_rate;
        if rate.is_finite() && rate > 0.0 && rate <= most {
            Ok(())
        } else {
            Err(format!(
                "found rate {rate}/s, allowed: above 0 to {most} (the plan's load.max_rate)"
            ))
        }
    }

    /// A step ends the running cell and starts the next one, which measures after a short settling
    /// time, so that levels never mix.
    fn step_rate(
        &mut self,
        id: &ConfigurationId,
        step: RateStep,
        by: &'static str,
    ) -> Result<(), String> {
        let at = self.position(id)?;
        self.may_start(at)?;
        // Several steps in quick succession build on each other, not on the cell that drains.
        let running = self.configurations[at].cell.as_ref();
        let stepping = running.is_some_and(|active| active.cut == Some(Cut::Stepped));
        let waiting = self.configurations[at].queue.front().filter(|_| stepping);
        let (load, measure_s) = match (waiting, running) {
            (Some(request), _) => (request.load, request.measure_s),
            (None, Some(active)) => (active.tracker.order.load, active.tracker.order.measure_s),
            (None, None) => {
                return Err(format!(
                    "{id} has no running cell whose rate could be stepped: start an open cell first"
                ));
            }
        };
        let Load::Open { rate, arrivals, connections } = load else {
            return Err(format!(
                "{id} runs a closed loop, which has no rate: start an open cell instead"
            ));
        };
        let rate = match step {
            RateStep::Times { factor } => (rate * factor).min(self.plan.load.max_rate.max(rate)),
            RateStep::To { rate } => rate,
        };
        self.check_rate(rate)?;
        let request = Request {
            load: Load::Open { rate, arrivals, connections },
            warmup_s: self.plan.load.settle_s,
            measure_s,
            stage: "operator".to_owned(),
            by,
            planned: None,
        };
        let configuration = &mut self.configurations[at];
        if stepping {
            configuration.queue.pop_front();
        }
        configuration.queue.push_front(request);
        if Self::runs(&self.configurations[at]) {
            self.cut(at, Cut::Stepped);
        }
        Ok(())
    }

    fn pause(&mut self) -> Result<(), String> {
        match self.state {
            RunState::Running => {
                self.state = RunState::Paused;
                Ok(())
            }
            RunState::Paused => Err("the plan is paused already: resume with p".to_owned()),
            _ => Err("only a running plan can be paused".to_owned()),
        }
    }

    fn resume(&mut self) -> Result<(), String> {
        if self.state == RunState::Paused {
            self.state = RunState::Running;
            Ok(())
        } else {
            Err("the plan is not paused".to_owned())
        }
    }
}

fn check_span(what: &str, seconds: f64, least: f64) -> Result<(), String> {
    if seconds.is_finite() && (least..=LONGEST_SPAN_S).contains(&seconds) {
        Ok(())
    } else {
        Err(format!("found a {what} of {seconds} s, allowed: {least} to {LONGEST_SPAN_S} s"))
    }
}
