//! A load thread: an event loop of its own with its share of every cell's workers.

use std::{
    any::Any,
    collections::HashMap,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};

use tokio::{
    sync::{
        Semaphore,
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    },
    task::{AbortHandle, JoinSet, LocalSet, spawn_local},
};

use super::{
    alarm::Alarm,
    clock::{self, MS_NS, SECOND_NS},
    course::Course,
    link::{Link, Purpose},
    local::Local,
    message::{CellShared, ThreadCommand, ThreadReport},
    pooled,
    slot::Given,
    worker,
};
use crate::{
    model::{ConfigurationId, PoolShape, Recording, ThreadSample},
    workload::Workload,
};

/// How often a thread looks how late its loop is, and after time limits.
pub(super) const TICK_NS: u64 = 10 * MS_NS;
/// Connections that a thread opens at a time.
const OPENINGS: usize = 16;
/// How long the connections of a cell may take to open.
const OPEN_LIMIT: Duration = Duration::from_secs(30);
/// Missed ticks that are recorded one by one after a stall; a longer one is cut off there.
const MOST_MISSED: u64 = 12_000;

/// Starts a load thread. It ends when its command channel is closed.
///
/// # Errors
/// When the system has no more threads.
pub(super) fn start<W: Workload>(
    index: usize,
    reports: UnboundedSender<ThreadReport>,
) -> io::Result<(UnboundedSender<ThreadCommand<W>>, JoinHandle<()>)> {
    let (sender, receiver) = unbounded_channel();
    let handle = std::thread::Builder::new().name(format!("load-{index}")).spawn(move || {
        let died = reports.clone();
        let why = match catch_unwind(AssertUnwindSafe(|| main::<W>(index, receiver, reports))) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(panic) => panic_text(panic.as_ref()),
        };
        let _ = died.send(ThreadReport::Died(format!("load thread {index}: {why}")));
    })?;
    Ok((sender, handle))
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .map_or_else(|| "panicked".to_owned(), |text| format!("panicked: {text}"))
}

fn main<W: Workload>(
    index: usize,
    commands: UnboundedReceiver<ThreadCommand<W>>,
    reports: UnboundedSender<ThreadReport>,
) -> io::Result<()> {
    precise_timers();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let set = LocalSet::new();
    let result = set.block_on(&runtime, async {
        LoadThread::new(index, reports)?.run(commands).await;
        Ok(())
    });
    // What is left is dropped on this thread, inside of its runtime.
    let _guard = runtime.enter();
    drop(set);
    result
}

