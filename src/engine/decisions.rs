//! Decisions: asked with their prices, answered by the operator or, at the deadline, by the safe
//! default, which never spends more.

use super::{
    input::Input,
    stages::Next,
    supervisor::{Cut, Removal, Supervisor},
};
use crate::{
    cost,
    model::{
        AgentCommand, ConfigurationId, Decision, DecisionAction, DecisionOption, EventKind, Money,
        RunState, UnixMs, Verdict,
    },
    plan::{OptionAction, OptionPlan, Stage, StageKind},
};

/// The decision that rampdeck itself asks when the plan has nothing more to do.
const AT_THE_END: &str = "plan-done";
/// What follows a `hold`.
const HELD: &str = "held";
/// The longest that a deadline can be put off at once: an hour.
const LONGEST_EXTENSION_S: u64 = 3_600;

impl Supervisor {
    /// The plan has come to a question: asks it, once.
    pub fn ask_the_plans_question(&mut self) {
        if self.decision.is_some() {
            return;
        }
        let Next::Decision(_) = self.progress.next() else { return };
        let Some((_, stage)) = self.progress.stage() else { return };
        let Stage { name, kind: StageKind::Decision { question, options, safe, deadline_s } } =
            stage.clone()
        else {
            return;
        };
        let options = options.iter().map(|option| self.priced(option)).collect();
        self.ask(&name, question, options, safe, deadline_s);
    }

    fn ask(
        &mut self,
        id: &str,
        question: String,
        options: Vec<DecisionOption>,
        safe: String,
        deadline_s: u64,
    ) {
        let now = UnixMs::now();
        let burn_by_configuration: Vec<(ConfigurationId, Money)> = self
            .configurations
            .iter()
            .map(|c| (c.plan.id.clone(), self.meter.per_hour_of(&c.plan.id)))
            .collect();
        let decision = Decision {
            id: id.to_owned(),
            situation: self.situation(),
            question,
            options,
            safe,
            asked: now,
            deadline: UnixMs(now.0 + deadline_s * 1000),
            burn_per_hour: self.meter.per_hour(),
            burn_by_configuration,
            waited_cost: Money::ZERO,
        };
        self.journal.note(EventKind::DecisionAsked {
            id: decision.id.clone(),
            question: decision.question.clone(),
            options: decision.options.iter().map(|o| o.key.clone()).collect(),
            safe: decision.safe.clone(),
            deadline: decision.deadline,
        });
        self.decision = Some(decision);
    }

    /// What has happened so far, in a sentence.
    fn situation(&self) -> String {
        let last: Vec<String> = self
            .configurations
            .iter()
            .filter_map(|c| c.last.as_ref().map(|l| format!("{} {}", c.plan.id, l.verdict)))
            .collect();
        let verdicts = if last.is_empty() { "none yet".to_owned() } else { last.join(", ") };
        let cells: Vec<_> = self.cells.iter().map(|(id, cell)| (id, cell.verdict)).collect();
        format!("{} Last verdicts: {verdicts}.", tally(&cells))
    }

    fn priced(&self, option: &OptionPlan) -> DecisionOption {
        // The decision itself has begun and so is not among what remains.
        let stages = self.progress.remaining_stages();
        let configurations = self.present();
        let ahead = self.ahead(&stages, &configurations);
        let price = cost::price_option(&self.plan, &option.action, &ahead, &self.rates);
        DecisionOption {
            key: option.key.clone(),
            label: option.label.clone(),
            action: match &option.action {
                OptionAction::Continue => DecisionAction::Continue,
                OptionAction::ContinueWithout { without } => {
                    DecisionAction::ContinueWithout { configurations: without.clone() }
                }
                OptionAction::Hold => DecisionAction::Hold,
                OptionAction::Teardown => DecisionAction::Teardown,
            },
            takes_s: price.takes_s,
            spends: price.spends,
            burn_per_hour: price.burn_per_hour,
        }
    }

