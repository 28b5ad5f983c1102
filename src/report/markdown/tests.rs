use super::*;
use crate::{
    model::{Reason, ReasonCode, ResourceKind, RoundTrips, Verdict},
    report::{
        RemainingItem,
        fixture::{closed, open, record, summary},
    },
};

#[test]
fn closed_and_open_cells_are_told_apart() {
    let text = markdown(&summary(&[record("D1-001", closed(64)), record("R1-001", open(100.0))]));
    let closed_at = text.find("## Cells, closed loop").unwrap();
    let open_at = text.find("## Cells, open loop").unwrap();
    let (d1, r1) = (text.find("| D1 | D1-001 |").unwrap(), text.find("| R1 | R1-001 |").unwrap());
    assert!(closed_at < d1 && d1 < open_at && open_at < r1);
    assert!(!text.contains("Conditions differ"));
    assert!(text.contains("**REHEARSAL**"));
    assert!(text.contains("| 100/s on 32 | 4.0 | 10.0 / 10.0 | – |"), "{text}");
    assert!(text.contains("| 13.33 | 7.69 | 40.0 | **PASS** |"), "{text}");
    assert!(text.contains("31.20 USD accrued + 2.10–3.40 not yet published"));
    assert!(text.contains(
        "| D1 | DPU \\| distributed processing | 1784023 | DPU | 0.00001 | 17.84023 | simulated |"
    ));
    assert!(text.contains("None on record: what the run made may still be there."));
}

#[test]
fn differing_conditions_of_compared_cells_are_flagged() {
    let mut other = record("R1-001", closed(64));
    other.conditions.runner = "c6g.4xlarge".to_owned();
    other.conditions.round_trip_ms = Some(5.1);
    other.conditions.shape.round_trips = RoundTrips::Pipelined;
    let text = markdown(&summary(&[record("D1-001", closed(64)), other]));
    assert!(text.contains("**Conditions differ**"));
    assert!(text.contains("> - runner: m7g.4xlarge (D1-001); c6g.4xlarge (R1-001)"), "{text}");
    assert!(
        text.contains(
            "> - shape of the traffic: prepared, sequential, claim (D1-001); prepared, pipelined, \
             claim (R1-001)"
        ),
        "{text}"
    );
    assert!(text.contains("> - round trip: 1.712 ms (D1-001) to 5.100 ms (R1-001)"), "{text}");
    assert!(!text.contains("> - zone"));
}

#[test]
fn every_reason_is_told_and_text_from_elsewhere_stays_in_its_cell() {
    let mut failed = record("D1-001", closed(64));
    failed.verdict = Verdict::Fail;
    failed.reasons = vec![
        Reason { code: ReasonCode::Failures, text: "a | b\nc".to_owned() },
        Reason { code: ReasonCode::Rehearsal, text: "<b>second".to_owned() },
    ];
    let mut summary = summary(&[failed]);
    summary.run.rehearsal = false;
    summary.teardown = Some(TeardownSummary {
        started: "2025-10-09T08:53:20.250Z".to_owned(),
        ended: None,
        remaining_count: 1,
        remaining: vec![RemainingItem {
            kind: ResourceKind::Server,
            id: "server".to_owned(),
            state: "made".to_owned(),
            why: String::new(),
        }],
    });
    let text = markdown(&summary);
    assert!(text.contains("| **FAIL** | a \\| b c |"), "{text}");
    assert!(text.contains("- D1-001: \\<b>second"), "{text}");
    assert!(!text.contains("REHEARSAL"));
    assert!(text.contains("remaining_count = 1"));
    assert!(text.contains("| PostgreSQL server | server | made |  |"), "{text}");
}

#[test]
fn errors_tails_and_overflow_of_each_cell_are_told() {
    let text = markdown(&summary(&[record("D1-001", closed(64))]));
    assert!(text.contains("Who made the slowest 1 %:\n\n- D1-001: p99 "), "{text}");
    let errors = "| cell | SQLSTATE | count |\n|---|---|---:|\n| D1-001 | 40001 | 2 |\n\
                  | D1-001 | XX000 | 1 |\n";
    assert!(text.contains(errors), "{text}");
    assert!(
        text.contains("| D1-001 | order create | 120057.8 | unbounded | unbounded | 1 | 0 |"),
        "{text}"
    );
    assert!(text.contains("| D1-001 | all | "), "{text}");
    assert!(!text.contains("| D1-001 | product lookup | "), "its successes say it all: {text}");
    assert!(
        text.contains("**Overflow**: 1 of 12 response times of D1-001 were above 120 s"),
        "{text}"
    );
}

#[test]
fn a_run_without_cells_says_so() {
    assert!(markdown(&summary(&[])).contains("No cell was started."));
}
