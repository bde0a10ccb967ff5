//! Pools of connections.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use marline::Runtime;
use marline_http::client::{Client, Destination, FetchOptions, Message, Report, Target};
use marline_http::pipes::cba::{CbaConfig, Creation};
use marline_http::pipes::{PipePolicy, PipesConfig, RrConfig, SignalTrace};
use marline_http::server::{ServerConfig, generated};

use crate::setup::{Network, PORT, client_as, object, run, serve_as};

const HOST: &str = "example.test";

/// A pool that opens a spare pipe with the first object, regardless of earlier requests.
fn burst_aware() -> PipesConfig {
    let mut config = PipesConfig::new(PipePolicy::BurstAware(CbaConfig {
        history: false,
        ..CbaConfig::default()
    }));
    config.signal = Arc::new(SignalTrace::constant(-3.0));
    config
}

async fn fetch(client: &Arc<Client>, objects: usize, options: FetchOptions) -> Report {
    let target = |_| Target {
        url: format!("https://{HOST}/object"),
        destination: Destination::Nowhere,
        size: None,
        message: Message::default(),
    };
    let targets = (0..objects).map(target).collect();
    client.fetch(targets, options, &Arc::default()).await
}

/// Starts a server of an object.
async fn serve(network: &Network, zero_rtt: bool) -> SocketAddr {
    let objects = BTreeMap::from([("/object".to_owned(), object(1000, Duration::ZERO))]);
    let runtime = Arc::new(network.servers[0].clone());
    let site = generated(objects, Some(runtime)).unwrap();
    let set = |config: &mut ServerConfig| config.quic.zero_rtt = zero_rtt;
    serve_as(&network.servers[0], site, set).await.address
}

#[test]
fn a_report_does_not_wait_for_a_spare_pipe_which_closes_if_the_last_used_one_has() {
    run(async |network| {
        let address = serve(network, true).await;
        let mut pipes = burst_aware();
        // Both end before the handshakes do.
        pipes.idle_timeout = Duration::from_millis(10);
        let options = FetchOptions {
            time_limit: Some(Duration::from_millis(5)),
            ..FetchOptions::default()
        };
        let client = client_as(&network.client, [(HOST, address)], |config| {
            config.pipes = Some(pipes);
        });
        let start = network.client.now();
        let first = fetch(&client, 1, options).await;
        assert!(!first.is_complete());
        let elapsed = network.client.now() - start;
        assert!(elapsed < Duration::from_millis(40), "{elapsed:?}");

        network.client.sleep(Duration::from_secs(1)).await;
        let second = fetch(&client, 1, FetchOptions::default()).await;
        assert!(second.is_complete(), "{second:?}");
        let ids: Vec<_> = second.connections.iter().map(|one| one.id).collect();
        assert_eq!(ids, [2, 3], "0 and 1 are of the first fetch");
    });
}

#[test]
fn an_unreachable_server_takes_no_more_time_than_without_pools() {
    let elapsed = |pipes: Option<PipesConfig>| {
        run(async |network| {
            let address = network.servers[0].at(PORT);
            let client = client_as(&network.client, [(HOST, address)], |config| {
                config.connect_timeout = Duration::from_secs(1);
                config.pipes = pipes;
            });
            let start = network.client.now();
            let report = fetch(&client, 3, FetchOptions::default()).await;
            assert!(report.objects.iter().all(|object| object.error.is_some()));
            network.client.now() - start
        })
    };
    let on_demand = CbaConfig {
        creation: Creation::OnDemand,
        ..CbaConfig::default()
    };
    let pipes = PipesConfig::new(PipePolicy::BurstAware(on_demand));
    assert_eq!(elapsed(Some(pipes)), elapsed(None));
}

#[test]
fn further_pipes_begin_with_0_rtt_where_the_server_allows_it() {
    for zero_rtt in [true, false] {
        run(async |network| {
            let address = serve(network, zero_rtt).await;
            let client = client_as(&network.client, [(HOST, address)], |config| {
                let policy = PipePolicy::RoundRobin(RrConfig { pipes: 3 });
                config.pipes = Some(PipesConfig::new(policy));
            });
            let first = fetch(&client, 1, FetchOptions::default()).await;
            assert!(first.is_complete(), "{first:?}");
            // The ticket follows the handshake.
            network.client.sleep(Duration::from_secs(1)).await;
            let further = fetch(&client, 2, FetchOptions::default()).await;
            assert_eq!(further.connections.len(), 3);
            for object in &further.objects {
                assert_ne!(object.connection, Some(0));
                // One round trip of 40 ms in 0-RTT, or two.
                let first_byte_s = object.first_byte_s.unwrap();
                assert_eq!(first_byte_s < 0.06, zero_rtt, "{first_byte_s}");
            }
        });
    }
}

#[test]
fn what_closed_before_a_fetch_is_not_in_its_report() {
    run(async |network| {
        let address = serve(network, true).await;
        let client = client_as(&network.client, [(HOST, address)], |config| {
            let policy = PipePolicy::RoundRobin(RrConfig { pipes: 2 });
            config.pipes = Some(PipesConfig::new(policy));
        });
        for (number, pause_s) in [1, 20, 20].into_iter().enumerate() {
            let report = fetch(&client, 2, FetchOptions::default()).await;
            assert!(report.is_complete(), "{report:?}");
            let ids: Vec<_> = report.connections.iter().map(|one| one.id).collect();
            let expected = [[0, 1], [0, 1], [2, 3]][number];
            assert_eq!(ids, expected, "fetch {number}");
            for pipe in &report.pipes {
                assert_eq!(pipe.connections.len(), 1, "{pipe:?}");
                // Totals since the client exists.
                assert_eq!(pipe.objects, number as u64 + 1);
                assert_eq!(pipe.bytes, 1000 * pipe.objects);
            }
            network.client.sleep(Duration::from_secs(pause_s)).await;
        }
    });
}
