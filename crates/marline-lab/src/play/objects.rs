//! Objects over HTTP/3.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use marline_http::client::{
    Client, ClientConfig, Destination, FetchOptions, Report, Target, Trust,
};
use marline_http::server::{
    GeneratedObject, Handle, Identity, Protocols, Server, ServerConfig, generated,
};
use marline_http::transport::{Observers, QuicOptions};

use super::measures::Measured;
use super::{Probe, SETTLE, Stage, failed, sleep, transport};
use crate::scenario::{Job, Order, Outcome, RunError, Topology, Workload};

/// The name that certificates and URLs have.
const NAME: &str = "server.marline";

/// Fetches the objects of `job`.
pub(super) async fn fetch(job: &Job, stage: &Stage, probe: &Probe) -> Result<Outcome, RunError> {
    let Workload::Objects {
        objects,
        order,
        warm,
    } = &job.settings.workload
    else {
        return Err(failed("these are no objects"));
    };
    let sizes = objects.iter().zip(0..);
    let site = sizes.map(|(&size, number)| (path(number), generated_object(size)));
    let address = stage.server_address()?;
    let server = serve(job, stage, probe, site.collect(), address).await?;

    let host = stage.host(Topology::CLIENT)?;
    let client = Arc::new(client(job, stage, address)?);
    let connections = job.settings.http.connections;
    let url = |number: usize| format!("https://{NAME}:{}{}", address.port(), path(number));
    if *warm {
        client.open(&url(0), connections).await.map_err(failed)?;
        sleep(&*host.runtime, SETTLE).await;
        probe.reset();
    }
    let options = FetchOptions {
        connections,
        split: job.settings.http.split.and_then(NonZeroU64::new),
        ..FetchOptions::default()
    };
    let target = |number| Target {
        url: url(number),
        destination: Destination::Counted,
    };
    let start = host.runtime.now();
    let mut completion_s = 0.0;
    match order {
        Order::AtOnce => {
            let targets = (0..objects.len()).map(target).collect();
            let report = client.fetch(targets, options, &Arc::default()).await;
            check(&report)?;
            completion_s += report.page_load_s;
        }
        Order::InSequence => {
            for number in 0..objects.len() {
                let targets = vec![target(number)];
                let report = client.fetch(targets, options, &Arc::default()).await;
                check(&report)?;
                completion_s += report.page_load_s;
            }
        }
    }
    let measured = Measured {
        start,
        completion_s,
        bytes: objects.iter().sum(),
        handshakes: u32::from(!warm),
    };
    let outcome = measured.outcome(probe, stage.ideal, job.watch);
    server.shut_down();
    Ok(outcome)
}

fn path(number: usize) -> String {
    format!("/{number}")
}

fn generated_object(size: u64) -> GeneratedObject {
    GeneratedObject {
        size,
        content_type: http::HeaderValue::from_static("application/octet-stream"),
        think: Duration::ZERO,
    }
}

/// Starts the server.
async fn serve(
    job: &Job,
    stage: &Stage,
    probe: &Probe,
    objects: BTreeMap<String, GeneratedObject>,
    address: SocketAddr,
) -> Result<Handle, RunError> {
    let runtime = Arc::clone(&stage.host(Topology::SERVER)?.runtime);
    let site = generated(objects, Some(Arc::clone(&runtime))).map_err(failed)?;
    let mut config = ServerConfig::new(address, identity()?, site);
    config.protocols = Protocols {
        http1: false,
        http2: false,
        http3: true,
        cleartext: false,
    };
    config.quic = QuicOptions {
        transport: transport(&job.settings.server),
        observers: Some(Observers(probe.observers(job.watch))),
        ..QuicOptions::default()
    };
    config.qlog.clone_from(&job.qlog);
    config.runtime = Some(Arc::clone(&runtime));
    let server = Server::bind(config).await.map_err(failed)?;
    let handle = server.handle();
    runtime.spawn(Box::pin(server.run()));
    Ok(handle)
}

fn client(job: &Job, stage: &Stage, address: SocketAddr) -> Result<Client, RunError> {
    Client::new(ClientConfig {
        trust: Trust::Anybody,
        quic: QuicOptions {
            transport: transport(&job.settings.client),
            ..QuicOptions::default()
        },
        qlog: job.qlog.clone(),
        resolve: BTreeMap::from([(NAME.to_owned(), address)]),
        runtime: Some(Arc::clone(&stage.host(Topology::CLIENT)?.runtime)),
        ..ClientConfig::default()
    })
    .map_err(failed)
}

/// Made once: runs need not wait for keys.
fn identity() -> Result<Identity, RunError> {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    if let Some(identity) = IDENTITY.get() {
        return Ok(identity.clone());
    }
    let identity = Identity::repeatable(vec![NAME.to_owned()]).map_err(failed)?;
    Ok(IDENTITY.get_or_init(|| identity).clone())
}

fn check(report: &Report) -> Result<(), RunError> {
    for object in &report.objects {
        if let Some(error) = &object.error {
            return Err(RunError::Failed(format!("{}: {error}", object.url)));
        }
    }
    Ok(())
}
