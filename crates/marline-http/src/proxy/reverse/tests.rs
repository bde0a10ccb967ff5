//! The headers that are passed on, for messages that no correct endpoint sends.

use http::HeaderMap;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::proxy::ForwardedFields;
use crate::proxy::testing::{check_claims_nothing, check_passed_on, headers};

/// The fields `Via`, `Forwarded`, `X-Forwarded-...` and `Host` that are added, without the host in them.
const ADDED: usize = 600;

fn proxy(url: &str, forwarded: ForwardedFields) -> Proxy {
    let config = ProxyConfig {
        forwarded,
        ..ProxyConfig::to(vec![url.parse().expect("it is a URL")])
    };
    Proxy::new(config, &UpstreamMetrics::default()).expect("it needs no file")
}

fn request(headers: HeaderMap, version: Version) -> Request<()> {
    let mut request = Request::new(());
    *request.headers_mut() = headers;
    *request.version_mut() = version;
    *request.uri_mut() = "/path".parse().expect("it is a path");
    request
}

proptest! {
    #[test]
    fn nothing_about_a_connection_and_no_claim_reaches_an_application(
        received in headers(),
        version in select(&[Version::HTTP_11, Version::HTTP_2, Version::HTTP_3][..]),
        forwarded in select(&[ForwardedFields::Both, ForwardedFields::None][..]),
        url in select(&["http://a", "h2c://a"][..]),
        has_content in any::<bool>(),
    ) {
        let proxy = proxy(url, forwarded);
        let body = if has_content { Body::full("12345") } else { Body::empty() };
        let content = HeldBody::new(body, false, &http::Extensions::new());
        let Ok(head) = proxy.prepare(request(received.clone(), version), &content) else {
            // It has passed too many proxies, or its lengths differ.
            return Ok(());
        };
        let upstream = &proxy.upstreams.all()[0];
        let to = if url.starts_with("h2c") { Version::HTTP_2 } else { Version::HTTP_11 };
        let passed = proxy.address(&head, upstream, to, &content);
        let own = [("te", "trailers"), ("connection", "te"), ("transfer-encoding", "chunked")];
        let host = received.get(HOST).map_or(0, HeaderValue::len);
        check_passed_on(&received, passed.headers(), &own, ADDED + 2 * host)?;
        check_claims_nothing(&received, passed.headers())?;
    }

    #[test]
    fn nothing_about_a_connection_is_in_trailers_and_interim_responses(received in headers()) {
        let mut trailers = received.clone();
        fields::clean_trailers(&mut trailers);
        check_passed_on(&received, &trailers, &[], 0)?;
        check_claims_nothing(&received, &trailers)?;
        prop_assert!(!trailers.contains_key(CONTENT_LENGTH) && !trailers.contains_key(HOST));

        let mut interim = Response::new(());
        *interim.headers_mut() = received.clone();
        if let Some(passed) = fields::interim(interim.clone(), Version::HTTP_11, usize::MAX) {
            check_passed_on(&received, passed.headers(), &[], ADDED)?;
            prop_assert!(!passed.headers().contains_key(CONTENT_LENGTH));
        }
        let size = fields::size(&received);
        if size > 0 {
            prop_assert!(fields::interim(interim, Version::HTTP_11, size - 1).is_none());
        }
    }

    #[test]
    fn the_response_of_an_application_is_passed_back_without_its_connection(received in headers()) {
        let mut passed = received.clone();
        fields::remove_hop_by_hop(&mut passed);
        if fields::add_via(&mut passed, Version::HTTP_11).is_ok() {
            check_passed_on(&received, &passed, &[], ADDED)?;
        }
    }
}
