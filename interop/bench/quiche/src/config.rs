//! Settings of quiche.

use bench_kit::{ALPN, IDLE, STREAMS, WINDOW};
use boring::ssl::{SslContextBuilder, SslMethod};
use quiche::{Config, CongestionControlAlgorithm, PROTOCOL_VERSION};

/// Size of UDP payloads in bytes: what other stacks find by path MTU discovery.
pub(crate) const DATAGRAM: usize = 1452;

/// Settings of both roles. BoringSSL prefers AES-128-GCM where the processor helps with AES.
pub(crate) fn config() -> anyhow::Result<Config> {
    let mut tls = SslContextBuilder::new(SslMethod::tls())?;
    tls.set_curves_list("X25519")?;
    let mut config = Config::with_boring_ssl_ctx_builder(PROTOCOL_VERSION, tls)?;
    config.verify_peer(false);
    config.set_application_protos(&[ALPN])?;
    config.set_max_idle_timeout(u64::try_from(IDLE.as_millis())?);
    config.set_max_recv_udp_payload_size(DATAGRAM);
    config.set_max_send_udp_payload_size(DATAGRAM);
    let window = u64::from(WINDOW);
    config.set_initial_max_data(window);
    config.set_initial_max_stream_data_bidi_local(window);
    config.set_initial_max_stream_data_bidi_remote(window);
    config.set_max_connection_window(window);
    config.set_max_stream_window(window);
    config.set_initial_max_streams_bidi(STREAMS.into());
    config.set_cc_algorithm(CongestionControlAlgorithm::CUBIC);
    // Release times require a socket that can delay datagrams; this loop sends immediately.
    config.enable_pacing(false);
    Ok(config)
}
