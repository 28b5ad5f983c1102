//! The contract of `summary.json`, held against what a run wrote.

use serde_json::Value;

const CLASSES: [&str; 4] = ["product_lookup", "order_history", "order_create", "order_cancel"];

/// Every cell of a summary.
pub fn cells(summary: &Value) -> Vec<&Value> {
    let configurations = summary["configurations"].as_array().unwrap();
    configurations.iter().flat_map(|c| c["cells"].as_array().unwrap()).collect()
}

/// A count of a cell.
pub fn count(cell: &Value, name: &str) -> u64 {
    cell["counts"][name].as_u64().unwrap_or_else(|| panic!("no count {name}: {}", cell["counts"]))
}

/// The summary has every field of the contract, and each cell's identities hold exactly.
pub fn assert_holds(summary: &Value) {
    assert_eq!(summary["schema"], 1);
    for field in ["id", "plan", "seed", "started", "ended", "rehearsal", "build", "slo"] {
        assert!(!summary["run"][field].is_null(), "run.{field}: {}", summary["run"]);
    }
    for field in
        ["currency", "accrued", "unpublished", "projected", "guard", "cap", "basis", "lines"]
    {
        assert!(!summary["cost"][field].is_null(), "cost.{field}: {}", summary["cost"]);
    }
    let money = |text: &Value| text.as_str().unwrap().parse::<f64>().unwrap();
    let lines = summary["cost"]["lines"].as_array().unwrap();
    let sum: f64 = lines.iter().map(|line| money(&line["amount"])).sum();
    assert!((sum - money(&summary["cost"]["accrued"])).abs() < 1e-6, "the lines add up: {sum}");
    for configuration in summary["configurations"].as_array().unwrap() {
        for field in ["id", "kind", "cost"] {
            assert!(!configuration[field].is_null(), "{field}: {configuration}");
        }
    }
    for cell in cells(summary) {
        assert_cell(cell);
    }
}

fn assert_cell(cell: &Value) {
    for field in [
        "id",
        "stage",
        "attempt",
        "started",
        "load",
        "warmup_s",
        "measure_s",
        "conditions",
        "counts",
        "sqlstates",
        "tps",
        "classes",
        "all",
        "tail",
        "runner",
        "verdict",
        "reasons",
    ] {
        assert!(!cell[field].is_null(), "{field}: {cell}");
    }
    assert!(
        ["PASS", "FAIL", "INCONCLUSIVE", "INVALID"].contains(&cell["verdict"].as_str().unwrap())
    );
    let n = |name| count(cell, name);
    assert_eq!(n("offered"), n("completed") + n("shed") + n("in_flight"), "{cell}");
    let ended = n("succeeded") + n("business_rejected") + n("failed") + n("unknown");
    assert_eq!(n("completed"), ended, "{cell}");
    assert_eq!(n("attempts") + n("never_attempted"), n("completed") + n("retries"), "{cell}");
    let by_class: u64 =
        CLASSES.iter().map(|class| cell["classes"][*class]["count"].as_u64().unwrap()).sum();
    assert_eq!(by_class, n("succeeded"), "the classes add up: {cell}");
    for class in CLASSES {
        for part in ["response_ms", "service_ms", "connection_wait_ms", "schedule_lag_ms"] {
            let quantiles = &cell["classes"][class][part];
            for name in ["p50", "p95", "p99", "p999", "max"] {
                assert!(quantiles.get(name).is_some(), "{class}.{part}.{name}");
            }
        }
    }
    assert_adjusted(cell);
    assert_tail(cell);
}

/// Failures by class and the percentiles in which they count.
fn assert_adjusted(cell: &Value) {
    let classes = CLASSES.map(|class| &cell["classes"][class]);
    for summary in classes.iter().chain([&&cell["all"]]) {
        for (name, quantile) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
            let unbounded = summary["unbounded_from"].as_f64().is_some_and(|from| quantile > from);
            let nothing = summary["count"] == 0;
            let figure = &summary["error_adjusted_ms"][name];
            assert_eq!(figure.is_null(), unbounded || nothing, "{name}: {summary}");
        }
    }
    for name in ["failed", "unknown"] {
        let by_class: u64 = classes.iter().map(|class| class[name].as_u64().unwrap()).sum();
        let without_class = count(cell, "never_attempted");
        let all = count(cell, name);
        assert_eq!(cell["all"][name], all, "{cell}");
        assert!(by_class <= all && all <= by_class + without_class, "{name}: {cell}");
    }
}

/// The tail's parts of parts are no larger than these, and it is told in words.
fn assert_tail(cell: &Value) {
    let tail = &cell["tail"];
    let ms = |name: &str| tail[name].as_f64();
    if let (Some(service), Some(wait)) = (ms("service_ms"), ms("connection_wait_ms")) {
        assert!(ms("read_lag_ms").unwrap() <= service + 0.002, "{tail}");
        let waits = ms("wait_on_database_ms").unwrap() + ms("wait_on_generator_ms").unwrap();
        assert!(waits <= wait + 0.002, "{tail}");
        let blamed = tail["blamed"].as_str().unwrap();
        assert!(tail["words"].as_str().unwrap().contains(blamed), "{tail}");
    }
    for thread in cell["runner"]["threads"].as_array().unwrap() {
        assert!(thread["thread"].is_u64() && thread["stalls"].is_u64(), "{thread}");
        assert!(thread["loop_lag_ms"].get("p99").is_some(), "{thread}");
    }
}

/// The invariants of a cell were checked, and none was violated.
pub fn assert_invariants(cell: &Value) {
    let invariants = &cell["invariants"];
    assert!(invariants["checked"].as_u64().unwrap() > 0, "nothing was checked: {cell}");
    assert_eq!(invariants["violations"], 0, "{invariants}");
}
