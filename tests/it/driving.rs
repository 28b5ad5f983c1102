//! Two consoles on one engine, speaking its frames: who drives, and what driving does.

use rampdeck::{
    link::{ClientFrame, FrameReader, FrameWriter, PROTOCOL, Role, ServerFrame},
    model::{
        Arrivals, CellId, Command, ConfigurationId, ConfigurationStatus, EventKind, Load, RateStep,
        Snapshot, When,
    },
};
use tokio::net::{
    UnixStream,
    unix::{OwnedReadHalf, OwnedWriteHalf},
};

use crate::{
    headless::short,
    support::{PATIENCE, Place},
};

/// A console that is only its frames.
struct Console {
    reader: FrameReader<OwnedReadHalf>,
    writer: FrameWriter<OwnedWriteHalf>,
    number: u32,
    id: u64,
}

impl Console {
    async fn attach(place: &Place, name: &str) -> Self {
        let (mut reader, mut writer) = connect(place).await;
        let hello = ClientFrame::Hello {
            protocol: PROTOCOL,
            build: "test".into(),
            role: Role::Console,
            name: name.into(),
        };
        writer.send(&hello).await.unwrap();
        let Some(ServerFrame::Welcome { console, .. }) = reader.next().await.unwrap() else {
            panic!("no welcome");
        };
        Self { reader, writer, number: console, id: 0 }
    }

    /// Sends a command and gives why it was refused.
    async fn ask(&mut self, command: Command) -> Option<String> {
        self.id += 1;
        let id = self.id;
        self.writer.send(&ClientFrame::Command { id, command }).await.unwrap();
        self.until(|frame| match frame {
            ServerFrame::Reply { id: of, refused } if of == id => Some(refused),
            _ => None,
        })
        .await
    }

    async fn does(&mut self, command: Command) {
        let what = command.to_string();
        let refused = self.ask(command).await;
        assert_eq!(refused, None, "{what}");
    }

    /// A step, once the pace of steps allows one.
    async fn steps(&mut self, command: Command) {
        while let Some(why) = self.ask(command.clone()).await {
            assert!(why.contains("one step a second"), "{command}: {why}");
            self.snapshot(|_| Some(())).await;
        }
    }

    async fn gets_control(&mut self) {
        let number = self.number;
        self.snapshot(|s| (s.control.holder == Some(number)).then_some(())).await;
    }

    async fn refused(&mut self, command: Command) -> String {
        let what = command.to_string();
        self.ask(command).await.unwrap_or_else(|| panic!("{what} was not refused"))
    }

    async fn until<T>(&mut self, mut wanted: impl FnMut(ServerFrame) -> Option<T>) -> T {
        loop {
            let frame = self.reader.next().await.unwrap().expect("the engine is there");
            if let Some(found) = wanted(frame) {
                return found;
            }
        }
    }

    async fn snapshot<T>(&mut self, mut wanted: impl FnMut(&Snapshot) -> Option<T>) -> T {
        self.until(|frame| match frame {
            ServerFrame::Snapshot(snapshot) => wanted(&snapshot),
            _ => None,
        })
        .await
    }

    /// Waits for the first configuration to be as wanted.
    async fn first(&mut self, mut wanted: impl FnMut(&ConfigurationStatus) -> bool) {
        self.snapshot(|snapshot| wanted(&snapshot.configurations[0]).then_some(())).await;
    }
}

async fn connect(place: &Place) -> (FrameReader<OwnedReadHalf>, FrameWriter<OwnedWriteHalf>) {
    let mut sockets = std::fs::read_dir(place.path("data/rampdeck/sockets")).unwrap();
    let socket = sockets.next().unwrap().unwrap().path();
    let stream = UnixStream::connect(socket).await.unwrap();
    let (reader, writer) = stream.into_split();
    (FrameReader::new(reader), FrameWriter::new(writer))
}

fn d1() -> ConfigurationId {
    ConfigurationId::new("D1")
}

fn open(rate: f64) -> Load {
    Load::Open { rate, arrivals: Arrivals::Poisson, connections: 8 }
}

fn start(rate: f64, measure_s: f64) -> Command {
    Command::StartCell {
        configuration: d1(),
        load: open(rate),
        warmup_s: 0.5,
        measure_s,
        when: When::Now,
    }
}

fn rate_of(status: &ConfigurationStatus) -> Option<f64> {
    status.cell.as_ref().and_then(|cell| cell.load.rate())
}

fn to(rate: f64) -> Command {
    Command::StepRate { configuration: d1(), step: RateStep::To { rate } }
}

