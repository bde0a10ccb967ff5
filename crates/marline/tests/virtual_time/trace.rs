//! Events of a connection for a subscriber of `tracing`.

use std::collections::HashMap;
use std::fmt::{Debug, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use marline::TransportConfig;
use marline_sim::identity::Identity;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::setup::{client_config, run, server_config};

/// An event, as a subscriber receives it.
#[derive(Clone, Debug)]
struct Recorded {
    level: Level,
    target: String,
    /// The fields of its span.
    span: String,
    /// Its own fields, the message among them.
    fields: String,
}

/// Records events up to a level.
#[derive(Clone)]
struct Capture {
    most: LevelFilter,
    spans: Arc<Mutex<HashMap<u64, String>>>,
    events: Arc<Mutex<Vec<Recorded>>>,
    next: Arc<AtomicU64>,
}

impl Capture {
    fn new(most: LevelFilter) -> Self {
        Self {
            most,
            spans: Arc::default(),
            events: Arc::default(),
            next: Arc::new(AtomicU64::new(1)),
        }
    }
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}

impl Subscriber for Capture {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.most && metadata.target().starts_with("marline::")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.most)
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut fields = Fields(String::new());
        attributes.record(&mut fields);
        self.spans.lock().unwrap().insert(id, fields.0);
        Id::from_u64(id)
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        let spans = self.spans.lock().unwrap();
        let span = event.parent().and_then(|id| spans.get(&id.into_u64()));
        self.events.lock().unwrap().push(Recorded {
            level: *event.metadata().level(),
            target: event.metadata().target().to_owned(),
            span: span.cloned().unwrap_or_default(),
            fields: fields.0,
        });
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}
    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}
    fn enter(&self, _span: &Id) {}
    fn exit(&self, _span: &Id) {}
}

/// The events up to level `most` of a connection on which the server sends `LEN` bytes.
fn events_of_a_transfer(most: LevelFilter) -> Vec<Recorded> {
    const LEN: usize = 50_000;

    let capture = Capture::new(most);
    let events = Arc::clone(&capture.events);
    tracing::subscriber::with_default(capture, || {
        run(async |network| {
            let mut server_config = server_config(TransportConfig::default());
            let mut client_config = client_config(TransportConfig::default());
            server_config.observer = Some(marline::trace::observer());
            client_config.observer = Some(marline::trace::observer());
            let server = network.server_endpoint(server_config);
            let client = network.client_endpoint();
            client.set_default_client_config(client_config);
            let accepting = server.clone();
            network.server.run(async move {
                let connection = accepting.accept().await.unwrap().await.unwrap();
                let mut send = connection.open_uni().await.unwrap();
                send.write_chunk(vec![5; LEN].into()).await.unwrap();
                send.finish().unwrap();
                connection.closed().await;
            });
            let connecting = client.connect(server.local_addr(), Identity::NAME);
            let connection = connecting.unwrap().await.unwrap();
            let mut recv = connection.accept_uni().await.unwrap();
            recv.read_to_end(LEN).await.unwrap();
            connection.close(7, b"enough");
            client.wait_idle().await;
            server.wait_idle().await;
        });
    });
    let events = events.lock().unwrap();
    events.clone()
}

/// One test, because the most verbose subscriber of a process decides for all.
#[test]
fn a_subscriber_gets_the_events_of_each_connection_up_to_its_level() {
    let none = events_of_a_transfer(LevelFilter::WARN);
    assert!(none.is_empty(), "{none:?}");

    let few = events_of_a_transfer(LevelFilter::INFO);
    assert!(
        few.iter().all(|event| event.level == Level::INFO),
        "{few:?}"
    );
    let count = |events: &[Recorded], text: &str, side: &str| {
        let matches = |event: &&Recorded| event.fields.contains(text) && event.span.contains(side);
        events.iter().filter(matches).count()
    };
    for (side, remote) in [("client", "10.3.0.2:4433"), ("server", "10.1.0.1:4433")] {
        let in_span = format!("side=\"{side}\"");
        assert_eq!(count(&few, "message=started", &in_span), 1, "{few:?}");
        assert_eq!(count(&few, "message=closed", &in_span), 1, "{few:?}");
        assert!(
            count(&few, "message=path assigned", &in_span) > 0,
            "{few:?}"
        );
        let span = few
            .iter()
            .map(|event| &event.span)
            .find(|span| span.contains(&in_span));
        assert!(
            span.is_some_and(|span| span.contains(&format!("remote={remote}"))),
            "{few:?}"
        );
    }
    assert_eq!(count(&few, "code 7 (enough)", "server"), 1, "{few:?}");

    let id = |side: &str| {
        let mut spans = few.iter().map(|event| &event.span);
        let span = spans.find(|span| span.contains(side)).unwrap();
        span.split(' ')
            .find(|field| field.starts_with("id="))
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        id("client"),
        id("server"),
        "both ends use the same connection ID"
    );

    let more = events_of_a_transfer(LevelFilter::DEBUG);
    assert!(
        count(&more, "new=HandshakeConfirmed", "client") > 0,
        "{more:?}"
    );
    assert!(count(&more, "new=\"startup\"", "server") > 0, "{more:?}");
    assert!(more.iter().any(|event| event.target == "marline::keys"));
    assert!(more.iter().all(|event| event.target != "marline::packet"));

    let all = events_of_a_transfer(LevelFilter::TRACE);
    assert!(count(&all, "message=sent", "server") > 50_000 / 1500);
    assert!(count(&all, "message=received", "client") > 50_000 / 1500);
    assert_eq!(
        few.len(),
        all.iter()
            .filter(|event| event.level == Level::INFO)
            .count(),
        "a transfer in virtual time is deterministic"
    );
}
