//! Connections with one path, whose network is lost or gets no answers.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use marline::{Connection, ConnectionError, MigrateError, Runtime, ServerConfig};

use crate::manager::{Ends, LEN, fetch, transport};
use crate::setup::{DELAY, LTE, Network, WIFI, run, server_config};

const RTT: Duration = DELAY.saturating_mul(2);

/// A server without multipath.
fn server(allows_migration: bool) -> ServerConfig {
    ServerConfig {
        migration: allows_migration,
        ..server_config(transport(false))
    }
}

/// A client of `config` whose connections migrate, with one that is confirmed and at Wi-Fi.
async fn connect(network: &Network, config: ServerConfig) -> (Ends, Connection) {
    let ends = Ends::serving(network, &["wifi", "lte,backup"], config);
    ends.manager.follow(&ends.client);
    let ours = ends.connect().await.unwrap();
    ours.confirmed().await.unwrap();
    assert!(!ours.is_multipath());
    assert_eq!(local(&ours), WIFI);
    (ends, ours)
}

fn local(connection: &Connection) -> IpAddr {
    connection.local_address().ip()
}

/// Waits until `connection` is at `address`; returns how long that took.
async fn moved(network: &Network, connection: &Connection, address: Ipv4Addr) -> Duration {
    let begun = network.client.now();
    while local(connection) != address {
        network.client.sleep(Duration::from_millis(5)).await;
        let took = network.client.now() - begun;
        assert!(
            took < Duration::from_secs(60),
            "still at {}",
            local(connection)
        );
    }
    network.client.now() - begun
}

/// Removes the client's address, or cuts its link, once a tenth of a download has arrived.
async fn lose(network: &Network, connection: &Connection, detaches: bool) {
    while connection.stats().udp_received.bytes < LEN as u64 / 10 {
        network.client.sleep(Duration::from_millis(1)).await;
    }
    match detaches {
        true => network.client.detach(WIFI),
        false => network.wifi.cut(),
    }
}

#[test]
fn a_download_continues_at_another_address_when_its_own_is_removed() {
    run(async |network| {
        let (ends, ours) = connect(network, server(true)).await;
        let (len, took) = tokio::join!(fetch(&ours), async {
            lose(network, &ours, true).await;
            moved(network, &ours, LTE).await
        });
        assert_eq!(len, LEN);
        let poll = ends.manager.policy().poll;
        assert!(took <= poll + RTT, "{took:?}");
        assert_eq!(ours.paths().len(), 1);
        assert_eq!(ends.manager.spent_rules().count(), 0);
    });
}

#[test]
fn a_download_continues_at_another_address_when_its_own_gets_no_answers() {
    run(async |network| {
        let (_ends, ours) = connect(network, server(true)).await;
        let (len, took) = tokio::join!(fetch(&ours), async {
            lose(network, &ours, false).await;
            moved(network, &ours, LTE).await
        });
        assert_eq!(len, LEN);
        // A second until the client asks for the response, three probe timeouts, and the validation.
        assert!(took < Duration::from_millis(2500), "{took:?}");
    });
}

#[test]
fn a_connection_returns_from_a_backup_once_the_other_network_works_again() {
    run(async |network| {
        let (ends, ours) = connect(network, server(true)).await;
        network.client.detach(WIFI);
        moved(network, &ours, LTE).await;
        network.client.sleep(Duration::from_secs(20)).await;
        assert_eq!(local(&ours), LTE);
        // It is back, but nothing gets through.
        network.wifi.cut();
        network.client.attach(WIFI);
        network.client.sleep(Duration::from_secs(20)).await;
        assert_eq!(fetch(&ours).await, LEN);
        assert_eq!(local(&ours), LTE);
        network.wifi.restore();
        // It is tried again after the longest pause, while the connection is not idle.
        let begun = network.client.now();
        while local(&ours) != WIFI {
            assert_eq!(fetch(&ours).await, LEN);
            network.client.sleep(Duration::from_secs(5)).await;
            let took = network.client.now() - begun;
            assert!(took < 2 * ends.manager.policy().longest_pause, "{took:?}");
        }
        assert_eq!(fetch(&ours).await, LEN);
        assert_eq!(local(&ours), WIFI);
    });
}

#[test]
fn an_outage_of_all_networks_is_survived() {
    run(async |network| {
        let (_ends, ours) = connect(network, server(true)).await;
        let (len, ()) = tokio::join!(fetch(&ours), async {
            lose(network, &ours, false).await;
            network.lte.cut();
            network.client.sleep(Duration::from_secs(12)).await;
            network.lte.restore();
            network.wifi.restore();
        });
        assert_eq!(len, LEN);
    });
}

#[test]
fn a_connection_whose_server_forbids_migration_ends_when_its_address_is_removed() {
    run(async |network| {
        let (ends, ours) = connect(network, server(false)).await;
        let (len, begun) = tokio::join!(fetch(&ours), async {
            lose(network, &ours, true).await;
            network.client.now()
        });
        let took = network.client.now() - begun;
        let end = ours.close_reason();
        let is_lost = matches!(
            end,
            Some(ConnectionError::NetworkLost(MigrateError::Forbidden))
        );
        assert!(is_lost && len < LEN, "{end:?}, {len} bytes");
        assert!(took <= ends.manager.policy().poll + RTT, "{took:?}");
        // Another is made at the other address.
        let next = ends.connect().await.unwrap();
        assert_eq!(local(&next), LTE);
        assert_eq!(fetch(&next).await, LEN);
    });
}

#[test]
fn a_connection_whose_server_forbids_migration_outlasts_a_short_outage() {
    run(async |network| {
        let (_ends, ours) = connect(network, server(false)).await;
        network.client.sleep(Duration::from_secs(20)).await;
        let (len, ()) = tokio::join!(fetch(&ours), async {
            lose(network, &ours, false).await;
            network.client.sleep(Duration::from_secs(3)).await;
            network.wifi.restore();
        });
        assert_eq!(len, LEN);
        assert_eq!(local(&ours), WIFI);
    });
}
