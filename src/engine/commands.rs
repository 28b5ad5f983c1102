//! The operator's commands: done, or refused with why and what would be accepted.

use super::{
    control::Speaker,
    supervisor::{Cut, Request, Supervisor},
};
use crate::model::{
    Command, ConfigurationId, ConfigurationState, EventKind, GuardState, Load, RunState, UnixMs,
    When,
};

/// Longest warm-up or measured span of an operator's cell: a day.
const LONGEST_SPAN_S: f64 = 86_400.0;

impl Supervisor {
    /// Carries a command out; gives why not where it is refused. Either way it is in the journal.
    pub fn command(&mut self, command: Command, speaker: &Speaker) -> Option<String> {
        let text = command.to_string();
        let by = self.control.name_of(speaker);
        let refused = self.carry_out(command, speaker, &by).err();
        self.journal.note(EventKind::Command { text, by, refused: refused.clone() });
        self.advance();
        refused
    }

    fn carry_out(&mut self, command: Command, speaker: &Speaker, by: &str) -> Result<(), String> {
        if let Command::Teardown { confirm } = &command {
            return self.teardown_asked(confirm, by);
        }
        if let Some(done) = self.control_asked(&command, speaker) {
            return done;
        }
        self.control.may_drive(speaker)?;
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
                self.end_ramp(at, "its cell was stopped");
                let waiting = std::mem::take(&mut self.configurations[at].queue);
                if self.configurations[at].cell.is_none() && waiting.is_empty() {
                    return Err(format!("{configuration} has no running cell to stop"));
                }
                self.cut(at, Cut::StoppedByOperator);
                Ok(())
            }
            Command::StepRate { configuration, step } => self.step_rate(&configuration, step, by),
            Command::Ramp { configuration, to, over_s } => {
                self.begin_ramp(&configuration, to, over_s, by)
            }
            Command::HoldRate { configuration } => self.hold_rate(&configuration),
            Command::UndoStep { configuration } => self.undo_step(&configuration, by),
            Command::RepeatCell { cell } => self.repeat_cell(&cell, by),
            Command::MoveCell { cell, earlier } => self.move_cell(cell, earlier),
            Command::DropCell { cell } => self.drop_cell(cell),
            Command::Pause => self.pause(),
            Command::Resume => self.resume(),
            Command::Answer { decision, option } => self.answer(&decision, &option, by),
            Command::Extend { decision, seconds } => self.extend(&decision, seconds),
            Command::Stop => {
                self.stop_plan();
                Ok(())
            }
            Command::Teardown { .. }
            | Command::AskControl
            | Command::GiveControl
            | Command::KeepControl => Ok(()),
        }
    }

    /// What is about control itself; `None` for every other command.
    fn control_asked(
        &mut self,
        command: &Command,
        speaker: &Speaker,
    ) -> Option<Result<(), String>> {
        let told = match command {
            Command::AskControl => return Some(self.control.ask(speaker, UnixMs::now())),
            Command::GiveControl => self.control.answer(speaker, true),
            Command::KeepControl => self.control.answer(speaker, false),
            _ => return None,
        };
        Some(told.map(|text| self.tell(Some(text))))
    }

    fn teardown_asked(&mut self, confirm: &str, by: &str) -> Result<(), String> {
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

    pub fn position(&self, id: &ConfigurationId) -> Result<usize, String> {
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
        by: &str,
    ) -> Result<(), String> {
        let at = self.position(id)?;
        self.may_start(at)?;
        self.check_load(at, load)?;
        check_span("warm-up", warmup_s, 0.0)?;
        check_span("measured span", measure_s, 1.0)?;
        let request = Request {
            number: self.next_request(),
            load,
            warmup_s,
            measure_s,
            stage: "operator".to_owned(),
            by: by.to_owned(),
            planned: None,
        };
        let busy = Self::runs(&self.configurations[at]);
        if when == When::Now {
            self.end_ramp(at, "another cell was started");
            self.configurations[at].queue.clear();
            if busy {
                self.cut(at, Cut::Replaced);
            }
        }
        self.configurations[at].queue.push_back(request);
        Ok(())
    }

    pub fn may_start(&self, at: usize) -> Result<(), String> {
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

    pub fn check_load(&self, at: usize, load: Load) -> Result<(), String> {
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

    pub fn check_rate(&self, rate: f64) -> Result<(), String> {
        let most = self.plan.load.max_rate;
        if rate.is_finite() && rate > 0.0 && rate <= most {
            Ok(())
        } else {
            Err(format!(
                "found rate {rate}/s, allowed: above 0 to {most} (the plan's load.max_rate)"
            ))
        }
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
