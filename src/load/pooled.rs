//! A cell on one load thread where an application's pools hold the connections: each arrival
//! belongs to one partition and waits for a connection of that one, however idle the others are.
//!
//! Every partition has a seeded stream of arrivals of its own, as every process of the application
//! has its own clients; together they are the cell's rate.

use std::{
    cell::{Cell, RefCell},
    cmp::Reverse,
    collections::BinaryHeap,
    ops::Range,
    rc::Rc,
    time::Duration,
};

use futures_util::future::{join_all, try_join_all};
use tokio::task::JoinSet;

use super::{
    arrivals::Gaps,
    clock::{self, MS_NS},
    course::Course,
    link::{Link, OpenError, timed},
    local::Local,
    message::ThreadReport,
    schedule::{Arrival, Expired},
    slot::Given,
    transaction::{self, Holds, Opener, Taken},
    worker::{self, PROBE_LIMIT},
};
use crate::{
    model::{CellOrder, Load, PoolShape},
    target::{ConnectionPool, GetError, Pooled},
    workload::Workload,
};

/// One pool and the transactions that run on it.
struct Partition {
    /// Place among all partitions of the cell.
    number: u32,
    pool: ConnectionPool,
    /// Slots that no transaction of this partition has: as many as it has free connections.
    places: RefCell<Vec<usize>>,
    /// Arrivals that wait for a connection.
    waiting: Cell<u64>,
}

/// A connection on loan.
pub(super) struct Borrowed(Pooled);

impl Holds for Borrowed {
    type Session = Pooled;

    fn session(&mut self) -> &mut Pooled {
        &mut self.0
    }
}

impl Opener for Partition {
    type Held = Borrowed;

    async fn open(&self) -> Result<Borrowed, OpenError> {
        match self.pool.get().await {
            Ok(session) => Ok(Borrowed(session)),
            Err(GetError::Timeout(limit)) => Err(OpenError::NoneFree { limit }),
            Err(GetError::Connect(error)) => Err(OpenError::Connect(error)),
        }
    }
}

/// Runs this thread's partitions to the cell's end. It has no link to give back: what a pool held
/// is closed with it.
pub(super) async fn work<W: Workload>(local: Rc<Local<W>>, partitions: Range<u32>) -> Option<Link> {
    let PoolShape::Pool { size, wait_timeout_ms, .. } = local.shared.order.shape.pool else {
        return None;
    };
    let wait_timeout = Duration::from_millis(wait_timeout_ms);
    let opened = tokio::select! {
        opened = open_all(&local, partitions, size, wait_timeout) => opened,
        () = local.over() => return None,
    };
    let partitions = match opened {
        Ok(partitions) => partitions,
        Err(error) => {
            let key = local.shared.key;
            local.report(ThreadReport::OpenFailed { key, why: error.to_string() });
            return None;
        }
    };
    if let Some(first) = partitions.first() {
        wait_for_go(&local, first).await;
    }
    if let Some(course) = local.course() {
        match local.shared.order.load {
            Load::Open { .. } => open_loop(&local, &partitions, course).await,
            Load::Closed { connections } => {
                closed_loop(&local, &partitions, course, connections).await;
            }
        }
    }
    None
}

async fn open_all<W: Workload>(
    local: &Local<W>,
    numbers: Range<u32>,
    size: u32,
    wait_timeout: Duration,
) -> Result<Vec<Rc<Partition>>, OpenError> {
    let order = &local.shared.order;
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let max_age = order.life.max_age_s.map(|s| Duration::from_nanos(clock::from_seconds(s)));
    let mut partitions = Vec::new();
    for (index, number) in numbers.enumerate() {
        let pool = ConnectionPool::new(&order.target, size, wait_timeout, max_age, order.shape)
            .await
            .map_err(OpenError::Connect)?;
        local.watch(pool.clone());
        let places = (index * size..(index + 1) * size).rev().collect();
        partitions.push(Rc::new(Partition {
            number,
            pool,
            places: RefCell::new(places),
            waiting: Cell::new(0),
        }));
    }
    for partition in &partitions {
        // Held until all are open: a pool opens a connection only when none is free.
        let opening = (0..size).map(|_| async {
            local.shared.pacer.acquire().await;
            let mut held = worker::open_patiently(local, &**partition).await?;
            let prepared = held.0.prepare(local.shared.workload.statements()).await;
            prepared.map_err(OpenError::Prepare)?;
            local.report(ThreadReport::Opened { key: local.shared.key });
            Ok::<_, OpenError>(held)
        });
        try_join_all(opening).await?;
    }
    Ok(partitions)
}

/// Waits for the cell's beginning; measures the round trip when asked.
async fn wait_for_go<W: Workload>(local: &Local<W>, partition: &Partition) {
    let Some(slot) = local.slots.first() else { return };
    loop {
        match slot.given().await {
            Given::Probe => {
                let round_trips = match partition.open().await {
                    Ok(Borrowed(mut session)) => {
                        worker::probe(async || timed(PROBE_LIMIT, session.ping()).await).await
                    }
                    Err(_) => Vec::new(),
                };
                local.report(ThreadReport::Probed { key: local.shared.key, round_trips });
            }
            Given::Go | Given::Over | Given::Arrival(_) => return,
        }
    }
}