/// Runs `work` on a run whose plan is paused, so that only what is asked for runs.
fn with_a_run<F: Future<Output = ()>>(work: impl FnOnce(Place, Console) -> F) {
    let place = Place::new();
    let run = place.headless(&short(&["--headless", "--set", "stage.pilot.measure_s=2"]));
    run.event("cell_started");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let ran = async {
            let mut console = Console::attach(&place, "anna on pts/3").await;
            console.does(Command::Pause).await;
            console
                .snapshot(|s| s.configurations.iter().all(|c| c.cell.is_none()).then_some(()))
                .await;
            work(place, console).await;
        };
        // Several cells one after the other.
        tokio::time::timeout(3 * PATIENCE, ran).await.unwrap();
    });
    drop(run);
}

async fn tear_down(place: &Place, console: &mut Console) {
    let name = place.newest_run().unwrap()["run"].as_str().unwrap().to_owned();
    console.does(Command::Teardown { confirm: name }).await;
    console.until(|frame| matches!(frame, ServerFrame::Ended { .. }).then_some(())).await;
}

#[test]
fn one_console_drives_and_control_is_asked_for_given_kept_and_taken() {
    with_a_run(|place, mut anna| async move {
        let mut bo = Console::attach(&place, "bo on pts/5").await;
        assert!(bo.number > anna.number);
        let why = bo.refused(Command::Resume).await;
        assert!(why.contains("(anna on pts/3) drives"), "{why}");
        bo.does(Command::AskControl).await;
        anna.snapshot(|s| s.control.asked.filter(|(asker, _)| *asker == bo.number)).await;
        anna.does(Command::KeepControl).await;
        bo.refused(Command::Resume).await;
        bo.does(Command::AskControl).await;
        anna.does(Command::GiveControl).await;
        bo.gets_control().await;
        bo.does(start(20.0, 30.0)).await;
        let why = anna.refused(Command::StopCell { configuration: d1() }).await;
        assert!(why.contains("(bo on pts/5) drives"), "{why}");
        // Nobody answers: it goes over by itself.
        anna.does(Command::AskControl).await;
        anna.gets_control().await;
        anna.does(Command::StopCell { configuration: d1() }).await;
        // Who has it leaves.
        drop(anna);
        bo.gets_control().await;
        let mut last = Console::attach(&place, "").await;
        // An emergency is anybody's.
        last.refused(Command::Resume).await;
        tear_down(&place, &mut last).await;
        place.assert_nothing_left();
    });
}

#[test]
fn a_rate_is_stepped_ramped_held_and_undone() {
    with_a_run(|place, mut console| async move {
        console.refused(to(50.0)).await;
        console.does(start(20.0, 60.0)).await;
        console.first(|d1| rate_of(d1) == Some(20.0)).await;
        console.does(to(40.0)).await;
        let why = console.refused(to(60.0)).await;
        assert!(why.contains("one step a second"), "{why}");
        console.first(|d1| rate_of(d1) == Some(40.0) && d1.undo_rate == Some(20.0)).await;
        console.steps(Command::UndoStep { configuration: d1() }).await;
        console.first(|d1| rate_of(d1) == Some(20.0) && d1.undo_rate.is_none()).await;
        let why = console.refused(Command::UndoStep { configuration: d1() }).await;
        assert!(why.contains("no step to undo"), "{why}");

        let ramp = |to| Command::Ramp { configuration: d1(), to, over_s: 16.0 };
        let why = console.refused(ramp(1e9)).await;
        assert!(why.contains("max_rate"), "{why}");
        console.steps(ramp(100.0)).await;
        let of = console.snapshot(|s| s.configurations[0].ramp.map(|ramp| ramp.of)).await;
        assert!(of >= 2, "{of} steps");
        let mut seen = vec![20.0];
        console
            .first(|d1| {
                if let Some(rate) = rate_of(d1).filter(|rate| seen.last() != Some(rate)) {
                    seen.push(rate);
                }
                rate_of(d1) == Some(100.0)
            })
            .await;
        assert!(seen.is_sorted() && seen.len() == of as usize + 1, "{seen:?}, {of} steps");
        console.first(|d1| d1.ramp.is_none() && d1.undo_rate == Some(20.0)).await;

        console.steps(ramp(20.0)).await;
        console.first(|d1| d1.ramp.is_some()).await;
        console.does(Command::HoldRate { configuration: d1() }).await;
        console.first(|d1| d1.ramp.is_none()).await;
        console.does(Command::StopCell { configuration: d1() }).await;
        console.first(|d1| d1.cell.is_none() && d1.undo_rate.is_none()).await;
        tear_down(&place, &mut console).await;
        place.assert_nothing_left();
    });
}

