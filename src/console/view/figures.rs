//! Figures as text: how many decimals, which separators.

use crate::model::Money;

/// A whole number with commas between thousands.
pub(super) fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value <= -0.5 { format!("-{text}") } else { text }
}

/// A rate per second: whole from 100, with one decimal below where it has one.
pub(in crate::console) fn rate(value: f64) -> String {
    let tenths = (value * 10.0).round() / 10.0;
    if tenths >= 100.0 || tenths.fract() == 0.0 { thousands(value) } else { format!("{value:.1}") }
}

/// Milliseconds of a table: one decimal, none from a second on.
pub(super) fn ms(value: f64) -> String {
    if value >= 999.95 { thousands(value) } else { format!("{value:.1}") }
}

/// Milliseconds of a line: two decimals below one.
pub(super) fn fine_ms(value: f64) -> String {
    if value < 0.995 { format!("{value:.2}") } else { ms(value) }
}

/// A limit as the plan has it.
pub(super) fn limit(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// An amount in dollars; what is too little for two decimals is said to be so.
pub(super) fn money(amount: Money) -> String {
    let text = amount.to_string();
    if text == "0.00" && amount > Money::ZERO { "<0.01".to_owned() } else { text }
}

/// A duration of minutes and hours for people: `2 h 10 min`.
pub(super) fn about(seconds: u64) -> String {
    if seconds < 90 {
        return format!("{seconds} s");
    }
    let minutes = seconds.div_ceil(60);
    if minutes < 60 {
        return format!("{minutes} min");
    }
    match minutes % 60 {
        0 => format!("{} h", minutes / 60),
        rest => format!("{} h {rest} min", minutes / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_as_people_do() {
        assert_eq!([0.0, 999.4, 1_600.0, 24_541.0].map(thousands), ["0", "999", "1,600", "24,541"]);
        assert_eq!(
            [62.5, 100.0, 99.96, 6_748.2, 3.0].map(rate),
            ["62.5", "100", "100", "6,748", "3"]
        );
        assert_eq!([5.64, 999.94, 999.96, 12_345.0].map(ms), ["5.6", "999.9", "1,000", "12,345"]);
        assert_eq!([0.024, 0.994, 0.996, 26.5].map(fine_ms), ["0.02", "0.99", "1.0", "26.5"]);
        assert_eq!([50.0, 0.1, 12.25].map(limit), ["50", "0.1", "12.25"]);
        assert_eq!([40, 600, 3_600, 7_790].map(about), ["40 s", "10 min", "1 h", "2 h 10 min"]);
    }

    #[test]
    fn a_little_money_is_not_none() {
        assert_eq!(money(Money::ZERO), "0.00");
        assert_eq!(money(Money::new(rust_decimal::Decimal::new(4, 4))), "<0.01");
        assert_eq!(money(Money::new(rust_decimal::Decimal::new(3_120, 2))), "31.20");
    }
}
