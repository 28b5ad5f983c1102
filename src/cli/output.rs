//! A stream that may stall without holding up whoever writes to it.

use std::{
    collections::VecDeque,
    io::Write,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Lines that may wait for a reader: minutes of a run.
const CAPACITY: usize = 4096;

/// What a line is worth when there is no room for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    /// One of a kind.
    Event,
    /// Another one comes in a second.
    Figure,
}

/// Lines that did not fit because nobody read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    pub figures: u64,
    pub events: u64,
}

/// A stream with a thread of its own behind a bounded queue.
pub struct Output(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    capacity: usize,
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<(Worth, String)>,
    /// A line is being written.
    writing: bool,
    dropped: Dropped,
    closed: bool,
}

impl Output {
    pub fn new(stream: impl Write + Send + 'static) -> Self {
        Self::with_capacity(stream, CAPACITY)
    }

    fn with_capacity(stream: impl Write + Send + 'static, capacity: usize) -> Self {
        let queue = Mutex::new(Queue::default());
        let shared = Arc::new(Shared { queue, changed: Condvar::new(), capacity });
        let writer = Arc::clone(&shared);
        std::thread::spawn(move || writer.write_to(stream));
        Self(shared)
    }

    /// Puts a line in the queue; never waits. Where it is full, the oldest figures make room, and
    /// where there are none, the oldest event.
    pub fn line(&self, worth: Worth, line: String) {
        let mut queue = self.0.lock();
        if queue.lines.len() >= self.0.capacity {
            let figure = queue.lines.iter().position(|(worth, _)| *worth == Worth::Figure);
            if figure.is_none() && worth == Worth::Figure {
                queue.dropped.figures += 1;
                return;
            }
            match queue.lines.remove(figure.unwrap_or(0)) {
                Some((Worth::Figure, _)) => queue.dropped.figures += 1,
                Some((Worth::Event, _)) => queue.dropped.events += 1,
                None => {}
            }
        }
        queue.lines.push_back((worth, line));
        self.0.changed.notify_all();
    }

    /// What was dropped since this was asked last, once there is room again or `at_once`.
    pub fn dropped(&self, at_once: bool) -> Option<Dropped> {
        let mut queue = self.0.lock();
        let told = at_once || queue.lines.len() < self.0.capacity / 2;
        Some(std::mem::take(told.then_some(&mut queue.dropped)?))
            .filter(|dropped| *dropped != Dropped::default())
    }

    /// Waits until everything is written, at the longest until `deadline`; whether it is.
    pub fn finish(&self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut queue = self.0.lock();
        queue.closed = true;
        self.0.changed.notify_all();
        let waiting = |queue: &mut Queue| queue.writing || !queue.lines.is_empty();
        let waited = self.0.changed.wait_timeout_while(queue, left, waiting);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_to(&self, mut stream: impl Write) {
        loop {
            let idle = |queue: &mut Queue| queue.lines.is_empty() && !queue.closed;
            let waited = self.changed.wait_while(self.lock(), idle);
            let mut queue = waited.unwrap_or_else(PoisonError::into_inner);
            let Some((_, line)) = queue.lines.pop_front() else { return };
            queue.writing = true;
            drop(queue);
            // A reader that has gone is no reason to end: the run goes on, its files have
            // everything.
            let _ = writeln!(stream, "{line}").and_then(|()| stream.flush());
            self.lock().writing = false;
            self.changed.notify_all();
        }
    }
}

/// How long what is still to be written may take at the end.
pub const FINISH_LIMIT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use std::{
        io::{self, PipeWriter, Read},
        time::{Duration, Instant},
    };

    use super::*;

    const FULL: usize = 8;

    /// An output whose reader has not read yet, its thread stuck in a line that no pipe holds.
    fn stalled() -> (io::PipeReader, Output) {
        let (reader, writer): (_, PipeWriter) = io::pipe().unwrap();
        let output = Output::with_capacity(writer, FULL);
        output.line(Worth::Event, "x".repeat(4 << 20));
        while !output.0.lock().lines.is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        (reader, output)
    }

    fn read_all(mut reader: io::PipeReader) -> std::thread::JoinHandle<String> {
        std::thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).unwrap();
            text
        })
    }

    #[test]
    fn a_stalled_reader_loses_figures_first_and_is_told_how_many() {
        let (reader, output) = stalled();
        for n in 0..FULL {
            output.line(Worth::Figure, format!("figure {n}"));
        }
        assert_eq!(output.dropped(true), None);
        output.line(Worth::Figure, "figure last".to_owned());
        for n in 0..FULL {
            output.line(Worth::Event, format!("event {n}"));
        }
        output.line(Worth::Figure, "no room".to_owned());
        assert_eq!(output.dropped(false), None, "there is no room yet");
        assert_eq!(output.dropped(true), Some(Dropped { figures: 10, events: 0 }));
        output.line(Worth::Event, "event last".to_owned());
        assert_eq!(output.dropped(true), Some(Dropped { figures: 0, events: 1 }));
        assert!(!output.finish(Instant::now() + Duration::from_millis(50)));

        let text = read_all(reader);
        assert!(output.finish(Instant::now() + Duration::from_secs(60)));
        drop(output);
        let text = text.join().unwrap();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        let kept = ["event 1", "event 2", "event 3", "event 4", "event 5", "event 6", "event 7"];
        assert_eq!(lines, [&kept[..], &["event last"]].concat());
    }

    #[test]
    fn a_reader_that_has_gone_holds_nothing_up() {
        let (reader, output) = stalled();
        drop(reader);
        output.line(Worth::Event, "for nobody".to_owned());
        assert!(output.finish(Instant::now() + Duration::from_secs(60)));
    }
}
