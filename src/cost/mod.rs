//! What a run costs: the price book of its plan against meters of time and attempts, what is still
//! to come, and the guard that ends a run before its money does.
//!
//! The engine tells the [`Meter`] what exists and how many attempts were made, asks for forecasts
//! ([`projection`], [`price_option`]) and obeys the [`Guard`].

#[cfg(test)]
mod fixture;
mod forecast;
mod guard;
mod meter;

pub use forecast::{
    Ahead, AttemptRates, Forecast, OptionPrice, price_option, projection, stage_seconds,
};
pub use guard::{Exposure, Guard};
pub use meter::{Meter, hourly, per_million_attempts};
