//! A worker: one connection of a cell, from its opening to its return.

use std::{future::poll_fn, rc::Rc, task::Poll, time::Duration};

use super::{
    clock,
    course::Course,
    link::{Link, OpenError},
    local::{Held, Local},
    message::ThreadReport,
    opening::Patience,
    renewal::Renewal,
    schedule::{Arrival, Claim},
    slot::{Given, Slot},
    transaction::{self, Opener, Taken},
};
use crate::workload::Workload;

/// How many empty round trips tell the median.
const PROBES: usize = 9;
/// How long one may take.
pub(super) const PROBE_LIMIT: Duration = Duration::from_secs(5);

/// Runs a worker; `kept` is a connection of an earlier cell. Gives the connection back.
pub(super) async fn work<W: Workload>(
    local: Rc<Local<W>>,
    index: usize,
    kept: Option<Link>,
) -> Option<Link> {
    local.slots[index].enter().await;
    let key = local.shared.key;
    let held = tokio::select! {
        opened = open(&local, kept) => match opened {
            Ok(held) => held,
            Err(error) => {
                local.report(ThreadReport::OpenFailed { key, why: error.to_string() });
                return None;
            }
        },
        () = local.over() => return None,
    };
    local.report(ThreadReport::Opened { key });
    let mut held = Some(held);
    wait_for_go(&local, index, &mut held).await;
    if let Some(course) = local.course() {
        serve(&local, index, &mut held, course).await;
    }
    held.map(Held::release)
}

/// Opens the connection, or takes the kept one if it still answers; tries again until the
/// opening's limit.
async fn open<W: Workload>(local: &Local<W>, kept: Option<Link>) -> Result<Held, OpenError> {
    if let Some(mut link) = kept
        && link.ping(PROBE_LIMIT).await.is_some()
    {
        return Ok(local.hold(link));
    }
    open_patiently(local, local).await
}

/// Opens a connection, trying again until the opening's limit.
pub(super) async fn open_patiently<W: Workload, O: Opener>(
    local: &Local<W>,
    opener: &O,
) -> Result<O::Held, OpenError> {
    let mut patience = Patience::new();
    loop {
        let error = match opener.open().await {
            Ok(held) => return Ok(held),
            Err(error) => error,
        };
        if error.is_final() || clock::now() >= local.open_until {
            return Err(error);
        }
        local.warn(|| format!("opening again: {error}"));
        patience.wait(|bound| local.jitter(bound), local.open_until).await;
    }
}

/// Waits for the cell's beginning; the first worker measures the round trip when asked.
async fn wait_for_go<W: Workload>(local: &Local<W>, index: usize, held: &mut Option<Held>) {
    let slot = &local.slots[index];
    loop {
        match given(held, slot, |_| {}).await {
            Some(Given::Probe) => {
                let round_trips = match held {
                    Some(Held { link, .. }) => probe(async || link.ping(PROBE_LIMIT).await).await,
                    None => Vec::new(),
                };
                local.report(ThreadReport::Probed { key: local.shared.key, round_trips });
            }
            Some(Given::Go | Given::Over | Given::Arrival(_)) => return,
            // The connection has broken: it is opened anew when the cell begins.
            None => *held = None,
        }
    }
}

/// What the worker is given, or `None` once its connection has ended; `woken` is called each time
/// the worker is woken for something else.
async fn given(
    held: &mut Option<Held>,
    slot: &Slot,
    mut woken: impl FnMut(&mut Option<Held>),
) -> Option<Given> {
    poll_fn(|context| {
        if let Some(given) = slot.taken() {
            return Poll::Ready(Some(given));
        }
        woken(held);
        match held {
            Some(Held { link, .. }) => link.driver.poll_end(context).map(|()| None),
            None => Poll::Pending,
        }
    })
    .await
}

/// The times of some empty round trips in nanoseconds, up to the first that `ping` cannot make.
pub(super) async fn probe(mut ping: impl AsyncFnMut() -> Option<u64>) -> Vec<u64> {
    let mut round_trips = Vec::with_capacity(PROBES);
    while round_trips.len() < PROBES
        && let Some(ns) = ping().await
    {
        round_trips.push(ns);
    }
    round_trips
}

/// Takes arrivals and runs their transactions until nothing will come any more.
async fn serve<W: Workload>(
    local: &Rc<Local<W>>,
    index: usize,
    held: &mut Option<Held>,
    course: &Course,
) {
    let mut source = Source::new(local, index, course);
    let mut renewal = Renewal::new(local, index);
    renewal.watch(held.as_ref());
    let mut free = clock::now();
    loop {
        if held.is_none() {
            let (from, to) = course.measured();
            let measured = || (from..to).contains(&clock::now());
            tokio::select! {
                opened = transaction::reopen(local, &**local, u64::MAX, measured) => *held = opened,
                () = local.over() => return,
            }
            renewal.watch(held.as_ref());
            free = clock::now();
        }
        renewal.turn(held);
        match source.next(held, &mut renewal, free).await {
            Next::Run(arrival, free_at) => {
                let taken = Taken::by_claim(arrival, free_at);
                free = transaction::run(local, &**local, index, held, taken).await;
            }
            Next::Lost => *held = None,
            Next::Over => return,
        }
    }
}

enum Next {
    /// Run the transaction of this arrival; the connection is free since then.
    Run(Arrival, u64),
    /// The connection has broken while it waited.
    Lost,
    Over,
}

/// Where a worker's arrivals come from.
struct Source<'a, W: Workload> {
    local: &'a Local<W>,
    index: usize,
    course: &'a Course,
    closed: Option<ClosedLoop>,
}

/// A closed loop's arrivals: one as soon as the last has ended.
struct ClosedLoop {
    next_ordinal: u64,
    step: u64,
    measure_from: u64,
}

impl<'a, W: Workload> Source<'a, W> {
    fn new(local: &'a Local<W>, index: usize, course: &'a Course) -> Self {
        let load = local.shared.order.load;
        let closed = load.rate().is_none().then(|| ClosedLoop {
            // Workers take turns in the ordinals, so that they need not agree on the next one.
            next_ordinal: local.first_worker + index as u64,
            step: u64::from(load.connections().max(1)),
            measure_from: course.measured().0,
        });
        Self { local, index, course, closed }
    }

    async fn next(&mut self, held: &mut Option<Held>, renewal: &mut Renewal<W>, free: u64) -> Next {
        if let Some(closed) = &mut self.closed {
            let now = clock::now();
            if now >= self.course.end() {
                return Next::Over;
            }
            let arrival = closed.next(free);
            self.local.offer(arrival.measured, now);
            return Next::Run(arrival, free);
        }
        match self.local.claim(self.course, self.index) {
            Claim::Take(arrival) => Next::Run(arrival, free),
            Claim::Over => Next::Over,
            Claim::Idle => self.wait(held, renewal, free).await,
        }
    }

    async fn wait(&self, held: &mut Option<Held>, renewal: &mut Renewal<W>, free: u64) -> Next {
        let slot = &self.local.slots[self.index];
        match given(held, slot, |held| renewal.turn(held)).await {
            Some(Given::Arrival(arrival)) => Next::Run(arrival, free),
            Some(Given::Over | Given::Go | Given::Probe) => Next::Over,
            None => {
                self.local.unpark(self.course, self.index);
                Next::Lost
            }
        }
    }
}

impl ClosedLoop {
    fn next(&mut self, free: u64) -> Arrival {
        let ordinal = self.next_ordinal;
        self.next_ordinal += self.step;
        Arrival { intended: free, ordinal, measured: free >= self.measure_from }
    }
}
