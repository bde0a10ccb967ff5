//! Checks scenarios in which a browser loads a page.

use super::{Problem, Table, place_of};
use crate::scenario::{BackendKind, HttpClient, HttpVersion, Settings, Workload};

/// Keys of `[http]` that are for marline's own page loader.
const LOADER_KEYS: [&str; 3] = ["split", "ranges", "name_resolution"];

/// Keys of `[http]` that are for marline's client, which may be that of a gateway.
const CLIENT_KEYS: [&str; 5] = ["connections", "bundle", "own_sockets", "pipes", "sinr"];

/// Refuses settings that a browser does not support or would ignore.
pub(super) fn check(root: &Table, settings: &Settings) -> Result<(), Problem> {
    let http = root.inner("http");
    let at = |key, text: &str| Err(Problem::new(place_of(root, "http", key), text));
    let gateway = settings.http.gateway;
    if settings.http.client != HttpClient::Chromium {
        return match gateway {
            true => at(
                "gateway",
                "marline's client needs no gateway; add http.client = \"chromium\"",
            ),
            false => Ok(()),
        };
    }
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
    if gateway && settings.http.version != HttpVersion::Http3 {
        return at(
            "version",
            "the gateway fetches over HTTP/3; leave http.version out",
        );
    }
    let of_client = CLIENT_KEYS.iter().filter(|_| !gateway);
    for key in LOADER_KEYS.iter().chain(of_client) {
        if http.is_some_and(|http| http.get(key).is_some()) {
            return at(
                key,
                "this is for marline's client, and Chromium ignores it; set it in variants of that client alone",
            );
        }
    }
    if let (Some(node), false) = (root.get("client"), gateway) {
        return Err(node.problem(
            "[client] sets marline's client, which Chromium is not; set it in variants of that client alone",
        ));
    }
    Ok(())
}
