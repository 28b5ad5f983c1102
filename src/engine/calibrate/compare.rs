//! A cell beside what its runner was calibrated for.

use super::cpu_us;
use crate::model::{Calibrated, Calibration, CellResult, Mix, Reason, ReasonCode};

/// Above this share of what the runner was calibrated for, a reader of the cell must know, in
/// percent.
const REMARKED_FROM: f64 = 80.0;

/// Compares a cell; `None` where it measured nothing or the calibration found no highest rate.
pub fn compare(calibration: &Calibration, mix: &Mix, result: &CellResult) -> Option<Calibrated> {
    let writes = mix.order_create + mix.order_cancel;
    let known = if writes == 0 { calibration.read } else { calibration.order_mix };
    let highest_rate = known.highest_rate?;
    let cpu_us = cpu_us(result)?;
    Some(Calibrated {
        rate: super::per_second(result),
        highest_rate,
        cpu_us,
        calibrated_cpu_us: known.cpu_us,
    })
}

/// What a reader must know of it, if anything.
pub fn remark(calibrated: &Calibrated) -> Option<Reason> {
    let used = calibrated.used_percent();
    (used > REMARKED_FROM).then(|| Reason {
        code: ReasonCode::Calibration,
        text: format!(
            "took {used:.0} % of what its runner was calibrated for: {:.0}/s of {:.0}/s, {:.0} µs of \
             CPU a transaction against {:.0} µs",
            calibrated.rate,
            calibrated.highest_rate,
            calibrated.cpu_us,
            calibrated.calibrated_cpu_us
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_near_what_its_runner_can_do_is_remarked_by_its_rate_or_its_cpu() {
        let cell = |rate, cpu_us| Calibrated {
            rate,
            highest_rate: 6_000.0,
            cpu_us,
            calibrated_cpu_us: 50.0,
        };
        assert_eq!(remark(&cell(4_700.0, 50.0)), None);
        let reason = remark(&cell(5_100.0, 40.0)).unwrap();
        assert_eq!(reason.code, ReasonCode::Calibration);
        assert_eq!(
            reason.text,
            "took 85 % of what its runner was calibrated for: 5100/s of 6000/s, 40 µs of CPU a \
             transaction against 50 µs"
        );
        // Half the rate at twice the CPU is all of it.
        assert!(remark(&cell(3_000.0, 100.0)).unwrap().text.starts_with("took 100 %"));
    }
}
