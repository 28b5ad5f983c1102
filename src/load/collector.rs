//! The collector: takes the engine's commands, drives the load threads, puts their windows
//! together and reports. It has a thread of its own, so that none of this delays a transaction.

use std::{collections::VecDeque, fmt::Display, sync::Arc, thread::JoinHandle, time::Duration};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{
    LoadError,
    clock::{self, SECOND_NS},
    course::until,
    merge::Complete,
    message::{CellShared, ThreadCommand, ThreadReport},
    opening::Pacers,
    run::{self, Do, Run},
    thread,
    usage::{self, Meter},
};
use crate::{
    model::{
        AgentCommand, AgentReport, CellId, CellOrder, ConfigurationId, Phase, PoolShape,
        RunnerSample,
    },
    workload::Workload,
};

/// Most load threads: beyond it a runner's own schedule would be the limit.
const MOST_THREADS: usize = 16;
/// How long the threads may take to end.
const END_LIMIT_NS: u64 = 3 * SECOND_NS;

/// Serves the commands until their channel closes (at once: the engine is gone) or one says
/// shutdown and everything has drained. `workload` makes a cell's transactions; `report` takes
/// each report in order.
///
/// # Errors
/// When the machine has no threads for the load, or one of them cannot go on.
pub(super) async fn serve<W: Workload, E: Display>(
    mut commands: UnboundedReceiver<AgentCommand>,
    workload: impl FnMut(&CellOrder) -> Result<W, E>,
    report: impl FnMut(AgentReport),
) -> Result<(), LoadError> {
    let (sender, mut reports) = unbounded_channel();
    let mut collector = Collector::start(sender, workload, report)?;
    let processors = usage::processors();
    (collector.report)(AgentReport::Ready { pid: std::process::id(), processors });
    let mut next_second = clock::now() + SECOND_NS;
    let ended = loop {
        let wake = collector.next_change().map_or(next_second, |at| at.min(next_second));
        tokio::select! {
            command = commands.recv() => match command {
                None => break Ok(()),
                Some(command) => collector.obey(command),
            },
            Some(report) = reports.recv() => {
                if let Err(error) = collector.take(report) {
                    break Err(error);
                }
            }
            () = tokio::time::sleep(until(wake)) => {}
        }
        collector.tell_phases();
        if clock::now() >= next_second {
            collector.tell_runner();
            next_second += SECOND_NS;
            next_second = next_second.max(clock::now());
        }
        if collector.is_done() {
            break Ok(());
        }
    };
    collector.end();
    ended
}

struct Collector<W: Workload, M, R> {
    threads: Vec<Thread<W>>,
    workload: M,
    report: R,
    runs: Vec<Run<W>>,
    /// Orders that wait for the cell of their configuration to drain.
    queue: VecDeque<CellOrder>,
    /// By configuration: the load thread that has its first part, so that a following cell finds
    /// the connections where they are kept.
    first_threads: Vec<ConfigurationId>,
    pacers: Pacers,
    next_key: u64,
    meter: Meter,
    /// How late the threads were since the last sample.
    lags: RunnerSample,
    shutting_down: bool,
}

struct Thread<W> {
    commands: UnboundedSender<ThreadCommand<W>>,
    handle: JoinHandle<()>,
}

