//! What a machine can generate, measured by the binary itself, and what a run makes of it.

use serde_json::Value;

use crate::{contract, headless::short, support::Place};

fn calibrations(place: &Place) -> Vec<Value> {
    let text = std::fs::read(place.path("data/rampdeck/calibration.json")).unwrap();
    let kept: Value = serde_json::from_slice(&text).unwrap();
    kept["calibrations"].as_array().unwrap().clone()
}

#[test]
fn a_calibration_is_measured_kept_and_held_against_a_run_s_cells() {
    let place = Place::new();
    let output = place.output(&["calibrate", "--seconds", "1", "--json"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let calibration: Value = serde_json::from_slice(&output.stdout).unwrap();
    for kind in ["read", "order_mix"] {
        let found = &calibration[kind];
        let (cpu, each) = (found["cpu_us"].as_f64(), found["per_processor_s"].as_f64());
        assert!((1.0..5_000.0).contains(&cpu.unwrap()), "{kind}: {found}");
        assert!((cpu.unwrap() * each.unwrap() - 1e6).abs() < 1.0, "{kind}: {found}");
        assert!(found["closed_loop_s"].as_f64().unwrap() > 50.0, "{kind}: {found}");
    }
    let rates: Vec<_> = calibration["start_lag"].as_array().unwrap().iter().collect();
    assert_eq!(rates.len(), 3, "{calibration}");
    assert!(rates.iter().all(|lag| lag["p50_ms"].as_f64() <= lag["p99_ms"].as_f64()));
    let counts = calibration["connections"].as_array().unwrap();
    assert!(counts.len() >= 3 && counts[0]["connections"] == 16, "{calibration}");
    assert_eq!(calibrations(&place), std::slice::from_ref(&calibration));

    // A run keeps it with its cells, each beside what it took of it.
    let out = place.path("out");
    let mut arguments = short(&["--headless", "--out", out.to_str().unwrap()]);
    arguments.extend(["--set", "stage.main-or-stop.decision.deadline_s=3"]);
    let run = place.output(&arguments);
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    let read = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(out.join(name)).unwrap()).unwrap()
    };
    assert_eq!(read("calibration.json"), calibration);
    let summary = read("summary.json");
    contract::assert_holds(&summary);
    for cell in contract::cells(&summary) {
        let conditions = &cell["conditions"];
        assert_eq!(conditions["shape"]["statements"], "prepared", "{conditions}");
        let highest = &calibration["order_mix"]["highest_rate"];
        if !highest.is_null() {
            assert!(conditions["calibrated"]["cpu_us"].as_f64().unwrap() > 0.0, "{conditions}");
        }
    }
}
