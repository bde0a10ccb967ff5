//! Members that migrate to another address, one after another.

use super::*;
use crate::coordination::bundle::MAX_MEMBERS;

/// Another address of the client.
fn address(n: u8) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, n], 50_000))
}

impl Bundled {
    /// Continues `transfers` for `time`.
    fn advance(&mut self, transfers: &mut [Transfer], time: Duration) {
        self.pair.drive_until(time, |pair| {
            let mut done = true;
            for transfer in &mut *transfers {
                done &= transfer.advance(pair);
            }
            done
        });
    }

    fn rebind(&mut self, client: ConnectionHandle, to: SocketAddr) {
        let now = self.pair.now;
        self.pair.client(client).rebind(now, to);
    }
}

#[test]
fn migrated_members_are_coordinated_apart_from_those_that_stayed() {
    let mut bundled = bundled(BundleConfig::published(), Algorithm::NewReno);
    let handles = bundled.open_all(1, 3);
    bundled.pair.network.set(link(0.005));
    let data = pattern(6_000_000);
    let mut transfers: Vec<_> = handles
        .iter()
        .map(|&ends| Transfer::down(&mut bundled.pair, ends, &data))
        .collect();
    bundled.advance(&mut transfers, Duration::from_secs(1));
    let parts: Vec<u64> = split_initial_window(32, 3).collect();

    for (nth, &ends) in handles.iter().enumerate() {
        let earlier = bundled.updates().len();
        bundled.rebind(ends.client, address(7));
        let arrived = bundled.pair.drive_until(Duration::from_secs(2), |pair| {
            pair.server(ends.server).remote_address() == address(7)
        });
        assert!(arrived);
        bundled.advance(&mut transfers, Duration::from_millis(1500));
        let updates = bundled.updates().split_off(earlier);
        let is_move = |update: &Update| update.decision.trigger == BundleTrigger::Moved;
        let moves: Vec<_> = updates.iter().filter(|update| is_move(update)).collect();
        let [only] = moves[..] else {
            panic!("not one event of the migrated member: {moves:?}");
        };
        assert_eq!(only.decision.after, [parts[nth] * 1200]);
        let migrated = updates.iter().position(is_move).expect("there is one");
        let (moved, stayed) = (nth + 1, 2 - nth);
        let numbers: Vec<_> = handles
            .iter()
            .map(|ends| bundled.pair.server(ends.server).bundle())
            .collect();
        let (of_moved, of_stayed) = numbers.split_at(moved);
        assert!(of_moved.iter().all(|&it| it == Some(1)), "{numbers:?}");
        assert!(of_stayed.iter().all(|&it| it == Some(0)), "{numbers:?}");
        for Update { decision, .. } in &updates[migrated..] {
            let members = decision.before.len();
            assert!(
                [1, moved, stayed].contains(&members),
                "{members} members after migration {nth}: {decision:?}"
            );
        }
    }
    let earlier = bundled.updates().len();
    bundled.advance(&mut transfers, Duration::from_secs(2));
    let updates = bundled.updates().split_off(earlier);
    let of_all = updates
        .iter()
        .filter(|update| update.decision.before.len() == 3);
    assert!(of_all.count() > 0, "no decision about all three members");
}

/// An attacker forwards a datagram from another address: the server follows it, and path validation fails.
#[test]
fn a_member_whose_new_address_fails_validation_returns_to_its_bundle() {
    let mut bundled = bundled(BundleConfig::default(), Algorithm::NewReno);
    let handles = bundled.open_all(1, 3);
    bundled.pair.drive(Duration::from_secs(1));
    let Ends { client, server } = handles[1];
    let home = bundled.pair.server(server).remote_address();
    let now = bundled.pair.now;
    let id = bundled.pair.client(client).open(Dir::Uni).unwrap();
    bundled.pair.client(client).write(id, b"hello").unwrap();
    let mut buf = Vec::new();
    let sent = bundled.pair.client(client).poll_transmit(now, 1, &mut buf);
    let size = sent.expect("it has data to send").size;
    bundled.pair.network.filter = Some(Box::new(|_, _| true));
    bundled.pair.deliver_from(address(66), buf[..size].to_vec());
    bundled.pair.flush();
    assert_eq!(bundled.pair.server(server).remote_address(), address(66));
    assert_eq!(bundled.pair.server(server).bundle(), Some(1));
    let back = bundled
        .pair
        .drive_until(TIMEOUT, |pair| pair.server(server).remote_address() == home);
    assert!(back);
    bundled.pair.network.filter = None;
    bundled.pair.drive(Duration::from_millis(100));
    for ends in &handles {
        assert_eq!(bundled.pair.server(ends.server).bundle(), Some(0));
    }
    assert_eq!(bundled.pair.server.endpoint.open_bundles(), 1);
    let moves: Vec<_> = bundled
        .updates()
        .into_iter()
        .filter(|update| update.decision.trigger == BundleTrigger::Moved)
        .collect();
    assert_eq!(moves.len(), 2, "{moves:?}");
}

#[test]
fn a_member_that_migrates_to_a_full_bundle_is_in_none() {
    let mut bundled = bundled(BundleConfig::default(), Algorithm::NewReno);
    let most = MAX_MEMBERS as u64;
    let handles = bundled.open_all(1, most);
    for ends in &handles {
        bundled.rebind(ends.client, address(7));
        bundled.pair.drive(Duration::from_millis(200));
    }
    let last = bundled.open(1, most);
    assert_eq!(bundled.pair.server(last.server).bundle(), Some(2));
    bundled.rebind(last.client, address(7));
    bundled.pair.drive(Duration::from_secs(1));
    let server = bundled.pair.server(last.server);
    assert_eq!(server.remote_address(), address(7));
    assert_eq!(server.bundle(), None);
    bundled.pair.network.set(link(0.01));
    bundled.transfer(&handles[..2], 100_000);
    bundled.transfer(&[last], 100_000);
}

#[test]
fn members_that_have_all_migrated_start_as_a_new_bundle() {
    let mut bundled = bundled(BundleConfig::default(), Algorithm::NewReno);
    let handles = bundled.open_all(1, 3);
    bundled.pair.network.set(link(0.01));
    bundled.transfer(&handles, 500_000);
    bundled.pair.network.set(link(0.0));
    bundled.pair.drive(Duration::from_secs(1));
    for ends in &handles {
        bundled.rebind(ends.client, address(9));
    }
    bundled.pair.drive(Duration::from_secs(1));
    let parts: Vec<u64> = split_initial_window(32, 3).map(|it| it * 1200).collect();
    let windows = bundled.windows(&handles);
    let grew = windows
        .iter()
        .zip(&parts)
        .map(|(window, part)| window - part);
    assert!(grew.max() <= Some(2400), "{windows:?} after {parts:?}");
    let earlier = bundled.updates().len();
    bundled.pair.network.set(link(0.01));
    bundled.transfer(&handles, 500_000);
    let first = &bundled.updates()[earlier].decision;
    assert_eq!(first.before.len(), 3);
    assert_eq!(
        (first.phase, first.fluctuations),
        (BundlePhase::SlowStart, 1)
    );
}