#[test]
fn the_queue_is_seen_with_its_price_and_changed() {
    with_a_run(|place, mut console| async move {
        let planned = console.snapshot(|s| Some(s.queue.clone())).await;
        assert!(planned.len() >= 4, "the plan's later cells wait: {planned:?}");
        assert!(planned.iter().all(|cell| cell.planned && cell.takes_s > 1.0));
        console.does(start(20.0, 60.0)).await;
        console.first(|d1| d1.cell.is_some()).await;
        let running =
            console.snapshot(|s| Some(s.configurations[0].cell.as_ref()?.id.clone())).await;
        for rate in [30.0, 40.0] {
            let configuration = d1();
            let (load, warmup_s, measure_s) = (open(rate), 0.5, 5.0);
            let when = When::After;
            console
                .does(Command::StartCell { configuration, load, warmup_s, measure_s, when })
                .await;
        }
        console.does(Command::RepeatCell { cell: running }).await;
        let rates = |s: &Snapshot| -> Vec<(u64, f64)> {
            let asked = s.queue.iter().filter(|cell| !cell.planned);
            asked.filter_map(|cell| Some((cell.number, cell.load.rate()?))).collect()
        };
        let asked = console.snapshot(|s| Some(rates(s)).filter(|asked| asked.len() == 3)).await;
        assert_eq!(asked.iter().map(|(_, rate)| *rate).collect::<Vec<_>>(), [30.0, 40.0, 20.0]);
        console.does(Command::MoveCell { cell: asked[2].0, earlier: true }).await;
        console.does(Command::DropCell { cell: asked[0].0 }).await;
        let left = [asked[2], asked[1]];
        console.snapshot(|s| (rates(s) == left).then_some(())).await;
        let why = console.refused(Command::MoveCell { cell: asked[2].0, earlier: true }).await;
        assert!(why.contains("the first that waits"), "{why}");
        let why = console.refused(Command::DropCell { cell: asked[0].0 }).await;
        assert!(why.contains("waiting are: "), "{why}");
        let why = console.refused(Command::RepeatCell { cell: CellId::new("D1-999") }).await;
        assert!(why.contains("D1-999"), "{why}");
        // One of the plan's, too.
        let dropped = planned.last().unwrap().number;
        console.does(Command::DropCell { cell: dropped }).await;
        console.snapshot(|s| s.queue.iter().all(|cell| cell.number != dropped).then_some(())).await;
        tear_down(&place, &mut console).await;
        place.assert_nothing_left();
    });
}

#[test]
fn a_console_that_comes_late_is_sent_the_ends_of_all_cells() {
    with_a_run(|place, mut console| async move {
        let done = console.snapshot(|s| {
            let done: u32 = s.configurations.iter().map(|c| c.cells_done).sum();
            (done >= 4).then_some(done)
        });
        let done = done.await;
        let mut late = Console::attach(&place, "late").await;
        let mut ends = 0;
        late.until(|frame| match frame {
            ServerFrame::Event(event) => {
                ends += u32::from(matches!(event.kind, EventKind::CellEnded { .. }));
                None
            }
            ServerFrame::Snapshot(_) => Some(()),
            _ => None,
        })
        .await;
        assert!(ends >= done, "{ends} of {done}");
        tear_down(&place, &mut console).await;
        place.assert_nothing_left();
    });
}

#[test]
fn a_client_of_another_protocol_is_told_ours_and_nothing_else() {
    with_a_run(|place, mut console| async move {
        let (mut reader, mut writer) = connect(&place).await;
        let hello = ClientFrame::Hello {
            protocol: PROTOCOL + 1,
            build: "newer".into(),
            role: Role::Console,
            name: String::new(),
        };
        writer.send(&hello).await.unwrap();
        let welcome = reader.next::<ServerFrame>().await.unwrap();
        assert!(matches!(
            welcome,
            Some(ServerFrame::Welcome { protocol: PROTOCOL, console: 0, .. })
        ));
        assert!(reader.next::<ServerFrame>().await.unwrap().is_none());
        let consoles = console.snapshot(|s| Some(s.control.consoles.len())).await;
        assert_eq!(consoles, 1, "it is no console of this run");
        tear_down(&place, &mut console).await;
        place.assert_nothing_left();
    });
}
