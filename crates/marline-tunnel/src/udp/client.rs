//! The client: a socket of this host whose datagrams reach one target behind a server.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use marline_http::Body;
use marline_http::client::{Client, ClientConfig, ClientError, Connection, Download, Origin};
use marline_http::http3::Datagrams;
use tokio::net::UdpSocket;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use super::PROTOCOL;
use super::flow::{Buffer, Flow, Gone, Sent};
use super::target::Target;
use crate::client::{Asked, OpenError, accepted, origin, request, with_datagrams};
use crate::link::Capsules;

/// Programs of this host at a time: each address that sends is one.
const MAX_PROGRAMS: usize = 256;

/// Datagrams of a program that wait for its request.
const WAITING: usize = 64;

/// The settings of a forward.
#[derive(Clone, Debug)]
pub struct ForwardConfig {
    /// The server, as `HOST` or `HOST:PORT`.
    pub host: String,
    /// The port of a server without one.
    pub default_port: u16,
    /// The token of the user, unless the certificate of the connections proves who that is.
    pub token: Option<String>,
    /// The destination of all datagrams.
    pub target: Target,
    /// The connections.
    pub http: ClientConfig,
}

/// Why there is no forward.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForwardError {
    /// The server is none.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// There is no connection, or the server refuses requests for the target.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The socket of this host has failed.
    #[error("cannot receive datagrams: {0}")]
    Socket(io::Error),
}

/// A socket whose datagrams are passed on.
pub struct Forward(Arc<Proxy>);

impl Forward {
    /// Connects to the server, and makes a first request, which ends at once: it shows whether the server accepts the token and the
    /// target.
    ///
    /// # Errors
    /// See [`ForwardError`].
    pub async fn open(config: ForwardConfig, socket: UdpSocket) -> Result<Self, ForwardError> {
        let origin = origin(&config.host, config.default_port)?;
        let client = Client::new(with_datagrams(config.http))?;
        let connection = client.connect(&origin).await;
        let connection = Arc::new(connection.map_err(OpenError::from)?);
        let proxy = Proxy {
            client,
            origin,
            token: config.token,
            path: config.target.path(),
            connection: Mutex::new(connection),
            socket,
        };
        proxy.ask().await?;
        Ok(Self(Arc::new(proxy)))
    }

    /// The address of the socket.
    ///
    /// # Errors
    /// The system does not know.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.socket.local_addr()
    }

    /// Passes datagrams on to the target, and the answers back, until the socket fails. Each sender has a socket of its own at the
    /// server. `report` learns about requests that the server refuses, and about connections that are lost; the next datagram tries
    /// again.
    ///
    /// # Errors
    /// [`ForwardError::Socket`].
    pub async fn run(self, report: impl Fn(&OpenError)) -> Result<Infallible, ForwardError> {
        let mut programs = HashMap::<SocketAddr, mpsc::Sender<Bytes>>::new();
        let mut tasks = JoinSet::new();
        let mut buffer = Buffer::new();
        loop {
            let received = tokio::select! {
                Some(ended) = tasks.join_next() => {
                    if let Ok((from, result)) = ended {
                        programs.remove(&from);
                        if let Err(error) = result {
                            report(&error);
                        }
                    }
                    continue;
                }
                received = self.0.socket.recv_from(buffer.room()) => received,
            };
            let (length, from) = match received {
                Ok(received) => received,
                // A program does not receive an answer any more.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                Err(error) => return Err(ForwardError::Socket(error)),
            };
            if !programs.contains_key(&from) {
                if programs.len() >= MAX_PROGRAMS {
                    continue;
                }
                let (send, waiting) = mpsc::channel(WAITING);
                let proxy = Arc::clone(&self.0);
                tasks.spawn(async move { (from, proxy.carry(from, waiting).await) });
                programs.insert(from, send);
            }
            if let Some(program) = programs.get(&from) {
                // It is dropped if too many wait.
                let _ = program.try_send(Bytes::copy_from_slice(buffer.content(length)));
            }
        }
    }
}

/// A request that the server has accepted.
struct Accepted {
    response: Response<Download>,
    capsules: Capsules,
}

/// The server of the target, and the socket of the programs.
struct Proxy {
    client: Client,
    origin: Origin,
    token: Option<String>,
    path: String,
    connection: Mutex<Arc<Connection>>,
    socket: UdpSocket,
}

impl Proxy {
    /// The connection, or a new one if it has ended.
    async fn connection(&self) -> Result<Arc<Connection>, ClientError> {
        let mut connection = self.connection.lock().await;
        if connection.is_closed() {
            *connection = Arc::new(self.client.connect(&self.origin).await?);
        }
        Ok(Arc::clone(&connection))
    }

    /// Makes a request that the server accepts; it has a socket for it until the result is dropped.
    async fn ask(&self) -> Result<Accepted, OpenError> {
        let connection = self.connection().await?;
        let (capsules, content) = Capsules::new();
        let asked = Asked {
            protocol: PROTOCOL,
            path: &self.path,
        };
        let request = request(
            &self.origin,
            self.token.as_deref(),
            asked,
            Body::new(content),
        )?;
        let response = connection.request(&self.origin, request).await?;
        let response = accepted(&self.origin, response).await?;
        Ok(Accepted { response, capsules })
    }

    /// Carries the datagrams of one program until there are none for long, or the request ends.
    async fn carry(
        &self,
        program: SocketAddr,
        mut waiting: mpsc::Receiver<Bytes>,
    ) -> Result<(), OpenError> {
        let Accepted { response, capsules } = self.ask().await?;
        let flow = Flow::new(response.extensions().get::<Datagrams>().cloned(), capsules);
        let deliver = |payload: &[u8]| {
            // Another may come through.
            let _ = self.socket.try_send_to(payload, program);
            Ok::<_, Gone>(())
        };
        let send = async {
            while let Some(content) = waiting.recv().await {
                if flow.send(&content).await == Sent::Ended {
                    return;
                }
            }
        };
        let mut content = response.into_body();
        tokio::select! {
            () = send => {}
            () = flow.receive(deliver) => {}
            // The end of the response, and what is malformed, end the request.
            _ = flow.read(&mut content, deliver) => {}
            () = flow.idle() => {}
        }
        Ok(())
    }
}
