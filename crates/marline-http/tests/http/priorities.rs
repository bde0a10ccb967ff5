//! Priorities of requests at the stream scheduler.

use std::sync::{Arc, Mutex};

use marline::scheduling::stream::{StreamScheduler, Wrr};
use marline::{Dir, Priority, Profile, StreamId, TransportConfig};
use marline_http::client::HttpVersion;
use marline_http::page::{Kind, LoadOptions, Page, PageObject, load};
use marline_http::server::{directory, generated};

use crate::common::{TestServer, client, directory_of};

/// The weights of urgencies (RFC 9218 has eight urgencies, browsers five weights).
const WEIGHTS: [u16; 8] = [256, 256, 220, 183, 147, 110, 110, 110];

/// The priorities of streams in the order of their first activity.
type Seen = Arc<Mutex<Vec<(StreamId, Priority)>>>;

/// A weighted round robin scheduler that records the streams that it is given.
#[derive(Debug)]
struct Recording(Wrr, Seen);

impl StreamScheduler for Recording {
    fn activate(&mut self, id: StreamId, priority: Priority) {
        let mut seen = self.1.lock().unwrap();
        if seen.iter().all(|(known, _)| *known != id) {
            seen.push((id, priority));
        }
        drop(seen);
        self.0.activate(id, priority);
    }

    fn deactivate(&mut self, id: StreamId) {
        self.0.deactivate(id);
    }

    fn finish(&mut self, id: StreamId) {
        self.0.finish(id);
    }

    fn set_priority(&mut self, id: StreamId, priority: Priority) {
        self.0.set_priority(id, priority);
    }

    fn pick(&mut self) -> Option<StreamId> {
        self.0.pick()
    }

    fn order(&mut self, most: usize, out: &mut Vec<StreamId>) {
        self.0.order(most, out);
    }

    fn on_sent(&mut self, id: StreamId, bytes: u64) {
        self.0.on_sent(id, bytes);
    }

    fn name(&self) -> &'static str {
        "recording"
    }
}

fn recording() -> (Arc<TransportConfig>, Seen) {
    let seen = Seen::default();
    let recorded = Arc::clone(&seen);
    let transport = TransportConfig {
        stream_scheduler: Arc::new(move || {
            Box::new(Recording(Wrr::weighted(), Arc::clone(&recorded)))
        }),
        ..Profile::Multipath.config()
    };
    (Arc::new(transport), seen)
}

/// The weights of responses, whose streams are opened by clients.
fn weights(seen: &Seen) -> Vec<u16> {
    let seen = seen.lock().unwrap();
    let requests = seen.iter().filter(|(id, _)| id.dir() == Dir::Bi);
    requests.map(|(_, priority)| priority.weight()).collect()
}

#[tokio::test]
async fn the_priority_of_a_request_sets_the_weight_of_its_response() {
    let root = directory_of(&[("file", b"content")]);
    let (transport, seen) = recording();
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.quic.transport = transport;
    })
    .await;
    let visitor = server.connect(HttpVersion::Http3).await;
    for urgency in 0..WEIGHTS.len() {
        let priority = format!("u={urgency}, i");
        visitor.get("/file", &[("priority", &priority)]).await;
    }
    visitor.get("/file", &[]).await;
    assert_eq!(weights(&seen), [&WEIGHTS[..], &[WEIGHTS[3]]].concat());
}

#[tokio::test]
async fn render_blocking_objects_have_the_highest_weights() {
    let object = |kind, blocking| PageObject {
        host: "0.0.0.0:0".to_owned(),
        path: "/object".to_owned(),
        id: "object".to_owned(),
        kind,
        size: 5_000,
        discovered_by: None,
        parse: std::time::Duration::ZERO,
        think: std::time::Duration::ZERO,
        blocking,
        urgency: None,
        incremental: None,
    };
    for (kind, blocking, urgency) in [
        (Kind::Html, false, 0),
        (Kind::Js, true, 1),
        (Kind::Js, false, 2),
        (Kind::Image, false, 3),
        (Kind::Css, false, 4),
    ] {
        let page = |host: &str| Page {
            objects: vec![PageObject {
                host: host.to_owned(),
                ..object(kind, blocking)
            }],
        };
        let (transport, seen) = recording();
        let site = generated(page("0.0.0.0:0").generated("0.0.0.0:0"), None).unwrap();
        let server = TestServer::with(site, |config| config.quic.transport = transport).await;
        let address = server.address.to_string();
        let client = client(HttpVersion::Http3);
        let loaded = load(
            &client,
            &page(&address),
            LoadOptions::default(),
            &Arc::default(),
        )
        .await;
        assert!(loaded.is_ok());
        assert_eq!(weights(&seen), [WEIGHTS[urgency]], "{kind:?}");
    }
}
