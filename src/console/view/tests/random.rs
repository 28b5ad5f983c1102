//! Runs that nobody thought of: random figures, states and names, in every view, at any size.

use rust_decimal::Decimal;

use super::{VIEWS, assert_whole};
use crate::{
    console::{
        fixture::{NOW, decision, press, snapshot, state_of, teardown},
        state::State,
    },
    model::{
        Arrivals, Class, ClassLatency, ConfigurationId, ConfigurationState, ConfigurationStatus,
        GuardState, Level, Load, Money, PerClass, Phase, RampStatus, ResourceState, Snapshot,
        TailParts, Tps, UnixMs, Verdict,
    },
};

/// Numbers from a seed: a failure names the seed, and comes again.
struct Random(u64);

impl Random {
    /// 0 to `below` - 1.
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % below
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()].clone()
    }

    /// A figure of any magnitude that a run may have.
    fn figure(&mut self) -> f64 {
        let magnitude = i32::try_from(self.below(8)).unwrap();
        let digits = f64::from(u32::try_from(self.below(1_000)).unwrap());
        digits * 10_f64.powi(magnitude - 4)
    }

    fn money(&mut self) -> Money {
        Money::new(Decimal::new(i64::try_from(self.below(10_000_000)).unwrap(), 3))
    }

    fn load(&mut self) -> Load {
        let connections = u32::try_from(self.below(4_096)).unwrap();
        if self.one_in(2) {
            Load::Closed { connections }
        } else {
            Load::Open { rate: self.figure(), arrivals: Arrivals::Poisson, connections }
        }
    }

    fn tps(&mut self) -> Tps {
        Tps { offered: self.figure(), achieved: self.figure(), succeeded: self.figure() }
    }

    fn classes(&mut self) -> PerClass<ClassLatency> {
        let mut values = Class::ALL.map(|_| {
            let mut value = || (!self.one_in(5)).then(|| self.figure());
            ClassLatency { p95_ms: value(), p99_ms: value(), count: 10 }
        });
        PerClass::from_fn(|class| std::mem::take(&mut values[class.index()]))
    }

    fn name(&mut self) -> String {
        let names =
            ["Aurora DSQL", "오로라 서버리스 v2", "x", "R1 2 3 long words of a title 17", ""];
        self.pick(&names).to_owned()
    }
}

fn configuration(
    random: &mut Random,
    mut of: ConfigurationStatus,
    at: usize,
) -> ConfigurationStatus {
    of.id = ConfigurationId::new(
        random.pick(&["D", "구성", "serverless-v2-"]).to_owned() + &at.to_string(),
    );
    of.title = random.name();
    let phases = [Phase::Opening, Phase::WarmUp, Phase::Measure, Phase::Drain];
    of.state = match random.below(6) {
        0 => ConfigurationState::SettingUp { step: "loading 412,000 of 1,000,000".into() },
        1 => ConfigurationState::Idle,
        2 => ConfigurationState::Checking,
        3 => ConfigurationState::Failed { why: "gate exited with status 1 (port 5502)".into() },
        _ => ConfigurationState::Cell {
            phase: random.pick(&phases),
            elapsed_s: random.below(8_000),
            total_s: random.below(2) * 9_000,
        },
    };
    if let Some(cell) = &mut of.cell {
        (cell.load, cell.tps, cell.classes) = (random.load(), random.tps(), random.classes());
        cell.tail = random.one_in(2).then(|| TailParts { service_ms: 3.5, ..TailParts::default() });
        cell.window_at = Some(UnixMs(NOW.0 - random.below(9_000)));
        cell.in_flight = random.below(100_000);
    }
    if let Some(last) = &mut of.last {
        (last.load, last.tps, last.classes) = (random.load(), random.tps(), random.classes());
        let all = [Verdict::Pass, Verdict::Fail, Verdict::Inconclusive, Verdict::Invalid];
        last.verdict = random.pick(&all);
    }
    let ramp = RampStatus { to: random.figure(), step: 3, of: 18, next_at: NOW };
    of.ramp = random.one_in(3).then_some(ramp);
    (of.accrued, of.per_hour) = (random.money(), random.money());
    of
}

fn run(random: &mut Random) -> Snapshot {
    let mut run = snapshot();
    let of = run.configurations.clone();
    let count = usize::try_from(random.below(10)).unwrap();
    run.configurations = (0..count)
        .map(|at| {
            let one = random.pick(&of);
            configuration(random, one, at)
        })
        .collect();
    let queue = run.queue.clone();
    run.queue = (0..random.below(14))
        .map(|number| {
            let mut cell = random.pick(&queue);
            (cell.number, cell.load, cell.spends) = (number, random.load(), random.money());
            cell.takes_s = random.figure();
            cell
        })
        .collect();
    for thing in &mut run.resources {
        let states = [ResourceState::Intended, ResourceState::Made, ResourceState::Gone];
        thing.state = random.pick(&states);
        thing.port = random.one_in(2).then_some(5_433);
        thing.path = random.one_in(2).then(|| "/srv/rampdeck/run 7/data-15/base".into());
        thing.since = UnixMs(NOW.0 - random.below(90_000_000));
        thing.configuration = run.configurations.first().map(|first| first.id.clone());
        thing.configuration.take_if(|_| random.one_in(2));
    }
    run.cost.accrued = random.money();
    run.cost.per_hour = random.money();
    run.cost.state = random.pick(&[GuardState::Ok, GuardState::Warn, GuardState::NoNewCells]);
    run.control.holder = random.one_in(2).then_some(1);
    run.control.asked = random.one_in(3).then_some((2, UnixMs(NOW.0 + 25_000)));
    run.decision = random.one_in(3).then(decision);
    run.teardown = random.one_in(4).then(|| teardown(random.one_in(2)));
    run
}

fn console(random: &mut Random) -> State {
    let mut state = state_of(run(random));
    if random.one_in(2) {
        press(&mut state, "esc");
    }
    if random.one_in(3) {
        press(&mut state, "f");
    }
    state.view = random.pick(&VIEWS).1;
    state.number = u32::try_from(random.below(3)).unwrap();
    state.selected = usize::try_from(random.below(9)).unwrap();
    state.looks.cell = usize::try_from(random.below(30)).unwrap();
    state.looks.resource = usize::try_from(random.below(9)).unwrap();
    state.looks.log.up = usize::try_from(random.below(9)).unwrap();
    state.looks.log.least = random.pick(&[None, None, Some(Level::Warning), Some(Level::Error)]);
    state
}

#[test]
fn of_a_random_run_at_random_sizes_every_figure_is_whole() {
    for seed in 0..40 {
        let mut random = Random(seed);
        random.below(1);
        let state = console(&mut random);
        let mut size = |below| u16::try_from(random.below(below)).unwrap() + 1;
        let sizes: Vec<_> = (0..25).map(|_| (size(210), size(55))).collect();
        assert_whole(&format!("seed {seed}, {:?}", state.view), &state, sizes.into_iter());
    }
}
