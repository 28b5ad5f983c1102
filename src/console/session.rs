//! The loop of a console: keys, frames and signals in; effects and drawn frames out.

use std::{io, time::Duration};

use crossterm::event::{Event, EventStream, KeyEventKind, MouseEventKind};
use futures_util::StreamExt;
use ratatui::layout::Rect;
use rustix::process::{Signal, kill_current_process_group};
use tokio::{
    signal::unix::{self, SignalKind},
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::{Instant, MissedTickBehavior, interval, sleep_until},
};

use crate::{link::ClientFrame, model::UnixMs};

use super::{
    ConsoleError, ConsoleExit, ConsoleOptions,
    engine::{Engine, Lines},
    keymap::Keymap,
    removal,
    state::State,
    terminal::{self, ScreenWriter, TerminalGuard, Watchdog, WriterEvent},
    theme::Theme,
    update::{Effect, Msg, exit, update},
    view,
};

/// The shortest time between two frames; over SSH each costs the network.
const FRAME: Duration = Duration::from_millis(33);
const FRAME_OVER_SSH: Duration = Duration::from_millis(100);
/// How often clocks on the screen are looked after.
const TICK: Duration = Duration::from_millis(250);
/// How long a stop is waited for after it was asked for: a session without job control ignores it.
const STOP_PATIENCE: Duration = Duration::from_millis(100);

/// Runs a console until the operator leaves it, the terminal goes, or the run has ended.
///
/// Connects to the engine first, so that a refusal is printed on an untouched terminal. Whatever
/// way this returns, the terminal has been given back.
///
/// # Errors
/// When there is no terminal, no engine answers, the keymap is refused or the terminal fails.
pub async fn run(options: ConsoleOptions) -> Result<ConsoleExit, ConsoleError> {
    let keymap = Keymap::load(options.keymap.as_deref())?;
    if !terminal::is_terminal() {
        return Err(ConsoleError::NoTerminal);
    }
    let engine = Engine::connect(&options.socket, &options.build).await?;
    let mut state = State::new(keymap, options.build.clone(), engine.build.clone(), UnixMs::now());
    state.number = engine.number;
    let theme = Theme::detect(options.tone, options.no_color, options.ascii);
    let lines = engine.spawn(options.socket, options.build);
    let mut session = Session::take(state, theme, lines).map_err(ConsoleError::Terminal)?;
    session.drive().await
}

/// A signal or the watchdog ends the console; the operator was not asked.
enum Leave {
    Asked,
    HungUp,
}

/// The signals that concern a console.
struct Signals {
    hang_up: unix::Signal,
    terminate: unix::Signal,
    interrupt: unix::Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            hang_up: unix::signal(SignalKind::hangup())?,
            terminate: unix::signal(SignalKind::terminate())?,
            interrupt: unix::signal(SignalKind::interrupt())?,
        })
    }

    async fn leave(&mut self) -> Leave {
        tokio::select! {
            _ = self.hang_up.recv() => Leave::HungUp,
            _ = self.terminate.recv() => Leave::Asked,
            _ = self.interrupt.recv() => Leave::Asked,
        }
    }
}

struct Session {
    state: State,
    theme: Theme,
    lines: Lines,
    /// Until the link's last message has come: it ends with the run.
    listening: bool,
    /// What tasks of our own tell.
    told: (UnboundedSender<Msg>, UnboundedReceiver<Msg>),
    screen: ScreenWriter,
    written: UnboundedReceiver<WriterEvent>,
    signals: Signals,
    /// SIGCONT: we were stopped, and others may have used the terminal.
    continued: unix::Signal,
    watchdog: Watchdog,
    keys: EventStream,
    dirty: bool,
    frame: Duration,
    drawn_at: Instant,
    /// The last field: dropped after all that may still draw.
    guard: TerminalGuard,
}

/// What the loop does after a round.
enum Step {
    Exit(ConsoleExit),
    Stay,
}

impl Session {
    fn take(state: State, theme: Theme, lines: Lines) -> io::Result<Self> {
        let signals = Signals::new()?;
        // The number of SIGCONT is not among the names that tokio has.
        let continued = unix::signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
        let watchdog = Watchdog::new()?;
        let guard = TerminalGuard::take()?;
        let (events, written) = unbounded_channel();
        let screen = ScreenWriter::start(area()?, events)?;
        let over_ssh = ["SSH_CONNECTION", "SSH_TTY"].iter().any(|v| std::env::var_os(v).is_some());
        Ok(Self {
            state,
            theme,
            lines,
            listening: true,
            told: unbounded_channel(),
            screen,
            written,
            signals,
            continued,
            watchdog,
            keys: EventStream::new(),
            dirty: true,
            frame: if over_ssh { FRAME_OVER_SSH } else { FRAME },
            drawn_at: Instant::now() - FRAME_OVER_SSH,
            guard,
        })
    }

