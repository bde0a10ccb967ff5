//! A custom congestion controller: `cargo run -p marline --example custom_controller`.
//!
//! `Modest` keeps the queueing delay at the bottleneck near 10 ms: the window grows while the delay is shorter, and
//! shrinks while it is longer. The example runs the conformance checks of the built-in controllers on it, and then
//! uses it for a transfer over loopback.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use marline::congestion::{
    Controller, ControllerConfig, ControllerFactory, Coordinated, MAXIMUM_WINDOW, Phase,
    conformance,
};
use marline::samples::{AckSample, CeSample, LossSample, RttView, SentSample};
use marline::{Endpoint, Instant, TransportConfig, tls};
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;

const TARGET: Duration = Duration::from_millis(10);

#[derive(Debug)]
struct Modest {
    window: u64,
    mtu: u64,
    slow_start: bool,
    /// Signals about packets sent before this time belong to an earlier reduction.
    reduced_at: Option<Instant>,
}

impl Modest {
    fn min_window(&self) -> u64 {
        2 * self.mtu
    }

    fn resize(&mut self, bytes: u64) {
        self.window = bytes.clamp(self.min_window(), MAXIMUM_WINDOW);
    }

    /// Halves the window, once for all signals of one flight.
    fn reduce(&mut self, now: Instant, sent_at: Instant) {
        if self.reduced_at.is_none_or(|at| sent_at > at) {
            self.reduced_at = Some(now);
            self.slow_start = false;
            self.resize(self.window / 2);
        }
    }
}

impl Controller for Modest {
    fn on_sent(&mut self, _now: Instant, _sent: &SentSample) {}

    fn on_ack(&mut self, _now: Instant, ack: &AckSample) {
        if ack.app_limited
            || self
                .reduced_at
                .is_some_and(|at| ack.largest_acked_sent_at <= at)
        {
            return;
        }
        let waited = ack.rtt.smoothed.saturating_sub(ack.rtt.min);
        let step = self.mtu.saturating_mul(ack.bytes) / self.window;
        if self.slow_start && waited < TARGET / 2 {
            self.resize(self.window.saturating_add(ack.bytes));
        } else if waited < TARGET {
            self.slow_start = false;
            self.resize(self.window.saturating_add(step));
        } else {
            self.slow_start = false;
            self.resize(self.window.saturating_sub(step));
        }
    }

    fn on_loss(&mut self, now: Instant, loss: &LossSample) {
        self.reduce(now, loss.latest_sent_at);
        if loss.persistent {
            self.resize(0);
            self.slow_start = true;
        }
    }

    fn on_ce(&mut self, now: Instant, ce: &CeSample) {
        self.reduce(now, ce.sent_at);
    }

    fn on_mtu(&mut self, mtu: u64) {
        self.mtu = mtu;
        self.resize(self.window);
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn pacing_rate(&self, rtt: &RttView) -> u64 {
        let micros = u64::try_from(rtt.smoothed.as_micros()).unwrap_or(u64::MAX);
        // A quarter more than the window in a round trip, so that the window is the limit, not the pacer.
        (self.window.saturating_mul(1_250_000) / micros.max(1)).max(1)
    }

    fn phase(&self) -> Phase {
        if self.slow_start {
            Phase::SlowStart
        } else {
            Phase::CongestionAvoidance
        }
    }

    fn in_slow_start(&self) -> bool {
        self.slow_start
    }

    fn ssthresh(&self) -> Option<u64> {
        None
    }

    fn name(&self) -> &'static str {
        "modest"
    }
}

impl Coordinated for Modest {
    fn set_window(&mut self, bytes: u64) {
        self.resize(bytes);
    }

    fn enter_slow_start(&mut self) {
        self.slow_start = true;
    }

    fn exit_slow_start(&mut self) {
        self.slow_start = false;
    }
}

#[derive(Debug)]
struct MakeModest;

impl ControllerFactory for MakeModest {
    fn build(&self, config: ControllerConfig) -> Box<dyn Controller> {
        Box::new(Modest {
            window: config.initial_window,
            mtu: config.max_datagram_size,
            slow_start: true,
            reduced_at: None,
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    conformance::conformance(|config| MakeModest.build(config));
    println!("`modest` passes all conformance checks of controllers");

    let transport = Arc::new(TransportConfig {
        controller: Arc::new(MakeModest),
        ..TransportConfig::default()
    });
    let identity = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    let mut roots = RootCertStore::empty();
    roots.add(identity.cert.der().clone())?;
    let key = PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der());
    let mut server_config = tls::server_config(vec![identity.cert.into()], key.into(), &[b"bulk"])?;
    server_config.transport = Arc::clone(&transport);
    let server = Endpoint::server(server_config, ([127, 0, 0, 1], 0).into())?;
    let mut client_config = tls::client_config(roots, &[b"bulk"])?;
    client_config.transport = transport;
    let client = Endpoint::client(([127, 0, 0, 1], 0).into())?;
    client.set_default_client_config(client_config);

    let addr = server.local_addr();
    let sending = tokio::spawn(async move {
        let connection = server.accept().await.ok_or("closed")?.await?;
        let mut send = connection.open_uni().await?;
        send.write_chunk(vec![0; 10_000_000].into()).await?;
        send.finish()?;
        send.stopped().await?;
        Ok::<_, Box<dyn Error + Send + Sync>>(connection.rtt())
    });
    let connection = client.connect(addr, "localhost")?.await?;
    let mut recv = connection.accept_uni().await?;
    let mut bytes = 0;
    while let Some(chunk) = recv.read_chunk(usize::MAX).await? {
        bytes += chunk.len();
    }
    let rtt = sending.await?.map_err(|error| error as Box<dyn Error>)?;
    println!("{bytes} bytes; round trip at the end {rtt:?}");
    Ok(())
}
