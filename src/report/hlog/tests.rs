use std::{fs, io::Write as _};

use super::*;
use crate::{
    model::{Class, Part, PartRecordings, PerClass, RunnerSample, TailSums},
    report::fixture::{STARTED, header, window},
};

/// Two windows of warm-up, three of the measured span, one of the drain.
fn written(path: &std::path::Path) {
    let mut writer = HlogWriter::create(path, &header("D1-001")).unwrap();
    let phases = [Phase::WarmUp, Phase::WarmUp, Phase::Measure, Phase::Measure, Phase::Measure];
    for (seq, phase) in (0..).zip(phases.into_iter().chain([Phase::Drain])) {
        writer.append(&window(seq, phase)).unwrap();
    }
    writer.finish().unwrap();
}

fn merged(seqs: &[u64]) -> (PerClass<PartRecordings>, TailSums) {
    let (mut classes, mut tail) = (PerClass::<PartRecordings>::default(), TailSums::default());
    for seq in seqs {
        let window = window(*seq, Phase::Measure);
        for class in Class::ALL {
            classes[class].merge(&window.classes[class]);
        }
        tail.merge(&window.tail);
    }
    (classes, tail)
}

#[test]
fn the_measured_span_comes_back_and_only_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("D1-001.hlog");
    written(&path);
    let log = read(&path).unwrap();
    assert_eq!(log.header, Some(header("D1-001")));
    assert_eq!(log.windows, 6);
    let span = log.measured.unwrap();
    assert_eq!((span.windows, span.seconds), (3, 3.0));
    assert_eq!(span.from, UnixMs(STARTED.0 + 2_000));
    assert_eq!(span.in_flight_before, 4);
    assert_eq!((span.counts.completed, span.counts.succeeded, span.counts.in_flight), (39, 36, 4));
    assert_eq!(span.counts.violated_identity(span.in_flight_before), None);
    assert_eq!(span.sqlstates["40001"], 6);
    let (classes, tail) = merged(&[2, 3, 4]);
    for class in Class::ALL {
        for part in Part::ALL {
            let (back, sent) = (span.classes[class].part(part), classes[class].part(part));
            assert_eq!((back.count(), back.overflow()), (sent.count(), sent.overflow()));
            for quantile in [0.5, 0.95, 0.99, 0.999, 1.0] {
                let (back, sent) = (back.quantile_ns(quantile), sent.quantile_ns(quantile));
                assert_eq!(back, sent, "{class} {} {quantile}", part.name());
            }
        }
    }
    assert_eq!(span.tail, tail);
    assert_eq!((span.failed.order_create, span.unknown.order_create), (3, 0));
    let runner: &RunnerSample = &span.runner;
    assert_eq!((runner.cpu_percent, runner.host_cpu_percent), (43.0, Some(80.0)));
    assert_eq!((runner.rss_mib, runner.loop_lag.count()), (34.0, 3));
    assert_eq!(runner.read_lag.count(), 6);
}

#[test]
fn a_log_cut_at_any_byte_gives_its_whole_windows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("D1-001.hlog");
    written(&path);
    let whole = fs::read(&path).unwrap();
    let cut_path = folder.path().join("cut.hlog");
    let mut most = 0;
    for length in (0..=whole.len()).step_by(97) {
        fs::write(&cut_path, &whole[..length]).unwrap();
        let log = read(&cut_path).unwrap();
        assert!(log.windows >= most, "a longer log never gives fewer windows");
        most = log.windows;
        let closed = whole[..length].windows(2).filter(|two| two == b"]\n").count() as u64;
        assert!(log.windows + 5 >= closed, "{length} bytes: {} of {closed}", log.windows);
        if let Some(span) = log.measured {
            assert_eq!(span.classes.product_lookup.response.count(), span.windows * 10);
        }
    }
    assert!(most >= 5);
}

#[test]
fn a_line_that_is_whole_and_wrong_is_told_by_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("D1-001.hlog");
    written(&path);
    let lines = fs::read_to_string(&path).unwrap().lines().count();
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"Tag=order_create.response,1.0,1.0,2.0,!!!\n").unwrap();
    let error = read(&path).unwrap_err().to_string();
    assert!(error.contains(&format!("D1-001.hlog, line {}: payload", lines + 1)), "{error}");
}

/// What public tools rely on, line by line.
#[test]
fn the_lines_are_those_of_the_log_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("D1-001.hlog");
    written(&path);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "#[Histogram log format version 1.3]");
    assert!(lines[3].starts_with("#[StartTime: 1760000000.250 (seconds since epoch), 2025-10-09T"));
    assert_eq!(lines[4], "#[BaseTime: 1760000000.250 (seconds since epoch)]");
    assert_eq!(
        lines[5],
        "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\""
    );
    let measured: Vec<_> =
        lines.iter().filter(|l| l.starts_with("Tag=product_lookup.response,")).collect();
    assert_eq!(measured.len(), 3);
    assert!(
        measured[0].starts_with("Tag=product_lookup.response,2.000,1.000,10.0"),
        "{}",
        measured[0]
    );
    // The cookie of a deflated V2 histogram in base64.
    assert!(measured[0].split(',').nth(4).unwrap().starts_with("HISTFAAA"));
    assert!(lines.iter().any(|l| l.starts_with("Tag=warmup.order_create.service,0.000,1.000,")));
    assert!(lines.iter().any(|l| l.starts_with("Tag=drain.runner.loop_lag,5.000,1.000,")));
    assert!(!text.contains("order_cancel."), "an empty recording has no line");
}
