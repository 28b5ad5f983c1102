//! A cell on one load thread: what its workers share. Nothing here is seen by another thread, so
//! nothing here is locked but the schedule.

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::VecDeque,
    io,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tokio::sync::{Notify, Semaphore, mpsc::UnboundedSender};

use super::{
    alarm::Alarm,
    clock::{self, SECOND_NS},
    course::{Course, Plan},
    link::{Link, OpenError},
    message::{CellShared, CellTally, ThreadReport},
    recorder::Recorder,
    schedule::{Arrival, Claim, Expired, Wake},
    slot::{Given, Slot},
    tally::Ended,
    transaction::{Holds, Opener},
};
use crate::{
    model::Class,
    target::{ConnectionPool, Driver},
    workload::Workload,
};

/// At most one line for the log this often about the same thing.
const LOG_EVERY_NS: u64 = 5 * SECOND_NS;

/// A link in a worker's hands; counted as live as long as it is.
pub(super) struct Held {
    pub(super) link: Link,
    /// For its drop alone.
    _live: Live,
}

impl Held {
    /// The link alone.
    pub(super) fn release(self) -> Link {
        self.link
    }
}

impl Holds for Held {
    type Session = Driver;

    fn session(&mut self) -> &mut Driver {
        &mut self.link.driver
    }
}

struct Live(Rc<Cell<u32>>);

impl Drop for Live {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// A cell on one load thread.
pub(super) struct Local<W: Workload> {
    pub(super) shared: Arc<CellShared<W>>,
    /// This thread's place among the cell's threads.
    pub(super) part: usize,
    /// Ordinal of this thread's first worker among all of the cell.
    pub(super) first_worker: u64,
    pub(super) slots: Vec<Slot>,
    reports: UnboundedSender<ThreadReport>,
    openings: Rc<Semaphore>,
    /// When opening is given up.
    pub(super) open_until: u64,
    /// Workers whose connections are idle, the longest idle first.
    parked: RefCell<VecDeque<usize>>,
    /// Kept for its memory.
    handed: RefCell<Vec<Arrival>>,
    course: OnceCell<Arc<Course>>,
    alarm: Alarm,
    recorder: RefCell<Option<Recorder>>,
    live: Rc<Cell<u32>>,
    /// Pools whose connections are live, too.
    pools: RefCell<Vec<ConnectionPool>>,
    over: Cell<bool>,
    over_told: Notify,
    random: RefCell<Pcg64Mcg>,
    logged: Cell<u64>,
}

impl<W: Workload> Opener for Local<W> {
    type Held = Held;

    /// A few at a time on each thread, at the configuration's pace.
    async fn open(&self) -> Result<Held, OpenError> {
        self.shared.pacer.acquire().await;
        // It is never closed: acquiring cannot fail.
        let _permit = self.openings.acquire().await.ok();
        let link = Link::open(&self.shared.order, &self.shared.workload).await?;
        Ok(self.hold(link))
    }
}

impl<W: Workload> Local<W> {
    /// # Errors
    /// When the system has no more descriptors.
    pub(super) fn new(
        shared: Arc<CellShared<W>>,
        part: usize,
        first_worker: u32,
        slots: usize,
        reports: UnboundedSender<ThreadReport>,
        openings: Rc<Semaphore>,
        open_limit: Duration,
    ) -> io::Result<Self> {
        let seed = shared.order.seed ^ (part as u64 + 1).rotate_left(32);
        let open_limit = open_limit + shared.pacer.time_for(shared.order.connections());
        let open_limit = u64::try_from(open_limit.as_nanos()).unwrap_or(u64::MAX);
        Ok(Self {
            part,
            first_worker: u64::from(first_worker),
            slots: (0..slots).map(|_| Slot::default()).collect(),
            shared,
            reports,
            openings,
            open_until: clock::now().saturating_add(open_limit),
            parked: RefCell::default(),
            handed: RefCell::default(),
            course: OnceCell::new(),
            alarm: Alarm::new()?,
            recorder: RefCell::new(None),
            live: Rc::default(),
            pools: RefCell::default(),
            over: Cell::new(false),
            over_told: Notify::new(),
            random: RefCell::new(Pcg64Mcg::seed_from_u64(seed)),
            logged: Cell::new(0),
        })
    }

