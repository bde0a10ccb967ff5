use std::net::Ipv4Addr;

use super::*;
use crate::manager::policy::PathRule;

const WIFI: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const MOBILE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 2));
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 2, 2));
const WHY: ErrorCode = ErrorCode::APPLICATION_ABANDON_PATH;

/// A machine, and the actions of a connection.
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
        machine.set_addresses(now, &[Some(WIFI), Some(MOBILE)]);
        machine.on_first_path(now, PathId(0), first);
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
        self.machine.set_addresses(self.now, &addresses);
    }

    /// Takes and carries out all actions that are due.
    fn act(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        while let Some(action) = self.machine.next_action(self.now) {
            match action {
                Action::Open { rule, local } => {
                    self.machine.on_opened(PathId(self.next), rule, local);
                    self.next += 1;
                }
                Action::Abandon { id, error } => self.machine.on_closed(self.now, id, error),
                Action::Status { .. } | Action::Close => {}
            }
            actions.push(action);
            assert!(actions.len() < 100, "actions without end");
        }
        actions
    }

    fn valid(&mut self, id: u32) {
        self.machine.on_validated(self.now, PathId(id));
    }

    fn closed(&mut self, id: u32) {
        let error = ErrorCode::PATH_UNSTABLE_OR_POOR;
        self.machine.on_closed(self.now, PathId(id), error);
    }

    /// The time until the next deadline.
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
fn each_rule_opens_one_path() {
    let mut bench = Bench::new("wwan0", WIFI);
    assert_eq!(bench.act(), [open(1, MOBILE)]);
    assert_eq!(bench.act(), []);
    bench.valid(1);
    bench.wait(Duration::from_secs(3600));
    assert_eq!(bench.act(), []);
    assert_eq!(bench.due_in(), None);
    assert_eq!(bench.machine.charged_rule(PathId(0)), Some(0));
    assert_eq!(bench.machine.charged_rule(PathId(1)), Some(1));
}

#[test]
fn backup_status_is_set_on_first_and_later_paths() {
    let mut bench = Bench::new("wwan0,backup", WIFI);
    assert_eq!(bench.act(), [open(1, MOBILE), backup(1)]);
    let mut bench = Bench::new("wwan0,backup", MOBILE);
    assert_eq!(bench.act(), [backup(0), open(0, WIFI)]);
}

#[test]
fn a_path_that_migrates_takes_the_status_of_its_new_rule() {
    let mut bench = Bench::new("wwan0,backup", WIFI);
    assert_eq!(bench.act(), [open(1, MOBILE), backup(1)]);
    bench.valid(1);
    bench.closed(0);
    bench.machine.on_moved(bench.now, PathId(1), WIFI);
    let available = Action::Status {
        id: PathId(1),
        status: PathStatus::Available,
    };
    assert_eq!(bench.act(), [available, open(1, MOBILE), backup(2)]);
    bench.machine.on_moved(bench.now, PathId(1), MOBILE);
    assert_eq!(bench.machine.next_action(bench.now), Some(backup(1)));
}

#[test]
fn a_first_path_of_no_rule_is_abandoned_once_another_is_validated() {
    let mut bench = Bench::new("wwan0", OTHER);
    assert_eq!(bench.act(), [open(0, WIFI), open(1, MOBILE)]);
    assert_eq!(bench.act(), []);
    bench.valid(2);
    assert_eq!(bench.act(), [abandon(0)]);
}

#[test]
fn pauses_double_up_to_the_longest_and_reset_with_success_or_address() {
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
    // It carries data for long enough to reset the failures.
    bench.act();
    bench.valid(9);
    bench.wait(PROVEN);
    bench.closed(9);
    assert_eq!(bench.due_in(), Some(FIRST_PAUSE));
    // The address returns: no pause applies.
    bench.addresses([Some(WIFI), None]);
    assert_eq!(bench.due_in(), None);
    bench.addresses([Some(WIFI), Some(MOBILE)]);
    assert_eq!(bench.act(), [open(1, MOBILE)]);
}

#[test]
fn a_path_abandoned_by_an_application_is_reopened_after_the_longest_pause() {
    let mut bench = Bench::new("wwan0", WIFI);
    bench.act();
    bench.valid(1);
    bench.machine.on_closed(bench.now, PathId(1), WHY);
    assert_eq!(bench.act(), []);
    let longest = PathPolicy::default().longest_pause;
    assert_eq!(bench.due_in(), Some(longest));
    bench.wait(longest);
    assert_eq!(bench.act(), [open(1, MOBILE)]);
}

#[test]
fn each_refusal_has_its_pause() {
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
        bench.machine.on_refused(bench.now, 1, refusal);
        assert_eq!(bench.act(), []);
        assert_eq!(bench.due_in(), pause);
    }
}

#[test]
fn a_path_whose_address_is_gone_is_abandoned_once_another_carries_data() {
    let mut bench = Bench::new("wwan0", WIFI);
    bench.act();
    // The other path is not validated yet.
    bench.addresses([None, Some(MOBILE)]);
    assert_eq!(bench.act(), []);
    bench.valid(1);
    assert_eq!(bench.act(), [abandon(0)]);
    bench.addresses([Some(OTHER), Some(MOBILE)]);
    assert_eq!(bench.act(), [open(0, OTHER)]);
}

