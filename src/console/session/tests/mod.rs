//! The console in a pseudo-terminal, against an engine that is only a socket. The console runs in a
//! process of its own: this test binary, started again with one test chosen.

mod basics;
mod endings;
mod storm;

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::{
    fs::{Mode, OFlags},
    process::Signal,
    termios::LocalModes,
};
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
/// Where the console's process looks for the sign to panic.
const PANIC: &str = "RAMPDECK_TEST_PANIC";
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
        tone: Default::default(),
        ascii: false,
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let exit = runtime.block_on(async {
        tokio::select! {
            exit = super::run(options) => exit,
            never = panic_when_told() => never,
        }
    });
    let exit = format!("{exit:?}");
    std::fs::write(std::env::var_os(EXIT).unwrap(), exit).unwrap();
    // The test's own result would wait for the terminal; nothing is left to be told.
    std::process::exit(0);
}

/// Panics in the middle of the console's loop once there is a file.
async fn panic_when_told<T>() -> T {
    let sign = std::env::var_os(PANIC).map(PathBuf::from);
    loop {
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!sign.as_ref().is_some_and(|sign| sign.exists()), "told to");
    }
}

/// An engine that says what it must and notes the commands.
struct FakeEngine {
    commands: mpsc::Receiver<Command>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl FakeEngine {
    fn start(socket: &Path, protocol: u32) -> Self {
        Self::naming(socket, protocol, 1)
    }

    /// An engine that gives consoles this number; number 1 drives.
    fn naming(socket: &Path, protocol: u32, number: u32) -> Self {
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
                    () = serve(&listener, (protocol, number), &note) => {}
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

async fn serve(
    listener: &UnixListener,
    (protocol, number): (u32, u32),
    note: &mpsc::Sender<Command>,
) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (reader, writer) = stream.into_split();
        let (mut reader, mut writer) = (FrameReader::new(reader), FrameWriter::new(writer));
        let _: Option<ClientFrame> = reader.next().await.unwrap();
        let _ = writer
            .send(&ServerFrame::Welcome { protocol, build: "test".into(), console: number })
            .await;
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
        command.env(PANIC, folder.path().join("panic"));
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

    fn signal(&self, signal: Signal) {
        let pid = self.child.process_id().and_then(|pid| i32::try_from(pid).ok());
        let pid = rustix::process::Pid::from_raw(pid.unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    fn resize(&self, cols: u16, rows: u16) {
        let size = PtySize { rows, cols, pixel_width: 0, pixel_height: 0 };
        self.master.as_ref().unwrap().resize(size).unwrap();
    }

    /// Whether the terminal echoes what is typed and gives whole lines, as a shell needs it.
    fn is_cooked(&self) -> bool {
        let name = self.master.as_ref().unwrap().tty_name().unwrap();
        let terminal = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty());
        let modes = rustix::termios::tcgetattr(terminal.unwrap()).unwrap().local_modes;
        modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG)
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
