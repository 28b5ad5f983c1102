//! Lines of a bill.

use serde::{Deserialize, Serialize};

use super::{Basis, ConfigurationId, Money};

/// One line of what a run has cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostLine {
    /// `None` for what is shared by all (the runner).
    pub configuration: Option<ConfigurationId>,
    pub item: String,
    /// A decimal number of `unit`s.
    pub quantity: String,
    pub unit: String,
    pub unit_price: Money,
    pub amount: Money,
    pub basis: Basis,
}
