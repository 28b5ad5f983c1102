//! The console in a pseudo-terminal, against an engine that is only a socket. The console runs in a
//! process of its own: this test binary, started again with one test chosen.

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use tempfile::TempDir;
use tokio::net::UnixListener;

use crate::{
    console::{
        ConsoleOptions,
        fixture::{RUN, snapshot},
    },
    link::{ClientFrame, FrameReader, FrameWriter, PROTOCOL, ServerFrame},
    model::Command,
};

const SOCKET: &str = "RAMPDECK_TEST_SOCKET";
const EXIT: &str = "RAMPDECK_TEST_EXIT";
const PATIENCE: Duration = Duration::from_secs(60);
const LEAVE_SCREEN: &[u8] = b"\x1b[?1049l";
const ENTER_SCREEN: &[u8] = b"\x1b[?1049h";
const SHOW_CURSOR: &[u8] = b"\x1b[?25h";

#[test]
#[ignore = "runs in a process of its own, started by the other tests"]
fn console_process() {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    let options = ConsoleOptions {
        socket: PathBuf::from(socket),
        build: "test".to_owned(),
        keymap: None,
        no_color: false,
        ascii: false,
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let exit = format!("{:?}", runtime.block_on(super::run(options)));
    std::fs::write(std::env::var_os(EXIT).unwrap(), exit).unwrap();
    // The test's own result would wait for the terminal; nothing is left to be told.
    std::process::exit(0);
}

/// An engine that says what it must and notes the commands.
struct FakeEngine {
    commands: mpsc::Receiver<Command>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl FakeEngine {
    fn start(socket: &Path, protocol: u32) -> Self {
        let (note, commands) = mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (ready, is_ready) = mpsc::channel();
        let socket = socket.to_owned();
        let thread = thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let _ = std::fs::remove_file(&socket);
                let listener = UnixListener::bind(&socket).unwrap();
                ready.send(()).unwrap();
                tokio::select! {
                    () = serve(&listener, protocol, &note) => {}
                    _ = stopped => {}
                }
            });
            let _ = std::fs::remove_file(&socket);
        });
        is_ready.recv_timeout(PATIENCE).unwrap();
        Self { commands, stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for FakeEngine {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(listener: &UnixListener, protocol: u32, note: &mpsc::Sender<Command>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (reader, writer) = stream.into_split();
        let (mut reader, mut writer) = (FrameReader::new(reader), FrameWriter::new(writer));
        let _: Option<ClientFrame> = reader.next().await.unwrap();
        let _ =
            writer.send(&ServerFrame::Welcome { protocol, build: "test".into(), console: 1 }).await;
        let mut ticks = tokio::time::interval(Duration::from_millis(250));
        loop {
            tokio::select! {
                frame = reader.next::<ClientFrame>() => match frame {
                    Ok(Some(ClientFrame::Command { id, command })) => {
                        let teardown = matches!(command, Command::Teardown { .. });
                        let _ = note.send(command);
                        let _ = writer.send(&ServerFrame::Reply { id, refused: None }).await;
                        if teardown {
                            let text = "all is removed".to_owned();
                            let _ = writer.send(&ServerFrame::Ended { exit_code: 0, text }).await;
                            break;
                        }
                    }
                    Ok(Some(ClientFrame::Hello { .. })) => {}
                    Ok(None) | Err(_) => break,
                },
                _ = ticks.tick() => {
                    let snapshot = Box::new(snapshot());
                    if writer.send(&ServerFrame::Snapshot(snapshot)).await.is_err() {
                        break;
                    }
                }
            }
        }
    }
}

/// A console in a pseudo-terminal.
struct Console {
    child: Box<dyn Child + Send + Sync>,
    master: Option<Box<dyn MasterPty + Send>>,
    keys: Option<Box<dyn Write + Send>>,
    output: Arc<Mutex<Vec<u8>>>,
    exit: PathBuf,
}

impl Console {
    fn start(folder: &TempDir, read: bool) -> Self {
        let size = PtySize { rows: 36, cols: 120, pixel_width: 0, pixel_height: 0 };
        let pty = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "console::session::tests::console_process"]);
        command.args(["--nocapture", "--test-threads=1"]);
        let exit = folder.path().join("exit");
        command.env(SOCKET, folder.path().join("engine.sock"));
        command.env(EXIT, &exit);
        command.env("LC_ALL", "C.UTF-8");
        command.env("TERM", "xterm-256color");
        let child = pty.slave.spawn_command(command).unwrap();
        drop(pty.slave);
        let output = Arc::new(Mutex::new(Vec::new()));
        if read {
            let (mut reader, output) = (pty.master.try_clone_reader().unwrap(), output.clone());
            thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = reader.read(&mut bytes) {
                    output.lock().unwrap().extend_from_slice(&bytes[..count]);
                }
            });
        }
        let keys = pty.master.take_writer().unwrap();
        Self { child, master: Some(pty.master), keys: Some(keys), output, exit }
    }

    fn press(&mut self, keys: &[u8]) {
        let writer = self.keys.as_mut().unwrap();
        writer.write_all(keys).unwrap();
        writer.flush().unwrap();
    }

    /// As a service manager or `kill` does.
    fn terminate(&self) {
        let pid = self.child.process_id().and_then(|pid| i32::try_from(pid).ok());
        let pid = rustix::process::Pid::from_raw(pid.unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    fn output(&self) -> Vec<u8> {
        self.output.lock().unwrap().clone()
    }

    fn count(&self, sequence: &[u8]) -> usize {
        self.output().windows(sequence.len()).filter(|window| *window == sequence).count()
    }

    fn screen(&self) -> String {
        let mut parser = vt100::Parser::new(36, 120, 0);
        parser.process(&self.output());
        parser.screen().contents()
    }

    fn wait_for(&mut self, text: &str) {
        let shown = until(|| self.screen().contains(text));
        assert!(shown, "no {text:?} on\n{}", self.screen());
    }

    /// How the console says it ended.
    fn ended(&mut self) -> String {
        let ended = until(|| matches!(self.child.try_wait(), Ok(Some(_))));
        assert!(ended, "it has not ended; its screen:\n{}", self.screen());
        std::fs::read_to_string(&self.exit).unwrap_or_else(|_| self.screen())
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn until(mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if condition() {
            return true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    false
}

fn folder_and_engine() -> (TempDir, FakeEngine) {
    let folder = tempfile::tempdir().unwrap();
    let engine = FakeEngine::start(&folder.path().join("engine.sock"), PROTOCOL);
    (folder, engine)
}

#[test]
fn a_console_draws_sends_and_gives_the_terminal_back_once() {
    let (folder, engine) = folder_and_engine();
    let mut console = Console::start(&folder, true);
    console.wait_for(RUN);
    console.wait_for("engine live");
    console.press(b"p");
    assert_eq!(engine.commands.recv_timeout(PATIENCE).unwrap(), Command::Pause);
    console.wait_for("pause the plan: done");
    // Without job control above it the stop is ignored: given back and taken again.
    console.press(b"\x1a");
    assert!(until(|| console.count(ENTER_SCREEN) == 2));
    console.wait_for(RUN);
    console.press(b"q");
    assert_eq!(console.ended(), format!("Ok(Detached {{ run: Some(RunId({RUN:?})) }})"));
    assert!(until(|| console.count(LEAVE_SCREEN) == 2));
    assert_eq!(console.count(SHOW_CURSOR), 2);
}

#[test]
fn a_console_leaves_a_terminal_that_hung_up() {
    let (folder, engine) = folder_and_engine();
    let mut console = Console::start(&folder, false);
    let mut reader = console.master.as_ref().unwrap().try_clone_reader().unwrap();
    let mut first = [0; 1];
    reader.read_exact(&mut first).unwrap();
    // It has a screen once a key has its effect.
    console.press(b"p");
    assert_eq!(engine.commands.recv_timeout(PATIENCE).unwrap(), Command::Pause);
    drop((reader, console.keys.take(), console.master.take()));
    let ended = console.ended();
    assert!(ended.starts_with("Ok(HungUp"), "{ended}");
}

#[test]
fn a_stalled_terminal_stops_neither_keys_nor_leaving() {
    let (folder, engine) = folder_and_engine();
    let mut console = Console::start(&folder, false);
    console.press(b"p");
    assert_eq!(engine.commands.recv_timeout(PATIENCE).unwrap(), Command::Pause);
    // Nobody reads: whole frames fill whatever holds the terminal's output, and more.
    for _ in 0..100 {
        console.press(b"\x0cp");
        assert_eq!(engine.commands.recv_timeout(PATIENCE).unwrap(), Command::Pause);
        thread::sleep(Duration::from_millis(40));
    }
    console.press(b"S");
    let stop = engine.commands.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(stop, Command::StopCell { .. }));
    console.press(b"q");
    let ended = console.ended();
    assert!(ended.starts_with("Ok(Detached"), "{ended}");
}

#[test]
fn a_lost_engine_is_said_and_found_again() {
    let (folder, engine) = folder_and_engine();
    let mut console = Console::start(&folder, true);
    console.wait_for("engine live");
    drop(engine);
    console.wait_for("ENGINE LOST");
    let engine = FakeEngine::start(&folder.path().join("engine.sock"), PROTOCOL);
    console.wait_for("engine live");
    drop(engine);
    console.wait_for("ENGINE LOST");
    console.press(b"q");
    let ended = console.ended();
    assert!(ended.starts_with("Ok(Lost"), "{ended}");
}

#[test]
fn the_end_of_a_run_is_shown_until_it_is_read() {
    let (folder, _engine) = folder_and_engine();
    let mut console = Console::start(&folder, true);
    console.wait_for("engine live");
    console.press(format!("T{RUN}\r").as_bytes());
    console.wait_for("RUN ENDED");
    console.wait_for("all is removed");
    console.press(b"q");
    let ended = console.ended();
    assert_eq!(ended, "Ok(Ended { exit_code: 0, text: \"all is removed\" })");
}

#[test]
fn a_signal_to_end_detaches() {
    let (folder, _engine) = folder_and_engine();
    let mut console = Console::start(&folder, true);
    console.wait_for("engine live");
    console.terminate();
    let ended = console.ended();
    assert!(ended.starts_with("Ok(Detached"), "{ended}");
    assert!(until(|| console.count(LEAVE_SCREEN) == 1));
}

#[test]
fn a_signal_after_the_run_tells_how_it_ended() {
    let (folder, _engine) = folder_and_engine();
    let mut console = Console::start(&folder, true);
    console.wait_for("engine live");
    console.press(format!("T{RUN}\r").as_bytes());
    console.wait_for("RUN ENDED");
    console.terminate();
    let ended = console.ended();
    assert_eq!(ended, "Ok(Ended { exit_code: 0, text: \"all is removed\" })");
}

#[test]
fn an_engine_of_another_protocol_is_refused_on_an_untouched_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let _engine = FakeEngine::start(&folder.path().join("engine.sock"), PROTOCOL + 1);
    let mut console = Console::start(&folder, true);
    let ended = console.ended();
    assert!(ended.starts_with("Err(Protocol"), "{ended}");
    assert_eq!(console.count(ENTER_SCREEN), 0);
}
