//! From a cell's end to its place in the record: checked, judged, written.

use super::{
    calibrate,
    live::{Tracker, latency, per_second, percent},
    queue::Repeatable,
    supervisor::{CheckingCell, Cut, Supervisor},
    verdict::{JudgeInput, judge},
};
use crate::model::{
    CellId, CellRecord, CellResult, Conditions, EventKind, InvariantReport, LastCell, Level, Part,
    PerClass, Reason, ReasonCode, Tps,
};
use crate::report::cell_summary;

impl Supervisor {
    pub fn conditions(&self, tracker: &Tracker, round_trip_ms: Option<f64>) -> Conditions {
        Conditions {
            runner: self.runner.clone(),
            zone: self.plan.zone.clone(),
            round_trip_ms,
            build: self.header.build.clone(),
            beside: tracker.beside.iter().cloned().collect(),
            shape: tracker.order.shape,
            calibrated: None,
        }
    }

    /// The invariants of a cell have been checked, or could not be.
    pub fn checked(&mut self, cell: &CellId, report: Result<InvariantReport, String>) {
        let Some((at, checking)) = self.take_checking(cell) else { return };
        let report = report
            .inspect_err(|why| {
                let text = format!("{cell}: invariants not checked: {why}");
                self.journal.note(EventKind::Note { level: Level::Warning, text });
            })
            .ok();
        let record = self.judged(at, checking, report);
        if let Err(error) = self.folder.write_cell(&record) {
            let text = format!("{cell}: its record cannot be written: {error}");
            self.journal.note(EventKind::Note { level: Level::Error, text: text.clone() });
            self.failure.get_or_insert(text);
            self.exit_code = self.exit_code.max(1);
        }
        let tps = tps(&record.result);
        // A cell that measured nothing says nothing of the rate.
        if record.result.counts.attempts > 0 {
            let attempts = per_second(record.result.counts.attempts, record.result.measured_s);
            self.rates.observe(&record.configuration, record.load, attempts);
        }
        self.repeatable.push(Repeatable {
            cell: cell.clone(),
            configuration: record.configuration.clone(),
            load: record.load,
            warmup_s: record.warmup_s,
            measure_s: record.measure_s,
        });
        self.cells.push((record.configuration.clone(), cell_summary(&record)));
        self.write_summary(None);
        self.journal.note(EventKind::CellEnded {
            cell: cell.clone(),
            configuration: record.configuration.clone(),
            load: record.load,
            verdict: record.verdict,
            tps,
            reasons: record.reasons.clone(),
            stage: record.stage.clone(),
            classes: PerClass::from_fn(|class| latency(&record.result.classes[class].response)),
            connection_wait_p99_ms: record
                .result
                .classes
                .overall(Part::ConnectionWait)
                .quantile_ms(0.99),
            tail: crate::report::tail_words(&record.result),
            measured_s: record.result.measured_s,
        });
        let configuration = &mut self.configurations[at];
        configuration.cells_done += 1;
        configuration.last = Some(last_cell(&record, tps));
        self.advance();
    }

    fn take_checking(&mut self, cell: &CellId) -> Option<(usize, CheckingCell)> {
        self.configurations.iter_mut().enumerate().find_map(|(at, configuration)| {
            let found = configuration.checking.iter().position(|c| c.result.cell == *cell)?;
            Some((at, configuration.checking.remove(found)))
        })
    }

    /// Cells that still run or are being checked as the run ends: kept, and marked.
    pub fn record_what_is_left(&mut self) {
        let left: Vec<CellResult> = self
            .configurations
            .iter()
            .filter_map(|c| c.cell.as_ref())
            .map(|active| active.tracker.partial_result("the run ended".to_owned()))
            .collect();
        for result in left {
            if let Some(active) = self
                .configurations
                .iter_mut()
                .find_map(|c| c.cell.as_mut().filter(|a| a.tracker.order.cell == result.cell))
            {
                active.cut = Some(Cut::RunEnding);
            }
            self.load_ended(result);
        }
        let checking: Vec<CellId> = self
            .configurations
            .iter()
            .flat_map(|c| &c.checking)
            .map(|checking| checking.result.cell.clone())
            .collect();
        for cell in checking {
            self.checked(&cell, Err("the run ended".to_owned()));
        }
    }

