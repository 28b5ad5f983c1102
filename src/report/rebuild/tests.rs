use super::*;
use crate::{
    model::{CellId, EventKind, Phase, ProcessIdentity, ResourceKind},
    report::fixture::{
        STARTED, attempt_reserved, cell_started, events, header, record, summary, window,
    },
};

fn resource(id: &str, kind: ResourceKind) -> Resource {
    Resource {
        kind,
        id: id.to_owned(),
        configuration: None,
        process: Some(ProcessIdentity { pid: 7, start: 9 }),
        path: None,
        port: None,
        note: String::new(),
        state: ResourceState::Made,
        since: STARTED,
    }
}

/// A run with one whole cell and two that were running when its engine was killed.
fn killed_run(root: &std::path::Path) -> RunFolder {
    let folder = RunFolder::create(root.join("run")).unwrap();
    let mut journal = folder.open_journal().unwrap();
    let kinds = vec![
        EventKind::RunStarted {
            run: "rehearse-1130-a7f3".to_owned(),
            plan: "rehearse".to_owned(),
            rehearsal: true,
            build: "0.1.0".to_owned(),
            pid: 4,
            seed: 7,
        },
        EventKind::ResourceMade { resource: resource("server", ResourceKind::Server) },
        attempt_reserved("D1-001", 1),
        cell_started("D1-001"),
        attempt_reserved("D1-002", 2),
        cell_started("D1-002"),
        attempt_reserved("R1-001", 3),
        cell_started("R1-001"),
    ];
    for event in events(kinds) {
        journal.append(&event).unwrap();
    }
    folder.write_cell(&record("D1-001", crate::report::fixture::open(100.0))).unwrap();
    let mut log = folder.create_hlog(&header("D1-002")).unwrap();
    for (seq, phase) in [(0, Phase::WarmUp), (1, Phase::Measure), (2, Phase::Measure)] {
        log.append(&window(seq, phase)).unwrap();
    }
    folder
}

#[test]
fn a_killed_run_keeps_what_its_cells_had_measured() {
    let root = tempfile::tempdir().unwrap();
    let folder = killed_run(root.path());
    assert!(matches!(rebuild(&folder), Err(ReportError::NoSummary { .. })));
    folder.write_summary(&summary(&[])).unwrap();
    let rebuilt = rebuild(&folder).unwrap();
    let d1 = &rebuilt.configurations[0];
    assert_eq!(d1.cells.len(), 2);
    assert_eq!((d1.cells[0].verdict, d1.cells[1].verdict), (Verdict::Pass, Verdict::Invalid));
    let lost = &d1.cells[1];
    assert_eq!((lost.id.clone(), lost.attempt), (CellId::new("D1-002"), 2));
    assert_eq!(lost.reasons[0].code, ReasonCode::EngineLost);
    assert!(lost.reasons[0].text.contains("2.0 s of 5.0 s"), "{}", lost.reasons[0].text);
    assert_eq!(lost.counts.succeeded, 24);
    assert_eq!(lost.counts.violated_identity(0), None);
    assert_eq!((lost.all.count, lost.classes.product_lookup.count), (24, 20));
    assert!((lost.tps.succeeded - 12.0).abs() < 1e-9);
    assert_eq!(lost.conditions.runner, "m7g.4xlarge");
    assert!((lost.runner.cpu_percent - 41.5).abs() < 1e-9);
    let never = &rebuilt.configurations[1].cells[0];
    assert_eq!((never.verdict, never.counts.completed), (Verdict::Invalid, 0));
    assert_eq!(never.conditions.beside[0].as_str(), "R1");
    assert!(never.reasons[0].text.ends_with("nothing was measured"));
    assert_eq!((rebuilt.teardown, rebuilt.run.ended), (None, None));
    folder.write_summary(&rebuild(&folder).unwrap()).unwrap();
    assert_eq!(rebuild(&folder).unwrap(), folder.read_summary().unwrap(), "again is the same");
}

#[test]
fn a_teardown_is_told_as_the_journal_has_it() {
    let root = tempfile::tempdir().unwrap();
    let folder = killed_run(root.path());
    let told = |kinds: Vec<EventKind>| {
        let mut journal = folder.open_journal().unwrap();
        for event in events(kinds) {
            journal.append(&event).unwrap();
        }
        rebuild_from(&folder, summary(&[])).unwrap()
    };
    let began = told(vec![EventKind::TeardownStarted { by: "operator".to_owned(), resources: 1 }]);
    let teardown = began.teardown.unwrap();
    assert_eq!((teardown.ended, teardown.remaining_count), (None, 1));
    assert_eq!(
        (teardown.remaining[0].id.as_str(), teardown.remaining[0].state.as_str()),
        ("server", "made")
    );
    let stuck = told(vec![EventKind::TeardownEnded {
        remaining_count: 1,
        remaining: vec!["PostgreSQL server server: does not stop".to_owned()],
    }]);
    let teardown = stuck.teardown.unwrap();
    assert_eq!(stuck.run.ended, teardown.ended);
    assert!(teardown.remaining[0].why.ends_with("does not stop"));
    let gone = told(vec![
        EventKind::TeardownStarted { by: "command line".to_owned(), resources: 1 },
        EventKind::ResourceGone { id: "server".to_owned() },
        EventKind::TeardownEnded { remaining_count: 0, remaining: Vec::new() },
    ]);
    let teardown = gone.teardown.unwrap();
    assert_eq!((teardown.remaining_count, teardown.remaining.len()), (0, 0));
    assert!(teardown.ended.is_some());
}

#[test]
fn a_spoilt_log_costs_only_its_own_cells_figures() {
    let root = tempfile::tempdir().unwrap();
    let folder = killed_run(root.path());
    std::fs::write(folder.cell_hlog(&CellId::new("D1-002")), "spoilt\n").unwrap();
    let rebuilt = rebuild_from(&folder, summary(&[])).unwrap();
    let [whole, spoilt] = &rebuilt.configurations[0].cells[..] else { panic!("two cells") };
    assert_eq!((whole.counts.succeeded, spoilt.counts.succeeded), (12, 0));
    assert!(spoilt.reasons[0].text.contains("D1-002.hlog, line 1"), "{}", spoilt.reasons[0].text);
}
