//! A gateway that fetches through a pool of pipes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::stream::pending;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use marline_http::Body;
use marline_http::client::{Client, ClientConfig, Trust};
use marline_http::pipes::cba::{CbaConfig, Combine, Creation};
use marline_http::pipes::{PipePolicy, PipesConfig, RrConfig, SignalTrace};
use marline_http::proxy::{GatewayConfig, PipeMetrics, gateway};
use marline_http::server::{AccessLog, ServerConfig, Site};
use tokio::net::TcpStream;
use tower::ServiceExt;

use super::gateway::{fetch, get};
use super::proxy;
use super::tunnels::{echo, talk, upgrade};
use crate::common::{TestServer, until};
use crate::log::Lines;
use crate::metrics::wait_for;

/// A gateway, its log, and the origin behind it.
struct Gateway {
    server: TestServer,
    log: Lines,
    origin: TestServer,
}

impl Gateway {
    async fn to(origin: TestServer, pipes: PipesConfig) -> Self {
        let config = ClientConfig {
            trust: Trust::Insecure,
            pipes: Some(pipes),
            fallback: false,
            ..ClientConfig::default()
        };
        let client = Arc::new(Client::new(config).unwrap());
        let config = GatewayConfig::to(format!("https://{}", origin.address));
        let site = gateway(Arc::clone(&client), &config).unwrap();
        let log = Lines::default();
        let server = TestServer::with(site.clone(), |config| {
            *config = ServerConfig::cleartext(config.listen, site);
            config.access_log = Some(AccessLog::new(log.clone()));
            config.more_metrics = vec![Arc::new(PipeMetrics::of(client))];
        })
        .await;
        Self {
            server,
            log,
            origin,
        }
    }

    /// Requests `count` objects at the same time.
    async fn fetch(&self, count: usize) {
        let requests = (0..count).map(|_| fetch(false, get(self.server.address, "/file")));
        for response in join_all(requests).await {
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.body().len(), 100_000);
        }
    }

    /// Begins a request whose response does not end, and returns its connection once the response has begun.
    async fn begin(&self, fields: &str) -> TcpStream {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = TcpStream::connect(self.server.address).await.unwrap();
        let head = format!("GET /held HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut begun = [0; 12];
        stream.read_exact(&mut begun).await.unwrap();
        assert_eq!(&begun, b"HTTP/1.1 200");
        stream
    }

    /// The number of `requests` requests that each pipe has carried, by the log.
    async fn carried(&self, requests: usize) -> BTreeMap<u64, usize> {
        let mut carried = BTreeMap::new();
        for line in self.log.wait(requests).await {
            *carried.entry(line["pipe"].as_u64().unwrap()).or_default() += 1;
        }
        carried
    }

    /// Waits until this many pipes are open.
    async fn wait_for_open(&self, state: &str, open: usize) {
        let origin = self.origin.address;
        let pipes = format!("marline_pipes{{origin=\"https://{origin}\",state=\"{state}\"}}");
        wait_for(&self.server, &format!("{pipes} {open}")).await;
    }

    /// Waits until the counter `name` of `pipe` is `count`.
    async fn wait_for_count(&self, name: &str, pipe: usize, count: u64) {
        let origin = self.origin.address;
        let counter = format!("marline_pipe_{name}_total{{origin=\"https://{origin}\"");
        wait_for(
            &self.server,
            &format!("{counter},pipe=\"{pipe}\"}} {count}"),
        )
        .await;
    }

    /// Waits until the origin has accepted this many connections; no more may be there.
    async fn wait_for_connections(&self, count: usize) {
        let accepted = format!("marline_connections_total{{version=\"3\"}} {count}");
        wait_for(&self.origin, &accepted).await;
    }
}

/// A site whose responses have 100,000 bytes.
fn file() -> Site {
    Site::new(tower::service_fn(|_: Request<Body>| async {
        Ok(Response::new(Body::full(vec![7; 100_000])))
    }))
}

/// A site whose responses have a header, and content that never comes.
fn held() -> Site {
    Site::new(tower::service_fn(|_: Request<Body>| async {
        let content = pending::<Result<Frame<Bytes>, std::io::Error>>();
        Ok(Response::new(Body::new(StreamBody::new(content))))
    }))
}

/// Both, by path.
fn file_and_held() -> Site {
    Site::new(tower::service_fn(|request: Request<Body>| async move {
        match request.uri().path() {
            "/held" => held().oneshot(request).await,
            _ => file().oneshot(request).await,
        }
    }))
}

fn rr(pipes: usize) -> PipesConfig {
    PipesConfig::new(PipePolicy::RoundRobin(RrConfig { pipes }))
}

