use super::*;
use crate::{
    load::clock::SECOND_NS,
    model::{Arrivals, Phase},
};

const MS: u64 = MS_NS;

/// One arrival a millisecond from 0, for ten seconds.
fn schedule(threads: usize, backlog: u64) -> (Schedule, Timeline) {
    let timeline = Timeline::new(0, 0, 10 * SECOND_NS);
    let gaps = Gaps::new(Arrivals::Constant, 1_000.0, 0);
    let limits = Limits { backlog, wait_ns: SECOND_NS };
    (Schedule::new(gaps, &timeline, threads, limits), timeline)
}

fn taken(claim: Claim) -> u64 {
    match claim {
        Claim::Take(arrival) => arrival.intended / MS,
        other => panic!("{other:?}"),
    }
}

#[test]
fn due_arrivals_are_taken_in_order_and_none_is_skipped() {
    let (mut schedule, timeline) = schedule(1, u64::MAX);
    schedule.advance(&timeline, 9 * MS + MS / 2);
    for expected in 0..10 {
        let (claim, _) = schedule.claim(&timeline, 0, 9 * MS + MS / 2);
        assert_eq!(taken(claim), expected);
    }
    let (claim, wake) = schedule.claim(&timeline, 0, 9 * MS + MS / 2);
    assert_eq!((claim, wake.alarm), (Claim::Idle, Some(10 * MS)));
}

#[test]
fn beyond_the_bound_arrivals_are_shed_and_counted_but_never_what_an_idle_connection_can_take() {
    let (mut schedule, timeline) = schedule(1, 3);
    schedule.advance(&timeline, 9 * MS);
    assert_eq!(schedule.collect(0), Came { offered: 10, shed: 7 });
    while let (Claim::Take(_), _) = schedule.claim(&timeline, 0, 9 * MS) {}
    assert_eq!(schedule.claim(&timeline, 0, 9 * MS).0, Claim::Idle);
    // Two connections are idle: five may lie, as two of them are as good as taken.
    schedule.advance(&timeline, 19 * MS);
    assert_eq!(schedule.collect(0), Came { offered: 10, shed: 5 });
}

#[test]
fn what_waits_too_long_expires() {
    let (mut schedule, timeline) = schedule(1, u64::MAX);
    schedule.advance(&timeline, 1_010 * MS + MS / 2);
    assert_eq!(schedule.expire(&timeline, 1_010 * MS + MS / 2), Expired { all: 11, measured: 11 });
    assert_eq!(schedule.expire(&timeline, 1_010 * MS + MS / 2), Expired::default());
    assert_eq!(taken(schedule.claim(&timeline, 0, 1_010 * MS + MS / 2).0), 11);
}

#[test]
fn threads_share_out_the_coming_arrivals() {
    let (mut schedule, timeline) = schedule(2, u64::MAX);
    schedule.advance(&timeline, 0);
    assert_eq!(taken(schedule.claim(&timeline, 0, 0).0), 0);
    assert_eq!(schedule.claim(&timeline, 0, 0).1.alarm, Some(MS));
    assert_eq!(schedule.claim(&timeline, 1, 0).1.alarm, Some(2 * MS));
    // Thread 0 wakes for its arrival, takes it with its only idle connection: thread 1 is awake
    // for the next.
    schedule.advance(&timeline, MS);
    assert_eq!(schedule.take_idle(&timeline, 0).map(|a| a.ordinal), Some(1));
    assert_eq!(schedule.looked(0, MS), Wake::default());
    // Freed again, it takes the arrival after that of thread 1.
    assert_eq!(schedule.claim(&timeline, 0, MS).1.alarm, Some(3 * MS));
}

#[test]
fn a_stalled_thread_leaves_no_arrival_lying_beyond_the_rescue() {
    let timeline = Timeline::new(0, 0, 10 * SECOND_NS);
    let gaps = Gaps::new(Arrivals::Constant, 10.0, 0);
    let limits = Limits { backlog: u64::MAX, wait_ns: SECOND_NS };
    let mut schedule = Schedule::new(gaps, &timeline, 2, limits);
    schedule.advance(&timeline, 0);
    assert_eq!(taken(schedule.claim(&timeline, 0, 0).0), 0);
    assert_eq!(schedule.claim(&timeline, 0, 0).1.alarm, Some(100 * MS));
    // Thread 0 is to wake at 100 ms; thread 1 would have its own turn at 200 ms.
    assert_eq!(schedule.claim(&timeline, 1, 0).1.alarm, Some(100 * MS + RESCUE_NS));
}

