//! A server and a client of HTTP/3.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::{Arc, OnceLock};

use marline::{PathPolicy, PathRule, PathSource, Version, Versions};
use marline_http::client::{Client, ClientConfig, FetchOptions, Ranges, Trust};
use marline_http::pipes::{POLICIES, PipesConfig};
use marline_http::server::{
    GeneratedObject, Handle, Identity, Protocols, Server, ServerConfig, generated,
};
use marline_http::transport::{Observers, QuicOptions};

use super::{PathEnds, Probe, Testbed, failed, transport};
use crate::scenario::{HttpVersion, Job, RangeKind, RunError, Topology, signal};

/// As of connections without HTTP: published results are of version 1 of QUIC.
const VERSIONS: Versions = Versions::only(Version::V1);

/// The name that certificates and URLs have.
pub(super) const NAME: &str = "server.marline";

/// Starts a server of `objects`, by path.
pub(super) async fn serve(
    job: &Job,
    testbed: &Testbed,
    probe: &Probe,
    objects: BTreeMap<String, GeneratedObject>,
) -> Result<Handle, RunError> {
    if job.settings.http.version != HttpVersion::Http3 {
        return Err(RunError::Unsupported(
            "HTTP over TCP needs the kernel: only HTTP/3 is supported here".to_owned(),
        ));
    }
    let runtime = Arc::clone(&testbed.host(Topology::SERVER)?.runtime);
    let site = generated(objects, Some(Arc::clone(&runtime))).map_err(failed)?;
    let mut config = ServerConfig::new(testbed.server_address()?, identity()?, site);
    config.protocols = Protocols {
        http1: false,
        http2: false,
        http3: true,
        cleartext: false,
        tunnels: false,
    };
    config.quic = QuicOptions {
        transport: transport(&job.settings.server),
        observers: Some(Observers(probe.observers(job.watch))),
        versions: VERSIONS,
        ..QuicOptions::default()
    };
    config.qlog.clone_from(&job.qlog);
    config.runtime = Some(Arc::clone(&runtime));
    let server = Server::bind(config).await.map_err(failed)?;
    let handle = server.handle();
    runtime.spawn(Box::pin(async {
        // Clients of a server that fails report what they did not get.
        let _ = server.run().await;
    }));
    Ok(handle)
}

/// A client for which all of `names` resolve to the server.
pub(super) fn client(
    job: &Job,
    testbed: &Testbed,
    names: impl IntoIterator<Item = String>,
) -> Result<Client, RunError> {
    let address = testbed.server_address()?;
    let paths = match job.settings.is_multipath() {
        true => Some(paths(testbed)?),
        false => None,
    };
    Client::new(ClientConfig {
        paths,
        trust: Trust::Insecure,
        // The scenario has a time limit, and outages of any length.
        stall_timeout: None,
        quic: QuicOptions {
            transport: transport(&job.settings.client),
            versions: VERSIONS,
            ..QuicOptions::default()
        },
        bundle: job.settings.http.bundle,
        pipes: pipes(job)?,
        qlog: job.qlog.clone(),
        resolve: names.into_iter().map(|name| (name, address)).collect(),
        runtime: Some(Arc::clone(&testbed.host(Topology::CLIENT)?.runtime)),
        ..ClientConfig::default()
    })
    .map_err(failed)
}

/// The pools of the client, if it has pipes.
fn pipes(job: &Job) -> Result<Option<PipesConfig>, RunError> {
    let http = &job.settings.http;
    let Some(policy) = &http.pipes else {
        return Ok(None);
    };
    let mut config = PipesConfig::new(POLICIES.make(policy).map_err(failed)?);
    if let Some(sinr) = &http.sinr {
        config.signal = Arc::new(signal(sinr).map_err(failed)?);
    }
    Ok(Some(config))
}

/// All of the client's addresses, that of the first path first. HTTP uses one address of the server.
fn paths(testbed: &Testbed) -> Result<PathPolicy, RunError> {
    let server = testbed.first_path()?.server;
    if testbed.paths.iter().any(|path| path.server != server) {
        return Err(RunError::Unsupported(
            "HTTP over several paths needs a server with one address: join [links.NAME] from the client \
             at a router, with one more from there to the server"
                .to_owned(),
        ));
    }
    let (before, rest) = testbed.paths.split_at(testbed.first);
    let rule = |path: &PathEnds| PathRule::new(PathSource::Address(path.client));
    Ok(PathPolicy {
        rules: rest.iter().chain(before).map(rule).collect(),
        ..PathPolicy::default()
    })
}

/// How objects are fetched.
pub(super) fn fetch_options(job: &Job) -> FetchOptions {
    let http = &job.settings.http;
    FetchOptions {
        connections: http.connections,
        split: http.split.and_then(NonZeroU64::new),
        ranges: match http.ranges {
            RangeKind::Auto => Ranges::Auto,
            RangeKind::Equal => Ranges::Equal,
            RangeKind::Handed => Ranges::Handed,
        },
        ..FetchOptions::default()
    }
}

/// Made once for all runs, as keys take time.
fn identity() -> Result<Identity, RunError> {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    if let Some(identity) = IDENTITY.get() {
        return Ok(identity.clone());
    }
    let identity = Identity::repeatable(vec![NAME.to_owned()]).map_err(failed)?;
    Ok(IDENTITY.get_or_init(|| identity).clone())
}
