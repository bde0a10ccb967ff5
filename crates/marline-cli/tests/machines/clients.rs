//! Clients that request small and large files all the time, each over a connection that stays open as long as it can.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use http::{HeaderMap, Uri};
use marline::ConnectionError;
use marline_http::client::{
    Client, ClientConfig, ClientError, Connection, HttpVersion, Origin, Trust, parse_url,
};

use crate::machines::{PORT, large};
use crate::network::{Network, block_on, translator_address};

/// The number of clients.
const CLIENTS: usize = 8;

/// The pause of a client between two pairs of requests.
const PAUSE: Duration = Duration::from_millis(20);

/// Clients that run until they are dropped.
pub(crate) struct Clients {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    has_ended: AtomicBool,
    each: [OfClient; CLIENTS],
    failures: Mutex<Vec<Failure>>,
    resumed: AtomicUsize,
    early: AtomicUsize,
    /// Clients whose handshakes are not confirmed.
    connecting: Arc<AtomicUsize>,
}

/// The counts of one client.
#[derive(Default)]
struct OfClient {
    served: AtomicUsize,
    connections: AtomicUsize,
    /// The server of its connection; 0 while there is none.
    server: AtomicUsize,
    /// The last event, for a test that fails.
    last: Mutex<String>,
}

/// A request that failed, on a connection that had been served.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    pub(crate) server: u8,
    pub(crate) at: Instant,
    /// Whether the connection ended by a stateless reset.
    pub(crate) is_reset: bool,
    pub(crate) cause: String,
}

impl OfClient {
    fn report(&self, text: String) {
        *self.last.lock().unwrap() = text;
    }
}

impl Clients {
    pub(crate) fn start(network: &Network, connecting: Arc<AtomicUsize>) -> Self {
        let shared = Arc::new(Shared {
            has_ended: AtomicBool::new(false),
            each: Default::default(),
            failures: Mutex::default(),
            resumed: AtomicUsize::new(0),
            early: AtomicUsize::new(0),
            connecting,
        });
        let running = Arc::clone(&shared);
        let thread = network.at_clients(move || {
            block_on(async {
                let mut all = tokio::task::JoinSet::new();
                for number in 0..CLIENTS {
                    let running = Arc::clone(&running);
                    all.spawn(async move { running.run(number).await });
                }
                all.join_all().await;
            });
        });
        Self {
            shared,
            thread: Some(thread),
        }
    }

    fn of_each(&self, value: impl Fn(&OfClient) -> &AtomicUsize) -> Vec<usize> {
        let each = self.shared.each.iter();
        each.map(|client| value(client).load(Ordering::Relaxed))
            .collect()
    }

    /// The requests of each client that were answered.
    pub(crate) fn served(&self) -> Vec<usize> {
        self.of_each(|client| &client.served)
    }

    /// The connections that each client has opened.
    pub(crate) fn connections(&self) -> Vec<usize> {
        self.of_each(|client| &client.connections)
    }

    /// The server of each client.
    pub(crate) fn servers(&self) -> Vec<u8> {
        let servers = self.of_each(|client| &client.server).into_iter();
        servers
            .map(|server| u8::try_from(server).unwrap())
            .collect()
    }

    pub(crate) fn failures(&self) -> Vec<Failure> {
        self.shared.failures.lock().unwrap().clone()
    }

    /// Connections that have resumed a session.
    pub(crate) fn resumed(&self) -> usize {
        self.shared.resumed.load(Ordering::Relaxed)
    }

    /// Connections whose data was accepted before the end of the handshake.
    pub(crate) fn early(&self) -> usize {
        self.shared.early.load(Ordering::Relaxed)
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, Ordering::Relaxed);
        if std::thread::panicking() {
            let last = self
                .shared
                .each
                .iter()
                .map(|client| client.last.lock().unwrap().clone());
            let last: Vec<_> = last.collect();
            println!(
                "servers {:?}, served {:?}, connections {:?}, {last:?}",
                self.servers(),
                self.served(),
                self.connections()
            );
        }
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "a client failed");
        }
    }
}

