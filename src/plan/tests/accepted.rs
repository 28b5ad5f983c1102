use super::{SMALL, load, load_with, small_with};
use crate::{
    model::{Arrivals, FaultKind, Load, Mix, RetryPolicy, Slo},
    plan::{OptionAction, PlanSource, PricePer, Source, StageKind, load as load_source, to_toml},
};

#[test]
fn what_is_left_out_takes_its_default() {
    let plan = load(SMALL).unwrap();
    assert_eq!(plan.slo, Slo::default());
    assert_eq!(plan.mix, Mix::default());
    assert_eq!(plan.retry, RetryPolicy::default());
    assert_eq!(plan.budget.guard.amount().to_string(), "9");
    assert_eq!(plan.configurations[0].title, "D1");
    let StageKind::Cells { configurations, levels, warmup_s, measure_s, side_by_side } =
        &plan.stages[0].kind
    else {
        panic!("a decision");
    };
    assert_eq!(configurations.len(), 1);
    assert_eq!(
        levels[..],
        [Load::Open { rate: 100.0, arrivals: Arrivals::Poisson, connections: 16 }]
    );
    assert_eq!((*warmup_s, *measure_s, *side_by_side), (10.0, 60.0, false));
    assert!(plan.is_rehearsal());
}

#[test]
fn the_built_in_rehearsal_is_sound_and_short() {
    let plan = load_source(PlanSource::Rehearse, &[]).unwrap_or_else(|e| panic!("{e}"));
    let ids: Vec<_> = plan.configurations.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(ids, ["D1", "R1", "A1", "A2"]);
    assert!(plan.is_rehearsal());
    // Unattended it ends at its question's deadline, well under five minutes.
    let mut unattended_s = 0.0;
    for stage in &plan.stages {
        match &stage.kind {
            StageKind::Cells { configurations, levels, warmup_s, measure_s, side_by_side } => {
                let rows = if *side_by_side { 1 } else { configurations.len() };
                unattended_s +=
                    (rows * levels.len()) as f64 * (warmup_s + measure_s + plan.load.drain_s);
            }
            StageKind::Decision { options, safe, deadline_s, .. } => {
                unattended_s += *deadline_s as f64;
                let taken = options.iter().find(|o| o.key == *safe).unwrap();
                assert_eq!(taken.action, OptionAction::Teardown);
                break;
            }
        }
    }
    assert!(unattended_s < 240.0, "{unattended_s} s");
    // Enough order cancels in every open cell for a verdict on their p99.
    for stage in &plan.stages {
        if let StageKind::Cells { levels, measure_s, .. } = &stage.kind {
            for rate in levels.iter().filter_map(|l| l.rate()) {
                assert!(rate * measure_s * f64::from(plan.mix.order_cancel) / 100.0 > 340.0);
            }
        }
    }
}

#[test]
fn the_built_in_quick_look_asks_for_a_url_by_the_command_to_type() {
    let error = load_source(PlanSource::Quick, &[]).unwrap_err().to_string();
    assert!(
        error.contains(
            "rampdeck run configs/quick.toml --set \
             configuration.url=postgres://USER@HOST:5432/DATABASE"
        ),
        "{error}"
    );
    assert!(error.starts_with("configs/quick.toml (built in):"), "{error}");
    let given = ["configuration.url=postgres://me@127.0.0.1/shop".to_owned()];
    let plan = load_source(PlanSource::Quick, &given).unwrap();
    assert!(!plan.is_rehearsal());
    assert_eq!(plan.configurations[0].source.kind(), "postgres");
}

const EVERYTHING: &str = r#"
name = "all"
seed = 9223372036854775807
scale = 0.3333333333333333
hold_s = 0
notify = ["sh", "-c", "echo \"x\" 'y' \\ > /dev/null"]
zone = "a zone with \"quotes\" and ü"
[slo]
read = { p95_ms = 1.5 }
failed_percent = 0
[mix]
product_lookup = 100
[retry]
max_attempts = 1
base_ms = 0
[lab]
bin_dir = "/opt/pg/bin"
settings = { shared_buffers = "64MB", fsync = false, work_mem = 4096, "auto_explain.log" = "" }
[budget]
cap = "12.3456789"
guard = 0.1
[load]
arrivals = "constant"
open_connections = 3
backlog = 100
max_rate = 1e5
[[configuration]]
id = "D1+P"
kind = "lab"
[configuration.gate]
round_trip_ms = 0.1
jitter = 1
[[configuration.faults]]
after_s = 1
kind = "freeze"
for_s = 0.5
[[configuration.faults]]
after_s = 0
kind = "cut_after_commit"
every = 7
[[configuration.faults]]
after_s = 2
kind = "fail_commit"
sqlstate = "40001"
[[configuration.prices]]
item = "DPU"
per = "million_attempts"
price = 1e-5
quantity = 30_000
source = "a list"
[[configuration]]
id = "PG"
kind = "postgres"
url = "postgresql://me:s3cret@db.example:6000/my%2Fshop?connect_timeout=3&application_name=a%20b"
[[stage]]
name = "both"
configurations = ["PG"]
open = [1, 2.5]
closed = [16, 64]
connections = 9
warmup_s = 0
measure_s = 1.5
side_by_side = true
[[stage]]
name = "ask"
decision.question = "On?"
decision.safe = "less"
decision.options = [
  { key = "go", label = "on", action = "continue" },
  { key = "less", label = "on, less", action = "continue_without", without = ["PG"] },
  { key = "wait", label = "wait", action = "hold" },
  { key = "end", label = "end", action = "teardown" },
]
"#;

