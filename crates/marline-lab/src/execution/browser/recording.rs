//! The events of a page load that a browser reports.

mod events;

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use marline_http::client::{ConnectionReport, PathReport};
use marline_http::page::{Page, PageObjectReport, PageReport};
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::events::{At, Data, Failed, Finished, Lifecycle, Received, Response, Sent, Timing};
use super::devtools::Event;
use super::{Loaded, Site};

/// The events of a page load. Times are seconds of the browser's clock.
pub(super) struct Recording<'a> {
    site: &'a Site,
    page: &'a Page,
    /// The indices of the objects, by URL.
    places: HashMap<String, usize>,
    /// By the browser's name of the request.
    requests: HashMap<String, usize>,
    objects: Vec<Recorded>,
    /// The name of the request for the document, and of all that follows from it.
    load: Option<String>,
    parsed_s: Option<f64>,
    load_event_s: Option<f64>,
    first_render_s: Option<f64>,
}

/// The recorded data of an object.
#[derive(Default)]
struct Recorded {
    sent: Option<Sent>,
    response: Option<Response>,
    bytes: u64,
    ended_s: Option<f64>,
    error: Option<String>,
}

impl<'a> Recording<'a> {
    pub(super) fn new(site: &'a Site, page: &'a Page) -> Self {
        let urls = page.objects.iter().map(|object| site.url(object));
        Self {
            site,
            page,
            places: urls.zip(0..).collect(),
            requests: HashMap::new(),
            objects: page.objects.iter().map(|_| Recorded::default()).collect(),
            load: None,
            parsed_s: None,
            load_event_s: None,
            first_render_s: None,
        }
    }

    /// Records an event. Events of unknown form or name are ignored.
    pub(super) fn note(&mut self, event: Event) {
        match event.method.as_str() {
            "Network.requestWillBeSent" => self.sent(event.parameters),
            "Network.responseReceived" => {
                if let Some(received) = read::<Received>(event.parameters)
                    && let Some(object) = self.object(&received.request_id)
                {
                    object.response = Some(received.response);
                }
            }
            "Network.dataReceived" => {
                if let Some(data) = read::<Data>(event.parameters)
                    && let Some(object) = self.object(&data.request_id)
                {
                    object.bytes = object.bytes.saturating_add(data.data_length);
                }
            }
            "Network.loadingFinished" => {
                if let Some(finished) = read::<Finished>(event.parameters)
                    && let Some(object) = self.object(&finished.request_id)
                {
                    object.ended_s = Some(finished.timestamp);
                }
            }
            "Network.loadingFailed" => {
                if let Some(failed) = read::<Failed>(event.parameters)
                    && let Some(object) = self.object(&failed.request_id)
                {
                    object.ended_s = Some(failed.timestamp);
                    object.error = Some(failed.error_text);
                }
            }
            // Those of the empty page before it come before its first request.
            "Page.domContentEventFired" if self.load.is_some() => {
                self.parsed_s = read::<At>(event.parameters).map(|at| at.timestamp);
            }
            "Page.loadEventFired" if self.load.is_some() => {
                self.load_event_s = read::<At>(event.parameters).map(|at| at.timestamp);
            }
            "Page.lifecycleEvent" => {
                if let Some(event) = read::<Lifecycle>(event.parameters)
                    && event.name == "firstContentfulPaint"
                    && Some(&event.loader_id) == self.load.as_ref()
                {
                    self.first_render_s = Some(event.timestamp);
                }
            }
            _ => {}
        }
    }

    fn sent(&mut self, parameters: Value) {
        let Some(sent) = read::<Sent>(parameters) else {
            return;
        };
        let Some(&place) = self.places.get(&sent.request.url) else {
            return;
        };
        // A second request for an object is one of the browser's cache.
        if self.objects[place].sent.is_some() {
            return;
        }
        if self.page.objects[place].discovered_by.is_none() {
            self.load = Some(sent.loader_id.clone());
        }
        self.requests.insert(sent.request_id.clone(), place);
        self.objects[place].sent = Some(sent);
    }

    fn object(&mut self, request: &str) -> Option<&mut Recorded> {
        let place = self.requests.get(request)?;
        self.objects.get_mut(*place)
    }

    /// Whether the document's load event was fired, and all objects have ended.
    pub(super) fn is_over(&self) -> bool {
        self.load_event_s.is_some() && self.objects.iter().all(|one| one.ended_s.is_some())
    }

    /// Whether something was painted.
    pub(super) const fn is_painted(&self) -> bool {
        self.first_render_s.is_some()
    }

    /// Whether no request of the browser is pending.
    pub(super) fn is_idle(&self) -> bool {
        let ended = |one: &Recorded| one.sent.is_none() || one.ended_s.is_some();
        self.load_event_s.is_some() && self.objects.iter().all(ended)
    }

    /// The objects that were never requested, by name.
    pub(super) fn missing(&self) -> Vec<&str> {
        let objects = self.page.objects.iter().zip(&self.objects);
        let missing = objects.filter(|(_, one)| one.sent.is_none());
        missing.map(|(object, _)| object.id.as_str()).collect()
    }

