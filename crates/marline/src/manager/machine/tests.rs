use std::net::Ipv4Addr;

use super::*;
use crate::manager::policy::PathRule;

const WIFI: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const MOBILE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 2));
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 2, 2));
const WHY: ErrorCode = ErrorCode::APPLICATION_ABANDON_PATH;

/// A machine, and what a connection does for it.
struct Bench {
    now: Instant,
    machine: Machine,
    next: u32,
}

impl Bench {
    /// Wi-Fi and mobile, whose rule is `mobile`; the connection began from `first`.
    fn new(mobile: &str, first: IpAddr) -> Self {
        let rules = ["wlan0", mobile].map(|text| text.parse::<PathRule>().unwrap());
        let policy = PathPolicy {
            rules: rules.into(),
            ..PathPolicy::default()
        };
        let now = Instant::EPOCH;
        let mut machine = Machine::new(now, &policy, true);
        machine.addresses(now, &[Some(WIFI), Some(MOBILE)]);
        machine.first(now, PathId(0), first);
        Self {
            now,
            machine,
            next: 1,
        }
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
    }

    fn addresses(&mut self, addresses: [Option<IpAddr>; 2]) {
        self.machine.addresses(self.now, &addresses);
    }

    /// All that is to be done now, and done.
    fn act(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        while let Some(action) = self.machine.next_action(self.now) {
            match action {
                Action::Open { rule, local } => {
                    self.machine.opened(PathId(self.next), rule, local);
                    self.next += 1;
                }
                Action::Abandon { id, error } => self.machine.closed(self.now, id, error),
                Action::Status { .. } | Action::Close => {}
            }
            actions.push(action);
            assert!(actions.len() < 100, "no end");
        }
        actions
    }

    fn valid(&mut self, id: u32) {
        self.machine.validated(self.now, PathId(id));
    }

    fn closed(&mut self, id: u32) {
        let error = ErrorCode::PATH_UNSTABLE_OR_POOR;
        self.machine.closed(self.now, PathId(id), error);
    }

    /// When something is due, from now on.
    fn due_in(&self) -> Option<Duration> {
        self.machine.next_deadline().map(|at| at - self.now)
    }
}

fn open(rule: usize, local: IpAddr) -> Action {
    Action::Open { rule, local }
}

fn abandon(id: u32) -> Action {
    Action::Abandon {
        id: PathId(id),
        error: WHY,
    }
}

fn backup(id: u32) -> Action {
    Action::Status {
        id: PathId(id),
        status: PathStatus::Backup,
    }
}

#[test]
fn other_paths_are_opened_once() {
    let mut bench = Bench::new("wwan0", WIFI);
    assert_eq!(bench.act(), [open(1, MOBILE)]);
    assert_eq!(bench.act(), []);
    bench.valid(1);
    bench.wait(Duration::from_secs(3600));
    assert_eq!(bench.act(), []);
    assert_eq!(bench.due_in(), None);
    assert_eq!(bench.machine.payer_of(PathId(0)), Some(0));
    assert_eq!(bench.machine.payer_of(PathId(1)), Some(1));
}

#[test]
fn backups_are_told_wherever_they_are() {
    let mut bench = Bench::new("wwan0,backup", WIFI);
    assert_eq!(bench.act(), [open(1, MOBILE), backup(1)]);
    let mut bench = Bench::new("wwan0,backup", MOBILE);
    assert_eq!(bench.act(), [backup(0), open(0, WIFI)]);
}

#[test]
fn a_first_path_that_nobody_named_makes_room() {
    let mut bench = Bench::new("wwan0", OTHER);
    assert_eq!(bench.act(), [open(0, WIFI), open(1, MOBILE)]);
    assert_eq!(bench.act(), []);
    bench.valid(2);
    assert_eq!(bench.act(), [abandon(0)]);
}