    /// The cell's course, once it has begun.
    pub(super) fn course(&self) -> Option<&Arc<Course>> {
        self.course.get()
    }

    /// The cell begins: every worker is told.
    pub(super) fn go(&self, course: Arc<Course>) {
        *self.recorder.borrow_mut() = Some(Recorder::new(
            self.shared.key,
            self.part,
            self.slots.len(),
            Arc::clone(&course),
            self.reports.clone(),
        ));
        if self.course.set(course).is_ok() {
            self.slots.iter().for_each(|slot| slot.give(Given::Go));
        }
    }

    /// Tells the collector something.
    pub(super) fn report(&self, report: ThreadReport) {
        // Nobody listens only when the process is about to end.
        let _ = self.reports.send(report);
    }

    /// A line for the engine's log, seldom.
    pub(super) fn warn(&self, text: impl FnOnce() -> String) {
        let now = clock::now();
        if self.logged.get() == 0 || now.saturating_sub(self.logged.get()) > LOG_EVERY_NS {
            self.logged.set(now);
            self.report(ThreadReport::Warning(format!(
                "{} {}: {}",
                self.shared.order.configuration,
                self.shared.order.cell,
                text()
            )));
        }
    }

    /// Counts a link as live from now on.
    pub(super) fn hold(&self, link: Link) -> Held {
        self.live.set(self.live.get() + 1);
        Held { link, _live: Live(Rc::clone(&self.live)) }
    }

    /// Counts a pool's connections as live, as long as the cell is here.
    pub(super) fn watch(&self, pool: ConnectionPool) {
        self.pools.borrow_mut().push(pool);
    }

    fn live(&self) -> u32 {
        let pooled: usize = self.pools.borrow().iter().map(ConnectionPool::size).sum();
        self.live.get().saturating_add(u32::try_from(pooled).unwrap_or(u32::MAX))
    }

    /// Sleeps until a moment, precisely, or until nothing will come any more.
    pub(super) async fn sleep_until(&self, at: u64) {
        while clock::now() < at && !self.over.get() {
            self.alarm.set(at);
            tokio::select! {
                () = self.alarm.gone_off() => {}
                () = self.over() => {}
            }
        }
    }

    /// Uniform from 0 to below `bound`, in nanoseconds.
    pub(super) fn jitter(&self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.random.borrow_mut().random_range(0..bound) }
    }

    /// Whether nothing will come any more.
    pub(super) const fn is_over(&self) -> bool {
        self.over.get()
    }

    /// Waits until nothing will come any more.
    pub(super) async fn over(&self) {
        while !self.over.get() {
            self.over_told.notified().await;
        }
    }

    /// Ends the waiting of every worker that waits.
    pub(super) fn finish(&self) {
        if !self.over.replace(true) {
            self.over_told.notify_waiters();
        }
        let begun = self.course.get().is_some();
        for (index, slot) in self.slots.iter().enumerate() {
            if !begun || self.parked.borrow().contains(&index) {
                slot.give(Given::Over);
            }
        }
        self.parked.borrow_mut().clear();
    }

    /// An arrival of the open loop for a worker that is free, or its place among the idle ones.
    pub(super) fn claim(&self, course: &Course, worker: usize) -> Claim {
        let mut guard = course.plan();
        let Plan { timeline, schedule: Some(schedule) } = &mut *guard else { return Claim::Over };
        let now = clock::now();
        schedule.advance(timeline, now);
        let expired = schedule.expire(timeline, now);
        let (claim, wake) = schedule.claim(timeline, self.part, now);
        drop(guard);
        self.expire(expired, now);
        self.apply(course, wake);
        if claim == Claim::Idle {
            self.parked.borrow_mut().push_back(worker);
        }
        claim
    }

    /// A waiting worker's connection has broken: it is idle no more.
    pub(super) fn unpark(&self, course: &Course, worker: usize) {
        let mut parked = self.parked.borrow_mut();
        let Some(place) = parked.iter().position(|&w| w == worker) else { return };
        parked.remove(place);
        drop(parked);
        let mut guard = course.plan();
        let Plan { schedule: Some(schedule), .. } = &mut *guard else { return };
        let wake = schedule.leave_idle(self.part, clock::now());
        drop(guard);
        self.apply(course, wake);
    }

