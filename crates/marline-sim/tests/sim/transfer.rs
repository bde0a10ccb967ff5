//! Downloads, and traces of them for comparison.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use marline::congestion::Algorithm;
use marline::{Connection, Endpoint, Instant, Runtime, TransportConfig};
use marline_link::{DropReason, Seed};
use marline_sim::fabric::{Plan, Verdict};
use marline_sim::identity::{Identity, identity};
use marline_sim::{Datagram, Host, Sim, SimConfig, Statistics};

use crate::link::Pipe;

pub(crate) const LIMIT: Duration = Duration::from_secs(60);
pub(crate) const ALPN: &[&[u8]] = &[b"test"];

/// Uses NewReno, whose arithmetic is exact on every machine.
fn transport() -> Arc<TransportConfig> {
    Arc::new(TransportConfig {
        controller: Arc::new(Algorithm::NewReno),
        ..TransportConfig::default()
    })
}

/// A simulation of `plan`.
pub(crate) fn sim(plan: Plan<Datagram>, seed: u64) -> Sim {
    Sim::new(plan.build().unwrap(), SimConfig::new(Seed::new(seed)))
}

/// Serves one stream of `len` bytes on every connection.
pub(crate) fn serve(host: &Host, len: usize) {
    let config = identity().server_config(ALPN, &transport()).unwrap();
    let any = ([0, 0, 0, 0], 443).into();
    let endpoint = host.endpoint(any, Some(config)).unwrap();
    let on = host.clone();
    host.run(async move {
        while let Some(connecting) = endpoint.accept().await {
            on.run(async move {
                let Ok(connection) = connecting.await else {
                    return;
                };
                let mut send = connection.open_uni().await.unwrap();
                send.write_chunk(vec![5; len].into()).await.ok();
                send.finish().ok();
                connection.closed().await;
            });
        }
    });
}

/// Connects `host` from `local` to `to`.
pub(crate) async fn dial(host: &Host, local: SocketAddr, to: SocketAddr) -> (Endpoint, Connection) {
    let config = identity().client_config(ALPN, &transport()).unwrap();
    let endpoint = host.endpoint(local, None).unwrap();
    let connecting = endpoint.connect_with(config, to, Identity::NAME).unwrap();
    let connection = connecting.await.unwrap();
    (endpoint, connection)
}

/// [`dial`] for callers that do not need the endpoint, which exists as long as the connection.
pub(crate) async fn connect(host: &Host, local: SocketAddr, to: SocketAddr) -> Connection {
    let (endpoint, connection) = dial(host, local, to).await;
    let alive = connection.clone();
    host.run(async move {
        alive.closed().await;
        drop(endpoint);
    });
    connection
}

/// Receives a stream, and returns the time of its end.
pub(crate) async fn download(host: &Host, connection: &Connection, len: usize) -> Instant {
    let mut recv = connection.accept_uni().await.unwrap();
    assert_eq!(recv.read_to_end(len).await.unwrap().len(), len);
    host.now()
}

/// The trace of a run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Trace {
    /// Arrival time of the last byte.
    pub(crate) done: Instant,
    pub(crate) statistics: Statistics,
    /// Time, size and reason of each loss.
    pub(crate) drops: Vec<(u64, u32, DropReason)>,
    /// FNV-1a over the time, size and verdict of all packets.
    pub(crate) digest: u64,
}

/// Downloads `len` bytes over one link.
pub(crate) fn run(pipe: &Pipe, len: usize, seed: u64) -> Trace {
    let mut plan = Plan::new();
    let nodes = [plan.host("client"), plan.host("server")];
    plan.join("link", pipe.duplex("link"), &nodes).unwrap();
    let mut sim = sim(plan, seed);
    let seen = Arc::new(Mutex::new((Vec::new(), 0xcbf2_9ce4_8422_2325)));
    let tapped = Arc::clone(&seen);
    sim.fabric(|fabric| {
        fabric.tap(Box::new(move |passage| {
            let (drops, digest) = &mut *tapped.lock().unwrap();
            let (at, size) = (passage.at.as_nanos(), passage.packet.size);
            if let Verdict::Dropped(reason) = passage.verdict {
                drops.push((at, size, reason));
            }
            let verdict = match passage.verdict {
                Verdict::Entered => 0,
                Verdict::Left => 1,
                Verdict::Dropped(_) => 2,
            };
            for field in [at, size.into(), verdict] {
                for byte in field.to_le_bytes() {
                    *digest = (*digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
                }
            }
        }));
    });
    let [client, server] = ["client", "server"].map(|name| sim.host(name).unwrap());
    serve(&server, len);
    let done = sim.run(
        async {
            let connection = connect(&client, client.at(0), server.at(443)).await;
            let done = download(&client, &connection, len).await;
            connection.close(0, b"");
            client.sleep(Duration::from_secs(1)).await;
            done
        },
        LIMIT,
    );
    let statistics = sim.statistics();
    let (drops, digest) = std::mem::take(&mut *seen.lock().unwrap());
    Trace {
        done: done.unwrap(),
        statistics,
        drops,
        digest,
    }
}
