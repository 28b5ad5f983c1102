//! A host's addresses: resolved anew for each connection, each tried in turn, and watched for
//! connections that were left behind when a name moved on to another address.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    convert::Infallible,
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        LazyLock, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::MissedTickBehavior;

/// How often the names of live connections are resolved again.
const WATCH_EVERY: Duration = Duration::from_secs(10);

/// Live connections by the name and the address that they were opened to.
static LIVE: LazyLock<Mutex<BTreeMap<(String, IpAddr), usize>>> = LazyLock::new(Mutex::default);

/// The addresses of a host in the order in which they are to be tried. Each call starts at
/// another one, so that connections spread over all of them; the kind of address (IPv4, IPv6) that
/// the system prefers stays first.
///
/// # Errors
/// When the name cannot be resolved or has no address.
pub(super) async fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    let found: Vec<SocketAddr> = tokio::net::lookup_host((host, port)).await?.collect();
    if found.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    }
    Ok(in_turn(found, TURN.fetch_add(1, Ordering::Relaxed)))
}

fn in_turn(found: Vec<SocketAddr>, turn: usize) -> Vec<SocketAddr> {
    let preferred = found.first().is_some_and(SocketAddr::is_ipv6);
    let (mut first, mut rest): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|address| address.is_ipv6() == preferred);
    for group in [&mut first, &mut rest] {
        // Resolvers give them in an order that changes: turns only spread over a fixed one.
        group.sort_unstable();
        group.dedup();
        let places = group.len().max(1);
        group.rotate_left(turn % places);
    }
    first.append(&mut rest);
    first
}

