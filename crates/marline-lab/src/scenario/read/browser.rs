//! Checks scenarios in which a browser loads a page.

use super::{Problem, Table, place_of};
use crate::scenario::{BackendKind, HttpClient, HttpVersion, Settings, Workload};

/// Keys of `[http]` that are for marline's own client.
const OWN_KEYS: [&str; 7] = [
    "connections",
    "split",
    "ranges",
    "bundle",
    "pipes",
    "sinr",
    "name_resolution",
];

/// Refuses what a browser cannot do, and what it would ignore.
pub(super) fn check(root: &Table, settings: &Settings) -> Result<(), Problem> {
    if settings.http.client != HttpClient::Chromium {
        return Ok(());
    }
    let http = root.inner("http");
    let at = |key, text: &str| Err(Problem::new(place_of(root, "http", key), text));
    if settings.backend != BackendKind::Emu {
        return at(
            "client",
            "Chromium runs in real time; add backend = \"emu\"",
        );
    }
    match settings.workload {
        Workload::Page {
            readable: false, ..
        } => {
            return at(
                "client",
                "Chromium finds the objects of a page in its content; add workload.readable = true, for marline's client too",
            );
        }
        Workload::Page { loads: 1, .. } => {}
        Workload::Page { .. } => {
            return at(
                "client",
                "Chromium has a new profile for each load; leave workload.loads out",
            );
        }
        _ => {
            return at(
                "client",
                "Chromium loads pages; write the workload as page = \"cloned/amazon\"",
            );
        }
    }
    if matches!(
        settings.http.version,
        HttpVersion::Http2Parallel | HttpVersion::Http2Multipath
    ) {
        return at(
            "version",
            "Chromium has one TCP connection of HTTP/2 to a host; write \"2\"",
        );
    }
    for key in OWN_KEYS {
        if http.is_some_and(|http| http.get(key).is_some()) {
            return at(
                key,
                "this is for marline's client, and Chromium ignores it; set it in variants of that client alone",
            );
        }
    }
    if let Some(node) = root.get("client") {
        return Err(node.problem(
            "[client] sets marline's client, which Chromium is not; set it in variants of that client alone",
        ));
    }
    Ok(())
}