    fn judged(
        &self,
        at: usize,
        checking: CheckingCell,
        invariants: Option<InvariantReport>,
    ) -> CellRecord {
        let CheckingCell { request, attempt, mut conditions, result, cut } = checking;
        conditions.calibrated = self
            .launch
            .calibration
            .as_ref()
            .and_then(|calibration| calibrate::compare(calibration, &self.plan.mix, &result));
        let (cut, stepped) = interruption(cut, &result, request.measure_s);
        let (verdict, mut reasons) = judge(&JudgeInput {
            slo: &self.plan.slo,
            mix: &self.plan.mix,
            result: &result,
            invariants: invariants.as_ref(),
            beside: &conditions.beside,
            rehearsal: self.header.rehearsal,
            cut: cut.as_ref(),
            stepped: stepped.as_ref(),
        });
        reasons.extend(conditions.calibrated.as_ref().and_then(calibrate::remark));
        CellRecord {
            configuration: self.configurations[at].plan.id.clone(),
            stage: request.stage,
            attempt,
            load: request.load,
            warmup_s: request.warmup_s,
            measure_s: request.measure_s,
            conditions,
            result,
            invariants,
            verdict,
            reasons,
        }
    }
}

/// Why a cell did not run to its end, as far as the engine knows: what makes it INVALID, or that
/// the operator stepped on.
fn interruption(
    cut: Option<Cut>,
    result: &CellResult,
    planned_s: f64,
) -> (Option<Reason>, Option<Reason>) {
    let measured = format!("{:.0} of {planned_s} s measured", result.measured_s);
    let reason = |code, text: &str| Some(Reason { code, text: format!("{text}, {measured}") });
    match cut {
        Some(Cut::Stepped) => {
            let reason =
                reason(ReasonCode::StoppedByOperator, "the operator went on to another rate");
            (reason.clone(), reason)
        }
        Some(Cut::Replaced) => (
            reason(ReasonCode::StoppedByOperator, "the operator started another cell in its place"),
            None,
        ),
        Some(Cut::StoppedByOperator) => {
            (reason(ReasonCode::StoppedByOperator, "stopped by the operator"), None)
        }
        Some(Cut::RunEnding) => (reason(ReasonCode::RunEnded, "the run was ended"), None),
        Some(Cut::AgentLost) => (reason(ReasonCode::AgentLost, "the load agent was lost"), None),
        None => (None, None),
    }
}

/// Rates over the measured span.
fn tps(result: &CellResult) -> Tps {
    let rate = |count| per_second(count, result.measured_s);
    Tps {
        offered: rate(result.counts.offered),
        achieved: rate(result.counts.completed),
        succeeded: rate(result.counts.succeeded),
    }
}

fn last_cell(record: &CellRecord, tps: Tps) -> LastCell {
    let result = &record.result;
    let wait = result.classes.overall(Part::ConnectionWait);
    LastCell {
        id: result.cell.clone(),
        stage: record.stage.clone(),
        load: record.load,
        tps,
        classes: PerClass::from_fn(|class| latency(&result.classes[class].response)),
        connection_wait_p99_ms: wait.quantile_ms(0.99),
        tail: result.tail.mean_above(0.99),
        retry_percent: percent(result.counts.retries, result.counts.attempts),
        failed_percent: percent(
            result.counts.failed + result.counts.unknown,
            result.counts.completed,
        ),
        errors: result.sqlstates.clone(),
        verdict: record.verdict,
        reasons: record.reasons.clone(),
    }
}
