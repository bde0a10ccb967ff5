//! Checks scenarios with another server program than marline.

use super::{Problem, Table, place_of};
use crate::scenario::{BackendKind, HttpVersion, Settings, Workload};

/// Refuses settings that such a program does not support or would ignore.
pub(super) fn check(root: &Table, settings: &Settings) -> Result<(), Problem> {
    if settings.http.server.is_none() {
        return Ok(());
    }
    let at = |key, text: &str| Err(Problem::new(place_of(root, "http", key), text));
    if settings.backend == BackendKind::Sim {
        return at(
            "server",
            "a program needs a kernel; add backend = \"kernel\" or backend = \"emu\"",
        );
    }
    let has_objects = matches!(
        settings.workload,
        Workload::Objects { .. }
            | Workload::Files { .. }
            | Workload::Page { .. }
            | Workload::Devices { .. }
    );
    if !has_objects {
        return at(
            "server",
            "a program serves files; write the workload as page, objects or files",
        );
    }
    if settings.http.version == HttpVersion::Http2Multipath {
        return at(
            "version",
            "only marline's server is told to use Multipath TCP; write \"2\"",
        );
    }
    if let (Some(node), false) = (root.get("server"), settings.http.version.is_over_tcp()) {
        return Err(
            node.problem("[server] sets marline's server; set it in variants of that server alone")
        );
    }
    Ok(())
}
