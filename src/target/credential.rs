//! The password of a target: one that is fixed, or one that is good for a while: a command of the
//! operator's prints it, or it is a token of AWS's. Everybody in this process who needs it shares
//! one source.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::{ConnectError, command};
use crate::{
    aws,
    model::{PasswordSource, Secret, TargetSpec},
};

/// From this share of its life on a password is replaced in the background, still served.
const REFRESH_FROM: f64 = 0.8;
/// From this share on it is no longer served where another one can be made: it might end
/// while a log-in is under way.
const WAIT_FROM: f64 = 0.95;
/// After making one failed its failure is told for so long before it is tried again.
const FAILED_FOR: Duration = Duration::from_secs(1);

static SOURCES: LazyLock<Mutex<HashMap<PasswordSource, Arc<Source>>>> =
    LazyLock::new(Mutex::default);

/// The password to log in with; `None` where the target has none. A new one is made at most once
/// at a time, however many ask, and on a thread of its own: no event loop waits for it.
///
/// # Errors
/// When none can be made, in words: for a command with what it printed on standard error.
pub async fn password(target: &TargetSpec) -> Result<Option<Secret>, ConnectError> {
    match &target.password_source {
        None => Ok(target.password.clone()),
        Some(from) => match source(from).password().await {
            Ok(password) => Ok(Some(password)),
            Err(why) => Err(ConnectError::credential(target, why)),
        },
    }
}

/// Tells that the server refused the log-in with this password. Whether another attempt makes
/// sense: the next [`password`] is then a new one. False for a fixed password, which no attempt
/// makes right.
pub fn refused(target: &TargetSpec, used: &Secret) -> bool {
    let Some(from) = &target.password_source else { return false };
    source(from).refused(used);
    true
}

/// Logs in with the target's password, and once more with a new one where the server refuses the
/// first and another can be had.
///
/// # Errors
/// Those of [`password`] and of `attempt`.
pub async fn log_in<T, F>(
    target: &TargetSpec,
    attempt: impl Fn(Option<Secret>) -> F,
) -> Result<T, ConnectError>
where
    F: Future<Output = Result<T, ConnectError>>,
{
    let used = password(target).await?;
    match (attempt(used.clone()).await, used) {
        (Err(error), Some(used)) if error.is_refused_log_in() && refused(target, &used) => {
            attempt(password(target).await?).await
        }
        (result, _) => result,
    }
}

fn source(from: &PasswordSource) -> Arc<Source> {
    let mut sources = locked(&SOURCES);
    if let Some(source) = sources.get(from) {
        return Arc::clone(source);
    }
    let source = Arc::new(Source::new(from.clone()));
    sources.insert(from.clone(), Arc::clone(&source));
    source
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What it guards is whole whenever its lock is free.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Answer = Result<Secret, String>;

struct Source {
    from: PasswordSource,
    state: Mutex<State>,
}

/// What is known of a source's passwords. Pure: it is told the time.
#[derive(Default)]
struct State {
    current: Option<Token>,
    /// When making one failed last, since it last worked, and how.
    failed: Option<(Instant, String)>,
    running: bool,
    waiting: Vec<oneshot::Sender<Answer>>,
}

struct Token {
    secret: Secret,
    /// When it was begun to be made: its life counts from then.
    since: Instant,
}

/// What an asker is to do.
enum Serve {
    Now(Answer),
    /// The answer is served while another password is being fetched.
    NowAndRefresh(Answer),
    Wait,
}

impl State {
    fn serve(&self, now: Instant, lifetime: Duration) -> Serve {
        let recently = self.failed.as_ref().filter(|(at, _)| now.duration_since(*at) < FAILED_FOR);
        let age_share =
            |token: &Token| now.duration_since(token.since).as_secs_f64() / lifetime.as_secs_f64();
        match (&self.current, recently) {
            (Some(token), _) if age_share(token) < REFRESH_FROM => {
                Serve::Now(Ok(token.secret.clone()))
            }
            // Nothing better is to be had just now, and it may still be good.
            (Some(token), Some(_)) if age_share(token) < 1.0 => {
                Serve::Now(Ok(token.secret.clone()))
            }
            (Some(token), None) if age_share(token) < WAIT_FROM => {
                Serve::NowAndRefresh(Ok(token.secret.clone()))
            }
            (_, Some((_, why))) => Serve::Now(Err(why.clone())),
            (_, None) => Serve::Wait,
        }
    }

    /// Takes what making one came to, and gives those who wait for it their answer.
    fn finish(&mut self, began: Instant, now: Instant, lifetime: Duration, answer: Answer) {
        self.running = false;
        let answer = match answer {
            Ok(secret) => {
                self.current = Some(Token { secret: secret.clone(), since: began });
                self.failed = None;
                Ok(secret)
            }
            Err(why) => {
                self.failed = Some((now, why.clone()));
                let alive = |token: &&Token| now.duration_since(token.since) < lifetime;
                self.current.as_ref().filter(alive).map(|t| t.secret.clone()).ok_or(why)
            }
        };
        for waiting in self.waiting.drain(..) {
            // Who has gone needs no answer.
            let _ = waiting.send(answer.clone());
        }
    }

    fn refused(&mut self, used: &Secret) {
        // Others may have told so before, and a new one be there already.
        self.current.take_if(|token| token.secret == *used);
    }
}

impl Source {
    fn new(from: PasswordSource) -> Self {
        Self { from, state: Mutex::default() }
    }

    fn lifetime(&self) -> Duration {
        Duration::from_millis(self.from.lifetime_ms())
    }

    async fn password(self: &Arc<Self>) -> Answer {
        let answer = {
            let mut state = locked(&self.state);
            match state.serve(Instant::now(), self.lifetime()) {
                Serve::Now(answer) => return answer,
                Serve::NowAndRefresh(answer) => {
                    self.run(&mut state);
                    return answer;
                }
                Serve::Wait => {
                    let (sender, answer) = oneshot::channel();
                    state.waiting.push(sender);
                    self.run(&mut state);
                    answer
                }
            }
        };
        answer.await.unwrap_or_else(|_| Err("making it was given up".to_owned()))
    }

    /// Has a password made unless one is being made.
    fn run(self: &Arc<Self>, state: &mut State) {
        if state.running {
            return;
        }
        state.running = true;
        let source = Arc::clone(self);
        let began = Instant::now();
        let thread = std::thread::Builder::new().name("password".to_owned()).spawn(move || {
            let answer = match &source.from {
                PasswordSource::Command(command) => command::output(&command.words),
                PasswordSource::DsqlToken(token) => aws::dsql_token(token),
            };
            match &answer {
                Ok(_) => tracing::debug!("a new password"),
                Err(why) => tracing::warn!("no new password: {why}"),
            }
            let lifetime = source.lifetime();
            locked(&source.state).finish(began, Instant::now(), lifetime, answer);
        });
        if let Err(error) = thread {
            let why = format!("it cannot be made: no thread for it: {error}");
            state.finish(began, Instant::now(), self.lifetime(), Err(why));
        }
    }

    fn refused(&self, used: &Secret) {
        locked(&self.state).refused(used);
    }
}

#[cfg(test)]
#[path = "credential_tests.rs"]
mod tests;