/// Tries the addresses one after the other until one lets itself be connected to. Each has its
/// share of what is left of `limit`, so that one that is silent does not use up the time of the
/// others.
///
/// # Errors
/// That of the last address.
pub(super) async fn first_of<T, F>(
    addresses: &[SocketAddr],
    limit: Duration,
    connect: impl Fn(SocketAddr) -> F,
) -> io::Result<(T, IpAddr)>
where
    F: Future<Output = io::Result<T>>,
{
    let began = tokio::time::Instant::now();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for (index, address) in addresses.iter().enumerate() {
        let left = u32::try_from(addresses.len() - index).unwrap_or(u32::MAX);
        let share = limit.saturating_sub(began.elapsed()) / left;
        match tokio::time::timeout(share, connect(*address)).await {
            Ok(Ok(connected)) => return Ok((connected, address.ip())),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
}

/// A live connection to an address of a name, counted for as long as this is kept.
#[derive(Debug)]
pub(super) struct Live {
    place: (String, IpAddr),
}

impl Live {
    /// `None` for a host that is an address itself and so never moves.
    pub(super) fn new(host: &str, address: IpAddr) -> Option<Self> {
        if host.parse::<IpAddr>().is_ok() {
            return None;
        }
        let place = (host.to_owned(), address);
        *live().entry(place.clone()).or_default() += 1;
        Some(Self { place })
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let mut live = live();
        if let Some(count) = live.get_mut(&self.place) {
            *count -= 1;
            if *count == 0 {
                live.remove(&self.place);
            }
        }
    }
}

fn live() -> std::sync::MutexGuard<'static, BTreeMap<(String, IpAddr), usize>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Resolves the names of this process's live connections every ten seconds, for ever, and warns of
/// connections on addresses that a name no longer has: after a failover they would measure the
/// database that was.
pub async fn watch_addresses(mut warn: impl FnMut(String)) -> Infallible {
    let mut watch = AddressWatch::default();
    let mut ticks = tokio::time::interval(WATCH_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let there: Vec<_> =
            live().iter().map(|((host, ip), count)| (host.clone(), *ip, *count)).collect();
        watch.look(&there, resolve).await.into_iter().for_each(&mut warn);
    }
}

async fn resolve(host: &str) -> io::Result<BTreeSet<IpAddr>> {
    Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
}

/// What was seen of the names so far.
#[derive(Default)]
struct AddressWatch {
    /// The last answer for each name. Some resolvers give only some addresses at a time: one is
    /// missing when two answers in a row do not have it.
    answers: HashMap<String, BTreeSet<IpAddr>>,
    /// What has been warned of and has not changed since.
    told: BTreeSet<(String, IpAddr)>,
    unresolved: BTreeSet<String>,
}

impl AddressWatch {
    /// Takes the live connections by name and address, and gives what to warn of.
    async fn look(
        &mut self,
        live: &[(String, IpAddr, usize)],
        resolve: impl AsyncFn(&str) -> io::Result<BTreeSet<IpAddr>>,
    ) -> Vec<String> {
        let hosts: BTreeSet<&str> = live.iter().map(|(host, ..)| host.as_str()).collect();
        self.answers.retain(|host, _| hosts.contains(host.as_str()));
        self.told.retain(|(host, ip)| live.iter().any(|(h, i, _)| (h, i) == (host, ip)));
        let mut warnings = Vec::new();
        for host in hosts {
            match resolve(host).await {
                Ok(now) => {
                    self.unresolved.remove(host);
                    let before = self.answers.insert(host.to_owned(), now.clone());
                    if let Some(before) = before {
                        let at: Vec<_> = live.iter().filter(|(name, ..)| name == host).collect();
                        warnings.extend(self.stale(host, &at, &before, &now));
                    }
                }
                Err(error) if self.unresolved.insert(host.to_owned()) => {
                    let text = format!(
                        "{host} can no longer be resolved ({error}): new connections to it fail"
                    );
                    warnings.push(text);
                }
                Err(_) => {}
            }
        }
        warnings
    }

    fn stale(
        &mut self,
        host: &str,
        live: &[&(String, IpAddr, usize)],
        before: &BTreeSet<IpAddr>,
        now: &BTreeSet<IpAddr>,
    ) -> Option<String> {
        let all: usize = live.iter().map(|(_, _, count)| count).sum();
        let (mut left_behind, mut fresh) = (Vec::new(), false);
        for (_, address, count) in live {
            let place = (host.to_owned(), *address);
            if before.contains(address) || now.contains(address) {
                self.told.remove(&place);
            } else {
                fresh |= self.told.insert(place);
                left_behind.push((*address, *count));
            }
        }
        if !fresh {
            return None;
        }
        let count: usize = left_behind.iter().map(|(_, count)| count).sum();
        let list =
            |addresses: &mut dyn Iterator<Item = String>| addresses.collect::<Vec<_>>().join(", ");
        let old = list(&mut left_behind.iter().map(|(ip, count)| format!("{ip} ({count})")));
        let new = list(&mut now.iter().map(ToString::to_string));
        Some(format!(
            "{count} of {all} connections to {host} are on {old}, which the name no longer resolves \
             to (now {new}): after a failover they do not lead to the database that new ones do"
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn ip(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    fn at(last: u8) -> SocketAddr {
        SocketAddr::new(ip(last), 5432)
    }

    #[test]
    fn each_turn_starts_at_another_address_of_the_preferred_kind() {
        let six: SocketAddr = "[::1]:5432".parse().unwrap();
        let found = vec![at(3), six, at(1), at(2), at(1)];
        assert_eq!(in_turn(found.clone(), 0), [at(1), at(2), at(3), six]);
        assert_eq!(in_turn(found.clone(), 1), [at(2), at(3), at(1), six]);
        assert_eq!(in_turn(found, 5), [at(3), at(1), at(2), six]);
        assert_eq!(in_turn(vec![six, at(1), at(2)], 1), [six, at(2), at(1)]);
    }

    #[tokio::test]
    async fn a_dead_or_silent_address_does_not_stop_the_next_one() {
        let connect = |address: SocketAddr| async move {
            match address {
                a if a == at(1) => Err(io::ErrorKind::ConnectionRefused.into()),
                a if a == at(2) => std::future::pending().await,
                _ => Ok("in"),
            }
        };
        let limit = Duration::from_millis(60);
        let (connected, address) = first_of(&[at(1), at(2), at(3)], limit, connect).await.unwrap();
        assert_eq!((connected, address), ("in", ip(3)));
        let error = first_of(&[at(2), at(1)], limit, connect).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let error = first_of(&[at(1), at(2)], limit, connect).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn connections_left_behind_by_a_failover_are_told_once() {
        let answer = RefCell::new(Ok::<_, io::ErrorKind>(vec![1_u8, 2]));
        let resolve = async |_: &str| -> io::Result<BTreeSet<IpAddr>> {
            let answer = answer.borrow().clone()?;
            Ok(answer.into_iter().map(ip).collect())
        };
        let live = |counts: &[(u8, usize)]| -> Vec<(String, IpAddr, usize)> {
            counts
                .iter()
                .map(|(last, count)| ("db.example".to_owned(), ip(*last), *count))
                .collect()
        };
        let both = live(&[(1, 12), (2, 4)]);
        let mut watch = AddressWatch::default();
        assert!(watch.look(&both, resolve).await.is_empty());
        *answer.borrow_mut() = Ok(vec![2, 3]);
        assert!(watch.look(&both, resolve).await.is_empty(), "one answer may be partial");
        let warnings = watch.look(&both, resolve).await;
        assert_eq!(
            warnings,
            ["12 of 16 connections to db.example are on 10.0.0.1 (12), which the name no longer \
              resolves to (now 10.0.0.2, 10.0.0.3): after a failover they do not lead to the \
              database that new ones do"]
        );
        assert!(watch.look(&both, resolve).await.is_empty(), "told already");
        // They are replaced, and later it happens again.
        assert!(watch.look(&live(&[(2, 4), (3, 12)]), resolve).await.is_empty());
        assert_eq!(watch.look(&both, resolve).await.len(), 1);
        *answer.borrow_mut() = Err(io::ErrorKind::TimedOut);
        let unresolved = watch.look(&both, resolve).await;
        assert!(
            unresolved[0].starts_with("db.example can no longer be resolved"),
            "{unresolved:?}"
        );
        assert!(watch.look(&both, resolve).await.is_empty());
        assert!(watch.look(&[], resolve).await.is_empty());
    }

    #[test]
    fn a_connection_is_counted_as_long_as_it_lives() {
        assert!(Live::new("10.0.0.1", ip(1)).is_none());
        let count = || live().get(&("counted.example".to_owned(), ip(1))).copied();
        let (first, second) =
            (Live::new("counted.example", ip(1)), Live::new("counted.example", ip(1)));
        assert_eq!(count(), Some(2));
        drop((first, second));
        assert_eq!(count(), None);
    }

    #[tokio::test]
    async fn a_literal_is_its_own_address() {
        assert_eq!(addresses("10.0.0.7", 5432).await.unwrap(), [at(7)]);
    }
}
