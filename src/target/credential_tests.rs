use std::{fs, path::Path};

use super::*;
use crate::{
    model::{PasswordCommand, TargetAddress},
    target::{ConnectErrorKind, session, testing::TestServer},
};

const HOUR: Duration = Duration::from_secs(3_600);

fn target(command: Option<PasswordCommand>) -> TargetSpec {
    TargetSpec {
        password_source: command.map(PasswordSource::Command),
        ..TargetSpec::plain(TargetAddress::loopback(1), "shop", "shop", "")
    }
}

/// A command that counts its runs in a file and prints a password with its number.
fn counting(folder: &Path, lifetime: Duration) -> PasswordCommand {
    let counter = folder.join("runs");
    let script = format!(
        "echo run >> '{0}'; sleep 0.2; printf 'token-%d\\n' $(wc -l < '{0}')",
        counter.display()
    );
    command(&script, lifetime)
}

fn command(script: &str, lifetime: Duration) -> PasswordCommand {
    let words = ["sh", "-c", script].map(str::to_owned).to_vec();
    PasswordCommand { words, lifetime_ms: u64::try_from(lifetime.as_millis()).unwrap() }
}

fn runs(folder: &Path) -> usize {
    fs::read_to_string(folder.join("runs")).map_or(0, |text| text.lines().count())
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn a_crowd_on_several_threads_has_the_command_run_once() {
    let folder = tempfile::tempdir().unwrap();
    let target = target(Some(counting(folder.path(), HOUR)));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let target = target.clone();
            std::thread::spawn(move || {
                block_on(futures_util::future::join_all((0..64).map(|_| password(&target))))
            })
        })
        .collect();
    for thread in threads {
        for answer in thread.join().unwrap() {
            assert_eq!(answer.unwrap().unwrap().reveal(), "token-1");
        }
    }
    assert_eq!(runs(folder.path()), 1);
}

#[test]
fn a_refused_password_is_replaced_once_however_many_had_it() {
    let folder = tempfile::tempdir().unwrap();
    let target = target(Some(counting(folder.path(), HOUR)));
    block_on(async {
        let first = password(&target).await.unwrap().unwrap();
        let attempt = async |used: Option<Secret>| {
            tokio::task::yield_now().await;
            match used {
                Some(used) if used != first => Ok(used.reveal().to_owned()),
                _ => Err(ConnectError::refused_for_test(&target)),
            }
        };
        let tokens =
            futures_util::future::join_all((0..256).map(|_| log_in(&target, &attempt))).await;
        assert!(tokens.into_iter().all(|token| token.unwrap() == "token-2"));
        assert_eq!(runs(folder.path()), 2);
        // One retry, and no more.
        let never = async |_: Option<Secret>| Err::<(), _>(ConnectError::refused_for_test(&target));
        let error = log_in(&target, &never).await.unwrap_err();
        assert_eq!(error.kind(), &ConnectErrorKind::Authentication);
        assert_eq!(runs(folder.path()), 3);
    });
}

#[test]
fn a_fixed_password_is_not_tried_twice() {
    let fixed = TargetSpec { password: Some(Secret::new("s3cret")), ..target(None) };
    let tries = std::cell::Cell::new(0);
    let attempt = async |used: Option<Secret>| {
        assert_eq!(used.unwrap().reveal(), "s3cret");
        tries.set(tries.get() + 1);
        Err::<(), _>(ConnectError::refused_for_test(&fixed))
    };
    block_on(log_in(&fixed, &attempt)).unwrap_err();
    assert_eq!(tries.get(), 1);
}

#[test]
fn a_failing_command_is_told_and_not_run_by_each_who_asks() {
    let folder = tempfile::tempdir().unwrap();
    let counter = folder.path().join("runs");
    let script =
        format!("echo run >> '{}'; echo s3cret; echo no role >&2; exit 9", counter.display());
    let target = target(Some(command(&script, HOUR)));
    block_on(async {
        let answers = futures_util::future::join_all((0..64).map(|_| password(&target))).await;
        for answer in answers {
            let error = answer.unwrap_err();
            assert_eq!(error.kind(), &ConnectErrorKind::Credential);
            let text = error.to_string();
            assert!(text.contains("ended with exit status: 9: no role"), "{text}");
            assert!(!text.contains("s3cret"), "{text}");
        }
    });
    assert_eq!(runs(folder.path()), 1);
}

fn aged(share: f64) -> (State, Instant) {
    let since = Instant::now();
    let token = Token { secret: Secret::new("old"), since };
    let state = State { current: Some(token), ..State::default() };
    (state, since + HOUR.mul_f64(share))
}

#[test]
fn a_password_is_replaced_early_and_served_meanwhile() {
    let served = |share| {
        let (state, now) = aged(share);
        match state.serve(now, HOUR) {
            Serve::Now(Ok(_)) => "old",
            Serve::NowAndRefresh(Ok(_)) => "old, refreshing",
            Serve::Wait => "new",
            _ => "error",
        }
    };
    assert_eq!(served(0.0), "old");
    assert_eq!(served(0.79), "old");
    assert_eq!(served(0.81), "old, refreshing");
    // One second before its end nobody logs in with it any more.
    assert_eq!(served(3_599.0 / 3_600.0), "new");
    assert_eq!(served(1.5), "new");
}

#[test]
fn an_old_password_serves_on_where_no_new_one_is_to_be_had() {
    let (mut state, now) = aged(0.97);
    let (sender, mut answer) = oneshot::channel();
    state.waiting.push(sender);
    state.finish(now, now, HOUR, Err("no network".to_owned()));
    assert_eq!(answer.try_recv().unwrap().unwrap().reveal(), "old");
    assert!(matches!(state.serve(now, HOUR), Serve::Now(Ok(_))));
    assert!(matches!(state.serve(now + FAILED_FOR, HOUR), Serve::Wait), "tried again");
    let over = now + HOUR.mul_f64(0.03);
    state.finish(over, over, HOUR, Err("no network".to_owned()));
    assert!(matches!(state.serve(over, HOUR), Serve::Now(Err(_))), "it has ended");
    // Its life counts from the start of the command.
    state.finish(now, over, HOUR, Ok(Secret::new("new")));
    let at = now + HOUR.mul_f64(0.81);
    assert!(
        matches!(state.serve(at, HOUR), Serve::NowAndRefresh(Ok(secret)) if secret.reveal() == "new")
    );
}

#[tokio::test]
async fn a_token_that_the_server_no_longer_takes_is_replaced_as_a_connection_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let rules = "local all app scram-sha-256\nlocal all all trust\n";
    let server = TestServer::start(5432, "", &[("pg_hba.conf", rules)]);
    server.wait_until_ready().await;
    let admin = session(&server.target("postgres")).await.unwrap();
    admin.batch_execute("CREATE ROLE app LOGIN PASSWORD 'token-2'").await.unwrap();
    let target = TargetSpec {
        user: "app".to_owned(),
        password_source: Some(PasswordSource::Command(counting(folder.path(), HOUR))),
        ..server.target("postgres")
    };
    // The first token is refused, the second one is right.
    let client = session(&target).await.unwrap();
    client.simple_query("SELECT 1").await.unwrap();
    assert_eq!(runs(folder.path()), 2);
    session(&target).await.unwrap();
    assert_eq!(runs(folder.path()), 2);
}
