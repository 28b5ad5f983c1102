//! `rampdeck calibrate`: what this machine can generate, measured, said and kept.

use std::path::PathBuf;

use color_eyre::eyre::{Context, Result};
use serde::{Deserialize, Serialize};

use super::{exit, registry, start::STEADY_MEMORY};
use crate::{
    engine::{self, CalibrateSettings},
    model::{Calibration, Throughput},
};

/// The calibrations that are kept, one for each machine and build.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    calibrations: Vec<Calibration>,
}

/// More builds than anyone goes back to.
const MOST_KEPT: usize = 32;

fn path() -> Result<PathBuf> {
    Ok(registry::data_folder()?.join("calibration.json"))
}

/// What is kept; nothing where there is no file.
fn kept() -> Result<Kept> {
    let path = path()?;
    match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .wrap_err_with(|| format!("{} is not what rampdeck wrote", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Kept::default()),
        Err(error) => Err(error).wrap_err_with(|| format!("cannot read {}", path.display())),
    }
}

/// What this machine was calibrated for with this build. A file that cannot be read is told and
/// does not keep a run from its start.
pub fn of_this_machine() -> Option<Calibration> {
    let kept = kept().inspect_err(|error| {
        tell!(
            "rampdeck: no calibration: {}; make another with: rampdeck calibrate",
            super::sentence(error)
        );
    });
    let machine = engine::machine();
    kept.ok()?.calibrations.into_iter().find(|calibration| calibration.machine == machine)
}

/// Keeps a calibration in the place of an older one of the same machine and build.
fn keep(calibration: &Calibration) -> Result<PathBuf> {
    // One that cannot be read is of no use to anyone.
    let mut all = kept().unwrap_or_default();
    all.calibrations.retain(|known| known.machine != calibration.machine);
    all.calibrations.insert(0, calibration.clone());
    all.calibrations.truncate(MOST_KEPT);
    let path = path()?;
    let new = path.with_extension("new");
    std::fs::write(&new, serde_json::to_vec_pretty(&all)?)
        .and_then(|()| std::fs::rename(&new, &path))
        .wrap_err_with(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// That a calibration can be kept: asked before it is made, since it takes a while.
fn check_folder() -> Result<()> {
    let folder = registry::data_folder()?;
    std::fs::create_dir_all(&folder)
        .wrap_err_with(|| format!("cannot make {}", folder.display()))?;
    let probe = folder.join(format!("calibration.probe.{}", std::process::id()));
    std::fs::write(&probe, b"").and_then(|()| std::fs::remove_file(&probe)).wrap_err_with(|| {
        format!("a calibration cannot be kept: cannot write in {}", folder.display())
    })
}

/// Calibrates this machine, says what came of it, and keeps it.
pub async fn run(seconds: f64, as_json: bool) -> Result<u8> {
    check_folder()?;
    let exe = std::env::current_exe()?;
    let settings = CalibrateSettings { exe: &exe, environment: &STEADY_MEMORY, seconds };
    let calibration = engine::calibrate(settings, |line| tell!("{line}")).await?;
    let path = keep(&calibration)?;
    if as_json {
        say!("{}", serde_json::to_string_pretty(&calibration)?);
    } else {
        print(&calibration);
        say!("kept in {}: runs of this build on this machine are compared with it", path.display());
    }
    Ok(exit::DONE)
}

fn print(calibration: &Calibration) {
    let machine = &calibration.machine;
    say!(
        "\n{}: {} × {}, rampdeck {}",
        machine.host,
        machine.processors,
        if machine.cpu.is_empty() { "processors" } else { &machine.cpu },
        machine.build
    );
    throughput("reads", &calibration.read);
    throughput("order mix", &calibration.order_mix);
    for lag in &calibration.start_lag {
        say!(
            "start lag at {:.0}/s: p50 {:.3} ms, p99 {:.3} ms{}",
            lag.rate,
            lag.p50_ms,
            lag.p99_ms,
            if lag.achieved < 0.97 * lag.rate {
                format!(" (only {:.0}/s were carried)", lag.achieved)
            } else {
                String::new()
            }
        );
    }
    let costs: Vec<String> = calibration
        .connections
        .iter()
        .map(|cost| format!("{} {:.1} µs", cost.connections, cost.cpu_us))
        .collect();
    say!("connections, at {:.0}/s: {}", Calibration::CONNECTIONS_RATE, costs.join(" · "));
    match calibration.bends_at {
        Some(count) => say!(
            "  it bends at {count}: from there on a transaction costs more than 1.5 times that at the least"
        ),
        None => say!(
            "  it does not bend: nowhere does a transaction cost more than 1.5 times that at the least"
        ),
    }
    for remark in &calibration.remarks {
        say!("note: {remark}");
    }
}

fn throughput(what: &str, found: &Throughput) {
    say!(
        "{what}: {:.1} µs of CPU a transaction, {:.0}/s a processor",
        found.cpu_us,
        found.per_processor_s
    );
    match (found.highest_rate, found.not_carried) {
        (Some(highest), Some(failed)) => say!(
            "  carried on time up to {highest:.0}/s, no longer at {failed:.0}/s; flat out, with the endpoint beside it, {:.0}/s",
            found.closed_loop_s
        ),
        (Some(highest), None) => {
            say!("  carried on time at {highest:.0}/s, the highest rate tried")
        }
        (None, failed) => say!(
            "  not carried on time even at {:.0}/s: this machine is too small or too busy to generate load",
            failed.unwrap_or(0.0)
        ),
    }
}
