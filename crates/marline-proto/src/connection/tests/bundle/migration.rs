//! Members that go elsewhere, one after the other.

use super::*;
use crate::coordination::bundle::MAX_MEMBERS;

fn place(n: u8) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, n], 50_000))
}

impl Bundled {
    /// Lets `transfers` go on for `time`.
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
        .map(|&handles| Transfer::down(&mut bundled.pair, handles, &data))
        .collect();
    bundled.advance(&mut transfers, Duration::from_secs(1));
    let parts: Vec<u64> = split_initial_window(32, 3).collect();

    for (moved, &(client, server)) in handles.iter().enumerate() {
        let told = bundled.told().len();
        bundled.rebind(client, place(7));
        let arrived = bundled.pair.drive_until(Duration::from_secs(2), |pair| {
            pair.server(server).remote_address() == place(7)
        });
        assert!(arrived);
        bundled.advance(&mut transfers, Duration::from_millis(1500));
        let all = bundled.told();
        let news = &all[told..];
        let moves: Vec<_> = news
            .iter()
            .filter(|(_, it)| it.trigger == BundleTrigger::Moved)
            .collect();
        let [(_, decision)] = moves[..] else {
            panic!("the one that moved is told, and nobody else: {moves:?}");
        };
        assert_eq!(decision.after, [parts[moved] * 1200]);
        // Those here and those there decide apart from each other.
        let began = news
            .iter()
            .position(|(_, it)| it.trigger == BundleTrigger::Moved);
        let after = &news[began.expect("it was told")..];
        let (there, here) = (moved + 1, 2 - moved);
        let numbers: Vec<_> = handles
            .iter()
            .map(|&(_, server)| bundled.pair.server(server).bundle())
            .collect();
        let (gone, left) = numbers.split_at(there);
        assert!(gone.iter().all(|&it| it == Some(1)), "{numbers:?}");
        assert!(left.iter().all(|&it| it == Some(0)), "{numbers:?}");
        for (_, decision) in after {
            let together = decision.before.len();
            assert!(
                [1, there, here].contains(&together),
                "{together} members after move {moved}: {decision:?}"
            );
        }
    }
    let last = bundled.told().len();
    bundled.advance(&mut transfers, Duration::from_secs(2));
    let all = bundled.told();
    let together = all[last..].iter().filter(|(_, it)| it.before.len() == 3);
    assert!(together.count() > 0, "they go on together");
}

/// A datagram on its way is sent on from elsewhere: the server follows it, and asks in vain.
#[test]
fn a_member_whose_new_address_fails_validation_returns_to_its_bundle() {
    let mut bundled = bundled(BundleConfig::default(), Algorithm::NewReno);
    let handles = bundled.open_all(1, 3);
    bundled.pair.drive(Duration::from_secs(1));
    let (client, server) = handles[1];
    let home = bundled.pair.server(server).remote_address();
    let now = bundled.pair.now;
    let id = bundled.pair.client(client).open(Dir::Uni).unwrap();
    bundled.pair.client(client).write(id, b"hello").unwrap();
    let mut buf = Vec::new();
    let sent = bundled.pair.client(client).poll_transmit(now, 1, &mut buf);
    let size = sent.expect("it has something to say").size;
    bundled.pair.network.filter = Some(Box::new(|_, _| true));
    bundled.pair.deliver_from(place(66), buf[..size].to_vec());
    bundled.pair.flush();
    assert_eq!(bundled.pair.server(server).remote_address(), place(66));
    assert_eq!(bundled.pair.server(server).bundle(), Some(1));
    let back = bundled.pair.drive_until(PATIENCE, |pair| {
        pair.server(server).remote_address() == home
    });
    assert!(back);
    bundled.pair.network.filter = None;
    bundled.pair.drive(Duration::from_millis(100));
    for &(_, server) in &handles {
        assert_eq!(bundled.pair.server(server).bundle(), Some(0));
    }
    assert_eq!(bundled.pair.server.endpoint.open_bundles(), 1);
    let moves: Vec<_> = bundled
        .told()
        .into_iter()
        .filter(|(_, it)| it.trigger == BundleTrigger::Moved)
        .collect();
    assert_eq!(moves.len(), 2, "{moves:?}");
}

#[test]
fn a_member_that_migrates_to_a_full_bundle_is_in_none() {
    let mut bundled = bundled(BundleConfig::default(), Algorithm::NewReno);
    let most = MAX_MEMBERS as u64;
    let handles = bundled.open_all(1, most);
    for &(client, _) in &handles {
        bundled.rebind(client, place(7));
        bundled.pair.drive(Duration::from_millis(200));
    }
    let (client, server) = bundled.open(1, most);
    assert_eq!(bundled.pair.server(server).bundle(), Some(2));
    bundled.rebind(client, place(7));
    bundled.pair.drive(Duration::from_secs(1));
    assert_eq!(bundled.pair.server(server).remote_address(), place(7));
    assert_eq!(bundled.pair.server(server).bundle(), None);
    bundled.pair.network.set(link(0.01));
    bundled.transfer(&handles[..2], 100_000);
    bundled.transfer(&[(client, server)], 100_000);
}

#[test]
fn members_that_have_all_migrated_start_as_a_new_bundle() {
    let mut bundled = bundled(BundleConfig::default(), Algorithm::NewReno);
    let handles = bundled.open_all(1, 3);
    bundled.pair.network.set(link(0.01));
    bundled.transfer(&handles, 500_000);
    bundled.pair.network.set(link(0.0));
    bundled.pair.drive(Duration::from_secs(1));
    for &(client, _) in &handles {
        bundled.rebind(client, place(9));
    }
    bundled.pair.drive(Duration::from_secs(1));
    let parts: Vec<u64> = split_initial_window(32, 3).map(|it| it * 1200).collect();
    let windows = bundled.windows(&handles);
    let grew = windows
        .iter()
        .zip(&parts)
        .map(|(window, part)| window - part);
    assert!(grew.max() <= Some(2400), "{windows:?} after {parts:?}");
    let told = bundled.told().len();
    bundled.pair.network.set(link(0.01));
    bundled.transfer(&handles, 500_000);
    let all = bundled.told();
    let (_, first) = &all[told];
    assert_eq!(first.before.len(), 3);
    assert_eq!(
        (first.phase, first.fluctuations),
        (BundlePhase::SlowStart, 1)
    );
}
