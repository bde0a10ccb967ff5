//! QUIC endpoints without HTTP, and reading and writing their streams.

use std::sync::Arc;

use marline::coordination::bundle::Membership;
use marline::{
    Bytes, ClientConfig, Endpoint, EndpointConfig, MakeObserver, RecvStream, Runtime, SendStream,
    ServerConfig,
};

use marline_http::transport::observed;
use marline_sim::identity::identity;

use super::paths::ANY;
use super::{Testbed, failed, transport};
use crate::scenario::{Job, RunError, Topology};

/// The protocol's name in TLS.
const ALPN: &[&[u8]] = &[b"marline-lab"];
/// Bytes of each write.
pub(super) const CHUNK: usize = 64 << 10;

/// An endpoint and its runtime.
pub(super) struct Ends {
    pub(super) endpoint: Endpoint,
    pub(super) runtime: Arc<dyn Runtime>,
}

impl Ends {
    pub(super) fn server(
        job: &Job,
        testbed: &Testbed,
        observer: Option<MakeObserver>,
    ) -> Result<Self, RunError> {
        let transport = transport(&job.settings.server);
        let config = identity().server_config(ALPN, &transport).map_err(failed)?;
        let host = testbed.host(Topology::SERVER)?;
        let config = ServerConfig {
            observer: observed(observer, job.qlog.as_ref(), &host.runtime),
            ..config
        };
        let mut address = testbed.server_address()?;
        if job.settings.is_multipath() {
            address.set_ip(ANY);
        }
        Self::new(&host.runtime, address, Some(config))
    }

    pub(super) fn client(
        job: &Job,
        testbed: &Testbed,
        observer: Option<MakeObserver>,
        bundle: Option<Membership>,
    ) -> Result<Self, RunError> {
        let host = testbed.host(Topology::CLIENT)?;
        let address = match job.settings.is_multipath() {
            true => ANY,
            false => testbed.first_path()?.client,
        };
        let ends = Self::new(&host.runtime, (address, 0).into(), None)?;
        let transport = transport(&job.settings.client);
        let config = identity().client_config(ALPN, &transport).map_err(failed)?;
        let config = ClientConfig {
            observer: observed(observer, job.qlog.as_ref(), &host.runtime),
            bundle,
            ..config
        };
        ends.endpoint.set_default_client_config(config);
        Ok(ends)
    }

    fn new(
        runtime: &Arc<dyn Runtime>,
        address: std::net::SocketAddr,
        server: Option<ServerConfig>,
    ) -> Result<Self, RunError> {
        let socket = runtime.bind(address).map_err(failed)?;
        let config = EndpointConfig::from_seed(runtime.seed().map_err(failed)?);
        let runtime = Arc::clone(runtime);
        let endpoint = Endpoint::new(config, server, socket, Arc::clone(&runtime));
        Ok(Self {
            endpoint: endpoint.map_err(failed)?,
            runtime,
        })
    }
}

/// The content that is sent.
pub(super) static ZEROS: [u8; CHUNK] = [0; CHUNK];

/// Sends `size` bytes, ends `stream`, and waits until all are acknowledged.
pub(super) async fn write(mut stream: SendStream, size: u64) -> Result<(), RunError> {
    fill(&mut stream, size).await?;
    stream.finish().map_err(failed)?;
    stream.stopped().await.map(drop).map_err(failed)
}

/// Sends `size` bytes.
pub(super) async fn fill(stream: &mut SendStream, size: u64) -> Result<(), RunError> {
    let mut left = size;
    while left > 0 {
        let len = CHUNK.min(usize::try_from(left).unwrap_or(CHUNK));
        let chunk = Bytes::from_static(&ZEROS[..len]);
        stream.write_chunk(chunk).await.map_err(failed)?;
        left -= len as u64;
    }
    Ok(())
}

/// Reads and discards the stream to its end.
pub(super) async fn drain(stream: RecvStream) -> Result<(), RunError> {
    drain_with(stream, || {}).await
}

/// The same, and calls `on_data` for each chunk.
pub(super) async fn drain_with(
    mut stream: RecvStream,
    mut on_data: impl FnMut() + Send,
) -> Result<(), RunError> {
    while stream.read_chunk(CHUNK).await.map_err(failed)?.is_some() {
        on_data();
    }
    Ok(())
}
