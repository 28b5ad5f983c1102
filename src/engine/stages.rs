//! Where a plan is: which cell comes next, and when a stage is over. Pure: it starts nothing.

use std::collections::VecDeque;

use crate::{
    model::{ConfigurationId, Load},
    plan::{Stage, StageKind},
};

/// One cell of the plan that has not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedCell {
    /// From 1, in the plan's order over all of its stages.
    pub number: u64,
    pub configuration: ConfigurationId,
    pub load: Load,
    pub warmup_s: f64,
    pub measure_s: f64,
}

/// The plan as far as it has come.
pub struct Progress {
    stages: Vec<Stage>,
    /// The current stage; past the last one when the plan is done.
    index: usize,
    /// Whether the current stage has begun.
    begun: bool,
    /// The current stage's levels that wait, each with its cells that have not been started.
    levels: VecDeque<VecDeque<PlannedCell>>,
    running: usize,
    removed: Vec<ConfigurationId>,
    /// Numbers of cells that an operator has taken out of stages that have not begun.
    dropped: Vec<u64>,
}

/// What the plan wants next.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// The stage of this index (from 0) begins.
    Begin(usize),
    /// Cells that may start now if their configurations are idle.
    Cells { alone: bool, cells: Vec<PlannedCell> },
    /// Cells run, nothing to start before they end.
    Wait,
    /// The question of this stage is to be asked, or is being asked.
    Decision(usize),
    /// The stage of this index is over.
    End(usize),
    /// Every stage is over.
    Done,
}

impl Progress {
    pub fn new(stages: Vec<Stage>) -> Self {
        Self {
            stages,
            index: 0,
            begun: false,
            levels: VecDeque::new(),
            running: 0,
            removed: Vec::new(),
            dropped: Vec::new(),
        }
    }

    /// The current stage and its index, `None` when the plan is done.
    pub fn stage(&self) -> Option<(usize, &Stage)> {
        self.stages.get(self.index).map(|stage| (self.index, stage))
    }

    pub fn stages(&self) -> usize {
        self.stages.len()
    }

    /// What the plan wants next; asking changes nothing.
    pub fn next(&self) -> Next {
        let Some(stage) = self.stages.get(self.index) else { return Next::Done };
        if !self.begun {
            return Next::Begin(self.index);
        }
        match &stage.kind {
            StageKind::Decision { .. } => Next::Decision(self.index),
            StageKind::Cells { side_by_side, .. } => self.next_cells(!side_by_side),
        }
    }

    fn next_cells(&self, alone: bool) -> Next {
        match self.levels.front() {
            Some(level) if !level.is_empty() => {
                let cells = level.iter().take(if alone { 1 } else { usize::MAX });
                Next::Cells { alone, cells: cells.cloned().collect() }
            }
            _ if self.running > 0 => Next::Wait,
            _ => Next::End(self.index),
        }
    }

    /// The current stage has been announced: its cells are laid out.
    pub fn begin(&mut self) {
        self.begun = true;
        self.levels = self.laid_out(self.index);
        self.drop_empty_levels();
    }

    /// The levels of a stage with the cells that are still wanted.
    fn laid_out(&self, index: usize) -> VecDeque<VecDeque<PlannedCell>> {
        let Some(StageKind::Cells { configurations, levels, warmup_s, measure_s, .. }) =
            self.stages.get(index).map(|stage| &stage.kind)
        else {
            return VecDeque::new();
        };
        let first = 1 + self.stages[..index].iter().map(cells_of).sum::<u64>();
        let mut numbers = first..;
        let mut laid_out = VecDeque::new();
        for load in levels {
            let cells = configurations.iter().zip(&mut numbers).map(|(id, number)| PlannedCell {
                number,
                configuration: id.clone(),
                load: *load,
                warmup_s: *warmup_s,
                measure_s: *measure_s,
            });
            let wanted = |cell: &PlannedCell| {
                !self.removed.contains(&cell.configuration) && !self.dropped.contains(&cell.number)
            };
            laid_out.push_back(cells.filter(wanted).collect());
        }
        laid_out
    }

    /// How many cells the whole plan has.
    pub fn planned_cells(&self) -> u64 {
        self.stages.iter().map(cells_of).sum()
    }