    /// Hands due arrivals to idle connections whenever the alarm goes off or another thread says
    /// that there are some. Never ends by itself.
    pub(super) async fn dispatch(&self, course: &Course) {
        loop {
            self.hand_out(course);
            tokio::select! {
                () = self.alarm.gone_off() => {}
                () = course.poked(self.part) => {}
            }
        }
    }

    fn hand_out(&self, course: &Course) {
        let mut handed = self.handed.borrow_mut();
        let mut guard = course.plan();
        let Plan { timeline, schedule: Some(schedule) } = &mut *guard else { return };
        let now = clock::now();
        schedule.advance(timeline, now);
        let mut left = self.parked.borrow().len();
        while left > 0
            && let Some(arrival) = schedule.take_idle(timeline, self.part)
        {
            handed.push(arrival);
            left -= 1;
        }
        let wake = schedule.looked(self.part, now);
        drop(guard);
        self.apply(course, wake);
        for arrival in handed.drain(..) {
            if let Some(worker) = self.parked.borrow_mut().pop_front() {
                self.slots[worker].give(Given::Arrival(arrival));
            }
        }
    }

    fn apply(&self, course: &Course, wake: Wake) {
        if let Some(at) = wake.alarm {
            self.alarm.set(at);
        }
        if let Some(part) = wake.poke {
            course.poke(part);
        }
    }

    /// What is due every few milliseconds: time limits, windows, the end. `lags` are how late the
    /// thread's loop was since the last time.
    pub(super) fn tick(&self, now: u64, lags: &[(u64, u64)]) {
        self.slots.iter().for_each(|slot| slot.check(now));
        let Some(course) = self.course.get() else { return };
        if let Some(recorder) = &mut *self.recorder.borrow_mut() {
            recorder.loop_lags(lags);
            recorder.rotate(now, self.live());
        }
        let mut guard = course.plan();
        let Plan { timeline, schedule } = &mut *guard;
        let mut over = now >= timeline.end();
        let mut expired = Expired::default();
        if let Some(schedule) = schedule {
            schedule.advance(timeline, now);
            expired = schedule.expire(timeline, now);
            over = over && schedule.is_over();
        }
        drop(guard);
        self.expire(expired, now);
        if over {
            self.finish();
        }
    }

    pub(super) fn expire(&self, expired: Expired, now: u64) {
        if expired.all > 0 {
            self.record(|recorder| recorder.expire(expired, now));
        }
    }

    /// Counts an arrival of the closed loop.
    pub(super) fn offer(&self, measured: bool, now: u64) {
        self.record(|recorder| recorder.offer(measured, now));
    }

    /// Counts an arrival that is refused: too many wait already.
    pub(super) fn shed(&self, measured: bool, now: u64) {
        self.record(|recorder| recorder.shed(measured, now));
    }

    /// Counts an error; `measured`: of a transaction of the measured span.
    pub(super) fn count_error(&self, name: &str, measured: bool) {
        self.record(|recorder| recorder.count_error(name, measured, clock::now()));
    }

    /// Records a transaction that has ended at `done`.
    pub(super) fn end(&self, ended: &Ended, measured: bool, done: u64) {
        self.record(|recorder| recorder.end(ended, measured, done));
    }

    /// Counts a write that may or may not have been carried out.
    pub(super) fn unresolved(&self) {
        self.record(|recorder| recorder.acknowledged.unresolved += 1);
    }

    /// Counts a write that the client knows to be committed.
    pub(super) fn acknowledge(&self, class: Class) {
        self.record(|recorder| match class {
            Class::OrderCreate => recorder.acknowledged.creates += 1,
            Class::OrderCancel => recorder.acknowledged.cancels += 1,
            Class::ProductLookup | Class::OrderHistory => {}
        });
    }

    fn record(&self, what: impl FnOnce(&mut Recorder)) {
        if let Some(recorder) = &mut *self.recorder.borrow_mut() {
            recorder.live = self.live();
            what(recorder);
        }
    }

    /// A tally has come back from the collector.
    pub(super) fn give_spare(&self, tally: super::tally::Tally) {
        self.record(|recorder| recorder.give_spare(tally));
    }

    /// The end of the cell on this thread: the last window goes out, what was measured is given.
    pub(super) fn close(&self) -> Option<Box<CellTally>> {
        let recorder = self.recorder.borrow_mut().take()?;
        Some(recorder.close(clock::now(), self.live()))
    }
}
