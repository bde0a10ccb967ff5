use super::super::{PathStatus, RateView};
use super::*;

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn path(id: u32, rtt: u64) -> PathView {
    PathView {
        id: PathId(id),
        status: PathStatus::Available,
        smoothed_rtt: Some(millis(rtt)),
        rttvar: millis(5),
        window: 12_000,
        in_flight: 0,
        queued: 0,
        mtu: 1200,
        rate: None,
    }
}

/// 1200 bytes of path 1.
fn outstanding(sent_at: Option<Instant>) -> Outstanding {
    Outstanding {
        path: PathId(1),
        sent_at,
        bytes: 1200,
    }
}

/// The path on which 1200 bytes are copied that were sent on path 1 at the epoch.
fn plan(after: u64, paths: &[PathView]) -> Option<u32> {
    let now = Instant::EPOCH + millis(after);
    let oldest = outstanding(Some(Instant::EPOCH));
    match Reinjection::default().plan(now, paths, &oldest) {
        Reinject::On(path) => Some(path.0),
        Reinject::Never | Reinject::NotNow => None,
    }
}

#[test]
fn a_copy_must_arrive_before_the_acknowledgment_of_the_original() {
    let paths = [path(0, 20), path(1, 200)];
    assert_eq!(plan(10, &paths), Some(0), "10 + 10 ms are less than 100");
    assert_eq!(plan(150, &paths), Some(0), "the original may be lost");
    assert_eq!(
        plan(190, &paths),
        None,
        "its acknowledgment is expected before"
    );
    assert_eq!(plan(221, &paths), Some(0), "it is overdue");
    let equal = [path(0, 200), path(1, 200)];
    assert_eq!(plan(1, &equal), None, "no path is faster");
    let slower = [path(1, 20), path(2, 200)];
    assert_eq!(plan(1, &slower), None);
    assert_eq!(plan(41, &slower), Some(2));
}

#[test]
fn copies_need_room_on_another_path() {
    let mut paths = [path(0, 20), path(1, 200)];
    paths[0].in_flight = paths[0].window;
    assert_eq!(plan(10, &paths), None);
    assert_eq!(plan(1000, &paths[1..]), None);
    assert_eq!(plan(1000, &[]), None);
    paths[0].in_flight = 0;
    paths[0].smoothed_rtt = None;
    assert_eq!(plan(10, &paths), None, "no sample shows that it is faster");
    assert_eq!(plan(1000, &paths), Some(0));
    assert_eq!(
        plan(1, &paths[..1]),
        Some(0),
        "the path of the original was removed"
    );
    let unrated = PathView {
        smoothed_rtt: None,
        ..path(1, 0)
    };
    assert_eq!(plan(1, &[path(0, 20), unrated]), Some(0));
}

#[test]
fn queued_bytes_delay_copies() {
    let mut paths = [path(0, 100), path(1, 200)];
    paths[0].queued = 12_000;
    assert_eq!(
        plan(1, &paths),
        Some(0),
        "150 ms, and the other answers after 200"
    );
    paths[0].queued = 18_000;
    assert_eq!(plan(1, &paths), None, "200 ms");
    paths[1].queued = 12_000;
    assert_eq!(plan(1, &paths), Some(0));
}

#[test]
fn without_room_or_budget_the_plan_is_not_now() {
    let unrated = PathView {
        smoothed_rtt: None,
        ..path(0, 0)
    };
    let full = PathView {
        in_flight: 12_000,
        ..path(0, 20)
    };
    let plan = |paths: &[PathView], sent_at| {
        let now = Instant::EPOCH + millis(1);
        Reinjection::default().plan(now, paths, &outstanding(sent_at))
    };
    let left = Some(Instant::EPOCH);
    assert_eq!(plan(&[unrated, path(1, 200)], left), Reinject::NotNow);
    assert_eq!(plan(&[full, path(1, 200)], left), Reinject::NotNow);
    assert_eq!(plan(&[path(0, 200), path(1, 20)], left), Reinject::Never);
}

#[test]
fn queued_bytes_are_moved_regardless_of_the_budget() {
    let none = Reinjection {
        copied: u64::MAX,
        ..Reinjection::default()
    };
    let paths = [path(0, 20), path(1, 200)];
    let plan = |sent_at| none.plan(Instant::EPOCH, &paths, &outstanding(sent_at));
    assert_eq!(plan(Some(Instant::EPOCH)), Reinject::NotNow);
    assert_eq!(plan(None), Reinject::On(PathId(0)));
}

#[test]
fn copies_stay_within_their_budget() {
    let mut reinjection = Reinjection::new(ReinjectionConfig {
        budget: 0.1,
        ..ReinjectionConfig::default()
    });
    let paths = [path(0, 20), path(1, 200)];
    let oldest = outstanding(Some(Instant::EPOCH));
    let mut copies = 0;
    for n in 1..=1000 {
        reinjection.set_sent(n * 1200);
        if let Reinject::On(_) = reinjection.plan(Instant::EPOCH, &paths, &oldest) {
            reinjection.on_copied(1200);
            copies += 1;
        }
    }
    assert_eq!(copies, 108, "a tenth, and the first eight");
}

#[test]
fn what_a_fading_path_holds_is_late_before_new_data() {
    let rated = |id, rtt| PathView {
        rate: Some(RateView {
            bandwidth: 1_000_000,
            min_rtt: millis(rtt),
            paced_for: Duration::ZERO,
        }),
        ..path(id, rtt)
    };
    let is_late = |after: u64, paths: &[PathView]| {
        let oldest = outstanding(Some(Instant::EPOCH));
        let now = Instant::EPOCH + millis(after);
        Reinjection::default().is_late(now, paths, &oldest, PathId(0))
    };
    let paths = [rated(0, 60), rated(1, 30)];
    assert!(
        !is_late(140, &paths),
        "two round trips and one there, and what that varies by"
    );
    assert!(is_late(141, &paths));
    let slow = PathView {
        smoothed_rtt: Some(millis(900)),
        ..rated(1, 30)
    };
    assert!(
        is_late(141, &[rated(0, 60), slow]),
        "its queue is no excuse"
    );
    assert!(
        !is_late(141, &[path(0, 60), path(1, 30)]),
        "windows do not tell"
    );
    let mut spent = Reinjection::default();
    spent.on_copied(ALLOWANCE);
    let oldest = outstanding(Some(Instant::EPOCH));
    assert!(!spent.is_late(Instant::EPOCH + millis(500), &paths, &oldest, PathId(0)));
}
