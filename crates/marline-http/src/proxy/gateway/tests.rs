//! The headers that are passed on to an origin, for requests that no correct program sends.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;

use super::*;
use crate::client::{ClientConfig, Trust, parse_url};
use crate::proxy::testing::{check_passed_on, headers};

/// The fields `Via` and `TE` that are added.
const ADDED: usize = 100;

fn gateway() -> Gateway {
    let client = Arc::new(
        Client::new(ClientConfig {
            trust: Trust::Insecure,
            fallback: false,
            ..ClientConfig::default()
        })
        .expect("its configuration is valid"),
    );
    let url = "https://origin.test/";
    let origin = parse_url(url, HttpVersion::Http3)
        .expect("it is a URL")
        .origin;
    Gateway {
        connections: Connections::new(Arc::clone(&client), &origin, 1),
        client,
        origin,
        scheme: "https",
        shown: "https://origin.test".to_owned(),
        hosts: Hosts::Any,
        idle_timeout: Duration::from_secs(1),
    }
}

#[tokio::test]
async fn nothing_about_a_connection_reaches_the_origin() {
    let gateway = gateway();
    let versions = select(&[Version::HTTP_11, Version::HTTP_2, Version::HTTP_3][..]);
    let passing = |(received, version)| {
        let received: HeaderMap = received;
        let mut head = Request::new(());
        *head.headers_mut() = received.clone();
        *head.version_mut() = version;
        // It has passed too many proxies, or its lengths differ.
        let Ok(head) = gateway.prepare(head) else {
            return Ok(());
        };
        let own = [("te", "trailers")];
        check_passed_on(&received, head.headers(), &own, ADDED)?;
        for removed in ["host", "expect", "sec-websocket-key"] {
            prop_assert!(!head.headers().contains_key(removed), "{removed}");
        }
        Ok(())
    };
    let mut runner = TestRunner::default();
    runner
        .run(&(headers(), versions), passing)
        .unwrap_or_else(|error| panic!("{error}"));
}
