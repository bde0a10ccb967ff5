//! The report of a page load.

use serde::Serialize;

use super::model::PageObject;
use crate::client::{ClientError, ConnectionReport};
use crate::pipes::PipeReport;

/// All objects of a page, all connections. Times are seconds since the load began.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PageReport {
    /// When the last object was done, or failed.
    pub page_load_s: f64,
    /// When the document and all objects that block rendering were done; `None` if one failed.
    pub first_render_s: Option<f64>,
    /// In the order of the page.
    pub objects: Vec<PageObjectReport>,
    /// In the order opened.
    pub connections: Vec<ConnectionReport>,
    /// The pipes, if the client has [pools](crate::client::ClientConfig::pipes) of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pipes: Vec<PipeReport>,
}

/// One object of a page.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PageObjectReport {
    /// Its name.
    pub id: String,
    /// When it was discovered.
    pub discovered_s: Option<f64>,
    /// When the name of its host was resolved, if that began with its discovery.
    pub resolved_s: Option<f64>,
    /// When it was requested.
    pub start_s: Option<f64>,
    /// When its connection was open: before that, the request waited for the handshake.
    pub connected_s: Option<f64>,
    /// When the response's header had arrived.
    pub first_byte_s: Option<f64>,
    /// When all of it had arrived, or it failed.
    pub end_s: Option<f64>,
    /// When it was parsed or run.
    pub done_s: Option<f64>,
    /// The response's status, if one came.
    pub status: Option<u16>,
    /// Bytes of content.
    pub bytes: u64,
    /// The ID of the connection.
    pub connection: Option<u64>,
    /// The reason why it is not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl PageReport {
    /// Whether every object is done.
    pub fn is_complete(&self) -> bool {
        self.objects.iter().all(|object| object.done_s.is_some())
    }

    /// Fills in the values that follow from the objects.
    pub(super) fn conclude(&mut self, objects: &[PageObject]) {
        for object in &mut self.objects {
            if object.done_s.is_none() && object.error.is_none() {
                object.error = Some(match object.discovered_s {
                    None => "it was never discovered: the object that refers to it has failed"
                        .to_owned(),
                    Some(_) => "its task ended early".to_owned(),
                });
            }
        }
        let ends = self.objects.iter().filter_map(|o| o.done_s.or(o.end_s));
        self.page_load_s = ends.fold(0.0, f64::max);
        let needed = objects.iter().zip(&self.objects);
        let needed = needed.filter(|(object, _)| object.blocking || object.discovered_by.is_none());
        self.first_render_s = needed
            .map(|(_, report)| report.done_s)
            .try_fold(0.0, |latest, done| Some(f64::max(latest, done?)));
    }
}

impl PageObjectReport {
    pub(super) fn fail(&mut self, error: &ClientError) {
        self.error = Some(error.to_string());
    }
}
