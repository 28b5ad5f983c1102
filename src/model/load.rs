//! Load levels: what one cell puts on a database.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How the arrivals of an open loop are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Seeded exponential gaps: the default for verdicts.
    #[default]
    Poisson,
    /// Equal gaps.
    Constant,
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Poisson => "poisson",
            Self::Constant => "constant",
        })
    }
}

/// The load of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Load {
    /// Each of `connections` connections starts its next transaction when the last one ends.
    Closed { connections: u32 },
    /// Transactions arrive at `rate` per second whatever the database does; at most `connections`
    /// run at once, the rest wait.
    Open { rate: f64, arrivals: Arrivals, connections: u32 },
}

impl Load {
    /// The number of connections the cell uses.
    #[must_use]
    pub const fn connections(self) -> u32 {
        match self {
            Self::Closed { connections } | Self::Open { connections, .. } => connections,
        }
    }

    /// The offered rate in arrivals per second; a closed loop has none.
    #[must_use]
    pub const fn rate(self) -> Option<f64> {
        match self {
            Self::Closed { .. } => None,
            Self::Open { rate, .. } => Some(rate),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed { connections } => write!(f, "closed {connections}"),
            Self::Open { rate, .. } => write!(f, "open {}/s", trimmed(*rate)),
        }
    }
}

fn trimmed(rate: f64) -> String {
    let text = format!("{rate:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_names_itself_as_operators_do() {
        let open = |rate| Load::Open { rate, arrivals: Arrivals::Poisson, connections: 16 };
        assert_eq!(open(100.0).to_string(), "open 100/s");
        assert_eq!(open(62.5).to_string(), "open 62.5/s");
        assert_eq!(Load::Closed { connections: 64 }.to_string(), "closed 64");
    }
}
