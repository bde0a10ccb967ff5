//! A run: the network, a server, and a client that loads a page.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use marline::coordination::bundle::{Membership, MembershipId};
use marline::proto::OpenPathError::NoConnectionIds;
use marline::{ClientConfig, Connection, Endpoint, Instant, OpenPathError, Runtime, ServerConfig};
use marline_h3::Side;
use marline_sim::identity::{Identity, identity};
use marline_sim::{Host, Sim, SimBuilder, Stall, Stalled};
use tokio::sync::{mpsc, watch};

use crate::error::Error;
use crate::http3::Http3;
use crate::outcome::Outcome;
use crate::page::{self, Object};
use crate::record::Record;
use crate::scenario::{Scenario, System};

/// The limit of virtual time: nobody waits longer for a page.
const LIMIT: Duration = Duration::from_secs(120);

/// The interval of attempts to open the second path, while connection IDs of the server are missing.
const PATH_INTERVAL: Duration = Duration::from_millis(10);

const ALPN: &[&[u8]] = &[b"h3"];
const PORT: u16 = 443;

/// Runs `scenario`; `progress` gets the share of the content that has arrived, from 0 to 1.
///
/// # Errors
/// The scenario cannot run. One that takes too long is not an error: its outcome has no end.
pub fn run(scenario: &Scenario, progress: fn(f64)) -> Result<Outcome, Error> {
    let mut network = SimBuilder::new(scenario.seed);
    for (name, link) in ["first", "second"].iter().zip(&scenario.links) {
        network = network.link(name, ["client", "server"], link);
    }
    let mut sim = network.build()?;
    let host = |name| sim.host(name).expect("each link joins both hosts");
    let (client, server) = (host("client"), host("server"));
    let system = scenario.system;
    let objects = Arc::new(page::objects(scenario.content, system.connections())?);
    let record = Record::new(&objects, &client);
    record.tap(&sim, &client);
    let serving = serve(&server, system, &objects, &record)?;
    let connecting = Client::new(&client, &server, system)?;
    let load = load(&client, connecting, &objects, &record, progress);
    let ended = run_to_end(&mut sim, load)?;
    drop(serving);
    let mut outcome = record.lock().clone();
    outcome.finished_ns = ended.map(since_start);
    Ok(outcome)
}

/// When `load` ended; `None` if it did not within the limit.
fn run_to_end(
    sim: &mut Sim,
    load: impl Future<Output = Result<(), Error>>,
) -> Result<Option<Instant>, Error> {
    match sim.run(load, LIMIT) {
        Ok(loaded) => loaded.map(|()| Some(sim.now())),
        Err(Stalled {
            stall: Stall::TimeLimit,
            ..
        }) => Ok(None),
        Err(stalled) => Err(stalled.into()),
    }
}

fn since_start(now: Instant) -> u64 {
    now.as_nanos()
}