impl<W, E, M, R> Collector<W, M, R>
where
    W: Workload,
    E: Display,
    M: FnMut(&CellOrder) -> Result<W, E>,
    R: FnMut(AgentReport),
{
    fn start(
        reports: UnboundedSender<ThreadReport>,
        workload: M,
        report: R,
    ) -> Result<Self, LoadError> {
        let number = usize::try_from(usage::processors()).unwrap_or(1).min(MOST_THREADS);
        let threads = (0..number)
            .map(|index| {
                thread::start(index, reports.clone())
                    .map(|(commands, handle)| Thread { commands, handle })
                    .map_err(|source| LoadError::Thread { number, source })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            threads,
            workload,
            report,
            runs: Vec::new(),
            queue: VecDeque::new(),
            first_threads: Vec::new(),
            pacers: Pacers::default(),
            next_key: 0,
            meter: Meter::start(),
            lags: RunnerSample::default(),
            shutting_down: false,
        })
    }

    fn obey(&mut self, command: AgentCommand) {
        match command {
            AgentCommand::Run(order) if self.shutting_down => {
                self.warn(format!("{}: not run, the agent is shutting down", order.cell));
            }
            AgentCommand::Run(order) => {
                self.queue.push_back(*order);
                self.start_queued();
            }
            AgentCommand::Stop { cell } => self.stop(&cell),
            AgentCommand::Release { configuration } => {
                for index in 0..self.threads.len() {
                    let configuration = configuration.clone();
                    self.send(index, ThreadCommand::Release { configuration });
                }
            }
            #[cfg(debug_assertions)]
            AgentCommand::Stall { thread, ms } => {
                if thread < self.threads.len() {
                    self.send(thread, ThreadCommand::Stall(Duration::from_millis(ms)));
                }
            }
            AgentCommand::Shutdown => {
                self.shutting_down = true;
                self.queue.clear();
                let running: Vec<CellId> =
                    self.runs.iter().map(|run| run.shared.order.cell.clone()).collect();
                running.iter().for_each(|cell| self.stop(cell));
            }
        }
    }

    fn stop(&mut self, cell: &CellId) {
        self.queue.retain(|order| order.cell != *cell);
        let Some(index) = self.runs.iter().position(|run| run.shared.order.cell == *cell) else {
            return;
        };
        let what = self.runs[index].stop();
        self.carry_out(index, what);
    }

    /// Starts each order whose configuration is free, in the order they came.
    fn start_queued(&mut self) {
        let mut waiting = VecDeque::new();
        while let Some(order) = self.queue.pop_front() {
            let busy = |other: &CellOrder| other.configuration == order.configuration;
            if self.runs.iter().any(|run| busy(&run.shared.order)) || waiting.iter().any(busy) {
                waiting.push_back(order);
            } else {
                self.open(order);
            }
        }
        self.queue = waiting;
    }

    fn open(&mut self, order: CellOrder) {
        let cell = order.cell.clone();
        let workload = match (self.workload)(&order) {
            Ok(workload) => workload,
            Err(error) => {
                let result = run::failed(cell, error.to_string());
                return (self.report)(AgentReport::Ended(Box::new(result)));
            }
        };
        let key = self.next_key;
        self.next_key += 1;
        // A partition stays on one thread, as a process of the application has one.
        let workers = match order.shape.pool {
            PoolShape::Claim => order.load.connections(),
            PoolShape::Pool { partitions, .. } => partitions,
        };
        let first = self.first_thread(&order.configuration);
        let of = self.threads.len();
        let parts = of.min(usize::try_from(workers).unwrap_or(of)).max(1);
        let threads: Vec<usize> = (0..parts).map(|part| (first + part) % of).collect();
        let pacer = self.pacers.of(&order.configuration, &order.life);
        let shared = Arc::new(CellShared { key, order, workload, pacer });
        (self.report)(AgentReport::Phase { cell, phase: Phase::Opening });
        for (part, workers) in shares(workers, parts).enumerate() {
            let shared = Arc::clone(&shared);
            self.send(threads[part], ThreadCommand::Open { shared, part, workers });
        }
        self.runs.push(Run::new(shared, threads));
    }

    /// Configurations begin on different threads, so that small cells do not all share one.
    fn first_thread(&mut self, configuration: &ConfigurationId) -> usize {
        let known = self.first_threads.iter().position(|c| c == configuration);
        let place = known.unwrap_or_else(|| {
            self.first_threads.push(configuration.clone());
            self.first_threads.len() - 1
        });
        place % self.threads.len()
    }

    fn take(&mut self, report: ThreadReport) -> Result<(), LoadError> {
        match report {
            ThreadReport::Opened { key } => self.with(key, Run::opened),
            ThreadReport::OpenFailed { key, why } => self.with(key, |run| run.open_failed(&why)),
            ThreadReport::Probed { key, mut round_trips } => self.begin(key, &mut round_trips),
            ThreadReport::Window(share) => {
                let (key, part) = (share.key, share.part);
                if let Some(index) = self.index(key) {
                    let spare = self.runs[index].window(share);
                    self.give_back(index, part, spare);
                    self.complete(index, part);
                }
            }
            ThreadReport::Left { key, part, cell } => {
                if let Some(index) = self.index(key) {
                    let last = self.runs[index].left(part, cell);
                    self.complete(index, part);
                    if last {
                        self.finish(index);
                    }
                }
            }
            ThreadReport::LoopLag { thread, lag } => {
                let sample = usage::thread_sample(thread, &lag.recording, lag.stalls);
                self.lags.threads.retain(|earlier| earlier.thread != sample.thread);
                self.lags.threads.push(sample);
                self.lags.loop_lag.merge(&lag.recording);
            }
            ThreadReport::Warning(text) => self.warn(text),
            ThreadReport::Died(why) => return Err(LoadError::Died { why }),
        }
        Ok(())
    }

    fn index(&self, key: u64) -> Option<usize> {
        self.runs.iter().position(|run| run.shared.key == key)
    }

    fn with(&mut self, key: u64, what: impl FnOnce(&mut Run<W>) -> Do) {
        if let Some(index) = self.index(key) {
            let what = what(&mut self.runs[index]);
            self.carry_out(index, what);
        }
    }

    fn carry_out(&mut self, index: usize, what: Do) {
        let (key, threads) = (self.runs[index].shared.key, self.runs[index].threads.clone());
        match what {
            Do::Nothing => {}
            Do::Probe => self.send(threads[0], ThreadCommand::Probe { key }),
            Do::Abandon => {
                threads.iter().for_each(|&t| self.send(t, ThreadCommand::Abandon { key }));
            }
        }
    }

    fn begin(&mut self, key: u64, round_trips: &mut [u64]) {
        let Some(index) = self.index(key) else { return };
        let Some(course) = self.runs[index].begin(round_trips) else { return };
        for &thread in &self.runs[index].threads {
            self.send(thread, ThreadCommand::Go { key, course: Arc::clone(&course) });
        }
    }

    fn complete(&mut self, index: usize, part: usize) {
        while let Some(Complete { window, spare }) = self.runs[index].next_window() {
            (self.report)(AgentReport::Window(Box::new(window)));
            self.give_back(index, part, Some(spare));
        }
    }

    fn give_back(&self, index: usize, part: usize, tally: Option<Box<super::tally::Tally>>) {
        if let Some(mut tally) = tally {
            // Cleared here: the load thread has better things to do.
            tally.clear();
            let key = self.runs[index].shared.key;
            self.send(self.runs[index].threads[part], ThreadCommand::Spare { key, tally });
        }
    }

    fn finish(&mut self, index: usize) {
        self.tell_phases();
        let result = self.runs.remove(index).result();
        (self.report)(AgentReport::Ended(Box::new(result)));
        self.start_queued();
    }

    fn next_change(&self) -> Option<u64> {
        self.runs.iter().filter_map(Run::next_change).min()
    }

    fn tell_phases(&mut self) {
        let now = clock::now();
        for run in &mut self.runs {
            if let Some(phase) = run.changed(now) {
                let cell = run.shared.order.cell.clone();
                (self.report)(AgentReport::Phase { cell, phase });
            }
        }
    }

    fn tell_runner(&mut self) {
        let RunnerSample { loop_lag, threads, .. } = std::mem::take(&mut self.lags);
        let sample = RunnerSample { loop_lag, threads, ..self.meter.read() };
        self.meter = Meter::start();
        (self.report)(AgentReport::Runner(Box::new(sample)));
    }

    fn warn(&mut self, text: String) {
        (self.report)(AgentReport::Log { warning: true, text });
    }

    fn is_done(&self) -> bool {
        self.shutting_down && self.runs.is_empty()
    }

    fn send(&self, thread: usize, command: ThreadCommand<W>) {
        // A thread that has ended has said so itself.
        let _ = self.threads[thread].commands.send(command);
    }

    /// Ends the threads with whatever they still do. One that is stuck is left behind: the agent
    /// must not outlive its engine for it.
    fn end(self) {
        let give_up = clock::now() + END_LIMIT_NS;
        let (commands, handles): (Vec<_>, Vec<_>) =
            self.threads.into_iter().map(|thread| (thread.commands, thread.handle)).unzip();
        drop(commands);
        for handle in handles {
            while !handle.is_finished() && clock::now() < give_up {
                std::thread::sleep(Duration::from_millis(1));
            }
            if handle.is_finished() {
                let _ = handle.join();
            }
        }
    }
}

/// How the workers `0..number` are shared out among the parts, as evenly as can be.
fn shares(number: u32, parts: usize) -> impl Iterator<Item = std::ops::Range<u32>> {
    let parts = u32::try_from(parts).unwrap_or(u32::MAX).max(1);
    let (each, more) = (number / parts, number % parts);
    let start = move |part: u32| part * each + part.min(more);
    (0..parts).map(move |part| start(part)..start(part + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_shared_out_evenly() {
        let all: Vec<_> = shares(11, 3).collect();
        assert_eq!(all, [0..4, 4..8, 8..11]);
        assert_eq!(shares(2, 2).collect::<Vec<_>>(), [0..1, 1..2]);
    }
}