/// The arrivals of the partitions of this thread, merged in their order.
struct Streams {
    gaps: Vec<Gaps>,
    /// When the next of each comes, and how many have come.
    next: BinaryHeap<Reverse<(u64, usize, u64)>>,
    origin: u64,
}

impl Streams {
    fn new(order: &CellOrder, partitions: &[Rc<Partition>], of: u32, origin: u64) -> Self {
        let Load::Open { rate, arrivals, .. } = order.load else {
            return Self { gaps: Vec::new(), next: BinaryHeap::new(), origin };
        };
        let share = rate / f64::from(of.max(1));
        let mut streams = Self { gaps: Vec::new(), next: BinaryHeap::new(), origin };
        for (index, partition) in partitions.iter().enumerate() {
            let seed = order.seed ^ u64::from(partition.number + 1).rotate_left(40);
            // Equal gaps are shifted against each other, or all partitions would start at once.
            let shift = f64::from(partition.number) / rate.max(f64::MIN_POSITIVE);
            streams.gaps.push(Gaps::shifted(arrivals, share, seed, shift));
            streams.schedule(index, 0);
        }
        streams
    }

    fn schedule(&mut self, index: usize, count: u64) {
        if let Some(gap) = self.gaps[index].next() {
            self.next.push(Reverse((self.origin.saturating_add(gap), index, count)));
        }
    }

    fn peek(&self) -> Option<u64> {
        self.next.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next arrival: when, on which partition, and how many came there before.
    fn pop(&mut self) -> Option<(u64, usize, u64)> {
        let Reverse(next) = self.next.pop()?;
        self.schedule(next.1, next.2 + 1);
        Some(next)
    }
}

async fn open_loop<W: Workload>(
    local: &Rc<Local<W>>,
    partitions: &[Rc<Partition>],
    course: &Course,
) {
    let order = &local.shared.order;
    let of = order.shape.partitions();
    let mut streams = Streams::new(order, partitions, of, course.first().start);
    // Each partition has its share of the bound.
    let backlog = order.backlog.map_or(u64::MAX, |all| all.div_ceil(u64::from(of.max(1))));
    let mut requests = JoinSet::new();
    while let Some(at) = streams.peek() {
        local.sleep_until(at).await;
        let (measure_from, end) = course.measured();
        if at >= end {
            break;
        }
        let Some((intended, index, count)) = streams.pop() else { break };
        let partition = &partitions[index];
        let ordinal = count * u64::from(of) + u64::from(partition.number);
        let arrival = Arrival { intended, ordinal, measured: intended >= measure_from };
        local.offer(arrival.measured, clock::now());
        if partition.waiting.get() >= backlog {
            local.shed(arrival.measured, clock::now());
            continue;
        }
        let (local, partition) = (Rc::clone(local), Rc::clone(partition));
        requests.spawn_local(async move { serve(&local, &partition, arrival).await });
        while let Some(ended) = requests.try_join_next() {
            pass_on(ended);
        }
    }
    while let Some(ended) = requests.join_next().await {
        pass_on(ended);
    }
}

/// A request that panicked takes its thread along, as a connection that panics does.
fn pass_on(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        std::panic::resume_unwind(error.into_panic());
    }
}

async fn closed_loop<W: Workload>(
    local: &Rc<Local<W>>,
    partitions: &[Rc<Partition>],
    course: &Course,
    clients: u32,
) {
    let of = local.shared.order.shape.partitions().max(1);
    let measure_from = course.measured().0;
    let mine = partitions.iter().flat_map(|partition| {
        let step = usize::try_from(of).unwrap_or(usize::MAX);
        (partition.number..clients).step_by(step).map(move |client| (client, partition))
    });
    let all = mine.map(|(client, partition)| async move {
        let mut ordinal = u64::from(client);
        loop {
            let now = clock::now();
            if now >= course.end() {
                return;
            }
            let arrival = Arrival { intended: now, ordinal, measured: now >= measure_from };
            local.offer(arrival.measured, now);
            serve(local, partition, arrival).await;
            ordinal += u64::from(clients);
        }
    });
    // Above some thirty each wake looks at its own client only.
    join_all(all).await;
}

/// Waits for a connection and runs the transaction.
async fn serve<W: Workload>(local: &Local<W>, partition: &Partition, arrival: Arrival) {
    let asked = clock::now();
    partition.waiting.set(partition.waiting.get() + 1);
    let measured = || arrival.measured;
    let limit = local.shared.order.retry.connection_wait_timeout_ms;
    let until = asked.saturating_add(limit.saturating_mul(MS_NS));
    let mut held = match partition.open().await {
        Ok(held) => Some(held),
        Err(OpenError::NoneFree { .. }) => None,
        Err(error) => {
            local.count_error(error.name(), arrival.measured);
            transaction::reopen(local, partition, until, measured).await
        }
    };
    partition.waiting.set(partition.waiting.get() - 1);
    let got = clock::now();
    let place = partition.places.borrow_mut().pop();
    let (Some(place), true) = (place, held.is_some()) else {
        partition.places.borrow_mut().extend(place);
        local.expire(Expired { all: 1, measured: u64::from(arrival.measured) }, got);
        return;
    };
    local.slots[place].enter().await;
    let taken = Taken {
        arrival,
        connection_wait_ns: got - asked,
        schedule_lag_ns: asked.saturating_sub(arrival.intended),
        at: got,
    };
    transaction::run(local, partition, place, &mut held, taken).await;
    partition.places.borrow_mut().push(place);
}
