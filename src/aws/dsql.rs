//! Tokens of Aurora DSQL: presigned requests, which are arithmetic once a credential is there.

use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_sdk_dsql::auth_token::{AuthTokenGenerator, Config};

use crate::model::{DsqlToken, Secret};

/// How long a credential may take to come: an instance's own service answers in milliseconds, a
/// profile that assumes a role within seconds.
const LIMIT: Duration = Duration::from_secs(20);
/// Whom the credential that is given is said to be from, where one asks.
const GIVEN: &str = "rampdeck-lab";

pub(super) fn token(of: &DsqlToken) -> Result<Secret, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no DSQL token can be made: {error}"))?;
    runtime.block_on(async {
        match tokio::time::timeout(LIMIT, signed(of)).await {
            Ok(token) => token.map_err(|why| format!("no DSQL token can be made: {why}")),
            Err(_) => Err(format!("no AWS credential came within {} s", LIMIT.as_secs())),
        }
    })
}

async fn signed(of: &DsqlToken) -> Result<Secret, String> {
    let settings = Config::builder()
        .hostname(&of.host)
        .region(Region::new(of.region.clone()))
        .expires_in(of.lifetime_ms / 1_000)
        .build()
        .map_err(|error| told(&*error))?;
    let generator = AuthTokenGenerator::new(settings);
    let sdk = sdk(of).await;
    let token = if of.admin {
        generator.db_connect_admin_auth_token(&sdk).await
    } else {
        generator.db_connect_auth_token(&sdk).await
    };
    token.map(|token| Secret::new(token.as_str())).map_err(|error| told(&*error))
}

/// With the credential that is given, or else with the one that AWS's programs would find:
/// environment, profile, web identity, container or instance.
async fn sdk(of: &DsqlToken) -> SdkConfig {
    let region = Region::new(of.region.clone());
    let loader = aws_config::defaults(BehaviorVersion::latest()).region(region);
    let Some(given) = &of.credential else { return loader.load().await };
    let secret = given.secret.reveal().to_owned();
    let credentials = Credentials::new(&given.access_key_id, secret, None, None, GIVEN);
    loader.credentials_provider(credentials).load().await
}

/// An error with the causes that it hides.
fn told(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::AwsCredential;

    fn of(admin: bool) -> DsqlToken {
        DsqlToken {
            host: "abc.dsql.ap-northeast-2.on.aws".to_owned(),
            region: "ap-northeast-2".to_owned(),
            admin,
            lifetime_ms: 900_000,
            credential: Some(AwsCredential {
                access_key_id: "AKIDLAB".to_owned(),
                secret: Secret::new("lab-secret"),
            }),
        }
    }

    #[test]
    fn a_token_is_a_presigned_request_for_its_host_region_and_role() {
        for (admin, action) in [(true, "DbConnectAdmin"), (false, "DbConnect")] {
            let token = token(&of(admin)).unwrap();
            let token = token.reveal();
            let (host, query) = token.split_once("/?").unwrap();
            assert_eq!(host, "abc.dsql.ap-northeast-2.on.aws");
            let has = |part: &str| query.split('&').any(|known| known == part);
            assert!(has(&format!("Action={action}")), "{token}");
            assert!(has("X-Amz-Expires=900"), "{token}");
            assert!(query.contains("X-Amz-Credential=AKIDLAB%2F"), "{token}");
            assert!(query.contains("%2Fap-northeast-2%2Fdsql%2Faws4_request"), "{token}");
            assert!(query.contains("X-Amz-Signature="), "{token}");
            assert!(!token.contains("lab-secret"));
        }
    }
}
