//! One cell in this process: for tests and calibration, where no agent is wanted.

use tokio::sync::mpsc::unbounded_channel;

use super::{LoadError, collector};
use crate::{
    model::{AgentCommand, AgentReport, CellOrder, CellResult, Window},
    workload::Workload,
};

/// What a cell gave.
#[derive(Clone, Debug)]
pub struct Ran {
    pub result: CellResult,
    /// In order, without a gap.
    pub windows: Vec<Window>,
}

/// Runs one cell to its end, on load threads of its own.
///
/// # Errors
/// When the machine has no threads for the load, or one of them cannot go on.
pub async fn run<W: Workload>(order: CellOrder, workload: W) -> Result<Ran, LoadError> {
    let cell = order.cell.clone();
    let (commands, inbox) = unbounded_channel();
    // It is received from below: sending cannot fail.
    let _ = commands.send(AgentCommand::Run(Box::new(order)));
    let mut workload = Some(workload);
    let mut windows = Vec::new();
    let mut result = None;
    // One cell is ordered, so one workload is asked for.
    let make = |_: &CellOrder| workload.take().ok_or("the workload is taken");
    collector::serve(inbox, make, |report| match report {
        AgentReport::Window(window) => windows.push(*window),
        AgentReport::Ended(ended) => {
            result = Some(*ended);
            let _ = commands.send(AgentCommand::Shutdown);
        }
        _ => {}
    })
    .await?;
    let result = result.ok_or_else(|| LoadError::Died { why: format!("{cell} has no result") })?;
    Ok(Ran { result, windows })
}