    /// The report of the load.
    ///
    /// # Errors
    /// The document was never requested, or a response is of another version of HTTP than
    /// requested.
    pub(super) fn finish(self) -> Result<Loaded, String> {
        let document = self.page.objects.iter();
        let document = document.zip(&self.objects);
        let mut document = document.filter(|(object, _)| object.discovered_by.is_none());
        let sent = document.next().and_then(|(_, one)| one.sent.as_ref());
        let sent = sent.ok_or("Chromium has not requested the document")?;
        let (start, date) = (sent.timestamp, sent.wall_time);
        let mut connections = Connections::default();
        let mut objects = Vec::with_capacity(self.objects.len());
        for (object, one) in self.page.objects.iter().zip(&self.objects) {
            let mut report = one.report(&object.id, start);
            if let Some(response) = &one.response {
                if response.protocol != self.site.protocol() {
                    return Err(format!(
                        "{} came over {:?} instead of {:?}",
                        object.id,
                        response.protocol,
                        self.site.protocol()
                    ));
                }
                report.connection = Some(connections.of(response, one.bytes, self.site));
            }
            if one.error.is_none() && one.ended_s.is_some() && one.bytes != object.size {
                report.error = Some(format!(
                    "Chromium received {} of {} bytes",
                    one.bytes, object.size
                ));
            }
            if object.discovered_by.is_none() {
                report.done_s = self.parsed_s.map(|at| at - start);
            }
            objects.push(report);
        }
        let load_event_s = self.load_event_s.map(|at| at - start);
        let load_event_s = load_event_s.ok_or("the load event was not fired")?;
        let ends = objects.iter().filter_map(|object| object.end_s);
        Ok(Loaded {
            report: PageReport {
                page_load_s: ends.fold(load_event_s, f64::max),
                first_render_s: self.first_render_s.map(|at| at - start),
                objects,
                connections: connections.reports,
                pipes: Vec::new(),
            },
            load_event_s,
            date: Duration::try_from_secs_f64(date).unwrap_or_default(),
        })
    }
}

impl Recorded {
    /// The report without the connection; times count from `start`.
    fn report(&self, id: &str, start: f64) -> PageObjectReport {
        let timing = self.response.as_ref().and_then(|one| one.timing);
        let at = |step: fn(Timing) -> f64| {
            let at = timing.and_then(|timing| timing.at(step(timing)));
            at.map(|at| at - start)
        };
        let sent_s = at(|timing| timing.send_start);
        let ended_s = self.ended_s.map(|at| at - start);
        let error = self.error.clone().or_else(|| {
            let status = self.response.as_ref()?.status;
            (status / 100 != 2).then(|| format!("the server responded with {status}"))
        });
        PageObjectReport {
            id: id.to_owned(),
            discovered_s: self.sent.as_ref().map(|sent| sent.timestamp - start),
            resolved_s: None,
            start_s: at(|timing| timing.connect_start).or(sent_s),
            connected_s: at(|timing| timing.connect_end).or(sent_s),
            first_byte_s: at(|timing| timing.receive_headers_end),
            end_s: ended_s,
            done_s: ended_s.filter(|_| error.is_none()),
            status: self.response.as_ref().map(|one| one.status),
            bytes: self.bytes,
            connection: None,
            error,
        }
    }
}

/// The connections that responses came over, in the order of the objects.
#[derive(Default)]
struct Connections {
    /// By the browser's number.
    ids: BTreeMap<u64, u64>,
    reports: Vec<ConnectionReport>,
}

impl Connections {
    /// The ID of the connection of `response`, which brought so many bytes.
    fn of(&mut self, response: &Response, bytes: u64, site: &Site) -> u64 {
        let next = self.reports.len() as u64;
        let id = *self
            .ids
            .entry(response.connection_id.to_bits())
            .or_insert(next);
        if id == next {
            let remote = response
                .remote_ip
                .unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
            self.reports.push(ConnectionReport {
                id,
                http_version: site.version_name(),
                quic_version: None,
                resolve_s: 0.0,
                transport_s: 0.0,
                handshake_s: 0.0,
                bytes_received: 0,
                packets_lost_observed: None,
                peer_loss_estimate: None,
                peer_packets_sent: None,
                peer_packets_missing: None,
                multipath: false,
                mptcp_subflows: None,
                certificates: Default::default(),
                paths: vec![PathReport {
                    id: 0,
                    // Browsers do not report it.
                    local: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
                    remote: SocketAddr::new(remote, response.remote_port.unwrap_or(0)),
                    rtt_s: None,
                    bytes_received: 0,
                    bytes_sent: None,
                    packets_lost: None,
                    closed: None,
                }],
            });
        }
        let at = usize::try_from(id).unwrap_or(usize::MAX);
        if let Some(report) = self.reports.get_mut(at) {
            report.bytes_received += bytes;
            let handshake = response.timing.and_then(|timing| {
                Some(timing.at(timing.connect_end)? - timing.at(timing.connect_start)?)
            });
            if let Some(handshake_s) = handshake {
                report.handshake_s = handshake_s;
            }
            for path in &mut report.paths {
                path.bytes_received += bytes;
            }
        }
        id
    }
}

fn read<T: DeserializeOwned>(parameters: Value) -> Option<T> {
    serde_json::from_value(parameters).ok()
}

#[cfg(test)]
mod tests;
