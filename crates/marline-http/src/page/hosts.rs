//! The order in which objects are requested on the connections to their hosts.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::check::Planned;
use super::options::LoadOptions;
use crate::client::{Client, Lane, Origin, PlannedRequest, Planner, SplitPolicy};

/// The page's hosts, and the objects that wait to be requested from them.
pub(super) struct Hosts {
    hosts: Vec<Host>,
    of_object: Vec<OfObject>,
    requests_at_once: usize,
    /// Numbers the objects in the order of their discovery.
    next: u64,
}

/// What the order depends on.
struct OfObject {
    host: usize,
    size: u64,
    critical: bool,
}

struct Host {
    lanes: Vec<HostLane>,
    /// Assigns objects to connections; without it, the connection with the fewest requests gets the next.
    planner: Option<Planner>,
    /// By urgency and order of discovery.
    waiting: BTreeMap<(u8, u64), usize>,
}

/// A connection to a host.
struct HostLane {
    lane: Arc<Lane>,
    /// Its requests that have not ended.
    requests: usize,
}

/// An object to request now.
pub(super) struct Turn {
    pub(super) object: usize,
    pub(super) place: Place,
    /// All connections to its host.
    pub(super) lanes: Vec<Arc<Lane>>,
    /// At least one: for the whole object, or for ranges.
    pub(super) requests: Vec<PlannedRequest>,
}

/// The connections that an object occupies until it ends.
#[derive(Debug)]
pub(super) struct Place {
    host: usize,
    lanes: Vec<usize>,
}

impl Hosts {
    /// At most [`connections`](LoadOptions::connections) to each host, those first that the client opened
    /// in advance.
    pub(super) fn new(objects: &[Planned], client: &Client, options: &LoadOptions) -> Self {
        let connections = NonZeroUsize::new(options.connections).unwrap_or(NonZeroUsize::MIN);
        let min_range = options.split_critical.filter(|_| connections.get() > 1);
        let planner = min_range.map(|min| Planner::new(SplitPolicy::Page, connections, min));
        let mut places: HashMap<&Origin, usize> = HashMap::new();
        let mut hosts = Vec::new();
        let mut of_object = Vec::with_capacity(objects.len());
        for object in objects {
            let host = *places.entry(&object.origin).or_insert_with(|| {
                let origin = &object.origin;
                let lanes = client.lanes(origin, connections.get());
                hosts.push(Host {
                    lanes: lanes
                        .into_iter()
                        .map(|lane| HostLane { lane, requests: 0 })
                        .collect(),
                    planner: planner.clone(),
                    waiting: BTreeMap::new(),
                });
                hosts.len() - 1
            });
            of_object.push(OfObject {
                host,
                size: object.size,
                critical: object.is_critical(),
            });
        }
        Self {
            hosts,
            of_object,
            requests_at_once: client.config().version.requests_at_once(),
            next: 0,
        }
    }

    /// An object was discovered. Returns the host to call [`turn`](Self::turn) for.
    pub(super) fn want(&mut self, object: usize, urgency: u8) -> usize {
        let host = self.of_object[object].host;
        let key = (urgency, self.next);
        self.next += 1;
        self.hosts[host].waiting.insert(key, object);
        host
    }

    /// The requests of an object have ended. Returns the host to call [`turn`](Self::turn) for.
    pub(super) fn ended(&mut self, place: Place) -> usize {
        for lane in place.lanes {
            self.hosts[place.host].lanes[lane].requests -= 1;
        }
        place.host
    }

    /// The most urgent of what waits for `host`, if one of its connections is free for it.
    pub(super) fn turn(&mut self, host: usize) -> Option<Turn> {
        let Host {
            lanes,
            planner,
            waiting,
        } = &mut self.hosts[host];
        let (freest, _) = (lanes.iter().enumerate())
            .min_by_key(|(place, lane)| (lane.requests, *place))
            .filter(|(_, lane)| lane.requests < self.requests_at_once)?;
        let (_, object) = waiting.pop_first()?;
        let OfObject { size, critical, .. } = self.of_object[object];
        let planned = planner.as_mut().map(|planner| planner.plan(size, critical));
        // An empty object has no range, but its response still counts.
        let requests = planned.filter(|requests| !requests.is_empty());
        let requests = requests.unwrap_or_else(|| {
            vec![PlannedRequest {
                connection: freest,
                range: None,
            }]
        });
        let used: Vec<_> = requests.iter().map(|request| request.connection).collect();
        for &lane in &used {
            lanes[lane].requests += 1;
        }
        Some(Turn {
            object,
            place: Place { host, lanes: used },
            lanes: lanes.iter().map(|one| Arc::clone(&one.lane)).collect(),
            requests,
        })
    }

    /// All connections.
    pub(super) fn lanes(&self) -> impl Iterator<Item = &Lane> {
        let lanes = self.hosts.iter().flat_map(|host| &host.lanes);
        lanes.map(|one| &*one.lane)
    }
}