    /// The cells that have not been started, with the names of their stages, in the plan's order.
    pub fn waiting_cells(&self) -> Vec<(String, PlannedCell)> {
        let name = |index: usize| self.stages.get(index).map_or("", |stage| stage.name.as_str());
        let current = self.levels.iter().flatten().map(|cell| (name(self.index), cell.clone()));
        let from = self.index + usize::from(self.begun);
        let later = (from..self.stages.len()).flat_map(|index| {
            let cells = self.laid_out(index).into_iter().flatten();
            cells.map(move |cell| (name(index), cell)).collect::<Vec<_>>()
        });
        current.chain(later).map(|(stage, cell)| (stage.to_owned(), cell)).collect()
    }

    /// Takes a cell out of what waits. Whether it was there.
    pub fn drop_cell(&mut self, number: u64) -> bool {
        if !self.waiting_cells().iter().any(|(_, cell)| cell.number == number) {
            return false;
        }
        self.dropped.push(number);
        for level in &mut self.levels {
            level.retain(|cell| cell.number != number);
        }
        self.drop_empty_levels();
        true
    }

    /// Swaps a cell of the stage that runs with the one before or after it in its level; `None`
    /// where no such cell waits.
    pub fn move_cell(&mut self, number: u64, earlier: bool) -> Option<Result<(), String>> {
        for level in &mut self.levels {
            let Some(at) = level.iter().position(|cell| cell.number == number) else { continue };
            let other = if earlier { at.checked_sub(1) } else { Some(at + 1) };
            return Some(match other.filter(|other| *other < level.len()) {
                Some(other) => {
                    level.swap(at, other);
                    Ok(())
                }
                None => Err("it is at the end of its level, and levels never mix".to_owned()),
            });
        }
        let waits = self.waiting_cells().iter().any(|(_, cell)| cell.number == number);
        waits.then(|| Err("its stage has not begun: the plan's order stands until then".to_owned()))
    }

    /// A cell that [`Progress::next`] offered has been started.
    pub fn started(&mut self, cell: &PlannedCell) {
        if let Some(level) = self.levels.front_mut()
            && let Some(at) = level.iter().position(|waiting| waiting == cell)
        {
            level.remove(at);
            self.running += 1;
        }
    }

    /// A cell of the plan has ended; the next level opens when none of this one is left.
    pub fn ended(&mut self) {
        self.running = self.running.saturating_sub(1);
        self.drop_empty_levels();
    }

    /// A cell of the plan was cut for the operator's sake: it is to be run again.
    pub fn repeat(&mut self, cell: PlannedCell) {
        self.running = self.running.saturating_sub(1);
        if self.levels.is_empty() {
            self.levels.push_back(VecDeque::new());
        }
        if let Some(level) = self.levels.front_mut() {
            level.push_front(cell);
        }
    }

    /// The current stage is over.
    pub fn advance(&mut self) {
        self.index += 1;
        self.begun = false;
        self.levels.clear();
        self.running = 0;
    }

    /// No further stage: the plan is done.
    pub fn finish(&mut self) {
        self.index = self.stages.len();
        self.levels.clear();
    }

    /// Takes a configuration out of the rest of the plan.
    pub fn remove(&mut self, configuration: &ConfigurationId) {
        self.removed.push(configuration.clone());
        for level in &mut self.levels {
            level.retain(|cell| cell.configuration != *configuration);
        }
        self.drop_empty_levels();
    }

    /// Cells of the current stage that have not been started, and those of a configuration.
    pub fn waiting(&self, configuration: &ConfigurationId) -> usize {
        self.levels.iter().flatten().filter(|cell| cell.configuration == *configuration).count()
    }

    /// The stages after the current one and what is left of it, for projections.
    pub fn remaining_stages(&self) -> Vec<Stage> {
        let later = self.stages.iter().skip(self.index + 1).cloned();
        let current = self.stages.get(self.index).filter(|_| !self.begun).cloned();
        current.into_iter().chain(later).collect()
    }

    /// How long the cells of the current stage that have not been started take, in seconds, with
    /// `overhead_s` for each; those of a side-by-side level run at once.
    pub fn remaining_seconds(&self, overhead_s: f64) -> f64 {
        let side_by_side = self
            .stages
            .get(self.index)
            .is_some_and(|stage| matches!(stage.kind, StageKind::Cells { side_by_side: true, .. }));
        let of_level = |level: &VecDeque<PlannedCell>| {
            let cells = level.iter().map(|cell| cell.warmup_s + cell.measure_s + overhead_s);
            if side_by_side { cells.fold(0.0, f64::max) } else { cells.sum() }
        };
        self.levels.iter().map(of_level).sum()
    }

    /// The cells of the current stage that have not been started.
    pub fn remaining_cells(&self) -> impl Iterator<Item = &PlannedCell> {
        self.levels.iter().flatten()
    }