    /// The plan has no further stage: with someone watching, the resources are kept for a while.
    pub fn plan_done(&mut self) {
        if self.decision.is_some() || self.runner_is_busy() || self.anything_queued() {
            return;
        }
        if !self.ever_attached {
            self.begin_teardown("the end of the plan", 0);
            return;
        }
        self.state = RunState::Holding;
        self.ask_to_leave(AT_THE_END, "The plan is done. Remove everything now?");
    }

    fn ask_to_leave(&mut self, id: &str, question: &str) {
        let teardown = OptionPlan {
            key: "teardown".to_owned(),
            label: "remove everything".to_owned(),
            action: OptionAction::Teardown,
        };
        let mut options = vec![self.priced(&teardown)];
        if self.progress.stage().is_some() {
            options.insert(
                0,
                self.priced(&OptionPlan {
                    key: "go".to_owned(),
                    label: "go on with the plan".to_owned(),
                    action: OptionAction::Continue,
                }),
            );
        }
        self.ask(id, question.to_owned(), options, "teardown".to_owned(), self.plan.hold_s);
    }

    pub fn anything_queued(&self) -> bool {
        self.configurations.iter().any(|c| !c.queue.is_empty())
    }

    /// `stop`: no further cells, everything is kept until the operator or the deadline says
    /// otherwise.
    pub fn stop_plan(&mut self) {
        for configuration in &mut self.configurations {
            configuration.queue.clear();
        }
        self.cut_all(Cut::StoppedByOperator);
        self.progress.finish();
        if let Some(decision) = self.decision.take() {
            self.answered(&decision.id, "stop", "the command to stop");
        }
        if !matches!(self.state, RunState::SettingUp { .. }) {
            self.state = RunState::Holding;
        }
        self.ask_to_leave(AT_THE_END, "The run was stopped. Remove everything now?");
    }

    pub fn answer(&mut self, id: &str, option: &str, by: &str) -> Result<(), String> {
        let Some(decision) = &self.decision else {
            return Err("no decision is pending".to_owned());
        };
        if decision.id != id {
            return Err(format!("found decision `{id}`, pending is `{}`", decision.id));
        }
        let Some(chosen) = decision.options.iter().find(|o| o.key == option) else {
            let keys: Vec<_> = decision.options.iter().map(|o| o.key.as_str()).collect();
            return Err(format!("found answer `{option}`, allowed: {}", keys.join(", ")));
        };
        let action = chosen.action.clone();
        self.decision = None;
        self.answered(id, option, by);
        match action {
            DecisionAction::Continue => self.go_on(),
            DecisionAction::ContinueWithout { configurations } => {
                for configuration in &configurations {
                    self.take_out(configuration);
                }
                self.go_on();
            }
            DecisionAction::Hold => {
                self.state = RunState::Holding;
                self.ask_to_leave(HELD, "The run is held: no cells start. What next?");
            }
            DecisionAction::Teardown => self.begin_teardown(&format!("decision {id} by {by}"), 0),
        }
        Ok(())
    }

    fn answered(&mut self, id: &str, option: &str, by: &str) {
        self.journal.note(EventKind::DecisionAnswered {
            id: id.to_owned(),
            option: option.to_owned(),
            by: by.to_owned(),
        });
    }

    fn go_on(&mut self) {
        self.end_stage();
        self.state = RunState::Running;
    }

    /// Removes a configuration's resources and takes it out of the rest of the plan.
    fn take_out(&mut self, id: &ConfigurationId) {
        self.progress.remove(id);
        let Some(at) = self.configurations.iter().position(|c| c.plan.id == *id) else { return };
        self.configurations[at].queue.clear();
        self.configurations[at].base = crate::model::ConfigurationState::Removed;
        self.configurations[at].removal = Removal::Due;
        self.cut(at, Cut::StoppedByOperator);
    }

