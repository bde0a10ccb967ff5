//! A server and a client of HTTP.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::{Arc, OnceLock};

use marline::{PathPolicy, PathRule, PathSource, Version, Versions};
use marline_http::client::{
    Assignment, Client, ClientConfig, FetchOptions, HttpVersion as ClientVersion, Ranges, Trust,
};
use marline_http::pipes::{POLICIES, PipesConfig};
use marline_http::server::{
    GeneratedObject, Handle, Identity, Protocols, Server, ServerConfig, generated,
};
use marline_http::tcp::TcpProtocol;
use marline_http::transport::{Observers, QuicOptions};

use super::kernel::{announced, controller, multipath_metrics};
#[cfg(target_os = "linux")]
use super::other_server::{self, Task};
#[cfg(target_os = "linux")]
use super::program::Program;
use super::radio::LinkSignal;
use super::{Kernel, PathEnds, Probe, Testbed, failed, transport};
use crate::scenario::{
    HttpClient, HttpSettings, HttpVersion, Job, LINK_SINR, RangeKind, RunError, Topology, Workload,
    signal,
};

/// The same as for connections without HTTP: published results are for version 1 of QUIC.
const VERSIONS: Versions = Versions::only(Version::V1);

/// The name that certificates and URLs have.
pub(super) const NAME: &str = "server.marline";

/// A server of the run.
pub(super) enum Served {
    /// One of marline, in this process.
    Own(Handle),
    /// A program, which ends when it is dropped.
    #[cfg(target_os = "linux")]
    Other(Program),
}

impl Served {
    /// Ends it.
    pub(super) fn shut_down(self) {
        match self {
            Self::Own(handle) => handle.shut_down(),
            #[cfg(target_os = "linux")]
            Self::Other(program) => drop(program),
        }
    }
}

/// Starts a server of `objects`, by path, with this certificate: marline's, or the program that the scenario names.
pub(super) async fn serve(
    job: &Job,
    testbed: &Testbed,
    probe: &Probe,
    objects: BTreeMap<String, GeneratedObject>,
    identity: Identity,
) -> Result<Served, RunError> {
    match &job.settings.http.server {
        None => serve_own(job, testbed, probe, objects, identity)
            .await
            .map(Served::Own),
        Some(command) => serve_other(job, testbed, command, &objects, identity).await,
    }
}

#[cfg(target_os = "linux")]
async fn serve_other(
    job: &Job,
    testbed: &Testbed,
    command: &str,
    objects: &BTreeMap<String, GeneratedObject>,
    identity: Identity,
) -> Result<Served, RunError> {
    let version = job.settings.http.version;
    let kernel = testbed.host(Topology::SERVER)?.kernel.as_ref();
    let kernel = kernel.ok_or_else(|| {
        RunError::Unsupported(
            "a program as the server needs a kernel; add --backend kernel or --backend emu"
                .to_owned(),
        )
    })?;
    let task = Task {
        command,
        address: testbed.server_address()?,
        version,
        controller: match version.is_over_tcp() {
            true => Some(controller(&job.settings.server)?),
            false => None,
        },
        identity,
        objects,
    };
    let program = other_server::start(&**kernel, task).await?;
    Ok(Served::Other(program))
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unused_async, reason = "as on Linux")]
async fn serve_other(
    _: &Job,
    _: &Testbed,
    _: &str,
    _: &BTreeMap<String, GeneratedObject>,
    _: Identity,
) -> Result<Served, RunError> {
    Err(RunError::Unsupported(
        "a program as the server needs the emulator, which needs Linux".to_owned(),
    ))
}

