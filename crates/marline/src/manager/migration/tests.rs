use std::net::Ipv4Addr;

use super::*;

const WIFI: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const MOBILE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 2));
const AT_ONCE: MigrationStart = MigrationStart::AtOnce;
const LATER: MigrationStart = MigrationStart::AfterValidation;

/// A connection that is at Wi-Fi and can migrate, and a clock.
struct Bench {
    now: Instant,
    migrations: Migrations,
    situation: Situation<'static>,
    candidates: Vec<Candidate>,
}

fn candidate(address: IpAddr, rank: Rank) -> Candidate {
    Candidate {
        address,
        rank,
        is_silent: false,
    }
}

impl Bench {
    fn new() -> Self {
        Self {
            now: Instant::EPOCH + Duration::from_secs(100),
            migrations: Migrations::default(),
            situation: Situation {
                present: WIFI,
                is_usable: true,
                unresponsive_since: None,
                is_probing: false,
                may_migrate: Ok(()),
                may_change_port: false,
                reconnects_elsewhere: false,
                candidates: &[],
            },
            candidates: vec![
                candidate(WIFI, Rank::Preferred),
                candidate(MOBILE, Rank::Backup),
            ],
        }
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
    }

    fn decide(&mut self) -> Option<Step> {
        let situation = Situation {
            candidates: &self.candidates,
            ..self.situation
        };
        self.migrations.decide(self.now, &situation)
    }

    fn lose_present(&mut self) {
        self.situation.is_usable = false;
        let present = self.situation.present;
        self.candidates.retain(|one| one.address != present);
    }
}

fn to(to: IpAddr, start: MigrationStart) -> Option<Step> {
    Some(Step::Migrate { to, start })
}

#[test]
fn a_connection_that_works_stays() {
    let mut bench = Bench::new();
    assert_eq!(bench.decide(), None);
    assert_eq!(bench.migrations.next_deadline(), None);
}

#[test]
fn a_lost_address_is_left_at_once() {
    let mut bench = Bench::new();
    bench.lose_present();
    assert_eq!(bench.decide(), to(MOBILE, AT_ONCE));
}

#[test]
fn an_address_without_a_route_is_tried_before_it_is_used() {
    let mut bench = Bench::new();
    bench.lose_present();
    bench.candidates = vec![candidate(MOBILE, Rank::LastResort)];
    assert_eq!(bench.decide(), to(MOBILE, LATER));
    bench.situation.is_probing = true;
    bench.wait(Duration::from_secs(30));
    assert_eq!(bench.decide(), None);
    bench.candidates[0].rank = Rank::Preferred;
    assert_eq!(bench.decide(), to(MOBILE, AT_ONCE));
}

#[test]
fn an_address_without_answers_is_left_for_one_that_answers() {
    let mut bench = Bench::new();
    bench.situation.unresponsive_since = Some(bench.now);
    assert_eq!(bench.decide(), to(MOBILE, LATER));
    bench.situation.is_probing = true;
    bench.wait(Duration::from_secs(2));
    assert_eq!(bench.decide(), None);
    assert!(bench.migrations.next_deadline() > Some(bench.now));
}

#[test]
fn a_failed_probe_is_reported_once() {
    let mut bench = Bench::new();
    bench.situation.unresponsive_since = Some(bench.now);
    bench.decide();
    let failed = |bench: &mut Bench| bench.migrations.take_failed_probe(&bench.situation);
    bench.situation.is_probing = true;
    assert_eq!(failed(&mut bench), None);
    bench.situation.is_probing = false;
    assert_eq!(failed(&mut bench), Some(MOBILE));
    assert_eq!(failed(&mut bench), None);
    // A successful one is not.
    bench.wait(Duration::from_secs(10));
    bench.decide();
    bench.situation.present = MOBILE;
    assert_eq!(failed(&mut bench), None);
}

#[test]
fn a_better_address_has_to_last_before_it_is_used() {
    let mut bench = Bench::new();
    bench.situation.present = MOBILE;
    assert_eq!(bench.decide(), None);
    let due = bench.migrations.next_deadline();
    assert_eq!(due, Some(bench.now + SETTLE));
    // It disappears, and returns.
    let all = bench.candidates.clone();
    bench.candidates.remove(0);
    bench.wait(SETTLE / 2);
    assert_eq!(bench.decide(), None);
    bench.candidates = all;
    bench.wait(SETTLE / 2);
    assert_eq!(bench.decide(), None);
    bench.wait(SETTLE);
    assert_eq!(bench.decide(), to(WIFI, LATER));
}

#[test]
fn an_address_without_answers_is_no_better_one() {
    let mut bench = Bench::new();
    bench.situation.present = MOBILE;
    bench.candidates[0].is_silent = true;
    bench.decide();
    bench.wait(2 * SETTLE);
    assert_eq!(bench.decide(), None);
}

#[test]
fn migrations_in_a_row_become_rare() {
    let mut bench = Bench::new();
    let mut pauses = Vec::new();
    let mut last: Option<Instant> = None;
    while pauses.len() < 9 {
        // The present address is always the one that is lost.
        bench.situation.is_usable = false;
        if let Some(Step::Migrate { to, .. }) = bench.decide() {
            bench.situation.present = to;
            pauses.extend(last.map(|last| (bench.now - last).as_secs()));
            last = Some(bench.now);
        }
        bench.wait(Duration::from_secs(1));
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 1, 2]);
}

#[test]
fn another_port_is_tried_where_there_is_no_other_address() {
    let mut bench = Bench::new();
    bench.candidates.truncate(1);
    bench.situation.unresponsive_since = Some(bench.now);
    bench.situation.may_change_port = true;
    bench.wait(Duration::from_secs(1));
    assert_eq!(bench.decide(), None);
    bench.wait(Duration::from_secs(2));
    assert_eq!(bench.decide(), Some(Step::ChangePort));
    assert_eq!(bench.decide(), None);
}

#[test]
fn a_connection_that_cannot_migrate_ends_if_a_new_one_would_work() {
    for why in [
        MigrateError::Forbidden,
        MigrateError::NotConfirmed,
        MigrateError::NoConnectionId,
    ] {
        let mut bench = Bench::new();
        bench.situation.may_migrate = Err(why);
        bench.situation.is_usable = false;
        assert_eq!(bench.decide(), Some(Step::End(why)));
        // Its own address may return.
        bench.candidates.clear();
        assert_eq!(bench.decide(), None);
    }
}

#[test]
fn a_connection_that_cannot_migrate_outlasts_short_outages() {
    let mut bench = Bench::new();
    bench.situation.may_migrate = Err(MigrateError::Forbidden);
    bench.situation.unresponsive_since = Some(bench.now);
    bench.wait(2 * END_PATIENCE);
    // A new one would begin at the same address.
    assert_eq!(bench.decide(), None);
    bench.situation.reconnects_elsewhere = true;
    bench.situation.unresponsive_since = Some(bench.now);
    assert_eq!(bench.decide(), None);
    assert_eq!(
        bench.migrations.next_deadline(),
        Some(bench.now + END_PATIENCE)
    );
    bench.wait(END_PATIENCE);
    assert_eq!(bench.decide(), Some(Step::End(MigrateError::Forbidden)));
}
