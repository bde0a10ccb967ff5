//! Whose turn it is on which connection.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::check::Planned;
use crate::client::{Client, Lane, Origin};

/// The page's hosts, and what waits for them.
pub(super) struct Hosts {
    hosts: Vec<Host>,
    /// Each object's host.
    of_object: Vec<usize>,
    requests_at_once: usize,
    /// Counts what waited.
    next: u64,
}

struct Host {
    lanes: Vec<(Arc<Lane>, usize)>,
    /// By urgency and order of discovery.
    waiting: BTreeMap<(u8, u64), usize>,
}

/// A connection that an object may be asked for on now.
pub(super) struct Turn {
    pub(super) object: usize,
    pub(super) place: Place,
    pub(super) lane: Arc<Lane>,
}

/// A request's place on a connection, until it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    host: usize,
    lane: usize,
}

impl Hosts {
    /// At most `connections` to each host, those first that the client opened in advance.
    pub(super) fn new(objects: &[Planned], client: &Client, connections: usize) -> Self {
        let connections = connections.max(1);
        let mut places: HashMap<&Origin, usize> = HashMap::new();
        let mut hosts = Vec::new();
        let mut of_object = Vec::with_capacity(objects.len());
        for object in objects {
            let host = *places.entry(&object.origin).or_insert_with(|| {
                let origin = &object.origin;
                let lanes = client.lanes(origin, connections);
                hosts.push(Host {
                    lanes: lanes.into_iter().map(|lane| (lane, 0)).collect(),
                    waiting: BTreeMap::new(),
                });
                hosts.len() - 1
            });
            of_object.push(host);
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
        let host = self.of_object[object];
        let key = (urgency, self.next);
        self.next += 1;
        self.hosts[host].waiting.insert(key, object);
        host
    }

    /// A request has ended. Returns the host to give turns at.
    pub(super) fn ended(&mut self, place: Place) -> usize {
        self.hosts[place.host].lanes[place.lane].1 -= 1;
        place.host
    }

    /// The most urgent of what waits for `host`, on the connection with the fewest requests.
    pub(super) fn turn(&mut self, host: usize) -> Option<Turn> {
        let Host { lanes, waiting } = &mut self.hosts[host];
        let (place, (lane, busy)) = (lanes.iter_mut().enumerate())
            .min_by_key(|(place, (_, busy))| (*busy, *place))
            .filter(|(_, (_, busy))| *busy < self.requests_at_once)?;
        let (_, object) = waiting.pop_first()?;
        *busy += 1;
        Some(Turn {
            object,
            place: Place { host, lane: place },
            lane: Arc::clone(lane),
        })
    }

    /// All connections.
    pub(super) fn lanes(&self) -> impl Iterator<Item = &Lane> {
        let lanes = self.hosts.iter().flat_map(|host| &host.lanes);
        lanes.map(|(lane, _)| &**lane)
    }
}