    /// Removes what was taken out once its cell has drained and been checked.
    pub fn look_after_removals(&mut self) {
        for at in 0..self.configurations.len() {
            let configuration = &mut self.configurations[at];
            let quiet = configuration.cell.is_none() && configuration.checking.is_empty();
            if configuration.removal != Removal::Due || !quiet {
                continue;
            }
            configuration.removal = Removal::UnderWay;
            // Its standard input closes, which ends it.
            configuration.gate = None;
            let id = configuration.plan.id.clone();
            if let Some(agent) = &self.agent {
                agent.send(AgentCommand::Release { configuration: id.clone() });
            }
            let inputs = self.inputs.clone();
            let removal = super::teardown::removal_of(self, &id);
            tokio::spawn(async move {
                let items = removal.await;
                let _ = inputs.send(Input::Removed { configuration: id, items }).await;
            });
        }
    }

    pub fn extend(&mut self, id: &str, seconds: u64) -> Result<(), String> {
        if seconds == 0 || seconds > LONGEST_EXTENSION_S {
            return Err(format!("found {seconds} s, allowed: 1 to {LONGEST_EXTENSION_S}"));
        }
        match &mut self.decision {
            Some(decision) if decision.id == id => {
                decision.deadline.0 += seconds * 1000;
                Ok(())
            }
            _ => Err(format!("no decision `{id}` is pending")),
        }
    }

    /// What waiting has cost, and the safe default at the deadline.
    pub fn look_after_decision(&mut self) {
        let Some(decision) = &mut self.decision else { return };
        let now = UnixMs::now();
        decision.burn_per_hour = self.meter.per_hour();
        let hours = now.seconds_since(decision.asked) / 3600.0;
        decision.waited_cost = decision.burn_per_hour.times(hours);
        if now >= decision.deadline {
            let (id, safe) = (decision.id.clone(), decision.safe.clone());
            if let Err(why) = self.answer(&id, &safe, "deadline") {
                tracing::error!("the safe default of {id} cannot be taken: {why}");
                self.begin_teardown("a decision without a usable safe default", 1);
            }
        }
    }
}

/// How many cells ended how, and which configurations have none that says anything.
fn tally(cells: &[(&ConfigurationId, Verdict)]) -> String {
    let count = |wanted| cells.iter().filter(|(_, verdict)| *verdict == wanted).count();
    let kinds = [Verdict::Pass, Verdict::Fail, Verdict::Inconclusive, Verdict::Invalid];
    let counts: Vec<String> = kinds
        .into_iter()
        .map(|verdict| (verdict, count(verdict)))
        .filter(|(_, count)| *count > 0)
        .map(|(verdict, count)| format!("{count} {verdict}"))
        .collect();
    let says = |verdict: Verdict| matches!(verdict, Verdict::Pass | Verdict::Fail);
    let mut silent: Vec<&str> = cells.iter().map(|(id, _)| id.as_str()).collect();
    silent.retain(|id| !cells.iter().any(|(of, verdict)| of.as_str() == *id && says(*verdict)));
    silent.sort_unstable();
    silent.dedup();
    let done = match cells.len() {
        1 => "1 cell done".to_owned(),
        count => format!("{count} cells done"),
    };
    let counts = if counts.is_empty() { String::new() } else { format!(": {}", counts.join(", ")) };
    let silent = match silent.as_slice() {
        [] => String::new(),
        [one] => format!("; {one} has no valid cell"),
        several => format!("; {} have no valid cell", several.join(", ")),
    };
    format!("{done}{counts}{silent}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_situation_hides_no_cell_that_says_nothing() {
        let (d1, a1) = (ConfigurationId::new("D1"), ConfigurationId::new("A1"));
        assert_eq!(tally(&[]), "0 cells done.");
        assert_eq!(tally(&[(&d1, Verdict::Pass)]), "1 cell done: 1 PASS.");
        let cells = [
            (&d1, Verdict::Invalid),
            (&a1, Verdict::Invalid),
            (&d1, Verdict::Fail),
            (&a1, Verdict::Invalid),
        ];
        assert_eq!(tally(&cells), "4 cells done: 1 FAIL, 3 INVALID; A1 has no valid cell.");
    }
}
