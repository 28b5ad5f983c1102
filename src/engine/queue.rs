//! Cells that wait: what they will take and cost, and what an operator changes about them.

use super::{
    snapshots::CELL_OVERHEAD_S,
    supervisor::{Request, Supervisor},
};
use crate::model::{CellId, ConfigurationId, Load, QueuedCell};

/// What a cell that has ended or runs was, so that it can be run once more.
#[derive(Clone, Debug)]
pub struct Repeatable {
    pub cell: CellId,
    pub configuration: ConfigurationId,
    pub load: Load,
    pub warmup_s: f64,
    pub measure_s: f64,
}

impl Supervisor {
    /// The number of a new request, beyond those of the plan's cells.
    pub fn next_request(&mut self) -> u64 {
        self.requests += 1;
        self.progress.planned_cells() + self.requests
    }

    /// What waits, in the order in which it is to start.
    pub fn queue(&self) -> Vec<QueuedCell> {
        let asked = self.configurations.iter().flat_map(|configuration| {
            let id = &configuration.plan.id;
            configuration.queue.iter().map(move |request| {
                let spans = (request.warmup_s, request.measure_s);
                self.queued(request.number, id, &request.stage, request.load, spans, false)
            })
        });
        let planned = self.progress.waiting_cells().into_iter().filter_map(|(stage, cell)| {
            let id = &cell.configuration;
            let load = self.configuration(id)?.plan.shape.applied_to(cell.load);
            let spans = (cell.warmup_s, cell.measure_s);
            Some(self.queued(cell.number, id, &stage, load, spans, true))
        });
        asked.chain(planned).collect()
    }

    fn queued(
        &self,
        number: u64,
        id: &ConfigurationId,
        stage: &str,
        load: Load,
        (warmup_s, measure_s): (f64, f64),
        planned: bool,
    ) -> QueuedCell {
        let takes_s = warmup_s + measure_s + self.plan.load.drain_s.min(CELL_OVERHEAD_S);
        let attempts = self.attempts_cost(vec![(id.clone(), load, warmup_s + measure_s)]);
        QueuedCell {
            number,
            configuration: id.clone(),
            stage: stage.to_owned(),
            load,
            warmup_s,
            measure_s,
            takes_s,
            spends: self.meter.per_hour_of(id).times(takes_s / 3_600.0) + attempts,
            planned,
        }
    }

    /// Queues a cell that has ended or runs once more.
    pub fn repeat_cell(&mut self, cell: &CellId, by: &str) -> Result<(), String> {
        let running = self.configurations.iter().filter_map(|c| c.cell.as_ref()).map(|active| {
            let order = &active.tracker.order;
            Repeatable {
                cell: order.cell.clone(),
                configuration: order.configuration.clone(),
                load: order.load,
                warmup_s: order.warmup_s,
                measure_s: order.measure_s,
            }
        });
        let known =
            self.repeatable.iter().cloned().chain(running).find(|known| known.cell == *cell);
        let Some(known) = known else {
            return Err(format!("found cell `{cell}`, allowed: one that has ended or runs"));
        };
        let at = self.position(&known.configuration)?;
        self.may_start(at)?;
        self.check_load(at, known.load)?;
        let number = self.next_request();
        self.configurations[at].queue.push_back(Request {
            number,
            load: known.load,
            warmup_s: known.warmup_s,
            measure_s: known.measure_s,
            stage: "operator".to_owned(),
            by: by.to_owned(),
            planned: None,
        });
        Ok(())
    }

    /// Takes a cell that waits out of the queue.
    pub fn drop_cell(&mut self, number: u64) -> Result<(), String> {
        for configuration in &mut self.configurations {
            if let Some(at) = configuration.queue.iter().position(|r| r.number == number) {
                configuration.queue.remove(at);
                return Ok(());
            }
        }
        if self.progress.drop_cell(number) { Ok(()) } else { Err(self.not_waiting(number)) }
    }

    /// Swaps a cell that waits with the one before or after it.
    pub fn move_cell(&mut self, number: u64, earlier: bool) -> Result<(), String> {
        for configuration in &mut self.configurations {
            let Some(at) = configuration.queue.iter().position(|r| r.number == number) else {
                continue;
            };
            let other = if earlier { at.checked_sub(1) } else { Some(at + 1) };
            let other = other.filter(|other| *other < configuration.queue.len());
            let Some(other) = other else {
                let end = if earlier { "first" } else { "last" };
                return Err(format!("it is the {end} that waits for {}", configuration.plan.id));
            };
            configuration.queue.swap(at, other);
            return Ok(());
        }
        self.progress.move_cell(number, earlier).unwrap_or_else(|| Err(self.not_waiting(number)))
    }

    fn not_waiting(&self, number: u64) -> String {
        let waiting: Vec<String> =
            self.queue().iter().take(12).map(|cell| cell.number.to_string()).collect();
        match waiting.as_slice() {
            [] => format!("found cell {number}, but no cell waits"),
            numbers => format!("found cell {number}, waiting are: {}", numbers.join(", ")),
        }
    }
}