    /// A level stays in front while one of its cells runs, so that levels never mix.
    fn drop_empty_levels(&mut self) {
        while self.running == 0 && self.levels.front().is_some_and(VecDeque::is_empty) {
            self.levels.pop_front();
        }
    }
}

/// How many cells a stage has.
fn cells_of(stage: &Stage) -> u64 {
    match &stage.kind {
        StageKind::Cells { configurations, levels, .. } => {
            (configurations.len() * levels.len()) as u64
        }
        StageKind::Decision { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(name: &str, levels: &[u32], side_by_side: bool) -> Stage {
        Stage {
            name: name.to_owned(),
            kind: StageKind::Cells {
                configurations: ["D1", "A2"].map(ConfigurationId::new).to_vec(),
                levels: levels.iter().map(|n| Load::Closed { connections: *n }).collect(),
                warmup_s: 1.0,
                measure_s: 2.0,
                side_by_side,
            },
        }
    }

    fn offered(progress: &Progress) -> Vec<PlannedCell> {
        match progress.next() {
            Next::Cells { cells, .. } => cells,
            other => panic!("no cells are offered: {other:?}"),
        }
    }

    #[test]
    fn a_level_opens_only_when_the_one_before_it_has_ended() {
        let mut progress = Progress::new(vec![cells("pilot", &[16, 64], true)]);
        assert_eq!(progress.next(), Next::Begin(0));
        progress.begin();
        let first = offered(&progress);
        assert_eq!(first.len(), 2);
        for cell in &first {
            progress.started(cell);
        }
        assert_eq!(progress.next(), Next::Wait);
        progress.ended();
        assert_eq!(progress.next(), Next::Wait, "one of the level still runs");
        progress.ended();
        let second = offered(&progress);
        assert!(second.iter().all(|cell| cell.load == Load::Closed { connections: 64 }));
    }

    #[test]
    fn alone_means_one_cell_at_a_time() {
        let mut progress = Progress::new(vec![cells("explore", &[16], false)]);
        progress.begin();
        let cell = offered(&progress);
        assert_eq!(cell.len(), 1);
        progress.started(&cell[0]);
        assert_eq!(offered(&progress)[0].configuration.as_str(), "A2");
    }

    #[test]
    fn a_cell_that_was_cut_for_the_operator_is_offered_again() {
        let mut progress = Progress::new(vec![cells("pilot", &[16], true)]);
        progress.begin();
        let first = offered(&progress);
        first.iter().for_each(|cell| progress.started(cell));
        progress.repeat(first[0].clone());
        assert_eq!(offered(&progress), [first[0].clone()]);
        progress.ended();
        progress.started(&first[0]);
        progress.ended();
        assert_eq!(progress.next(), Next::End(0));
    }

    #[test]
    fn a_configuration_taken_out_is_offered_no_more() {
        let mut progress = Progress::new(vec![cells("a", &[16], true), cells("b", &[16], true)]);
        progress.begin();
        progress.remove(&ConfigurationId::new("A2"));
        assert_eq!(offered(&progress).len(), 1);
        progress.advance();
        progress.begin();
        assert_eq!(offered(&progress)[0].configuration.as_str(), "D1");
        progress.finish();
        assert_eq!(progress.next(), Next::Done);
    }

    #[test]
    fn cells_that_wait_are_numbered_over_all_stages_moved_and_dropped() {
        let mut progress =
            Progress::new(vec![cells("pilot", &[16, 64], false), cells("main", &[256], true)]);
        let numbers = |progress: &Progress| {
            progress.waiting_cells().iter().map(|(_, cell)| cell.number).collect::<Vec<_>>()
        };
        assert_eq!(progress.planned_cells(), 6);
        assert_eq!(numbers(&progress), [1, 2, 3, 4, 5, 6], "known before any stage begins");
        progress.begin();
        assert_eq!(numbers(&progress), [1, 2, 3, 4, 5, 6]);
        assert_eq!(progress.move_cell(1, false), Some(Ok(())));
        assert_eq!(numbers(&progress), [2, 1, 3, 4, 5, 6]);
        assert!(progress.move_cell(1, false).unwrap().is_err(), "levels never mix");
        assert!(progress.move_cell(5, true).unwrap().is_err(), "its stage has not begun");
        assert_eq!(progress.move_cell(7, true), None);
        assert!(progress.drop_cell(3) && progress.drop_cell(6));
        assert!(!progress.drop_cell(6), "it is out already");
        assert_eq!(numbers(&progress), [2, 1, 4, 5]);
        progress.advance();
        progress.begin();
        assert_eq!(numbers(&progress), [5]);
    }
}
