//! HTTP/2 where HTTP/3 does not connect, because the server or the network does not support QUIC (RFC 9114, section 3.1).

use std::collections::HashSet;
use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::{Either, select};
use rustls::client::danger::ServerCertVerifier;

use super::connection::TcpClient;
use super::{Client, ClientConfig, ClientError, ConnectRequest, Connection, Origin, Transport};
use crate::limits::HTTP3_HEAD_START;
use crate::runtime::RuntimeHandle;

/// The transport that replaces QUIC, and the origins where it does.
pub(super) struct Fallback {
    tcp: Transport,
    over_tcp: Mutex<HashSet<Origin>>,
}

/// The outcome of QUIC's head start.
enum HeadStart {
    Won(Box<Connection>),
    Failed(ClientError),
    Over,
}

impl Fallback {
    /// `config` is for HTTP/2.
    pub(super) fn new(
        config: &ClientConfig,
        verifier: Arc<dyn ServerCertVerifier>,
        runtime: RuntimeHandle,
    ) -> Result<Self, ClientError> {
        Ok(Self {
            tcp: Transport::Tcp(TcpClient::new(config, Some(verifier), runtime)?),
            over_tcp: Mutex::default(),
        })
    }

    /// Connects over the faster of both; over TCP where that was faster before.
    pub(super) async fn connect(
        &self,
        client: &Client,
        request: ConnectRequest<'_>,
    ) -> Result<Connection, ClientError> {
        if request.proxy.is_some() || self.over_tcp().contains(request.origin) {
            return client.connect_over(&self.tcp, request).await;
        }
        let connection = self.race(client, request).await?;
        if connection.quic().is_none() {
            self.over_tcp().insert(request.origin.clone());
        }
        Ok(connection)
    }

    /// Connects over TCP unless the handshake of `early` completes before, on which requests in 0-RTT wait for it. If it does
    /// not, `early` is closed, and the origin gets no more connections over QUIC.
    pub(super) async fn connect_instead_of(
        &self,
        early: &Connection,
        client: &Client,
        request: ConnectRequest<'_>,
    ) -> Result<Option<Connection>, ClientError> {
        let connected = pin!(connected(early));
        let tcp = pin!(client.connect_over(&self.tcp, request));
        match select(connected, tcp).await {
            Either::Left(_) => Ok(None),
            Either::Right((connection, _)) => {
                let connection = connection?;
                self.over_tcp().insert(request.origin.clone());
                early.close();
                Ok(Some(connection))
            }
        }
    }

    /// Connects over QUIC; after a while, or if that fails, over TCP too. If both fail, the error names both.
    async fn race(
        &self,
        client: &Client,
        request: ConnectRequest<'_>,
    ) -> Result<Connection, ClientError> {
        let mut quic = pin!(client.connect_over(&client.transport, request));
        let head_start = client.runtime.timeout(HTTP3_HEAD_START, &mut quic).await;
        let head_start = match head_start {
            Ok(Ok(connection)) => HeadStart::Won(Box::new(connection)),
            Ok(Err(error)) => HeadStart::Failed(error),
            Err(_) => HeadStart::Over,
        };
        let tcp = pin!(client.connect_over(&self.tcp, request));
        match head_start {
            HeadStart::Won(connection) => Ok(*connection),
            // TCP has the same certificate.
            HeadStart::Failed(error @ ClientError::Certificate { .. }) => Err(error),
            HeadStart::Failed(error) => tcp.await.map_err(|other| both(error, other)),
            HeadStart::Over => match select(quic, tcp).await {
                Either::Left((Err(error), _)) | Either::Right((Err(error), _))
                    if matches!(error, ClientError::Certificate { .. }) =>
                {
                    Err(error)
                }
                Either::Left((Err(error), tcp)) => tcp.await.map_err(|other| both(error, other)),
                Either::Right((Err(other), quic)) => quic.await.map_err(|error| both(error, other)),
                Either::Left((connection, _)) | Either::Right((connection, _)) => connection,
            },
        }
    }

    fn over_tcp(&self) -> MutexGuard<'_, HashSet<Origin>> {
        self.over_tcp.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Completes if the handshake of `early` does.
async fn connected(early: &Connection) {
    match early.quic() {
        Some(quic) if quic.connected().await.is_ok() => {}
        _ => pending().await,
    }
}

/// The error to report if both failed: a certificate error, which only TCP reached; otherwise QUIC's, with TCP's
/// appended if there was no connection at all.
pub(super) fn both(quic: ClientError, tcp: ClientError) -> ClientError {
    match (quic, tcp) {
        (_, tcp @ ClientError::Certificate { .. }) => tcp,
        (
            ref quic @ (ClientError::Connect {
                ref host, address, ..
            }
            | ClientError::ConnectTimeout {
                ref host, address, ..
            }),
            tcp,
        ) => ClientError::Connect {
            host: host.clone(),
            address,
            cause: format!("HTTP/3: {}; HTTP/2: {}", attempt(quic), attempt(&tcp)).into(),
        },
        (quic, _) => quic,
    }
}

/// Why there was no connection, without the names of host and address.
fn attempt(error: &ClientError) -> String {
    match error {
        ClientError::Connect { cause, .. } => cause.to_string(),
        ClientError::ConnectTimeout { limit, .. } => {
            format!("no response within {} s", limit.as_secs_f32())
        }
        other => other.to_string(),
    }
}
