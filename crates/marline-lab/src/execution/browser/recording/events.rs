//! The events of the DevTools protocol, as far as they are used.

use std::net::IpAddr;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sent {
    pub(super) request_id: String,
    pub(super) loader_id: String,
    pub(super) request: Request,
    pub(super) timestamp: f64,
    pub(super) wall_time: f64,
}

#[derive(Deserialize)]
pub(super) struct Request {
    pub(super) url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Received {
    pub(super) request_id: String,
    pub(super) response: Response,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Response {
    pub(super) status: u16,
    #[serde(default)]
    pub(super) protocol: String,
    pub(super) connection_id: f64,
    #[serde(rename = "remoteIPAddress")]
    pub(super) remote_ip: Option<IpAddr>,
    pub(super) remote_port: Option<u16>,
    pub(super) timing: Option<Timing>,
}

/// Milliseconds since `request_time`, which is in seconds; -1 where a step does not apply.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Timing {
    pub(super) request_time: f64,
    pub(super) connect_start: f64,
    pub(super) connect_end: f64,
    pub(super) send_start: f64,
    pub(super) receive_headers_end: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Data {
    pub(super) request_id: String,
    pub(super) data_length: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Finished {
    pub(super) request_id: String,
    pub(super) timestamp: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Failed {
    pub(super) request_id: String,
    pub(super) timestamp: f64,
    pub(super) error_text: String,
}

#[derive(Deserialize)]
pub(super) struct At {
    pub(super) timestamp: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Lifecycle {
    pub(super) loader_id: String,
    pub(super) name: String,
    pub(super) timestamp: f64,
}

impl Timing {
    /// A step's time, if it applies.
    pub(super) fn at(self, milliseconds: f64) -> Option<f64> {
        (milliseconds >= 0.0).then_some(self.request_time + milliseconds / 1e3)
    }
}
