//! The order in which objects are requested on the connections to their hosts.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::check::Planned;
use super::options::LoadOptions;
use crate::client::{
    Alternation, Assigned, Assignment, Client, Connection, Origin, PlannedRequest, Planner, Pool,
    PooledConnection, SplitPolicy,
};
use crate::pipes::ObjectKind;

/// The hosts of a page, and the objects that wait to be requested from them.
pub(super) struct Hosts {
    hosts: Vec<Host>,
    of_object: Vec<OfObject>,
    requests_at_once: usize,
    client: Arc<Client>,
    /// The number of the next discovered object.
    next: u64,
}

/// The properties of an object that decide when and where it is requested.
struct OfObject {
    host: usize,
    size: u64,
    critical: bool,
    kind: ObjectKind,
}

struct Host {
    pooled_connections: Vec<HostConnection>,
    assigner: Assigner,
    /// Objects by urgency and order of discovery.
    waiting: BTreeMap<(u8, u64), usize>,
    name: Name,
}

/// The state of a host's name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Unknown,
    InResolution,
    Resolved,
}

/// The assignment of objects to connections.
#[derive(Clone)]
enum Assigner {
    /// To the one with the fewest requests.
    Freest,
    /// To the first.
    First,
    /// To each in turn.
    Alternate(Alternation),
    /// In ranges.
    Planner(Planner),
    /// To pipes.
    Pool(Arc<Pool>),
}

/// A connection to a host.
struct HostConnection {
    pooled: Arc<PooledConnection>,
    /// Its requests in progress.
    requests: usize,
}

/// An object that can be requested now.
pub(super) struct ReadyObject {
    pub(super) object: usize,
    pub(super) occupied: OccupiedConnections,
    /// The pipe that carries it, if there are pipes.
    pub(super) pipe: Option<Assigned>,
    /// All pooled connections to its host.
    pub(super) pooled_connections: Vec<Arc<PooledConnection>>,
    /// At least one: for the whole object, or for its ranges.
    pub(super) requests: Vec<PlannedRequest>,
}

/// The pooled connections that the requests of an object occupy until they end.
#[derive(Debug)]
pub(super) struct OccupiedConnections {
    host: usize,
    pooled_connections: Vec<usize>,
}

impl Hosts {
    /// Pooled connections to each host, at most [`connections`](LoadOptions::connections); those that the client opened in
    /// advance come first.
    pub(super) fn new(objects: &[Planned], client: &Arc<Client>, options: &LoadOptions) -> Self {
        let connections = NonZeroUsize::new(options.connections).unwrap_or(NonZeroUsize::MIN);
        let min_range = options.split_critical.filter(|_| connections.get() > 1);
        let assigner = match (min_range, options.assignment) {
            // A range on another connection would compete with what is more urgent on the first.
            (_, Assignment::First) => Assigner::First,
            (Some(min), _) => Assigner::Planner(Planner::new(SplitPolicy::Page, connections, min)),
            (None, Assignment::Free) => Assigner::Freest,
            (None, Assignment::Alternate) => Assigner::Alternate(Alternation::new(connections)),
        };
        let mut indices: HashMap<&Origin, usize> = HashMap::new();
        let mut hosts = Vec::new();
        let mut of_object = Vec::with_capacity(objects.len());
        for object in objects {
            let host = *indices.entry(&object.origin).or_insert_with(|| {
                let origin = &object.origin;
                let pool = client.pool(origin);
                let pooled_connections = match &pool {
                    Some(pool) => pool.pooled_connections().to_vec(),
                    None => client.pooled_connections(origin, connections.get()),
                };
                hosts.push(Host {
                    pooled_connections: pooled_connections
                        .into_iter()
                        .map(|pooled| HostConnection {
                            pooled,
                            requests: 0,
                        })
                        .collect(),
                    assigner: pool.map_or_else(|| assigner.clone(), Assigner::Pool),
                    waiting: BTreeMap::new(),
                    name: match options.name_resolution.is_zero() {
                        true => Name::Resolved,
                        false => Name::Unknown,
                    },
                });
                hosts.len() - 1
            });
            of_object.push(OfObject {
                host,
                size: object.size,
                critical: object.is_critical(),
                kind: object.kind,
            });
        }
        Self {
            hosts,
            of_object,
            requests_at_once: client.config().version.requests_at_once(),
            client: Arc::clone(client),
            next: 0,
        }
    }

