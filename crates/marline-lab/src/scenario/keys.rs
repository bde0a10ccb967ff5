//! Words that several readers know.

use super::Direction;

/// Keys that settings begin with, but `path`, which a parameter may be called: nothing is below it.
pub(super) const SETTINGS_KEYS: [&str; 13] = [
    "link",
    "links",
    "paths",
    "hosts",
    "routers",
    "ecmp",
    "client",
    "server",
    "http",
    "workload",
    "background",
    "change",
    "time_limit",
];

/// Keys that may stand for both ends.
pub(super) const ENDPOINT_KEYS: [&str; 17] = [
    "profile",
    "cc",
    "initial_window",
    "slow_start_exit",
    "ack",
    "loss_detection",
    "stream_scheduler",
    "pacing",
    "ecn",
    "mtu",
    "backoff",
    "bundle",
    "multipath",
    "path_scheduler",
    "reinjection",
    "same_tuple_paths",
    "bundle_paths",
];

/// Kinds of workload: naming one replaces the others.
pub(super) const WORKLOADS: [&str; 7] = [
    "objects", "files", "streams", "page", "measure", "visits", "transfer",
];

/// Ways that bytes go.
pub(super) const DIRECTIONS: [(&str, Direction); 2] =
    [("down", Direction::Down), ("up", Direction::Up)];