/// Starts the server; it lives as long as its endpoint.
fn serve(
    host: &Host,
    system: System,
    objects: &Arc<Vec<Object>>,
    record: &Record,
) -> Result<Endpoint, Error> {
    let config = identity().server_config(ALPN, &system.transport());
    let config = ServerConfig {
        observer: Some(record.observer()),
        ..config.map_err(refused)?
    };
    let endpoint = host.endpoint((Ipv4Addr::UNSPECIFIED, PORT).into(), Some(config))?;
    let (accepting, runtime, objects) = (endpoint.clone(), host.clone(), Arc::clone(objects));
    host.run(async move {
        while let Some(connecting) = accepting.accept().await {
            let (host, objects) = (runtime.clone(), Arc::clone(&objects));
            runtime.run(async move {
                if let Ok(connection) = connecting.await {
                    let http3 = Http3::begin(&host, connection, Side::Server);
                    http3.answer_all(host, objects).await;
                }
            });
        }
    });
    Ok(endpoint)
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn refused(error: impl ToString) -> Error {
    Error::Tls(error.to_string())
}

/// The client before it connects.
struct Client {
    endpoint: Endpoint,
    config: ClientConfig,
    server: SocketAddr,
    connections: usize,
    /// The addresses of the second path, if one is to be opened.
    second: Option<SecondPath>,
}

#[derive(Clone, Copy)]
struct SecondPath {
    local: Ipv4Addr,
    remote: SocketAddr,
}

impl Client {
    fn new(client: &Host, server: &Host, system: System) -> Result<Self, Error> {
        let config = identity().client_config(ALPN, &system.transport());
        let mut config = config.map_err(refused)?;
        let connections = system.connections();
        config.bundle = (connections > 1).then_some(Membership {
            id: MembershipId([1; 16]),
            connections: connections as u64,
        });
        let second = match (client.addresses(), server.addresses()) {
            ([_, local, ..], [_, remote, ..]) if system.has_paths() => Some(SecondPath {
                local: *local,
                remote: (*remote, PORT).into(),
            }),
            _ => None,
        };
        Ok(Self {
            endpoint: client.endpoint((Ipv4Addr::UNSPECIFIED, 0).into(), None)?,
            config,
            server: server.at(PORT),
            connections,
            second,
        })
    }
}

/// A connection as soon as it is ready.
type Ready = watch::Receiver<Option<Http3>>;

/// The state of a load. Clones are the same load.
#[derive(Clone)]
struct Load {
    host: Host,
    objects: Arc<Vec<Object>>,
    record: Record,
    connections: Arc<Vec<Ready>>,
    total: u64,
    received: Arc<Mutex<Vec<u64>>>,
    progress: fn(f64),
    done: mpsc::UnboundedSender<Result<(), Error>>,
}

/// Loads all objects.
async fn load(
    host: &Host,
    client: Client,
    objects: &Arc<Vec<Object>>,
    record: &Record,
    progress: fn(f64),
) -> Result<(), Error> {
    let (done, mut results) = mpsc::unbounded_channel();
    let mut connections = Vec::new();
    for _ in 0..client.connections {
        connections.push(connect(host, &client, done.clone())?);
    }
    let load = Load {
        host: host.clone(),
        objects: Arc::clone(objects),
        record: record.clone(),
        connections: Arc::new(connections),
        total: objects.iter().map(|object| object.size).sum(),
        received: Arc::new(Mutex::new(vec![0; objects.len()])),
        progress,
        done,
    };
    for (index, object) in objects.iter().enumerate() {
        if object.is_first() {
            load.start(index);
        }
    }
    for _ in objects.iter() {
        results.recv().await.expect("the load keeps a sender")?;
    }
    Ok(())
}

/// Opens a connection; an error goes to `failed`.
fn connect(
    host: &Host,
    client: &Client,
    failed: mpsc::UnboundedSender<Result<(), Error>>,
) -> Result<Ready, Error> {
    let config = client.config.clone();
    let connecting = client
        .endpoint
        .connect_with(config, client.server, Identity::NAME)?;
    let (announce, ready) = watch::channel(None);
    let (runtime, second) = (host.clone(), client.second);
    host.run(async move {
        let connection = match connecting.await {
            Ok(connection) => connection,
            Err(error) => {
                let _ = failed.send(Err(error.into()));
                return;
            }
        };
        let http3 = Http3::begin(&runtime, connection.clone(), Side::Client);
        let _ = announce.send(Some(http3));
        if let Some(second) = second
            && let Err(error) = open_path(&runtime, &connection, second).await
        {
            let _ = failed.send(Err(error));
        }
        // Kept until the run ends: other tasks wait for what it announced.
        announce.closed().await;
    });
    Ok(ready)
}

async fn open_path(host: &Host, connection: &Connection, path: SecondPath) -> Result<(), Error> {
    loop {
        let opened = connection
            .open_path(path.local.into(), Some(path.remote))
            .await;
        match opened {
            Err(OpenPathError::Refused(NoConnectionIds)) => host.sleep(PATH_INTERVAL).await,
            Err(error) => return Err(error.into()),
            Ok(_) => return Ok(()),
        }
    }
}

impl Load {
    /// Requests an object, on the connection whose turn it is.
    fn start(&self, index: usize) {
        let load = self.clone();
        self.host.run(async move {
            let result = load.fetch(index).await;
            // Without a receiver, another object has failed.
            let _ = load.done.send(result);
        });
    }

    async fn fetch(&self, index: usize) -> Result<(), Error> {
        let mut ready = self.connections[index % self.connections.len()].clone();
        let ready = ready.wait_for(Option::is_some).await;
        let Some(http3) = ready.ok().and_then(|http3| http3.clone()) else {
            // Why the connection failed is reported by whoever opened it.
            return std::future::pending().await;
        };
        self.record.lock().objects[index].requested_ns = Some(self.now());
        let object = &self.objects[index];
        http3
            .fetch(object, |received| self.on_data(index, received))
            .await?;
        self.record.lock().objects[index].finished_ns = Some(self.now());
        Ok(())
    }

    fn now(&self) -> u64 {
        since_start(self.host.now())
    }

    /// `received` bytes of an object have arrived: begins with those that it has named since the last time.
    fn on_data(&self, index: usize, received: u64) {
        let mut all = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut all[index], received);
        let share = all.iter().sum::<u64>() as f64 / self.total as f64;
        drop(all);
        (self.progress)(share);
        self.record.on_content(index, self.now(), received - before);
        for (other, object) in self.objects.iter().enumerate() {
            let found = object.found_after(&self.objects[index]);
            // The first bytes name what is found at their beginning.
            let is_new = |after: u64| after <= received && (after > before || before == 0);
            if found.is_some_and(is_new) {
                self.start(other);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Content;

    fn scenario(link: &str, system: System) -> Scenario {
        Scenario {
            links: vec![link.to_owned()],
            content: Content::File { bytes: 100_000 },
            system,
            seed: 1,
        }
    }

    #[test]
    fn every_system_loads_a_file_in_little_more_than_the_link_needs() {
        for system in [
            System::Rfc,
            System::Default,
            System::DefaultCubic,
            System::DefaultBbr3,
            System::Bundle,
            System::Multipath,
        ] {
            let outcome = run(
                &scenario("rate=20mbps,rtt=40ms,buffer=100ms", system),
                |_| (),
            )
            .unwrap();
            let end = Duration::from_nanos(outcome.finished_ns.unwrap());
            // Handshake, request, and slow start from ten packets: five round trips and the time on the line.
            assert!(
                (Duration::from_millis(120)..Duration::from_millis(320)).contains(&end),
                "{system:?}: {end:?}"
            );
            assert_eq!(outcome.packets.lost, 0, "{system:?}");
        }
    }

    #[test]
    fn a_load_beyond_the_limit_of_time_has_no_end() {
        let large = Scenario {
            content: Content::File { bytes: 19_000_000 },
            ..scenario("rate=1mbps,rtt=40ms", System::Default)
        };
        let outcome = run(&large, |_| ()).unwrap();
        assert_eq!(outcome.finished_ns, None);
        assert!(outcome.objects[0].first_byte_ns.is_some());
    }

    #[test]
    fn links_that_cannot_be_built_are_named() {
        let error = run(&scenario("rate=fast", System::Default), |_| ()).unwrap_err();
        assert!(error.to_string().contains("first"), "{error}");
    }

    #[test]
    fn equal_scenarios_have_equal_digests_and_other_seeds_others() {
        let lossy = scenario("rate=20mbps,rtt=40ms,loss=3%", System::Default);
        let digest = |scenario: &Scenario| run(scenario, |_| ()).unwrap().digest();
        assert_eq!(digest(&lossy), digest(&lossy));
        let other = Scenario {
            seed: 2,
            ..lossy.clone()
        };
        assert_ne!(digest(&lossy), digest(&other));
    }
}
