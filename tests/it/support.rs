//! A place of its own for each test: data folder, lab folder, sockets; the binary in it, alone or
//! in a pseudo-terminal; and a PostgreSQL that rampdeck did not start.

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use portable_pty::{CommandBuilder, MasterPty, PtySize, native_pty_system};
use serde_json::Value;
use tempfile::TempDir;

/// The longest that anything here is waited for.
pub const PATIENCE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(25);

/// Waits until `probe` gives something, and fails with `what` if it never does.
pub fn wait_for<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain: {what}");
        std::thread::sleep(POLL);
    }
}

/// A place of its own.
pub struct Place {
    folder: TempDir,
}

impl Place {
    pub fn new() -> Self {
        // Below a folder that the lab's unprivileged user can reach, and with a short name: sockets
        // live in it.
        let folder = tempfile::Builder::new().prefix("rd-").tempdir_in("/tmp").unwrap();
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["data", "lab"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        std::fs::set_permissions(folder.path().join("lab"), std::fs::Permissions::from_mode(0o755))
            .unwrap();
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file and gives its path.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        vec![("XDG_DATA_HOME", self.path("data")), ("RAMPDECK_LAB_DIR", self.path("lab"))]
    }

    /// The binary with these arguments, not yet started.
    pub fn rampdeck(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rampdeck"));
        command.args(arguments).envs(self.environment()).stdin(Stdio::null());
        for name in ["PGPASSWORD", "SSH_CONNECTION", "SSH_TTY", "NO_COLOR", "RAMPDECK_THEME"] {
            command.env_remove(name);
        }
        command
    }

    /// Runs the binary to its end.
    pub fn output(&self, arguments: &[&str]) -> Output {
        self.rampdeck(arguments).output().unwrap()
    }

    /// Starts a headless run, whose lines can be read as they come.
    pub fn headless(&self, arguments: &[&str]) -> Headless {
        let mut child = self
            .rampdeck(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        std::thread::spawn(move || {
            for line in std::io::BufRead::lines(std::io::BufReader::new(stdout)) {
                let Ok(line) = line else { return };
                let value = serde_json::from_str(&line)
                    .unwrap_or_else(|e| panic!("a headless line is not JSON: {e}: {line}"));
                sink.lock().unwrap().push(value);
            }
        });
        Headless { child, lines }
    }

    /// The newest run of this place, by `rampdeck runs`.
    pub fn newest_run(&self) -> Option<Value> {
        let output = self.output(&["runs", "--json"]);
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .last()
            .map(|line| serde_json::from_str(line).unwrap())
    }

    /// Starts the binary in a pseudo-terminal.
    pub fn terminal(&self, columns: u16, rows: u16, arguments: &[&str]) -> Terminal {
        self.terminal_with(columns, rows, arguments, &[])
    }

    /// The same, with more in its environment.
    pub fn terminal_with(
        &self,
        columns: u16,
        rows: u16,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Terminal {
        let pair = native_pty_system()
            .openpty(PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 })
            .unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_rampdeck"));
        command.args(arguments);
        for (name, value) in self.environment() {
            command.env(name, value);
        }
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        for name in ["LC_ALL", "SSH_CONNECTION", "SSH_TTY", "NO_COLOR", "RAMPDECK_THEME"] {
            command.env_remove(name);
        }
        for (name, value) in environment {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let seen = Arc::clone(&screen);
        let open = Arc::new(AtomicBool::new(true));
        let still_open = Arc::clone(&open);
        let (held, drawn) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (is_held, count) = (Arc::clone(&held), Arc::clone(&drawn));
        std::thread::spawn(move || {
            let mut bytes = [0; 8192];
            while let Ok(n @ 1..) = reader.read(&mut bytes) {
                while is_held.load(Ordering::Relaxed) && still_open.load(Ordering::Relaxed) {
                    std::thread::sleep(POLL);
                }
                if !still_open.load(Ordering::Relaxed) {
                    return;
                }
                count.fetch_add(n as u64, Ordering::Relaxed);
                seen.lock().unwrap().process(&bytes[..n]);
            }
        });
        let writer = pair.master.take_writer().unwrap();
        let (writer, master) = (Some(writer), Some(pair.master));
        Terminal { child, screen, open, held, drawn, writer, master }
    }

    /// Processes of this place that are still alive, by the lab folder or the data folder in what
    /// the system says of them.
    pub fn processes(&self) -> Vec<String> {
        let needle = self.folder.path().to_str().unwrap().to_owned();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let path = entry.path();
            let Some(pid) = path.file_name().and_then(|n| n.to_str()?.parse::<u32>().ok()) else {
                continue;
            };
            if pid == std::process::id() {
                continue;
            }
            let environment = std::fs::read(path.join("environ")).unwrap_or_default();
            let command = std::fs::read(path.join("cmdline")).unwrap_or_default();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\0', " ");
            if text(&environment).contains(&needle) || text(&command).contains(&needle) {
                found.push(format!("{pid} {}", text(&command)));
            }
        }
        found
    }

    /// Nothing of this place's runs is left: no process, no lab folder, no socket.
    pub fn assert_nothing_left(&self) {
        wait_for("processes of the run to be gone", || self.processes().is_empty().then_some(()));
        let lab: Vec<_> = std::fs::read_dir(self.path("lab")).unwrap().flatten().collect();
        assert!(lab.is_empty(), "left in the lab folder: {lab:?}");
        let sockets = std::fs::read_dir(self.path("data/rampdeck/sockets"));
        let sockets: Vec<_> = sockets.into_iter().flatten().flatten().collect();
        assert!(sockets.is_empty(), "left of the sockets: {sockets:?}");
    }
}

impl Drop for Place {
    /// A test that failed leaves a run behind: it is torn down with the product's own command.
    fn drop(&mut self) {
        if let Some(run) = std::thread::panicking().then(|| self.newest_run()).flatten() {
            let _ = self.output(&["teardown", run["run"].as_str().unwrap_or_default(), "--yes"]);
        }
    }
}

/// A headless run.
pub struct Headless {
    pub child: Child,
    lines: Arc<Mutex<Vec<Value>>>,
}

impl Headless {
    pub fn lines(&self) -> Vec<Value> {
        self.lines.lock().unwrap().clone()
    }

    /// Waits for a line that `wanted` accepts.
    pub fn wait(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        wait_for(what, || self.lines.lock().unwrap().iter().find(|line| wanted(line)).cloned())
    }

    /// Waits for an event of this name.
    pub fn event(&self, name: &str) -> Value {
        self.wait(name, |line| line["event"] == name)
    }

    /// Waits for the end and gives the exit code.
    pub fn end(&mut self) -> i32 {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            assert!(began.elapsed() < 3 * PATIENCE, "the headless run does not end");
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Headless {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The binary in a pseudo-terminal.
pub struct Terminal {
    pub child: Box<dyn portable_pty::Child + Send + Sync>,
    screen: Arc<Mutex<vt100::Parser>>,
    open: Arc<AtomicBool>,
    held: Arc<AtomicBool>,
    drawn: Arc<AtomicU64>,
    writer: Option<Box<dyn Write + Send>>,
    master: Option<Box<dyn MasterPty + Send>>,
}

impl Terminal {
    pub fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    pub fn is_alternate(&self) -> bool {
        self.screen.lock().unwrap().screen().alternate_screen()
    }

    /// Bytes that the program has written.
    pub fn drawn(&self) -> u64 {
        self.drawn.load(Ordering::Relaxed)
    }

    /// Has the terminal stop reading, or go on.
    pub fn hold(&self, held: bool) {
        self.held.store(held, Ordering::Relaxed);
    }

    pub fn keys(&mut self, keys: &str) {
        let writer = self.writer.as_mut().unwrap();
        writer.write_all(keys.as_bytes()).unwrap();
        writer.flush().unwrap();
    }

    /// Waits until the screen satisfies `wanted`.
    pub fn wait(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let text = self.text();
            if wanted(&text) {
                return text;
            }
            assert!(began.elapsed() < PATIENCE, "the screen never showed: {what}\n{text}");
            std::thread::sleep(POLL);
        }
    }

    pub fn wait_text(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contains(text))
    }

    pub fn resize(&self, columns: u16, rows: u16) {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        self.master.as_ref().unwrap().resize(size).unwrap();
        self.screen.lock().unwrap().screen_mut().set_size(rows, columns);
    }

    /// The terminal goes away, as when a window is closed or an SSH connection breaks. The thread
    /// that reads it holds it too, until the next thing it reads: the next drawn second.
    pub fn close(&mut self) {
        self.open.store(false, Ordering::Relaxed);
        self.writer = None;
        self.master = None;
    }

    pub fn end(&mut self) -> u32 {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.exit_code();
            }
            assert!(began.elapsed() < PATIENCE, "the program does not end\n{}", self.text());
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The value of a JSON file.
pub fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