#[test]
fn once_a_thread_is_known_to_be_stalled_the_others_wake_on_time() {
    let (mut schedule, timeline) = schedule(2, u64::MAX);
    schedule.advance(&timeline, 0);
    assert_eq!(taken(schedule.claim(&timeline, 0, 0).0), 0);
    assert_eq!(schedule.claim(&timeline, 0, 0).1.alarm, Some(MS));
    assert_eq!(schedule.claim(&timeline, 1, 0).1.alarm, Some(2 * MS));
    // Thread 0 never looks. Thread 1 takes what was left lying, and then each arrival at its time.
    let late = 2 * MS + MS / 10;
    schedule.advance(&timeline, late);
    assert_eq!(schedule.take_idle(&timeline, 1).map(|a| a.intended), Some(MS));
    assert_eq!(schedule.looked(1, late), Wake::default(), "no other thread can take the next");
    assert_eq!(taken(schedule.claim(&timeline, 1, late).0), 2);
    for next in 3..6 {
        let now = (next - 1) * MS + MS / 5;
        assert_eq!(schedule.claim(&timeline, 1, now).1.alarm, Some(next * MS));
        schedule.advance(&timeline, next * MS);
        assert_eq!(schedule.take_idle(&timeline, 1).map(|a| a.intended), Some(next * MS));
    }
}

#[test]
fn a_thread_without_an_idle_connection_hands_its_watch_on() {
    let (mut schedule, timeline) = schedule(2, u64::MAX);
    schedule.advance(&timeline, 0);
    assert_eq!(taken(schedule.claim(&timeline, 0, 0).0), 0);
    schedule.claim(&timeline, 0, 0);
    assert_eq!(schedule.claim(&timeline, 1, 0).1.alarm, Some(2 * MS));
    assert_eq!(schedule.leave_idle(0, MS / 2).poke, Some(1));
    assert_eq!(schedule.looked(1, MS / 2).alarm, Some(MS));
}

#[test]
fn arrivals_left_over_by_one_thread_wake_another_that_has_idle_connections() {
    let (mut schedule, timeline) = schedule(2, u64::MAX);
    schedule.advance(&timeline, 0);
    assert_eq!(taken(schedule.claim(&timeline, 0, 0).0), 0);
    schedule.claim(&timeline, 0, 0);
    schedule.claim(&timeline, 1, 0);
    schedule.advance(&timeline, MS + MS / 2);
    let late = 3 * MS + MS / 2;
    schedule.advance(&timeline, late);
    // Three are due, thread 0 has one idle connection, and thread 1 is set to 2 ms, which is past.
    assert!(schedule.take_idle(&timeline, 0).is_some());
    assert_eq!(schedule.take_idle(&timeline, 0), None);
    assert_eq!(schedule.looked(0, late).poke, None, "thread 1 is about to wake");
    assert!(schedule.take_idle(&timeline, 1).is_some());
    assert_eq!(schedule.looked(1, late), Wake::default(), "nobody is idle");
}

#[test]
fn counts_fall_into_the_window_of_the_intended_start() {
    let (mut schedule, timeline) = schedule(1, u64::MAX);
    schedule.advance(&timeline, 2_500 * MS);
    assert_eq!(schedule.collect(0), Came { offered: 1_000, shed: 0 });
    assert_eq!(schedule.collect(1), Came { offered: 1_000, shed: 0 });
    schedule.advance(&timeline, 20_000 * MS);
    let rest: u64 = (2..10).map(|seq| schedule.collect(seq).offered).sum();
    assert_eq!(rest, 8_000);
    assert_eq!(schedule.collect(10), Came::default(), "the drain brings none");
}

#[test]
fn a_stop_keeps_what_is_due_and_drops_what_would_come() {
    let (mut schedule, mut timeline) = schedule(1, u64::MAX);
    let now = 5 * MS + MS / 2;
    schedule.advance(&timeline, now);
    timeline.stop(now);
    schedule.stop(&timeline);
    schedule.advance(&timeline, SECOND_NS);
    let mut count = 0;
    while let (Claim::Take(arrival), _) = schedule.claim(&timeline, 0, SECOND_NS) {
        assert!(arrival.measured);
        count += 1;
    }
    assert_eq!(count, 6);
    assert!(schedule.is_over());
    assert_eq!(schedule.claim(&timeline, 0, SECOND_NS).0, Claim::Over);
    let closed = timeline.first();
    assert_eq!((closed.phase, timeline.end_of(&closed)), (Phase::Measure, now));
}
