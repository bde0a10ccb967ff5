//! Whose turn it is on which connection.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::check::Planned;
use super::load::LoadOptions;
use crate::client::{Client, Lane, Origin, PlannedRequest, Planner, SplitPolicy};

/// The page's hosts, and what waits for them.
pub(super) struct Hosts {
    hosts: Vec<Host>,
    of_object: Vec<OfObject>,
    requests_at_once: usize,
    /// Counts what waited.
    next: u64,
}

/// What is to be known of an object.
struct OfObject {
    host: usize,
    size: u64,
    critical: bool,
}

struct Host {
    /// Connections, and how many requests each has.
    lanes: Vec<(Arc<Lane>, usize)>,
    /// Deals objects out; else the connection with the fewest requests gets the next.
    planner: Option<Planner>,
    /// By urgency and order of discovery.
    waiting: BTreeMap<(u8, u64), usize>,
}

/// An object that may be asked for now.
pub(super) struct Turn {
    pub(super) object: usize,
    pub(super) place: Place,
    /// All connections to its host.
    pub(super) lanes: Vec<Arc<Lane>>,
    /// At least one: for all of it, or for ranges.
    pub(super) requests: Vec<PlannedRequest>,
}

/// An object's places on connections, until it ends.
#[derive(Debug)]
pub(super) struct Place {
    host: usize,
    lanes: Vec<usize>,
}

impl Hosts {
    /// At most as many connections to each host as `options` say, those first that the client opened in
    /// advance.
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
                    lanes: lanes.into_iter().map(|lane| (lane, 0)).collect(),
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

    /// An object is wanted. Returns the host to give turns at.
    pub(super) fn want(&mut self, object: usize, urgency: u8) -> usize {
        let host = self.of_object[object].host;
        let key = (urgency, self.next);
        self.next += 1;
        self.hosts[host].waiting.insert(key, object);
        host
    }

    /// An object's requests have ended. Returns the host to give turns at.
    pub(super) fn ended(&mut self, place: Place) -> usize {
        for lane in place.lanes {
            self.hosts[place.host].lanes[lane].1 -= 1;
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
            .min_by_key(|(place, (_, busy))| (*busy, *place))
            .filter(|(_, (_, busy))| *busy < self.requests_at_once)?;
        let (_, object) = waiting.pop_first()?;
        let OfObject { size, critical, .. } = self.of_object[object];
        let planned = planner.as_mut().map(|planner| planner.plan(size, critical));
        // No range has an empty object's bytes, but what it is still counts.
        let requests = planned.filter(|requests| !requests.is_empty());
        let requests = requests.unwrap_or_else(|| {
            vec![PlannedRequest {
                connection: freest,
                range: None,
            }]
        });
        let used: Vec<_> = requests.iter().map(|request| request.connection).collect();
        for &lane in &used {
            lanes[lane].1 += 1;
        }
        Some(Turn {
            object,
            place: Place { host, lanes: used },
            lanes: lanes.iter().map(|(lane, _)| Arc::clone(lane)).collect(),
            requests,
        })
    }

    /// All connections.
    pub(super) fn lanes(&self) -> impl Iterator<Item = &Lane> {
        let lanes = self.hosts.iter().flat_map(|host| &host.lanes);
        lanes.map(|(lane, _)| &**lane)
    }
}