/// CBA with a radio whose quality does not change.
fn cba(sinr_db: f64, config: CbaConfig) -> PipesConfig {
    PipesConfig {
        signal: Arc::new(SignalTrace::constant(sinr_db)),
        ..PipesConfig::new(PipePolicy::BurstAware(config))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn round_robin_sends_requests_at_the_same_time_over_each_pipe_in_turn() {
    let gateway = Gateway::to(TestServer::site(file()).await, rr(3)).await;
    gateway.fetch(7).await;
    // Objects 3 and 6 are on pipe 0; 1, 4 and 7 on pipe 1; 2 and 5 on pipe 2.
    assert_eq!(
        gateway.carried(7).await,
        BTreeMap::from([(0, 2), (1, 3), (2, 2)])
    );
    gateway.wait_for_connections(3).await;
    gateway.wait_for_open("used", 3).await;
    gateway.wait_for_count("objects", 1, 3).await;
    gateway
        .wait_for_count("received_bytes", 1, 3 * 100_000)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fewer_requests_than_pipes_open_as_many_as_they_need() {
    let gateway = Gateway::to(TestServer::site(file()).await, rr(5)).await;
    gateway.fetch(2).await;
    assert_eq!(gateway.carried(2).await, BTreeMap::from([(1, 1), (2, 1)]));
    gateway.wait_for_connections(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_an_excellent_radio_one_pipe_carries_everything() {
    let config = CbaConfig {
        // The score of the radio alone, as loads of this machine count as the connection's.
        combine: Combine::Min,
        buffer: 1,
        ..CbaConfig::default()
    };
    let gateway = Gateway::to(TestServer::site(file()).await, cba(25.0, config)).await;
    gateway.fetch(8).await;
    assert_eq!(gateway.carried(8).await, BTreeMap::from([(0, 8)]));
    gateway.wait_for_connections(1).await;
    gateway.wait_for_open("spare", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_finds_no_room_gets_the_spare_pipe() {
    let config = CbaConfig {
        buffer: 1,
        creation: Creation::Spare,
        ..CbaConfig::default()
    };
    let gateway = Gateway::to(TestServer::site(held()).await, cba(-3.0, config)).await;
    let first = gateway.begin("").await;
    gateway.wait_for_open("spare", 1).await;
    gateway.wait_for_connections(2).await;
    let second = gateway.begin("").await;
    gateway.wait_for_count("objects", 0, 1).await;
    gateway.wait_for_count("objects", 1, 1).await;
    // The next spare one.
    gateway.wait_for_connections(3).await;
    gateway.wait_for_open("used", 2).await;
    drop((first, second));
    assert_eq!(gateway.carried(2).await, BTreeMap::from([(0, 1), (1, 1)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_browser_says_of_an_object_counts() {
    for (destination, objects) in [("image", [1, 1]), ("style", [2, 0])] {
        let config = CbaConfig {
            // Larger than a style sheet, smaller than an image.
            buffer: 40 << 10,
            creation: Creation::OnDemand,
            ..CbaConfig::default()
        };
        let gateway = Gateway::to(TestServer::site(held()).await, cba(-3.0, config)).await;
        let fields = format!("Sec-Fetch-Dest: {destination}\r\n");
        let _first = gateway.begin(&fields).await;
        let _second = gateway.begin(&fields).await;
        gateway.wait_for_count("objects", 0, objects[0]).await;
        if objects[1] > 0 {
            gateway.wait_for_count("objects", 1, objects[1]).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aborted_response_frees_its_pipe() {
    let mut pipes = rr(2);
    pipes.idle_timeout = Duration::from_millis(50);
    let gateway = Gateway::to(TestServer::site(file_and_held()).await, pipes).await;
    let stream = gateway.begin("").await;
    // The other pipe is idle then, and closed; this one is not, and carries the next request.
    gateway.fetch(1).await;
    gateway.wait_for_open("used", 1).await;
    gateway.fetch(1).await;
    gateway.wait_for_connections(2).await;
    drop(stream);
    gateway.wait_for_open("used", 0).await;
    // The next request opens one again.
    let _stream = gateway.begin("").await;
    gateway.wait_for_open("used", 1).await;
    gateway.wait_for_connections(3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_whose_connection_the_origin_has_closed_opens_again() {
    // Other tests bind no ports of it.
    let own = |config: &mut ServerConfig| config.listen = ([127, 7, 0, 3], 0).into();
    let mut gateway = Gateway::to(TestServer::with(file(), own).await, rr(1)).await;
    gateway.fetch(1).await;
    let address = gateway.origin.address;
    gateway.origin.handle.shut_down();
    gateway.origin.task.await.unwrap().unwrap();
    // The socket closes after the task has ended.
    let is_free = || std::net::UdpSocket::bind(address).is_ok();
    until("the port is free", is_free).await;
    gateway.origin = TestServer::with(file(), |config| config.listen = address).await;
    gateway.fetch(1).await;
    assert_eq!(gateway.carried(2).await, BTreeMap::from([(0, 2)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_websocket_is_carried_by_a_pipe() {
    let application = echo().await;
    let gateway = Gateway::to(proxy(&[application.url()]).await, rr(2)).await;
    let (stream, header) = upgrade(gateway.server.address).await;
    assert!(header.starts_with("HTTP/1.1 101 "), "{header}");
    talk(stream).await;
    assert_eq!(gateway.carried(1).await, BTreeMap::from([(1, 1)]));
}
