use std::net::SocketAddr;
use std::time::Duration;

use super::*;
use crate::Instant;
use crate::congestion::{InitialWindow, Rfc9002Window};
use crate::coordination::history::{HistoryWindow, MemoryStore, SampleEvent};

fn kind(second: u64) -> ConnectionKind<'static> {
    ConnectionKind {
        now: Instant::EPOCH + Duration::from_secs(second),
        peer: SocketAddr::from(([192, 0, 2, 1], 443)),
        server_name: None,
        resumed: false,
        max_datagram_size: 1200,
    }
}

fn seen(window: u64) -> PathSample {
    PathSample {
        event: SampleEvent::Closed,
        window,
        initial_window: 12_000,
        rtt: Duration::from_millis(50),
        delivered: 10_000_000,
        app_limited: false,
        lost_at_first: false,
        model: None,
    }
}

fn both() -> (CarefulHistory, HistoryWindow) {
    let store = Arc::new(MemoryStore::default());
    let config = HistoryConfig::default();
    let careful = CarefulHistory::new(config.clone(), store.clone());
    let history = HistoryWindow::new(config, store, Arc::new(Rfc9002Window));
    (careful, history)
}

#[test]
fn a_capacity_is_claimed_once_until_one_is_observed_again() {
    let (careful, _) = both();
    careful.observe(&kind(0), &seen(200_000));
    let known = careful.saved(&kind(1));
    assert_eq!(known.map(|known| known.window), Some(200_000));
    assert_eq!(careful.claim(&kind(1)), known);
    assert_eq!(careful.saved(&kind(1)), None);
    assert_eq!(careful.claim(&kind(1)), None);
    careful.observe(&kind(2), &seen(150_000));
    let known = careful.claim(&kind(3)).unwrap();
    assert_eq!((known.window, known.at), (150_000, kind(2).now));
}

#[test]
fn a_forgotten_capacity_cannot_be_claimed() {
    let (careful, history) = both();
    careful.observe(&kind(0), &seen(200_000));
    careful.forget(&kind(1));
    assert_eq!(careful.claim(&kind(1)), None);
    // The average is not affected.
    assert_eq!(history.average(&kind(1)), Some(200_000.0));
}

#[test]
fn both_policies_use_one_store() {
    let (careful, history) = both();
    history.observe(&kind(0), &seen(200_000));
    assert_eq!(history.claim(&kind(1)), None);
    assert!(careful.claim(&kind(1)).is_some());
    assert_eq!(history.window(&kind(1)), 200_000);
    assert_eq!(history.window_before_handshake(&kind(1)), 12_000);
}

#[test]
fn an_expired_capacity_cannot_be_claimed() {
    let (careful, _) = both();
    careful.observe(&kind(0), &seen(200_000));
    assert_eq!(careful.claim(&kind(3600)), None);
    assert!(careful.claim(&kind(3599)).is_some());
}
