//! The one place where AWS's crates are used, and where the cargo feature `aws` cuts them off.
//! Built without it, everything here says so in words; the rest of the program is the same.

#[cfg(feature = "aws")]
mod dsql;

use crate::model::{DsqlToken, Secret};

/// Whether this program was built with AWS's crates.
pub const BUILT_IN: bool = cfg!(feature = "aws");
/// What is said where it was not.
pub const MISSING: &str = "this rampdeck was built without the cargo feature `aws`";

/// A token with which the admin or another role of a DSQL cluster logs in, presigned here: no
/// request goes out but what the credential itself may take. Blocks; runs within no event loop.
///
/// # Errors
/// In words, when no credential can be had, or without the feature `aws`.
#[cfg(feature = "aws")]
pub fn dsql_token(of: &DsqlToken) -> Result<Secret, String> {
    dsql::token(of)
}

/// A token with which the admin or another role of a DSQL cluster logs in.
///
/// # Errors
/// Always: there is nothing to sign it with.
#[cfg(not(feature = "aws"))]
pub fn dsql_token(_: &DsqlToken) -> Result<Secret, String> {
    Err(format!("no DSQL token can be made: {MISSING}"))
}
