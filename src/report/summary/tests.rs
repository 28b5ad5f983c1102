use serde_json::{Value, json};

use super::*;
use crate::{
    model::{RunState, TeardownItem, TeardownStatus, UnixMs},
    report::{
        RunFolder,
        fixture::{
            STARTED, closed, configurations, cost_lines, cost_status, open, record, run_header,
            summary,
        },
    },
};

#[test]
fn the_contract_holds_field_by_field() {
    let value = serde_json::to_value(summary(&[record("D1-001", open(100.0))])).unwrap();
    assert_eq!(value["schema"], 1);
    assert_eq!(
        value["run"],
        json!({
            "id": "rehearse-1130-a7f3", "plan": "rehearse", "seed": 7,
            "started": "2025-10-09T08:53:20.250Z", "ended": null, "rehearsal": true,
            "build": "0.1.0",
            "slo": {"read": {"p95_ms": 50.0, "p99_ms": 100.0},
                    "write": {"p95_ms": 100.0, "p99_ms": 200.0}, "failed_percent": 0.1}
        })
    );
    let configuration = &value["configurations"][0];
    assert_eq!(configuration["cost"], json!({"accrued": "1.5", "basis": "simulated"}));
    let cell = &configuration["cells"][0];
    assert_eq!(
        cell["load"],
        json!({"kind": "open", "connections": 32, "rate": 100.0, "arrivals": "poisson"})
    );
    assert_eq!(cell["conditions"]["round_trip_ms"], 1.712);
    assert_eq!(cell["counts"]["never_attempted"], 0);
    assert_eq!(cell["sqlstates"], json!({"40001": 2, "XX000": 1}));
    assert_eq!(cell["tps"], json!({"offered": 4.333, "achieved": 4.333, "succeeded": 4.0}));
    assert_eq!(cell["invariants"], json!({"checked": 12, "violations": 0, "first": []}));
    assert_eq!((&cell["verdict"], &cell["reasons"]), (&json!("PASS"), &json!([])));
    let cost = &value["cost"];
    assert_eq!((&cost["accrued"], &cost["unpublished"]), (&json!("31.20"), &json!(["2.1", "3.4"])));
    assert_eq!(cost["lines"][0]["amount"], "17.84023");
    assert_eq!(value["teardown"], Value::Null);
}

#[test]
fn latency_is_by_class_and_merged() {
    let value = serde_json::to_value(summary(&[record("D1-001", closed(16))])).unwrap();
    let cell = &value["configurations"][0]["cells"][0];
    assert_eq!(
        cell["load"],
        json!({"kind": "closed", "connections": 16, "rate": null, "arrivals": null})
    );
    let lookup = &cell["classes"]["product_lookup"];
    assert_eq!(lookup["count"], 10);
    let p50 = lookup["response_ms"]["p50"].as_f64().unwrap();
    assert!((5.0..5.01).contains(&p50), "{p50}");
    let none = json!({"p50": null, "p95": null, "p99": null, "p999": null, "max": null});
    assert_eq!(cell["classes"]["order_cancel"]["service_ms"], none);
    assert_eq!((&cell["all"]["count"], &cell["all"]["overflow"]), (&json!(12), &json!(1)));
    assert_eq!(cell["classes"]["order_create"]["overflow"], 1);
    assert_eq!(cell["tail"]["percentile"], 0.99);
    assert_eq!(cell["tail"]["blamed"], "database");
    assert_eq!(
        cell["tail"]["words"],
        "p99 120058 ms, beyond it 130000 ms on average: 130000 ms database"
    );
    assert_eq!(cell["tail"]["read_lag_ms"], 0.0);
    assert_eq!(cell["runner"]["read_lag_ms"]["p50"], 0.05);
    assert_eq!(cell["runner"]["threads"][1]["thread"], 1);
    assert_eq!(cell["runner"]["threads"][1]["stalls"], 12);
    assert_eq!(cell["runner"]["threads"][1]["loop_lag_ms"]["p99"], 152.346);
    assert_eq!(cell["runner"]["cpu_percent"], 40.0);
    for p in ["p50", "p95", "p99", "p999", "max"] {
        let ms = cell["all"]["response_ms"][p].as_f64().unwrap();
        assert!((ms * 1000.0 - (ms * 1000.0).round()).abs() < 1e-6, "{ms} has three decimals");
    }
}