    /// Adds a discovered object. Returns the host to call [`next_ready`](Self::next_ready) for.
    pub(super) fn enqueue(&mut self, object: usize, urgency: u8) -> usize {
        let host = self.of_object[object].host;
        let key = (urgency, self.next);
        self.next += 1;
        self.hosts[host].waiting.insert(key, object);
        host
    }

    /// Whether the resolution of the name of `host` has to begin.
    pub(super) fn begin_resolving(&mut self, host: usize) -> bool {
        let name = &mut self.hosts[host].name;
        let begins = *name == Name::Unknown;
        if begins {
            *name = Name::InResolution;
        }
        begins
    }

    /// The name of `host` is resolved: call [`next_ready`](Self::next_ready) for it.
    pub(super) fn resolved(&mut self, host: usize) {
        self.hosts[host].name = Name::Resolved;
    }

    /// The requests of an object have ended. Returns the host to call [`next_ready`](Self::next_ready) for.
    pub(super) fn ended(&mut self, occupied: OccupiedConnections) -> usize {
        for pooled in occupied.pooled_connections {
            self.hosts[occupied.host].pooled_connections[pooled].requests -= 1;
        }
        occupied.host
    }

    /// The most urgent object that waits for `host`, if a pooled connection that may have it is free.
    pub(super) fn next_ready(&mut self, host: usize) -> Option<ReadyObject> {
        let Host {
            pooled_connections,
            assigner,
            waiting,
            name: Name::Resolved,
        } = &mut self.hosts[host]
        else {
            return None;
        };
        let pooled = match assigner {
            Assigner::Alternate(alternation) => alternation.peek().index,
            Assigner::First => 0,
            _ => (0..pooled_connections.len())
                .min_by_key(|index| pooled_connections[*index].requests)?,
        };
        if pooled_connections[pooled].requests >= self.requests_at_once {
            return None;
        }
        let (_, object) = waiting.pop_first()?;
        let OfObject {
            size,
            critical,
            kind,
            ..
        } = self.of_object[object];
        let pipe = match assigner {
            Assigner::Pool(pool) => Some(pool.assign(&self.client, kind)),
            _ => None,
        };
        let pooled = pipe.as_ref().map_or(pooled, Assigned::pipe);
        let planned = match assigner {
            Assigner::Freest | Assigner::First | Assigner::Pool(_) => None,
            Assigner::Alternate(alternation) => {
                alternation.assign();
                None
            }
            Assigner::Planner(planner) => Some(planner.plan(size, critical)),
        };
        // An empty object has no range, but its response has to arrive.
        let requests = planned.filter(|requests| !requests.is_empty());
        let requests = requests.unwrap_or_else(|| {
            vec![PlannedRequest {
                connection: pooled,
                range: None,
            }]
        });
        let used: Vec<_> = requests.iter().map(|request| request.connection).collect();
        for &pooled in &used {
            pooled_connections[pooled].requests += 1;
        }
        Some(ReadyObject {
            object,
            occupied: OccupiedConnections {
                host,
                pooled_connections: used,
            },
            pooled_connections: pooled_connections
                .iter()
                .map(|one| Arc::clone(&one.pooled))
                .collect(),
            pipe,
            requests,
        })
    }

    /// The pools of all hosts, if there are pipes.
    pub(super) fn pools(&self) -> impl Iterator<Item = &Pool> {
        self.hosts.iter().filter_map(|host| match &host.assigner {
            Assigner::Pool(pool) => Some(&**pool),
            _ => None,
        })
    }

    /// The connections to all hosts, but for those of pools.
    pub(super) fn connections(&self) -> Vec<Arc<Connection>> {
        let is_pool = |host: &&Host| matches!(host.assigner, Assigner::Pool(_));
        let hosts = self.hosts.iter().filter(|host| !is_pool(host));
        let pooled_connections = hosts.flat_map(|host| &host.pooled_connections);
        pooled_connections
            .flat_map(|one| one.pooled.connections())
            .collect()
    }
}