    async fn drive(&mut self) -> Result<ConsoleExit, ConsoleError> {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            match self.round(&mut ticks).await {
                Ok(Step::Exit(exit)) => return Ok(exit),
                Ok(Step::Stay) => {}
                // A hang-up comes with a continue: that may be seen first, and then fails.
                Err(_) if self.watchdog.is_gone() => return Ok(self.left(&Leave::HungUp)),
                Err(error) => return Err(error),
            }
        }
    }

    async fn round(&mut self, ticks: &mut tokio::time::Interval) -> Result<Step, ConsoleError> {
        let due = self.drawn_at + self.frame;
        let may_draw = self.dirty && !self.screen.is_busy();
        tokio::select! {
            leave = self.signals.leave() => return Ok(Step::Exit(self.left(&leave))),
            () = self.watchdog.gone() => return Ok(Step::Exit(self.left(&Leave::HungUp))),
            _ = self.continued.recv() => self.come_back()?,
            Some(event) = self.written.recv() => match event {
                WriterEvent::Written => {}
                WriterEvent::Failed => return Ok(Step::Exit(self.left(&Leave::HungUp))),
            },
            event = self.keys.next() => match event {
                Some(Ok(event)) => return self.take_event(event).await,
                Some(Err(_)) | None => return Ok(Step::Exit(self.left(&Leave::HungUp))),
            },
            message = self.lines.messages.recv(), if self.listening => match message {
                Some(message) => return self.take_msg(message).await,
                None => self.listening = false,
            },
            Some(message) = self.told.1.recv() => return self.take_msg(message).await,
            _ = ticks.tick() => self.tick(),
            () = sleep_until(due), if may_draw => self.draw()?,
        }
        Ok(Step::Stay)
    }

    async fn take_event(&mut self, event: Event) -> Result<Step, ConsoleError> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                self.take_msg(Msg::Key(key.into())).await
            }
            Event::Mouse(mouse) => match mouse.kind {
                MouseEventKind::ScrollDown => self.take_msg(Msg::Scroll { forward: true }).await,
                MouseEventKind::ScrollUp => self.take_msg(Msg::Scroll { forward: false }).await,
                _ => Ok(Step::Stay),
            },
            Event::Paste(text) => self.take_msg(Msg::Paste(text)).await,
            Event::Resize(..) => {
                self.redraw()?;
                Ok(Step::Stay)
            }
            _ => Ok(Step::Stay),
        }
    }

    async fn take_msg(&mut self, msg: Msg) -> Result<Step, ConsoleError> {
        self.dirty = true;
        update(&mut self.state, Msg::Tick(UnixMs::now()));
        for effect in update(&mut self.state, msg) {
            match effect {
                Effect::Exit(exit) => return Ok(Step::Exit(exit)),
                Effect::Remove { run } => {
                    if let Err(error) = removal::start(&run, self.told.0.clone()) {
                        let why = format!("the removal cannot be started: {error}");
                        update(&mut self.state, Msg::Removal(removal::Removal::Said(why)));
                        let ended = removal::Removal::Ended { remaining: None, exit_code: 1 };
                        update(&mut self.state, Msg::Removal(ended));
                    }
                }
                Effect::Redraw => self.redraw()?,
                Effect::Copy(text) => self.screen.tell(&terminal::clipboard(&text)),
                Effect::Mouse(taken) => self.screen.tell(&terminal::mouse(taken)),
                Effect::Suspend => self.suspend().await?,
                Effect::Send { id, command } => {
                    let frame = ClientFrame::Command { id, command };
                    if self.lines.commands.try_send(frame).is_err() {
                        let why = "the engine takes no commands".to_owned();
                        update(&mut self.state, Msg::Disconnected { why });
                    }
                }
            }
        }
        Ok(Step::Stay)
    }

    /// Clocks are shown in whole seconds: only then is there something to draw.
    fn tick(&mut self) {
        let now = UnixMs::now();
        let turned = now.0 / 1_000 != self.state.now.0 / 1_000;
        update(&mut self.state, Msg::Tick(now));
        self.dirty |= turned;
    }

    fn draw(&mut self) -> Result<(), ConsoleError> {
        let (state, theme) = (&self.state, &self.theme);
        self.screen
            .draw(|frame| view::draw(state, theme, frame))
            .map_err(ConsoleError::Terminal)?;
        self.dirty = false;
        self.drawn_at = Instant::now();
        Ok(())
    }

    fn redraw(&mut self) -> Result<(), ConsoleError> {
        let area = area().map_err(ConsoleError::Terminal)?;
        self.screen.reset(area).map_err(ConsoleError::Terminal)?;
        self.dirty = true;
        Ok(())
    }

    /// Gives the terminal back and stops, as a shell expects of ctrl-z.
    async fn suspend(&mut self) -> Result<(), ConsoleError> {
        self.guard.release();
        // The whole group, so that a shell sees its job stopped; by the default action, so that
        // where nobody could continue it (no job control) the system ignores it.
        let stopped = kill_current_process_group(Signal::TSTP);
        if stopped.is_ok() {
            // The stop reaches us some time after; the time stopped counts as time waited.
            let _ = tokio::time::timeout(STOP_PATIENCE, self.continued.recv()).await;
        }
        self.come_back()
    }

    fn come_back(&mut self) -> Result<(), ConsoleError> {
        self.guard.retake().map_err(ConsoleError::Terminal)?;
        if self.state.mouse {
            self.screen.tell(&terminal::mouse(true));
        }
        self.redraw()
    }

    fn left(&self, leave: &Leave) -> ConsoleExit {
        match leave {
            Leave::HungUp => ConsoleExit::HungUp { run: self.state.run().cloned() },
            Leave::Asked => exit(&self.state),
        }
    }
}

/// The terminal's size; a terminal that does not tell counts as the classic one.
fn area() -> io::Result<Rect> {
    let size = rustix::termios::tcgetwinsize(io::stdout())?;
    if size.ws_col == 0 || size.ws_row == 0 {
        return Ok(Rect::new(0, 0, 80, 24));
    }
    Ok(Rect::new(0, 0, size.ws_col, size.ws_row))
}

#[cfg(test)]
mod tests;
