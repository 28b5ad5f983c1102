use super::*;
use crate::load::clock::{MS_NS, SECOND_NS};

fn life(open_per_second: f64, open_burst: u32) -> ConnectionLife {
    ConnectionLife { open_per_second, open_burst, ..ConnectionLife::default() }
}

/// When each of `count` is allowed that ask at once, in simulated time.
fn openings(bucket: &mut Bucket, from: u64, count: usize) -> Vec<u64> {
    let mut now = from;
    (0..count)
        .map(|_| {
            now = bucket.ready_at(now);
            bucket.take(now);
            now
        })
        .collect()
}

/// No span between two openings holds more of them than the burst and what it refills.
fn never_too_many(times: &[u64], life: &ConnectionLife) {
    for (first, from) in times.iter().enumerate() {
        for (last, to) in times.iter().enumerate().skip(first) {
            let refilled = clock::to_seconds(to - from) * life.open_per_second;
            let allowed = f64::from(life.open_burst) + refilled + 1e-6;
            let opened = last - first + 1;
            assert!(opened as f64 <= allowed, "{opened} of {allowed} between {from} and {to}");
        }
    }
}

#[test]
fn two_thousand_at_once_take_ten_seconds_and_never_exceed_the_allowance() {
    let life = life(100.0, 1_000);
    let mut bucket = Bucket::new(&life);
    let start = 5 * SECOND_NS;
    assert_eq!(bucket.time_for(start, 2_000), 10 * SECOND_NS);
    let times = openings(&mut bucket, start, 2_000);
    assert!(times[..1_000].iter().all(|time| *time == start), "the burst comes at once");
    assert_eq!(times[1_000], start + 10 * MS_NS);
    assert_eq!(times[1_999], start + 10 * SECOND_NS);
    never_too_many(&times, &life);
}

#[test]
fn a_second_burst_has_to_be_saved_up() {
    let life = life(100.0, 1_000);
    let mut bucket = Bucket::new(&life);
    let mut times = openings(&mut bucket, 0, 1_000);
    // A second later a tenth of a burst is there again, and the rest comes at the rate.
    times.extend(openings(&mut bucket, SECOND_NS, 300));
    assert_eq!(times[1_099], SECOND_NS);
    assert_eq!(times[1_299], 3 * SECOND_NS);
    times.extend(openings(&mut bucket, 60 * SECOND_NS, 1_200));
    assert_eq!(times[2_299], 60 * SECOND_NS, "full again");
    assert_eq!(times[2_499], 62 * SECOND_NS);
    never_too_many(&times, &life);
}

#[test]
fn openers_that_come_late_lose_no_rate_and_gain_none() {
    let life = life(100.0, 10);
    let mut bucket = Bucket::new(&life);
    let mut now = 0;
    let mut times = Vec::new();
    for round in 0..500_u64 {
        now = bucket.ready_at(now) + round % 4 * MS_NS;
        bucket.take(now);
        times.push(now);
    }
    never_too_many(&times, &life);
    let expected = 490 * 10 * MS_NS;
    assert!(times[499].abs_diff(expected) < 10 * MS_NS, "{}", times[499]);
}

#[test]
fn nothing_takes_no_time_and_odd_rates_are_exact() {
    assert_eq!(Bucket::new(&life(100.0, 1)).time_for(7, 0), 0);
    assert_eq!(Bucket::new(&life(0.5, 1)).time_for(0, 3), 4 * SECOND_NS);
    let mut bucket = Bucket::new(&life(3.0, 2));
    let times = openings(&mut bucket, 0, 3_002);
    assert!(times[3_001].abs_diff(1_000 * SECOND_NS) < 2_000, "{}", times[3_001]);
}

#[test]
fn a_configuration_keeps_its_pacer_and_what_it_gave_out() {
    let (d1, r1) = (ConfigurationId::new("D1"), ConfigurationId::new("R1"));
    let mut pacers = Pacers::default();
    let first = pacers.of(&d1, &life(100.0, 10));
    assert!(Arc::ptr_eq(&first, &pacers.of(&d1, &life(100.0, 10))));
    assert!(!Arc::ptr_eq(&first, &pacers.of(&r1, &life(100.0, 10))));
    first.bucket().full_at = u64::MAX / 2;
    let changed = pacers.of(&d1, &life(50.0, 10));
    assert_eq!(changed.bucket().full_at, u64::MAX / 2);
    assert_eq!(changed.bucket().gap, 20 * MS_NS);
}

#[test]
fn threads_with_loops_of_their_own_share_one_allowance() {
    let life = life(200.0, 10);
    let pacer = Pacers::default().of(&ConfigurationId::new("D1"), &life);
    let began = clock::now();
    assert!(pacer.time_for(40) >= Duration::from_millis(145), "{:?}", pacer.time_for(40));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let pacer = Arc::clone(&pacer);
            std::thread::spawn(move || {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    let one = || async {
                        pacer.acquire().await;
                        clock::now()
                    };
                    futures_util::future::join_all((0..10).map(|_| one())).await
                })
            })
        })
        .collect();
    let mut times: Vec<u64> = threads.into_iter().flat_map(|t| t.join().unwrap()).collect();
    times.sort_unstable();
    let took = times[39] - began;
    assert!(took >= 150 * MS_NS, "30 after the burst take 150 ms, these took {took} ns");
    assert_eq!(pacer.asking.load(Ordering::Relaxed), 0);
}

#[test]
fn who_gives_up_leaves_its_allowance_to_the_next() {
    use futures_util::FutureExt as _;
    let pacer = Pacers::default().of(&ConfigurationId::new("D1"), &life(0.01, 1));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        pacer.acquire().await;
        for _ in 0..50 {
            assert!(pacer.acquire().now_or_never().is_none());
        }
    });
    // The fifty took nothing: the next allowance is the first one refilled.
    assert!(pacer.time_for(1) <= Duration::from_secs(100), "{:?}", pacer.time_for(1));
    assert_eq!(pacer.asking.load(Ordering::Relaxed), 0);
}