impl Shared {
    /// Runs the client with this number, one connection after another.
    async fn run(&self, number: usize) {
        let mut config = ClientConfig {
            trust: Trust::Insecure,
            fallback: false,
            ..ClientConfig::default()
        };
        // A client that only waits for a response sends nothing that could be reset.
        Arc::make_mut(&mut config.quic.transport).keep_alive = Some(Duration::from_secs(1));
        let client = Client::new(config).unwrap();
        let url = format!("https://{}:{PORT}/", translator_address());
        let origin = parse_url(&url, HttpVersion::Http3).unwrap().origin;
        let of_client = &self.each[number];
        while !self.has_ended.load(Ordering::Relaxed) {
            of_client.report("connects".to_owned());
            self.connecting.fetch_add(1, Ordering::Relaxed);
            let connected = async {
                let connection = client.connect(&origin).await?;
                let confirmed = connection.quic().unwrap().confirmed().await;
                Ok::<_, ClientError>(confirmed.is_ok().then_some(connection))
            };
            let connected = connected.await;
            self.connecting.fetch_sub(1, Ordering::Relaxed);
            let connection = match connected {
                Ok(Some(connection)) => connection,
                other => {
                    of_client.report(format!("is not connected: {:?}", other.err()));
                    continue;
                }
            };
            let visit = Visit {
                connection,
                origin: &origin,
            };
            of_client.connections.fetch_add(1, Ordering::Relaxed);
            self.visit(&visit, of_client).await;
        }
    }

    /// Sends requests until the connection ends.
    async fn visit(&self, visit: &Visit<'_>, of_client: &OfClient) {
        let expected = large();
        let mut server = None;
        while !self.has_ended.load(Ordering::Relaxed) && !visit.connection.is_closed() {
            let exchanged = async {
                of_client.report(format!("requests id, {}", visit.state()));
                let id = visit.get("id").await?;
                of_client.report(format!("requests large, {}", visit.state()));
                let large = visit.get("large").await?;
                Ok::<_, ClientError>((id, large))
            };
            match (exchanged.await, server) {
                (Ok((id, large)), known) => {
                    let [id] = id[..] else {
                        panic!("{id:?} is not an ID");
                    };
                    assert!(known.is_none_or(|known| known == id), "another server");
                    assert!(large == expected, "another content");
                    if known.is_none() {
                        self.on_first(visit);
                    }
                    server = Some(id);
                    of_client.server.store(id.into(), Ordering::Relaxed);
                    of_client.served.fetch_add(2, Ordering::Relaxed);
                    tokio::time::sleep(PAUSE).await;
                }
                // Of a server that stops: the request was not processed (RFC 9114, section 5.2).
                (Err(_), _) if visit.is_refused() => return,
                (Err(_), None) => return,
                (Err(error), Some(server)) => {
                    let failure = Failure {
                        server,
                        at: Instant::now(),
                        is_reset: visit.is_reset(),
                        cause: format!("{error:?}"),
                    };
                    self.failures.lock().unwrap().push(failure);
                    return;
                }
            }
        }
    }

    fn on_first(&self, visit: &Visit<'_>) {
        let quic = visit.connection.quic().unwrap();
        self.resumed
            .fetch_add(quic.is_resumed().into(), Ordering::Relaxed);
        self.early
            .fetch_add(quic.early_data_accepted().into(), Ordering::Relaxed);
    }
}

/// A connection, and where it leads.
struct Visit<'a> {
    connection: Connection,
    origin: &'a Origin,
}

impl Visit<'_> {
    async fn get(&self, path: &str) -> Result<Vec<u8>, ClientError> {
        let uri: Uri = format!("https://{}:{PORT}/{path}", translator_address())
            .parse()
            .unwrap();
        let response = self
            .connection
            .get(self.origin, &uri, &HeaderMap::new())
            .await?;
        assert_eq!(response.status(), 200);
        let (mut body, mut content) = (response.into_body(), Vec::new());
        while let Some(chunk) = body.chunk().await? {
            content.extend_from_slice(&chunk);
        }
        Ok(content)
    }

    /// Whether the connection lives and takes no more requests: the server has said so.
    fn is_refused(&self) -> bool {
        self.connection.is_closed() && self.connection.quic().unwrap().close_reason().is_none()
    }

    fn state(&self) -> String {
        let quic = self.connection.quic().unwrap();
        format!("{:?} after {:?}", quic.close_reason(), Instant::now())
    }

    fn is_reset(&self) -> bool {
        let reason = self.connection.quic().unwrap().close_reason();
        reason == Some(ConnectionError::Reset)
    }
}