#[test]
fn a_plan_that_is_written_back_loads_as_the_same_plan() {
    for text in [SMALL, EVERYTHING, PlanSource::Rehearse.built_in_text().unwrap()] {
        let plan = load(text).unwrap_or_else(|e| panic!("{e}"));
        let written = to_toml(&plan);
        assert!(!written.contains("s3cret"), "{written}");
        // The password comes back from where else it may come from.
        let again = load_with(&written, &[], &[("PGPASSWORD", "s3cret")])
            .unwrap_or_else(|e| panic!("{e}\n{written}"));
        assert_eq!(again, plan, "{written}");
    }
}

#[test]
fn numbers_money_and_faults_are_exact() {
    let plan = load(EVERYTHING).unwrap();
    assert_eq!(plan.seed, i64::MAX as u64);
    assert_eq!(plan.budget.cap.amount().to_string(), "12.3456789");
    let price = &plan.configurations[0].prices[0];
    assert_eq!(price.price.amount().to_string(), "0.00001");
    assert_eq!((price.per, price.quantity.as_str()), (PricePer::MillionAttempts, "30000"));
    let Source::Lab { faults, .. } = &plan.configurations[0].source else { panic!("no lab") };
    assert_eq!(faults[1].kind, FaultKind::CutAfterCommit { every: 7 });
    assert_eq!(faults[2].kind, FaultKind::FailCommit { sqlstate: "40001".into(), every: 1 });
    assert_eq!(plan.lab.settings["fsync"], "off");
}

#[test]
fn overrides_reach_entries_by_id_name_key_or_index() {
    let plan = load_with(
        EVERYTHING,
        &[
            "seed=7",
            "name=2026",
            "load.max_rate=500",
            "scale = 0.002",
            "configuration.PG.url=postgres://you@127.0.0.1/shop",
            "configuration.D1+P.gate.jitter=0.25",
            "configuration.D1+P.prices.0.price=0.5",
            "stage.both.measure_s=5",
            "stage.both.open=[3]",
            "stage.ask.decision.options.go.label=go on",
            "zone=Seoul",
            "seed=8",
        ],
        &[],
    )
    .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((plan.seed, plan.name.as_str(), plan.scale), (8, "2026", 0.002));
    assert_eq!(plan.load.max_rate, 500.0);
    assert_eq!(plan.zone.as_deref(), Some("Seoul"));
    assert_eq!(plan.configurations[0].prices[0].price.amount().to_string(), "0.5");
    let Source::Lab { gate, .. } = &plan.configurations[0].source else { panic!("no lab") };
    assert_eq!((gate.jitter, gate.round_trip_ms), (0.25, 0.1));
    let StageKind::Cells { levels, measure_s, .. } = &plan.stages[0].kind else { panic!("asks") };
    assert_eq!((levels[0].rate(), levels.len(), *measure_s), (Some(3.0), 3, 5.0));
    let StageKind::Decision { options, .. } = &plan.stages[1].kind else { panic!("measures") };
    assert_eq!(options[0].label, "go on");
}

#[test]
fn an_override_may_make_a_table_and_name_the_only_entry_by_itself() {
    let overrides = ["load.open_connections=4", "configuration.title=One", "stage.0.open=[5]"];
    let plan = load_with(SMALL, &overrides, &[]).unwrap();
    assert_eq!(plan.load.open_connections, 4);
    assert_eq!(plan.configurations[0].title, "One");
    let plan = load_with(SMALL, &["configuration.id=5", "stage.name=7"], &[]).unwrap();
    let StageKind::Cells { configurations, .. } = &plan.stages[0].kind else { panic!("asks") };
    assert_eq!((configurations[0].as_str(), plan.stages[0].name.as_str()), ("5", "7"));
    assert!(small_with("seed = 3\n", "closed = [2]\n").is_ok());
}
