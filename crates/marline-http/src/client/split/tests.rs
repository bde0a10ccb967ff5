use std::collections::BTreeMap;
use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use futures_util::future::ready;
use http::HeaderValue;

use super::*;
use crate::client::{ClientConfig, ParsedUrl, Planner, SplitPolicy, Trust, parse_url};
use crate::server::{GeneratedObject, Identity, Server, ServerConfig, generated};

const SIZE: u64 = 3_000_000;

/// Counts the bytes, and closes a connection in the middle of the second third.
struct Closing {
    connection: marline::Connection,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Store for Closing {
    fn write(&self, offset: u64, bytes: Bytes) -> BoxFuture<'_, Result<(), ClientError>> {
        if (SIZE / 3..2 * SIZE / 3).contains(&offset) {
            self.connection.close(0, b"this is a test");
        }
        let mut times = self.bytes.lock().unwrap();
        for byte in &mut times[offset as usize..][..bytes.len()] {
            *byte += 1;
        }
        Box::pin(ready(Ok(())))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_of_a_closed_connection_are_fetched_over_others() {
    let identity = Identity::self_signed(vec!["localhost".to_owned()]).unwrap();
    let object = GeneratedObject {
        size: SIZE,
        content_type: HeaderValue::from_static("application/octet-stream"),
        think: Duration::ZERO,
        content: None,
    };
    let site = generated(BTreeMap::from([("/object".to_owned(), object)]), None).unwrap();
    let server = ServerConfig::new(([127, 0, 0, 1], 0).into(), identity, site);
    let server = Server::bind(server).await.unwrap();
    let url = format!("https://{}/object", server.local_addr());
    tokio::spawn(server.run());
    let client = ClientConfig {
        trust: Trust::Insecure,
        fallback: false,
        ..ClientConfig::default()
    };
    let client = Arc::new(Client::new(client).unwrap());
    let ParsedUrl { origin, uri } = parse_url(&url, client.config().version).unwrap();

    let pooled_connections = NonZeroUsize::new(3).unwrap();
    let planner = Planner::new(SplitPolicy::File, pooled_connections, NonZeroU64::MIN);
    for ranges in [Ranges::Auto, Ranges::Equal, Ranges::Handed] {
        let pooled_connections = client.pooled_connections(&origin, 3);
        for pooled in &pooled_connections {
            pooled.open(&client).await.unwrap();
        }
        let closing = pooled_connections[1].connections()[0]
            .quic()
            .unwrap()
            .clone();
        let times = Arc::new(Mutex::new(vec![0; SIZE as usize]));
        let split = Split::new(Object {
            client: Arc::clone(&client),
            pooled_connections,
            uri: uri.clone(),
            headers: HeaderMap::new(),
            size: SIZE,
            ranges,
            store: Box::new(Closing {
                connection: closing.clone(),
                bytes: Arc::clone(&times),
            }),
        });
        let outcome = split
            .run(planner.split(0..SIZE).collect(), None)
            .await
            .unwrap();
        assert!(matches!(outcome, Outcome::Complete));
        assert!(closing.close_reason().is_some(), "it was closed");
        assert!(times.lock().unwrap().iter().all(|times| *times == 1));
        assert_eq!(split.stored(), SIZE);
    }
}
