//! Pools of connections.

use std::sync::Arc;
use std::time::Duration;

use marline_http::client::{Client, ClientConfig, FetchOptions, HttpVersion, Report, Trust};
use marline_http::pipes::cba::{CbaConfig, Combine, Creation};
use marline_http::pipes::{PipePolicy, PipesConfig, RrConfig, SignalTrace};

use tempfile::TempDir;

use crate::common::{TestServer, directory_of, discarded, pattern};
use crate::metrics::wait_for;

const NAMES: [&str; 7] = [
    "0.js", "1.html", "2.webp", "3.webp", "4.mp4", "5.css", "6.bin",
];

fn client(pipes: PipesConfig) -> Arc<Client> {
    let config = ClientConfig {
        trust: Trust::Insecure,
        pipes: Some(pipes),
        fallback: false,
        ..ClientConfig::default()
    };
    Arc::new(Client::new(config).unwrap())
}

/// The files that a server has.
fn files() -> TempDir {
    let content = pattern(300_000);
    directory_of(&NAMES.map(|name| (name, content.as_slice())))
}

async fn fetch(client: &Arc<Client>, server: &TestServer) -> Report {
    let urls = NAMES
        .iter()
        .map(|name| server.url(HttpVersion::Http3, &format!("/{name}")));
    let targets = urls.map(discarded).collect();
    let report = client
        .fetch(targets, FetchOptions::default(), &Arc::default())
        .await;
    assert!(report.is_complete(), "{report:?}");
    report
}

#[tokio::test(flavor = "multi_thread")]
async fn round_robin_assigns_each_object_to_the_next_pipe() {
    let root = files();
    let server = TestServer::files(root.path()).await;
    let policy = PipePolicy::RoundRobin(RrConfig { pipes: 3 });
    let report = fetch(&client(PipesConfig::new(policy)), &server).await;
    let objects: Vec<_> = report.pipes.iter().map(|pipe| pipe.objects).collect();
    // Objects 3 and 6 are on pipe 0; 1, 4 and 7 on pipe 1; 2 and 5 on pipe 2.
    assert_eq!(objects, [2, 3, 2]);
    let bytes: Vec<_> = report.pipes.iter().map(|pipe| pipe.bytes).collect();
    assert_eq!(bytes, [600_000, 900_000, 600_000]);
    assert_eq!(report.connections.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poor_radio_opens_the_pipes_that_its_score_allows_and_no_more() {
    let root = files();
    let server = TestServer::files(root.path()).await;
    // With the better score, the radio's is the most; with the worse, the least.
    for (combine, sinr_db, creation, least, most) in [
        (Combine::Max, -3.0, Creation::OnDemand, 5, 5),
        (Combine::Min, 15.0, Creation::OnDemand, 1, 2),
        (Combine::Min, 15.0, Creation::Spare, 1, 2),
        (Combine::Min, 25.0, Creation::Spare, 1, 1),
    ] {
        let policy = PipePolicy::BurstAware(CbaConfig {
            combine,
            buffer: 1,
            creation,
            ..CbaConfig::default()
        });
        let mut pipes = PipesConfig::new(policy);
        pipes.signal = Arc::new(SignalTrace::constant(sinr_db));
        let report = fetch(&client(pipes), &server).await;
        let pipes = report.pipes.len();
        assert!(
            (least..=most).contains(&pipes),
            "{sinr_db} {:?}",
            report.pipes
        );
        let objects: u64 = report.pipes.iter().map(|pipe| pipe.objects).sum();
        assert_eq!(objects, 7);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pipes_that_carry_nothing_close_and_open_again() {
    let root = files();
    let server = TestServer::files(root.path()).await;
    let policy = PipePolicy::RoundRobin(RrConfig { pipes: 2 });
    let mut pipes = PipesConfig::new(policy);
    pipes.idle_timeout = Duration::from_millis(50);
    let client = client(pipes);
    let first = fetch(&client, &server).await;
    assert_eq!(first.connections.len(), 2);
    wait_for(&server, "marline_connections_open{version=\"3\"} 0").await;
    let second = fetch(&client, &server).await;
    assert_eq!(second.pipes.len(), 2);
    for (earlier, pipe) in first.pipes.iter().zip(&second.pipes) {
        assert!(!pipe.connections.is_empty(), "{pipe:?}");
        let is_old = |connection| earlier.connections.contains(connection);
        assert!(!pipe.connections.iter().any(is_old), "{pipe:?}");
    }
}