async fn serve_own(
    job: &Job,
    testbed: &Testbed,
    probe: &Probe,
    objects: BTreeMap<String, GeneratedObject>,
    identity: Identity,
) -> Result<Handle, RunError> {
    let runtime = Arc::clone(&testbed.host(Topology::SERVER)?.runtime);
    let site = generated(objects, Some(Arc::clone(&runtime))).map_err(failed)?;
    let mut config = ServerConfig::new(testbed.server_address()?, identity, site);
    config.protocols = protocols(job.settings.http.version);
    if job.settings.http.version.is_over_tcp() {
        let kernel = kernel(testbed, Topology::SERVER)?;
        config.tcp_sockets = Some(kernel.sockets(controller(&job.settings.server)?));
        config.multipath_tcp = job.settings.http.version == HttpVersion::Http2Multipath;
        if config.multipath_tcp {
            let announced = announced(testbed.server_address()?);
            kernel
                .allow_second_subflow(Some(announced))
                .map_err(failed)?;
        }
    }
    let watch = job.watch || measures_windows(&job.settings.workload);
    config.quic = QuicOptions {
        transport: transport(&job.settings.server),
        observers: Some(Observers(probe.observers(watch))),
        versions: VERSIONS,
        ..QuicOptions::default()
    };
    config.qlog.clone_from(&job.qlog);
    config.runtime = Some(Arc::clone(&runtime));
    let server = Server::bind(config).await.map_err(failed)?;
    let handle = server.handle();
    runtime.spawn(Box::pin(async {
        // If the server fails, its clients report the missing objects.
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
    let version = job.settings.http.version;
    let mut config = ClientConfig {
        version: client_version(version),
        fallback: false,
        migrate: false,
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
        own_sockets: job.settings.http.own_sockets,
        pipes: pipes(job, testbed)?,
        qlog: job.qlog.clone(),
        resolve: names.into_iter().map(|name| (name, address)).collect(),
        runtime: Some(Arc::clone(&testbed.host(Topology::CLIENT)?.runtime)),
        ..ClientConfig::default()
    };
    if version.is_over_tcp() {
        let kernel = kernel(testbed, Topology::CLIENT)?;
        config.tcp_sockets = Some(kernel.sockets(controller(&job.settings.client)?));
        if version == HttpVersion::Http2Multipath {
            config.tcp_protocol = TcpProtocol::Multipath;
            kernel.allow_second_subflow(None).map_err(failed)?;
        }
    }
    Client::new(config).map_err(failed)
}

fn protocols(version: HttpVersion) -> Protocols {
    let mut protocols = Protocols {
        http1: false,
        http2: false,
        http3: false,
        cleartext: false,
        tunnels: false,
        http3_tunnels: false,
    };
    match version {
        HttpVersion::Http11 => protocols.http1 = true,
        HttpVersion::Http11Cleartext => (protocols.http1, protocols.cleartext) = (true, true),
        HttpVersion::Http2 | HttpVersion::Http2Parallel | HttpVersion::Http2Multipath => {
            protocols.http2 = true;
        }
        HttpVersion::Http3 => protocols.http3 = true,
    }
    protocols
}

/// The version as marline's client names it.
pub(super) const fn client_version(version: HttpVersion) -> ClientVersion {
    match version {
        HttpVersion::Http11 => ClientVersion::Http11,
        HttpVersion::Http11Cleartext => ClientVersion::Http11Cleartext,
        HttpVersion::Http2 | HttpVersion::Http2Parallel | HttpVersion::Http2Multipath => {
            ClientVersion::Http2
        }
        HttpVersion::Http3 => ClientVersion::Http3,
    }
}

/// The assignment of requests to connections.
pub(super) const fn assignment(http: &HttpSettings) -> Assignment {
    match http.version {
        HttpVersion::Http2Parallel => Assignment::Alternate,
        _ if http.whole_on_first => Assignment::First,
        _ => Assignment::Free,
    }
}

/// The beginning of URLs of `version`.
pub(super) const fn scheme(version: HttpVersion) -> &'static str {
    match version {
        HttpVersion::Http11Cleartext => "http",
        _ => "https",
    }
}

/// Whether the windows of senders are measured.
const fn measures_windows(workload: &Workload) -> bool {
    matches!(
        workload,
        Workload::Page {
            windows: Some(_),
            ..
        }
    )
}

/// The kernel of a host.
pub(super) fn kernel<'a>(
    testbed: &'a Testbed,
    host: &str,
) -> Result<&'a Arc<dyn Kernel>, RunError> {
    testbed.host(host)?.kernel.as_ref().ok_or_else(|| {
        RunError::Unsupported(
            "HTTP over TCP needs a kernel, which the simulator does not have; add --backend kernel"
                .to_owned(),
        )
    })
}

/// The kernels' counters of Multipath TCP and the bytes on links between routers, as metrics.
pub(super) fn network_metrics(
    job: &Job,
    testbed: &Testbed,
) -> Result<Vec<(String, f64)>, RunError> {
    let mut metrics = testbed
        .routes
        .as_ref()
        .map_or_else(Vec::new, super::Routes::metrics);
    if job.settings.http.version == HttpVersion::Http2Multipath {
        let counted = multipath_metrics(&**kernel(testbed, Topology::SERVER)?)?;
        metrics.extend(counted.map(|(name, value)| (name.to_owned(), value)));
    }
    Ok(metrics)
}

/// The pools of the client, if it has pipes.
fn pipes(job: &Job, testbed: &Testbed) -> Result<Option<PipesConfig>, RunError> {
    let http = &job.settings.http;
    let Some(policy) = &http.pipes else {
        return Ok(None);
    };
    let mut config = PipesConfig::new(POLICIES.make(policy).map_err(failed)?);
    if let Some(sinr) = &http.sinr {
        config.signal = match sinr == LINK_SINR {
            true => Arc::new(LinkSignal::new(job, testbed)?),
            false => {
                let trace = signal(sinr).map_err(failed)?;
                Arc::new(trace.starting_at(testbed.started))
            }
        };
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

/// The options for fetching objects.
pub(super) fn fetch_options(job: &Job) -> FetchOptions {
    let http = &job.settings.http;
    FetchOptions {
        connections: http.connections,
        assignment: assignment(http),
        split: http.split.and_then(NonZeroU64::new),
        ranges: match http.ranges {
            RangeKind::Auto => Ranges::Auto,
            RangeKind::Equal => Ranges::Equal,
            RangeKind::Handed => Ranges::Handed,
        },
        ..FetchOptions::default()
    }
}

/// The certificate of a server with `names`.
pub(super) fn identity(
    job: &Job,
    names: impl IntoIterator<Item = String>,
) -> Result<Identity, RunError> {
    static OWN: OnceLock<Identity> = OnceLock::new();
    let http = &job.settings.http;
    if http.client != HttpClient::Marline || http.server.is_some() {
        // Browsers, and other servers, do not support the signature algorithm of the other one.
        return Identity::self_signed(names.into_iter().collect()).map_err(failed);
    }
    // Made once for all runs, as keys take time.
    if let Some(identity) = OWN.get() {
        return Ok(identity.clone());
    }
    let identity = Identity::repeatable(vec![NAME.to_owned()]).map_err(failed)?;
    Ok(OWN.get_or_init(|| identity).clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_connection_gets_whole_objects_only_if_the_scenario_says_so() {
        let whole_on_first = |whole_on_first, version| {
            assignment(&HttpSettings {
                whole_on_first,
                version,
                ..HttpSettings::default()
            })
        };
        assert_eq!(whole_on_first(true, HttpVersion::Http3), Assignment::First);
        assert_eq!(whole_on_first(false, HttpVersion::Http3), Assignment::Free);
        // Strict alternation is what that version is.
        assert_eq!(
            whole_on_first(true, HttpVersion::Http2Parallel),
            Assignment::Alternate
        );
    }
}
