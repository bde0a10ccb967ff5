//! Reads the settings of a document. Keys that are not read are reported as unknown.

mod background;
mod browser;
mod change;
mod channels;
mod condition;
mod endpoint;
mod experiment;
mod initial_window;
mod media;
mod must;
mod other_server;
mod stress;
mod topology;
mod variants;
mod workload;
mod written;

use std::time::Duration;

use marline_http::pipes::{POLICIES, SignalError, SignalTrace};

use super::document::{Item, Node, Table};
use super::error::{Place, Problem, unknown};
use super::{HttpClient, HttpSettings, HttpVersion, RangeKind, Settings, Workload};

use super::reader::Reader;
pub(super) use condition::Condition;
pub(crate) use experiment::file_name;
pub(super) use experiment::{
    ComparisonEntry, CorrelationEntry, Head, Lookup, VariantEntry, read_head,
};
pub(super) use must::{Filter, MustEntry, PublishedFilter};
pub(super) use variants::VariantPair;

/// The default time limit of a run.
const TIME_LIMIT: Duration = Duration::from_secs(300);

const RANGES: [(&str, RangeKind); 3] = [
    ("auto", RangeKind::Auto),
    ("equal", RangeKind::Equal),
    ("handed", RangeKind::Handed),
];

/// Reads the settings of a run.
pub(super) fn read_settings(root: &Table) -> Result<Settings, Problem> {
    let mut reader = Reader::new(root, &Place::File);
    experiment::skip_head(&mut reader);
    let topology = topology::read_topology(&mut reader)?;
    let path = topology::read_path(&mut reader, &topology)?;
    let endpoint::Ends { client, server } = endpoint::read_endpoints(&mut reader)?;
    let workload = workload::read_workload(&mut reader)?;
    let backend = experiment::read_backend(&mut reader)?;
    let mut settings = Settings {
        backend,
        path,
        client,
        server,
        http: reader
            .optional("http", |node| read_http(node, &workload))?
            .unwrap_or_default(),
        background: background::read_background(&mut reader, &topology)?,
        changes: change::read_changes(&mut reader, &topology, &workload)?,
        stress: stress::read_stress(&mut reader, &topology)?,
        workload,
        time_limit: reader
            .optional("time_limit", Node::time)?
            .unwrap_or(TIME_LIMIT),
        topology,
    };
    reader.finish()?;
    if settings.http.connections == 0 && settings.background.is_empty() {
        return Err(Problem::new(
            place_of(root, "http", "connections"),
            "there is nothing to measure: http.connections is 0, and there is no [[background]]",
        ));
    }
    if let (Some(stress), true) = (settings.stress.first(), backend.is_virtual()) {
        return Err(Problem::new(
            place_of(root, "stress", &stress.host),
            "in virtual time hosts have no processor to stress; add backend = \"emu\"",
        ));
    }
    browser::check(root, &settings)?;
    other_server::check(root, &settings)?;
    if settings.http.sinr.as_deref() == Some(LINK_SINR) {
        let radio = settings.radio_link();
        radio.map_err(|why| Problem::new(place_of(root, "http", "sinr"), why))?;
    }
    settings.run_in(backend);
    Ok(settings)
}

/// The place of `key` in `table`, if it is set.
fn place_of<'a>(root: &'a Table, table: &str, key: &str) -> &'a Place {
    let node = root.inner(table).and_then(|table| table.get(key));
    node.map_or(&Place::File, |node| &node.place)
}

fn read_http(node: &Node, workload: &Workload) -> Result<HttpSettings, Problem> {
    let mut reader = Reader::of(node)?;
    let default = HttpSettings::default();
    let fewest = match workload {
        Workload::Measure { .. } => 0,
        _ => 1,
    };
    let version = reader.optional("version", |node| {
        node.named("version of HTTP", &HttpVersion::NAMES)
    })?;
    let version = version.unwrap_or(default.version);
    let settings = HttpSettings {
        client: reader
            .optional("client", |node| node.named("client", &HttpClient::NAMES))?
            .unwrap_or_default(),
        server: reader
            .optional("server", |node| {
                let text = node.text()?;
                // "marline" makes a variant with our server if others have another.
                Ok((text != "marline").then_some(text))
            })?
            .flatten(),
        gateway: reader
            .optional("gateway", Node::switch)?
            .unwrap_or_default(),
        version,
        connections: reader
            .optional("connections", |node| node.within(fewest..=1000))?
            .map_or(version.connections(), |number| number as usize),
        split: reader.optional("split", Node::size)?,
        ranges: reader
            .optional("ranges", |node| node.named("kind of ranges", &RANGES))?
            .unwrap_or(default.ranges),
        whole_on_first: reader
            .optional("whole_on_first", Node::switch)?
            .unwrap_or_default(),
        bundle: reader
            .optional("bundle", Node::switch)?
            .unwrap_or(default.bundle),
        own_sockets: reader
            .optional("own_sockets", Node::switch)?
            .unwrap_or_default(),
        pipes: reader
            .optional("pipes", |node| {
                let text = node.text()?;
                // "none" makes a variant without pipes if others have them.
                match text == "none" {
                    true => Ok(None),
                    false => POLICIES
                        .make(&text)
                        .map(|_| Some(text))
                        .map_err(|why| node.problem(why)),
                }
            })?
            .flatten(),
        sinr: reader.optional("sinr", |node| {
            let text = node.text()?;
            if text != LINK_SINR {
                signal(&text).map_err(|why| node.problem(why))?;
            }
            Ok(text)
        })?,
        name_resolution: reader
            .optional("name_resolution", Node::time)?
            .unwrap_or_default(),
    };
    reader.finish()?;
    if settings.bundle && version.is_over_tcp() {
        return Err(node.problem("connections over TCP are not a bundle; leave http.bundle out"));
    }
    if settings.own_sockets && version.is_over_tcp() {
        return Err(node.problem(
            "each connection over TCP has a socket of its own; leave http.own_sockets out",
        ));
    }
    if settings.pipes.is_some() && version != HttpVersion::Http3 {
        return Err(node.problem(
            "pipes are connections of HTTP/3; leave http.pipes out (\"none\" in a variant), or http.version",
        ));
    }
    Ok(settings)
}

/// The value of `http.sinr` that selects the client's link.
pub(crate) const LINK_SINR: &str = "link";

/// The signal of `http.sinr`: samples separated by `;`.
pub(crate) fn signal(text: &str) -> Result<SignalTrace, SignalError> {
    SignalTrace::parse(&text.replace(';', "\n"), marline::Instant::EPOCH)
}