#[test]
fn what_fails_is_tried_again_ever_later() {
    let mut bench = Bench::new("wwan0", WIFI);
    let mut pauses = Vec::new();
    for id in 1..9 {
        assert_eq!(bench.act(), [open(1, MOBILE)]);
        bench.closed(id);
        assert_eq!(bench.act(), []);
        let pause = bench.due_in().unwrap();
        pauses.push(pause.as_secs());
        bench.wait(pause);
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
    // It works, and for long enough to be trusted again.
    bench.act();
    bench.valid(9);
    bench.wait(PROVEN);
    bench.closed(9);
    assert_eq!(bench.due_in(), Some(FIRST_PAUSE));
    // The network returns: no pause counts any more.
    bench.addresses([Some(WIFI), None]);
    assert_eq!(bench.due_in(), None);
    bench.addresses([Some(WIFI), Some(MOBILE)]);
    assert_eq!(bench.act(), [open(1, MOBILE)]);
}

#[test]
fn what_somebody_does_not_want_is_left_for_long() {
    let mut bench = Bench::new("wwan0", WIFI);
    bench.act();
    bench.valid(1);
    bench.machine.closed(bench.now, PathId(1), WHY);
    assert_eq!(bench.act(), []);
    let longest = PathPolicy::default().longest_pause;
    assert_eq!(bench.due_in(), Some(longest));
    bench.wait(longest);
    assert_eq!(bench.act(), [open(1, MOBILE)]);
}

#[test]
fn refusals_are_taken_for_what_they_are() {
    for (refusal, pause) in [
        (Refusal::Soon, Some(FIRST_WAIT)),
        (Refusal::Later, Some(FIRST_PAUSE)),
        (Refusal::Never, None),
    ] {
        let mut bench = Bench::new("wwan0", WIFI);
        assert_eq!(
            bench.machine.next_action(bench.now),
            Some(open(1, MOBILE)),
            "{refusal:?}"
        );
        bench.machine.refused(bench.now, 1, refusal);
        assert_eq!(bench.act(), []);
        assert_eq!(bench.due_in(), pause);
    }
}

#[test]
fn an_address_that_goes_takes_its_path_with_it() {
    let mut bench = Bench::new("wwan0", WIFI);
    bench.act();
    // The other path is not there yet: the connection keeps what it has.
    bench.addresses([None, Some(MOBILE)]);
    assert_eq!(bench.act(), []);
    bench.valid(1);
    assert_eq!(bench.act(), [abandon(0)]);
    bench.addresses([Some(OTHER), Some(MOBILE)]);
    assert_eq!(bench.act(), [open(0, OTHER)]);
}

#[test]
fn a_connection_follows_the_only_address_there_is() {
    let mut bench = Bench::new("wwan0", WIFI);
    bench.addresses([Some(WIFI), None]);
    assert_eq!(bench.act(), []);
    bench.addresses([None, None]);
    assert_eq!(bench.act(), []);
    // Back before anybody noticed.
    bench.addresses([Some(WIFI), None]);
    assert_eq!(bench.act(), []);
    bench.addresses([Some(OTHER), None]);
    assert_eq!(bench.act(), [open(0, OTHER)]);
    bench.valid(1);
    assert_eq!(bench.act(), [abandon(0)]);
}

#[test]
fn what_is_spent_stays_away() {
    let mut bench = Bench::new("wwan0,cap=1MB", WIFI);
    bench.act();
    bench.valid(1);
    bench.machine.spent(bench.now, 1);
    bench.machine.spent(bench.now, 1);
    assert_eq!(bench.act(), [abandon(1)]);
    bench.addresses([Some(WIFI), None]);
    bench.addresses([Some(WIFI), Some(MOBILE)]);
    bench.wait(Duration::from_secs(3600));
    assert_eq!(bench.act(), []);
}

#[test]
fn rather_no_connection_than_more_than_the_cap() {
    let mut bench = Bench::new("wwan0,cap=1MB", MOBILE);
    assert_eq!(bench.act(), [open(0, WIFI)]);
    bench.machine.spent(bench.now, 1);
    // Another may take over in a moment.
    assert_eq!(bench.act(), []);
    bench.closed(1);
    assert_eq!(bench.act(), [Action::Close]);
    assert_eq!(bench.act(), []);

    let mut bench = Bench::new("wwan0,cap=1MB", MOBILE);
    bench.act();
    bench.valid(1);
    // A path whose address is gone for now is still a path.
    bench.addresses([None, Some(MOBILE)]);
    bench.machine.spent(bench.now, 1);
    assert_eq!(bench.act(), [abandon(0)]);
}

#[test]
fn a_path_that_cannot_be_abandoned_is_tried_again() {
    let mut bench = Bench::new("wwan0,cap=1MB", WIFI);
    bench.act();
    bench.valid(1);
    bench.machine.spent(bench.now, 1);
    assert_eq!(bench.machine.next_action(bench.now), Some(abandon(1)));
    bench.machine.kept(bench.now, PathId(1));
    assert_eq!(bench.act(), []);
    bench.wait(ABANDON_PAUSE);
    assert_eq!(bench.due_in(), Some(Duration::ZERO));
    assert_eq!(bench.act(), [abandon(1)]);
}

#[test]
fn one_path_stays_one_path() {
    let mut bench = Bench::new("wwan0,cap=1MB", MOBILE);
    bench.machine.is_multipath = false;
    assert_eq!(bench.act(), []);
    bench.addresses([None, None]);
    assert_eq!(bench.act(), []);
    assert_eq!(bench.due_in(), None);
    bench.machine.spent(bench.now, 1);
    assert_eq!(bench.act(), [Action::Close]);
}

#[test]
fn paths_of_the_application_are_its_own() {
    let mut bench = Bench::new("wwan0", WIFI);
    bench.act();
    bench.machine.found(bench.now, PathId(7), MOBILE);
    bench.machine.found(bench.now, PathId(7), MOBILE);
    bench.valid(1);
    bench.valid(7);
    bench.addresses([Some(WIFI), None]);
    assert_eq!(bench.act(), [abandon(1)]);
    bench.closed(7);
    assert_eq!(bench.act(), []);
}

#[test]
fn a_cap_is_for_every_path_of_its_address() {
    let mut bench = Bench::new("wwan0,cap=1MB", WIFI);
    bench.act();
    bench.valid(1);
    bench.machine.found(bench.now, PathId(7), MOBILE);
    bench.valid(7);
    assert_eq!(bench.machine.payer_of(PathId(7)), Some(1));
    bench.machine.spent(bench.now, 1);
    let mut left = bench.act();
    left.sort_by_key(|action| format!("{action:?}"));
    assert_eq!(left, [abandon(1), abandon(7)]);
    bench.machine.found(bench.now, PathId(8), MOBILE);
    assert_eq!(bench.act(), [abandon(8)]);
    bench.machine.found(bench.now, PathId(9), OTHER);
    assert_eq!(bench.machine.payer_of(PathId(9)), None);
    assert_eq!(bench.act(), []);
}

#[test]
fn events_that_were_missed_are_made_up_for() {
    let mut bench = Bench::new("wwan0", WIFI);
    bench.act();
    bench.valid(1);
    bench.machine.present(bench.now, &[PathId(0)]);
    bench.wait(FIRST_PAUSE);
    assert_eq!(bench.act(), [open(1, MOBILE)]);
}
