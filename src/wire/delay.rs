//! When a reply leaves: the added network and the added work of the server.

use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::model::GateProfile;

/// Draws the delays of one connection.
pub(super) struct Delays {
    profile: GateProfile,
    random: Pcg64Mcg,
}

impl Delays {
    pub(super) fn new(profile: GateProfile, seed: u64) -> Self {
        Self { profile, random: Pcg64Mcg::seed_from_u64(seed) }
    }

    /// The network's round trip.
    pub(super) fn round_trip(&mut self) -> Duration {
        self.draw(self.profile.round_trip_ms)
    }

    /// The server's added work for a COMMIT.
    pub(super) fn commit(&mut self, written: bool) -> Duration {
        let profile = &self.profile;
        self.draw(if written { profile.commit_write_ms } else { profile.commit_read_ms })
    }

    /// The server's added work for other statements.
    pub(super) fn statement(&mut self) -> Duration {
        self.draw(self.profile.statement_ms)
    }

    fn draw(&mut self, ms: f64) -> Duration {
        let jitter = self.profile.jitter.clamp(0.0, 1.0);
        let factor = if ms > 0.0 && jitter > 0.0 {
            self.random.random_range(1.0 - jitter..=1.0 + jitter)
        } else {
            1.0
        };
        Duration::try_from_secs_f64(ms / 1e3 * factor).unwrap_or_default()
    }
}

/// The server of one connection as the client would see it if the added work were real: it takes
/// one request after the other, while the network carries any number at once.
pub(super) struct SlowedServer {
    /// When the real server was done with the last request.
    really_done: Instant,
    /// When the slowed one was.
    done: Instant,
    /// When the last reply leaves; none overtakes it.
    released: Instant,
}

impl SlowedServer {
    pub(super) const fn new(now: Instant) -> Self {
        Self { really_done: now, done: now, released: now }
    }

    /// When a reply leaves whose request arrived at `arrival` and which the real server has just
    /// (`now`) completed.
    pub(super) fn complete(
        &mut self,
        arrival: Instant,
        now: Instant,
        added_work: Duration,
        round_trip: Duration,
    ) -> Instant {
        let real_work = now.saturating_duration_since(arrival.max(self.really_done));
        self.really_done = now;
        self.done = arrival.max(self.done) + real_work + added_work;
        self.release(self.done + round_trip)
    }

    /// When a part of a reply leaves that does not wait for the reply's end.
    pub(super) fn part(&mut self, now: Instant, round_trip: Duration) -> Instant {
        self.release(now.max(self.done) + round_trip)
    }

    fn release(&mut self, at: Instant) -> Instant {
        self.released = self.released.max(at);
        self.released
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn pipelined_requests_share_the_network_and_queue_for_the_server() {
        let start = Instant::now();
        let mut server = SlowedServer::new(start);
        let leaves: Vec<_> = [1, 2, 3]
            .map(|real| server.complete(start, start + ms(real), ms(4), ms(10)))
            .into_iter()
            .map(|at| at - start)
            .collect();
        // Each takes 1 ms of real and 4 ms of added work, all of them one round trip.
        assert_eq!(leaves, [ms(15), ms(20), ms(25)]);
    }

    #[test]
    fn an_idle_connection_starts_afresh() {
        let start = Instant::now();
        let mut server = SlowedServer::new(start);
        server.complete(start, start + ms(1), ms(4), ms(10));
        let later = start + ms(1_000);
        assert_eq!(server.complete(later, later + ms(2), ms(4), ms(10)), later + ms(16));
    }

    #[test]
    fn a_shorter_draw_does_not_overtake() {
        let start = Instant::now();
        let mut server = SlowedServer::new(start);
        let first = server.complete(start, start, ms(0), ms(10));
        assert_eq!(server.complete(start, start, ms(0), ms(5)), first);
        assert_eq!(server.part(start, ms(1)), first);
    }

    #[test]
    fn jitter_spreads_within_its_share_and_repeats_with_the_seed() {
        let profile = GateProfile { round_trip_ms: 10.0, jitter: 0.2, ..GateProfile::default() };
        let draw = || {
            let mut delays = Delays::new(profile.clone(), 7);
            (0..200).map(|_| delays.round_trip()).collect::<Vec<_>>()
        };
        let drawn = draw();
        assert_eq!(drawn, draw());
        let (low, high) = (drawn.iter().min().unwrap(), drawn.iter().max().unwrap());
        assert!(*low >= ms(8) && *low < ms(9), "{low:?}");
        assert!(*high <= ms(12) && *high > ms(11), "{high:?}");
    }
}
