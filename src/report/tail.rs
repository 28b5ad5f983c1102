//! Who made a cell's tail, in words.

use crate::model::{Blamed, CellResult, Part, TailParts, ThreadSample};

/// From which quantile on a transaction belongs to the tail.
pub const TAIL_QUANTILE: f64 = 0.99;

/// A mean that exceeds a percentile by less is the same: recordings keep three digits.
const SAME: f64 = 1.005;

/// Who made the slowest hundredth of a cell's transactions slow, for example "p99 189 ms: 176 ms
/// generator, thread 1 stalled". Beside the p99 stands the mean of what the blamed made over the
/// transactions at or above it; where that is more than the p99, the mean of the whole is there too.
/// Arrivals that never got a connection are in no recording: they are told of. Empty where nothing succeeded or nothing took any time.
#[must_use]
pub fn tail_words(result: &CellResult) -> String {
    let Some(tail) = result.tail.mean_above(TAIL_QUANTILE) else { return String::new() };
    let blamed = tail.blamed();
    let response = result.classes.overall(Part::Response);
    let Some(p99) = response.quantile_ms(TAIL_QUANTILE) else { return String::new() };
    if blamed == Blamed::None {
        return String::new();
    }
    let detail = match blamed {
        Blamed::Generator => stalled(&result.runner.threads),
        Blamed::Database => held(&tail),
        Blamed::Pool => ", too few connections for what transactions ordinarily take".to_owned(),
        Blamed::None => String::new(),
    };
    let made = tail.made_by_ms(blamed);
    let mean = if made > p99 * SAME {
        format!(", beyond it {} ms on average", fine(tail.response_ms()))
    } else {
        String::new()
    };
    let (p99, made) = (fine(p99), fine(made));
    format!("p99 {p99} ms{mean}: {made} ms {}{detail}{}", blamed.name(), unserved(result))
}

/// Arrivals that no connection was free for in time.
fn unserved(result: &CellResult) -> String {
    match result.counts.never_attempted {
        0 => String::new(),
        count => format!("; {count} of {} got no connection in time", result.counts.offered),
    }
}

/// The load threads that were stalled.
fn stalled(threads: &[ThreadSample]) -> String {
    let stalled: Vec<String> =
        threads.iter().filter(|t| t.stalls > 0).map(|t| t.thread.to_string()).collect();
    match stalled.as_slice() {
        [] => String::new(),
        [one] => format!(", thread {one} stalled"),
        all if all.len() == threads.len() => ", every thread stalled".to_owned(),
        some => format!(", threads {} stalled", some.join(", ")),
    }
}

fn held(tail: &TailParts) -> String {
    let waited = tail.wait_on_database_ms;
    if waited > tail.database_ms() / 2.0 {
        format!(", {} ms of it waiting for connections that it held", fine(waited))
    } else {
        String::new()
    }
}

/// Milliseconds, to a digit that means something.
fn fine(ms: f64) -> String {
    if ms >= 100.0 {
        format!("{ms:.0}")
    } else if ms >= 1.0 {
        format!("{ms:.1}")
    } else {
        format!("{ms:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{Load, PartRecordings, PerClass, ResponseParts, TailSums},
        report::fixture::record,
    };

    const MS: u64 = 1_000_000;

    fn result(parts: ResponseParts, threads: Vec<ThreadSample>) -> CellResult {
        let mut result = record("D1-001", Load::Closed { connections: 1 }).result;
        let (mut tail, mut recordings) = (TailSums::default(), PartRecordings::default());
        tail.record(&parts);
        recordings.response.record(parts.response_ns());
        result.tail = tail;
        result.classes = PerClass { product_lookup: recordings, ..PerClass::default() };
        result.runner.threads = threads;
        result
    }

    fn thread(thread: u32, stalls: u64) -> ThreadSample {
        ThreadSample { thread, stalls, ..ThreadSample::default() }
    }

    #[test]
    fn a_stalled_thread_is_named() {
        let parts = ResponseParts {
            schedule_lag_ns: 176 * MS,
            connection_wait_ns: 10 * MS,
            service_ns: 3 * MS,
            ..ResponseParts::default()
        };
        let words = |threads| tail_words(&result(parts, threads));
        assert_eq!(
            words(vec![thread(0, 0), thread(1, 12)]),
            "p99 189 ms: 176 ms generator, thread 1 stalled"
        );
        assert!(words(vec![thread(0, 1), thread(1, 1)]).ends_with(", every thread stalled"));
        let three = vec![thread(0, 1), thread(1, 0), thread(2, 9)];
        assert!(words(three).ends_with("generator, threads 0, 2 stalled"));
        assert!(words(vec![]).ends_with("176 ms generator"));
    }

    #[test]
    fn a_database_that_held_the_connections_and_a_pool_that_is_too_small_are_told_apart() {
        let frozen = ResponseParts {
            connection_wait_ns: 14_000 * MS,
            service_ns: 2 * MS,
            wait_on_database_ns: 13_900 * MS,
            ..ResponseParts::default()
        };
        let words = tail_words(&result(frozen, vec![thread(0, 3)]));
        assert!(
            words.ends_with(
                "13902 ms database, 13900 ms of it waiting for connections that it held"
            ),
            "{words}"
        );
        let small = ResponseParts { wait_on_database_ns: 100 * MS, ..frozen };
        let words = tail_words(&result(small, Vec::new()));
        assert!(words.contains("13900 ms pool, too few connections"), "{words}");
    }

    #[test]
    fn nothing_is_said_of_nothing() {
        let mut nothing = result(ResponseParts::default(), Vec::new());
        assert_eq!(tail_words(&nothing), "");
        nothing.tail = TailSums::default();
        assert_eq!(tail_words(&nothing), "");
    }

    #[test]
    fn a_part_that_is_more_than_the_p99_is_told_beside_the_mean_of_the_whole() {
        let service = |ms: u64| ResponseParts { service_ns: ms * MS, ..ResponseParts::default() };
        let mut cell = result(service(10), Vec::new());
        for _ in 0..98 {
            cell.tail.record(&service(10));
            cell.classes.product_lookup.response.record(10 * MS);
        }
        cell.tail.record(&service(5_000));
        cell.classes.product_lookup.response.record(5_000 * MS);
        let words = tail_words(&cell);
        assert!(words.starts_with("p99 10.0 ms, beyond it "), "{words}");
        cell.counts.never_attempted = 3;
        let words = tail_words(&cell);
        assert!(words.ends_with("; 3 of 13 got no connection in time"), "{words}");
    }
}