#[test]
fn a_new_address_of_the_only_rule_replaces_the_path() {
    let mut bench = Bench::new("wwan0", WIFI);
    bench.addresses([Some(WIFI), None]);
    assert_eq!(bench.act(), []);
    bench.addresses([None, None]);
    assert_eq!(bench.act(), []);
    // The address returns before the path is abandoned.
    bench.addresses([Some(WIFI), None]);
    assert_eq!(bench.act(), []);
    bench.addresses([Some(OTHER), None]);
    assert_eq!(bench.act(), [open(0, OTHER)]);
    bench.valid(1);
    assert_eq!(bench.act(), [abandon(0)]);
}

#[test]
fn a_path_with_a_spent_cap_is_not_reopened() {
    let mut bench = Bench::new("wwan0,cap=1MB", WIFI);
    bench.act();
    bench.valid(1);
    bench.machine.on_cap_spent(bench.now, 1);
    bench.machine.on_cap_spent(bench.now, 1);
    assert_eq!(bench.act(), [abandon(1)]);
    bench.addresses([Some(WIFI), None]);
    bench.addresses([Some(WIFI), Some(MOBILE)]);
    bench.wait(Duration::from_secs(3600));
    assert_eq!(bench.act(), []);
}

#[test]
fn a_path_with_a_renewed_cap_is_opened_again() {
    let mut bench = Bench::new("wwan0,cap=1MB", WIFI);
    bench.act();
    bench.valid(1);
    bench.machine.on_cap_spent(bench.now, 1);
    assert_eq!(bench.act(), [abandon(1)]);
    bench.machine.on_cap_renewed(bench.now, 1);
    assert_eq!(bench.act(), [open(1, MOBILE)]);

    // One that could not be abandoned yet stays.
    let mut bench = Bench::new("wwan0,cap=1MB", WIFI);
    bench.act();
    bench.valid(1);
    bench.machine.on_cap_spent(bench.now, 1);
    bench.machine.on_cap_renewed(bench.now, 1);
    assert_eq!(bench.act(), []);
    bench.machine.on_cap_renewed(bench.now, 1);
    assert_eq!(bench.act(), []);
}

#[test]
fn a_connection_whose_only_path_has_a_spent_cap_is_closed() {
    let mut bench = Bench::new("wwan0,cap=1MB", MOBILE);
    assert_eq!(bench.act(), [open(0, WIFI)]);
    bench.machine.on_cap_spent(bench.now, 1);
    // Another path may be validated soon.
    assert_eq!(bench.act(), []);
    bench.closed(1);
    assert_eq!(bench.act(), [Action::Close]);
    assert_eq!(bench.act(), []);

    let mut bench = Bench::new("wwan0,cap=1MB", MOBILE);
    bench.act();
    bench.valid(1);
    // A path whose address was removed still counts as another path.
    bench.addresses([None, Some(MOBILE)]);
    bench.machine.on_cap_spent(bench.now, 1);
    assert_eq!(bench.act(), [abandon(0)]);
}

#[test]
fn a_refused_abandon_is_retried_after_a_pause() {
    let mut bench = Bench::new("wwan0,cap=1MB", WIFI);
    bench.act();
    bench.valid(1);
    bench.machine.on_cap_spent(bench.now, 1);
    assert_eq!(bench.machine.next_action(bench.now), Some(abandon(1)));
    bench.machine.on_abandon_refused(bench.now, PathId(1));
    assert_eq!(bench.act(), []);
    bench.wait(ABANDON_PAUSE);
    assert_eq!(bench.due_in(), Some(Duration::ZERO));
    assert_eq!(bench.act(), [abandon(1)]);
}

#[test]
fn without_multipath_only_caps_apply() {
    let mut bench = Bench::new("wwan0,cap=1MB", MOBILE);
    bench.machine.is_multipath = false;
    assert_eq!(bench.act(), []);
    bench.addresses([None, None]);
    assert_eq!(bench.act(), []);
    assert_eq!(bench.due_in(), None);
    bench.machine.on_cap_spent(bench.now, 1);
    assert_eq!(bench.act(), [Action::Close]);
}

#[test]
fn paths_of_the_application_are_not_managed() {
    let mut bench = Bench::new("wwan0", WIFI);
    bench.act();
    bench.machine.on_path_found(bench.now, PathId(7), MOBILE);
    bench.machine.on_path_found(bench.now, PathId(7), MOBILE);
    bench.valid(1);
    bench.valid(7);
    bench.addresses([Some(WIFI), None]);
    assert_eq!(bench.act(), [abandon(1)]);
    bench.closed(7);
    assert_eq!(bench.act(), []);
}

#[test]
fn a_cap_applies_to_every_path_of_its_address() {
    let mut bench = Bench::new("wwan0,cap=1MB", WIFI);
    bench.act();
    bench.valid(1);
    bench.machine.on_path_found(bench.now, PathId(7), MOBILE);
    bench.valid(7);
    assert_eq!(bench.machine.charged_rule(PathId(7)), Some(1));
    bench.machine.on_cap_spent(bench.now, 1);
    let mut left = bench.act();
    left.sort_by_key(|action| format!("{action:?}"));
    assert_eq!(left, [abandon(1), abandon(7)]);
    bench.machine.on_path_found(bench.now, PathId(8), MOBILE);
    assert_eq!(bench.act(), [abandon(8)]);
    bench.machine.on_path_found(bench.now, PathId(9), OTHER);
    assert_eq!(bench.machine.charged_rule(PathId(9)), None);
    assert_eq!(bench.act(), []);
}

#[test]
fn paths_missing_from_the_list_count_as_closed() {
    let mut bench = Bench::new("wwan0", WIFI);
    bench.act();
    bench.valid(1);
    bench.machine.on_paths_listed(bench.now, &[PathId(0)]);
    bench.wait(FIRST_PAUSE);
    assert_eq!(bench.act(), [open(1, MOBILE)]);
}
