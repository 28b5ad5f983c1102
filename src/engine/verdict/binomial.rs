//! How many exceedances a claim about a share can bear.

use super::CONFIDENCE;

/// The most exceedances among `n` independent samples with which it can still be claimed, at
/// [`CONFIDENCE`], that the share of exceedances is below `share` (0.01 for a p99): the largest `k`
/// for which `k` or fewer would come up with a probability of at most 5 % if the share were
/// `share`. `None` where `n` is too small for the claim even with none, or `share` is not between
/// 0 and 1.
#[must_use]
pub fn most_exceedances(n: u64, share: f64) -> Option<u64> {
    let mut terms = Terms::new(n, share)?;
    let mut sum = terms.current();
    let mut most = None;
    let mut k = 0;
    while sum <= 1.0 - CONFIDENCE && k < n {
        most = Some(k);
        k += 1;
        terms.advance();
        sum += terms.current();
    }
    most
}

/// The probability that `k` or more of `n` samples exceed where the share of exceedances is
/// `share`.
pub(super) fn probability_of_at_least(k: u64, n: u64, share: f64) -> f64 {
    let Some(mut terms) = Terms::new(n, share) else { return 1.0 };
    let mut below = 0.0;
    for _ in 0..k.min(n + 1) {
        below += terms.current();
        terms.advance();
    }
    (1.0 - below).max(0.0)
}

/// The terms of a binomial distribution from 0 on, kept as logarithms: the first ones of a large
/// sample are far below what a floating-point number holds.
struct Terms {
    n: f64,
    k: f64,
    log: f64,
    log_odds: f64,
}

impl Terms {
    #[allow(clippy::cast_precision_loss)] // a cell never counts up to 2^53
    fn new(n: u64, share: f64) -> Option<Self> {
        if !(share > 0.0 && share < 1.0) {
            return None;
        }
        let n = n as f64;
        let log_rest = (-share).ln_1p();
        Some(Self { n, k: 0.0, log: n * log_rest, log_odds: share.ln() - log_rest })
    }

    fn current(&self) -> f64 {
        self.log.exp()
    }

    fn advance(&mut self) {
        self.log += ((self.n - self.k) / (self.k + 1.0)).ln() + self.log_odds;
        self.k += 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_table_of_a_p99_comes_out() {
        let table = [
            (298, None),
            (299, Some(0)),
            (600, Some(1)),
            (1_500, Some(8)),
            (3_000, Some(20)),
            (9_000, Some(74)),
            (30_000, Some(271)),
        ];
        for (n, most) in table {
            assert_eq!(most_exceedances(n, 0.01), most, "n = {n}");
        }
    }

    #[test]
    fn a_tenth_of_a_percent_needs_about_three_thousand_clean_samples() {
        assert_eq!(most_exceedances(2_994, 0.001), None);
        assert_eq!(most_exceedances(2_995, 0.001), Some(0));
        assert_eq!(most_exceedances(0, 0.01), None);
        assert_eq!(most_exceedances(10_000, 0.0), None);
        assert_eq!(most_exceedances(10_000, 1.0), None);
    }

    #[test]
    fn a_long_cell_does_not_underflow() {
        let most = most_exceedances(10_000_000, 0.01).unwrap();
        assert!((99_400..99_600).contains(&most), "{most}");
    }

    #[test]
    fn the_upper_tail_complements_the_lower() {
        assert!((probability_of_at_least(1, 60, 0.01) - (1.0 - 0.99f64.powi(60))).abs() < 1e-12);
        assert!(probability_of_at_least(10, 10, 0.01) < 1e-9);
        assert!((probability_of_at_least(0, 10, 0.01) - 1.0).abs() < 1e-12);
    }
}
