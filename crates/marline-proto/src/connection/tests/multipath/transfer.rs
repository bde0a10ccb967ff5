use super::*;

#[test]
fn a_transfer_uses_the_capacity_of_both_paths() {
    for from in [Side::Server, Side::Client] {
        let mut several = Several::two(narrow());
        let ends = several.ends;
        let data = pattern(3_000_000);
        let transfer = match from {
            Side::Server => Transfer::down(&mut several.pair, ends, &data),
            Side::Client => Transfer::up(&mut several.pair, ends, &data),
        };
        let took = transfer.complete(&mut several.pair);
        for path in [PathId::INITIAL, ONE] {
            let sent = several.sent(from, path);
            assert!(sent > 1_000_000, "{sent} bytes on path {path}");
        }
        // One link alone takes three seconds.
        assert!(took < Duration::from_millis(2200), "{took:?}");
    }
}

#[test]
fn transfers_in_both_directions_complete_at_once() {
    let mut several = Several::two(Conditions {
        loss: 0.01,
        jitter: Duration::from_millis(3),
        ..narrow()
    });
    let ends = several.ends;
    let data = pattern(1_500_000);
    let mut down = Transfer::down(&mut several.pair, ends, &data);
    let mut up = Transfer::up(&mut several.pair, ends, &data);
    let (mut down_done, mut up_done) = (false, false);
    let done = several.pair.drive_until(TIMEOUT, |pair| {
        down_done = down_done || down.advance(pair);
        up_done = up_done || up.advance(pair);
        down_done && up_done
    });
    assert!(done, "{} down, {} up", down.received(), up.received());
}

#[test]
fn a_transfer_uses_paths_of_different_delay() {
    let mut several = Several::two(narrow());
    let far = Conditions {
        delay: Duration::from_millis(80),
        ..narrow()
    };
    several.pair.network.set_link(address(1), far);
    let ends = several.ends;
    let took = download(&mut several.pair, ends, &pattern(4_000_000));
    assert!(took < Duration::from_millis(3500), "{took:?}");
    assert!(several.sent(Side::Server, ONE) > 500_000);
}

#[test]
fn two_paths_may_have_the_same_addresses() {
    let mut several = Several::new();
    let now = several.pair.now;
    let tuple = FourTuple {
        local: several.pair.client.address,
        remote: several.pair.server.address,
    };
    assert_eq!(several.client().open_path(now, tuple), Ok(ONE));
    several.pair.drive(Duration::from_millis(50));
    assert!(several.is_validated(ONE));
    several.pair.network.set(narrow());
    let ends = several.ends;
    download(&mut several.pair, ends, &pattern(2_000_000));
    assert!(several.sent(Side::Server, ONE) > 500_000);
    assert!(several.sent(Side::Server, PathId::INITIAL) > 500_000);
}

#[test]
fn a_backup_carries_data_only_if_the_other_path_fails() {
    let mut several = Several::two(narrow());
    several.client().set_path_status(ONE, PathStatus::Backup);
    several.pair.drive(Duration::from_millis(50));
    let emitted = several.pair.server.events.iter().any(|(_, event)| {
        matches!(event, Event::PathStatus { id: ONE, status } if *status == PathStatus::Backup)
    });
    assert!(emitted);
    let before = several.sent(Side::Server, ONE);
    let ends = several.ends;
    download(&mut several.pair, ends, &pattern(500_000));
    assert_eq!(several.sent(Side::Server, ONE), before);

    several.pair.network.set(DEAD);
    download(&mut several.pair, ends, &pattern(500_000));
    assert!(several.sent(Side::Server, ONE) > 500_000);
}

#[test]
fn a_backup_carries_no_copies_while_the_other_path_works() {
    // Only a rate-based controller tells a path's queue from its delay.
    let transport = TransportConfig {
        multipath: Some(MultipathConfig::default()),
        ..TransportConfig::default()
    };
    let mut several = Several::two_of(transport, narrow());
    several.client().set_path_status(ONE, PathStatus::Backup);
    several.pair.drive(Duration::from_millis(50));
    let lossy = Conditions {
        loss: 0.02,
        queue: 400_000,
        ..narrow()
    };
    several.pair.network.set(lossy);
    let before = several.sent(Side::Server, ONE);
    let ends = several.ends;
    download(&mut several.pair, ends, &pattern(4_000_000));
    // It is kept open.
    let carried = several.sent(Side::Server, ONE) - before;
    assert!(carried < 1000, "{carried} bytes");
}

#[test]
fn datagrams_and_key_updates_work_with_two_paths() {
    let mut several = Several::two(narrow());
    let ends = several.ends;
    for round in 0..5u8 {
        let now = several.pair.now;
        assert!(several.server().initiate_key_update(now));
        several
            .client()
            .send_datagram(vec![round; 1000].into())
            .expect("the buffer has space");
        download(&mut several.pair, ends, &pattern(400_000));
        let received = several.server().recv_datagram();
        assert_eq!(received.as_deref(), Some(&[round; 1000][..]));
        several.pair.drive(Duration::from_millis(500));
    }
}

#[test]
fn multipath_needs_the_support_of_both_ends() {
    for supporting in [Side::Client, Side::Server] {
        let config = |side| match supporting == side {
            true => several(),
            false => TransportConfig::default(),
        };
        let mut several = Several::with(Pair::with(PairConfig {
            client: config(Side::Client),
            server: config(Side::Server),
            ..PairConfig::default()
        }));
        assert!(!several.client().is_multipath() && !several.server().is_multipath());
        assert_eq!(several.open(1), Err(OpenPathError::NotNegotiated));
        let ends = several.ends;
        download(&mut several.pair, ends, &pattern(100_000));
    }
}

#[test]
fn every_scheduler_completes_four_streams() {
    for scheduler in SCHEDULERS.defaults() {
        let mut several = Several::narrow_and_slow(both(scheduled(scheduler.value)));
        let ends = several.ends;
        let data = pattern(500_000);
        let mut transfers: Vec<_> = (0..4)
            .map(|_| Some(Transfer::down(&mut several.pair, ends, &data)))
            .collect();
        let done = several.pair.drive_until(TIMEOUT, |pair| {
            for transfer in &mut transfers {
                if transfer.as_mut().is_some_and(|some| some.advance(pair)) {
                    *transfer = None;
                }
            }
            transfers.iter().all(Option::is_none)
        });
        assert!(done, "{}", scheduler.name);
        assert!(several.sent(Side::Server, PathId::INITIAL) > 500_000);
    }
}