/// Asks the system not to bundle this thread's timers with others.
fn precise_timers() {
    #[cfg(target_os = "linux")]
    // Only a wish: without it the coarse waits are some 50 µs longer.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

struct LoadThread<W: Workload> {
    index: usize,
    reports: UnboundedSender<ThreadReport>,
    openings: Rc<Semaphore>,
    cells: Vec<CellHere<W>>,
    /// Connections of cells that are over, for the next cell of the same configuration.
    kept: HashMap<ConfigurationId, Kept>,
    alarm: Alarm,
    pulse: Pulse,
}

struct Kept {
    purpose: Purpose,
    links: Vec<Link>,
}

struct CellHere<W: Workload> {
    local: Rc<Local<W>>,
    workers: JoinSet<Option<Link>>,
    returned: Vec<Link>,
    dispatcher: Option<AbortHandle>,
    /// What a worker panicked with.
    panicked: Option<String>,
}

impl<W: Workload> LoadThread<W> {
    fn new(index: usize, reports: UnboundedSender<ThreadReport>) -> io::Result<Self> {
        Ok(Self {
            index,
            reports,
            openings: Rc::new(Semaphore::new(OPENINGS)),
            cells: Vec::new(),
            kept: HashMap::new(),
            alarm: Alarm::new()?,
            pulse: Pulse::default(),
        })
    }

    async fn run(mut self, mut commands: UnboundedReceiver<ThreadCommand<W>>) {
        loop {
            tokio::select! {
                biased;
                () = self.alarm.gone_off(), if !self.cells.is_empty() => self.tick().await,
                command = commands.recv() => match command {
                    Some(command) => self.obey(command),
                    None => return,
                },
            }
        }
    }

    fn obey(&mut self, command: ThreadCommand<W>) {
        match command {
            ThreadCommand::Open { shared, part, workers } => {
                let key = shared.key;
                if let Err(error) = self.open(shared, part, workers) {
                    let why = format!("the runner has no more file descriptors: {error}");
                    self.report(ThreadReport::OpenFailed { key, why });
                    self.report(ThreadReport::Left { key, part, cell: None });
                }
            }
            ThreadCommand::Probe { key } => self.with(key, |cell| {
                if let Some(slot) = cell.local.slots.first() {
                    slot.give(Given::Probe);
                }
            }),
            ThreadCommand::Go { key, course } => self.with(key, |cell| cell.go(course)),
            ThreadCommand::Abandon { key } => self.with(key, |cell| cell.local.finish()),
            ThreadCommand::Spare { key, tally } => {
                self.with(key, |cell| cell.local.give_spare(*tally));
            }
            ThreadCommand::Release { configuration } => {
                if let Some(kept) = self.kept.remove(&configuration) {
                    part_with(kept.links);
                }
            }
            // On this thread, that is, with all its connections.
            #[cfg(debug_assertions)]
            ThreadCommand::Stall(length) => std::thread::sleep(length),
        }
    }

    fn with(&mut self, key: u64, what: impl FnOnce(&mut CellHere<W>)) {
        if let Some(cell) = self.cells.iter_mut().find(|cell| cell.local.shared.key == key) {
            what(cell);
        }
    }

    fn report(&self, report: ThreadReport) {
        // Nobody listens only when the process is about to end.
        let _ = self.reports.send(report);
    }

    fn open(
        &mut self,
        shared: Arc<CellShared<W>>,
        part: usize,
        workers: std::ops::Range<u32>,
    ) -> io::Result<()> {
        let pool = shared.order.shape.pool;
        let mut kept = self.take_kept(&shared);
        let wanted = if pool == PoolShape::Claim { workers.len() } else { 0 };
        let surplus = kept.split_off(kept.len().min(wanted));
        part_with(surplus);
        let (reports, openings) = (self.reports.clone(), Rc::clone(&self.openings));
        let slots = match pool {
            PoolShape::Claim => workers.len(),
            // The workers are partitions.
            PoolShape::Pool { size, .. } => {
                workers.len().saturating_mul(usize::try_from(size).unwrap_or(usize::MAX))
            }
        };
        let first = workers.start;
        let local = Local::new(shared, part, first, slots, reports, openings, OPEN_LIMIT)?;
        let local = Rc::new(local);
        let mut tasks = JoinSet::new();
        if pool == PoolShape::Claim {
            for index in 0..local.slots.len() {
                tasks.spawn_local(worker::work(Rc::clone(&local), index, kept.pop()));
            }
        } else {
            tasks.spawn_local(pooled::work(Rc::clone(&local), workers));
        }
        if self.cells.is_empty() {
            self.pulse.start(clock::now());
            self.alarm.set(self.pulse.next);
        }
        self.cells.push(CellHere {
            local,
            workers: tasks,
            returned: Vec::new(),
            dispatcher: None,
            panicked: None,
        });
        Ok(())
    }

    /// The connections kept for a cell's configuration, if they lead to the same target.
    fn take_kept(&mut self, shared: &CellShared<W>) -> Vec<Link> {
        let Some(kept) = self.kept.remove(&shared.order.configuration) else { return Vec::new() };
        if kept.purpose == Purpose::of(&shared.order) {
            return kept.links;
        }
        part_with(kept.links);
        Vec::new()
    }

    async fn tick(&mut self) {
        let now = clock::now();
        self.pulse.beat(now);
        self.alarm.set(self.pulse.next);
        for cell in &self.cells {
            cell.local.tick(now, &self.pulse.lags);
        }
        if let Some(lag) = self.pulse.second(now) {
            self.report(ThreadReport::LoopLag { thread: self.index, lag });
        }
        let mut index = 0;
        while index < self.cells.len() {
            if self.cells[index].is_done(now).await {
                let cell = self.cells.swap_remove(index);
                self.leave(cell);
            } else {
                if let Some(why) = self.cells[index].panicked.take() {
                    self.report(ThreadReport::Died(why));
                }
                index += 1;
            }
        }
    }

    fn leave(&mut self, cell: CellHere<W>) {
        if let Some(dispatcher) = &cell.dispatcher {
            dispatcher.abort();
        }
        let order = &cell.local.shared.order;
        let kept = Kept { purpose: Purpose::of(order), links: cell.returned };
        if let Some(before) = self.kept.insert(order.configuration.clone(), kept) {
            part_with(before.links);
        }
        self.report(ThreadReport::Left {
            key: cell.local.shared.key,
            part: cell.local.part,
            cell: cell.local.close(),
        });
    }
}

impl<W: Workload> CellHere<W> {
    fn go(&mut self, course: Arc<Course>) {
        let order = &self.local.shared.order;
        let has_schedule = order.load.rate().is_some() && order.shape.pool == PoolShape::Claim;
        self.local.go(Arc::clone(&course));
        if has_schedule {
            let local = Rc::clone(&self.local);
            let task = spawn_local(async move { local.dispatch(&course).await });
            self.dispatcher = Some(task.abort_handle());
        }
    }

    /// Whether every worker has ended; at the drain's limit they are made to.
    async fn is_done(&mut self, now: u64) -> bool {
        if self.local.course().is_some_and(|course| now >= course.drain_end()) {
            self.local.finish();
            // Those that wait give their connections back, then the rest is cut.
            tokio::task::yield_now().await;
            self.collect();
            self.workers.shutdown().await;
            return true;
        }
        self.collect();
        self.local.is_over() && self.workers.is_empty()
    }

    fn collect(&mut self) {
        while let Some(ended) = self.workers.try_join_next() {
            match ended {
                Ok(Some(link)) => self.returned.push(link),
                Ok(None) => {}
                Err(error) if error.is_panic() => {
                    let text = panic_text(error.into_panic().as_ref());
                    let cell = &self.local.shared.order.cell;
                    self.panicked = Some(format!("a connection of {cell} {text}"));
                }
                Err(_) => {}
            }
        }
    }
}

/// Closes connections in good manners, beside what else goes on.
fn part_with(links: Vec<Link>) {
    for link in links {
        spawn_local(link.close());
    }
}

/// The thread's own beat: how late its loop comes round.
#[derive(Default)]
struct Pulse {
    /// When the loop should run next.
    next: u64,
    /// When it should have run since the last beat, and by how much it missed it.
    lags: Vec<(u64, u64)>,
    lag: PulseLag,
    reported: u64,
}

/// How late a thread's loop was over a time.
#[derive(Clone, Debug, Default)]
pub(super) struct PulseLag {
    pub(super) recording: Recording,
    pub(super) stalls: u64,
}

impl Pulse {
    fn start(&mut self, now: u64) {
        self.next = now + TICK_NS;
        self.reported = now;
    }

    /// Takes every beat that was due: a stall delays all that fell into it, not one.
    fn beat(&mut self, now: u64) {
        self.lags.clear();
        let first = now.saturating_sub(MOST_MISSED * TICK_NS);
        self.next = self.next.max(first);
        while self.next <= now {
            self.lags.push((self.next, now - self.next));
            self.lag.recording.record(now - self.next);
            self.next += TICK_NS;
        }
        let late = self.lags.first().is_some_and(|(_, lag)| *lag >= ThreadSample::STALL_NS);
        self.lag.stalls += u64::from(late);
    }

    /// The recording of about a second, once it is over.
    fn second(&mut self, now: u64) -> Option<PulseLag> {
        (now - self.reported >= SECOND_NS).then(|| {
            self.reported = now;
            std::mem::take(&mut self.lag)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_delays_every_beat_that_fell_into_it() {
        let mut pulse = Pulse::default();
        pulse.start(0);
        pulse.beat(10 * MS_NS);
        assert_eq!(pulse.lags, [(10 * MS_NS, 0)]);
        pulse.beat(55 * MS_NS);
        let lags: Vec<u64> = pulse.lags.iter().map(|(_, lag)| lag / MS_NS).collect();
        assert_eq!(lags, [35, 25, 15, 5]);
        assert_eq!(pulse.next, 60 * MS_NS);
        assert!(pulse.second(SECOND_NS - 1).is_none());
        let second = pulse.second(SECOND_NS).unwrap();
        assert_eq!((second.recording.count(), second.stalls), (5, 1));
    }
}