#[test]
fn failures_count_as_unbounded_in_the_error_adjusted_percentiles() {
    let value = serde_json::to_value(summary(&[record("D1-001", closed(16))])).unwrap();
    let cell = &value["configurations"][0]["cells"][0];
    // Of ten lookups none failed, of three creates one.
    let lookup = &cell["classes"]["product_lookup"];
    assert_eq!((&lookup["failed"], &lookup["unbounded_from"]), (&json!(0), &Value::Null));
    assert_eq!(lookup["error_adjusted_ms"]["p99"], lookup["response_ms"]["p99"]);
    let create = &cell["classes"]["order_create"];
    assert_eq!((&create["failed"], &create["unknown"]), (&json!(1), &json!(0)));
    assert_eq!(create["unbounded_from"], 0.666_666);
    assert_eq!(create["error_adjusted_ms"]["p50"], create["response_ms"]["max"]);
    assert_eq!(create["error_adjusted_ms"]["p95"], Value::Null);
    let all = &cell["all"];
    assert_eq!((&all["failed"], &all["unbounded_from"]), (&json!(1), &json!(0.923_076)));
    assert_eq!(all["error_adjusted_ms"]["p95"], Value::Null);
    let cancel = &cell["classes"]["order_cancel"];
    assert_eq!(cancel["error_adjusted_ms"], json!({"p50": null, "p95": null, "p99": null}));
    assert_eq!(cancel["unbounded_from"], Value::Null);
}

#[test]
fn nothing_measured_is_null_or_nought_and_never_a_division_by_it() {
    let mut nothing = record("D1-001", closed(16));
    nothing.result.measured_s = 0.0;
    nothing.result.classes = PerClass::default();
    nothing.result.tail = crate::model::TailSums::default();
    nothing.invariants = None;
    nothing.conditions.round_trip_ms = None;
    nothing.result.round_trip_ms = None;
    let value = serde_json::to_value(summary(&[nothing])).unwrap();
    let cell = &value["configurations"][0]["cells"][0];
    assert_eq!(cell["tps"], json!({"offered": 0.0, "achieved": 0.0, "succeeded": 0.0}));
    assert_eq!(cell["tail"]["service_ms"], Value::Null);
    assert_eq!(cell["tail"]["blamed"], "none");
    assert_eq!(cell["conditions"]["round_trip_ms"], Value::Null);
    assert_eq!(cell["invariants"]["checked"], 0);
}

#[test]
fn what_a_teardown_left_is_named_with_its_state_and_why() {
    let item = |id: &str, state: &str, gone| TeardownItem {
        kind: ResourceKind::Folder,
        id: id.to_owned(),
        state: state.to_owned(),
        gone,
        since: STARTED,
    };
    let teardown = TeardownStatus {
        started: STARTED,
        ended: Some(UnixMs(STARTED.0 + 900)),
        items: vec![item("gate D1", "gone", true), item("data", "remains: busy: in use", false)],
        remaining_count: 1,
    };
    let summary = build(&SummaryInputs {
        header: &run_header(),
        ended: teardown.ended,
        configurations: &configurations(),
        cells: &[],
        cost: &cost_status(),
        cost_lines: &cost_lines(),
        teardown: Some(&teardown),
    });
    let value = serde_json::to_value(&summary).unwrap();
    assert_eq!(
        value["teardown"],
        json!({"started": "2025-10-09T08:53:20.250Z", "ended": "2025-10-09T08:53:21.150Z",
               "remaining_count": 1,
               "remaining": [{"kind": "folder", "id": "data", "state": "remains",
                              "why": "busy: in use"}]})
    );
    assert_eq!(value["run"]["ended"], value["teardown"]["ended"]);
}

#[test]
fn a_summary_reads_back_and_another_schema_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(root.path().join("run")).unwrap();
    let written = summary(&[record("D1-001", open(100.0)), record("X9-001", closed(4))]);
    assert_eq!(written.configurations.len(), 3, "a cell is never left out");
    folder.write_summary(&written).unwrap();
    assert_eq!(folder.read_summary().unwrap(), written);
    std::fs::write(folder.summary(), "{\"schema\": 9}").unwrap();
    let error = folder.read_summary().unwrap_err().to_string();
    assert!(error.ends_with("has schema 9, this rampdeck reads schema 1"), "{error}");
    let ended = RunState::Ended { exit_code: 0 };
    std::fs::write(folder.summary(), serde_json::to_string(&ended).unwrap()).unwrap();
    assert!(matches!(folder.read_summary(), Err(ReportError::Json { .. })));
}
