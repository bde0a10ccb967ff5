//! Answers to requests for the rest of a file, and unrequested ranges.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_RANGE, ETAG, RANGE};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use marline_http::Body;
use marline_http::client::{
    ClientError, Destination, FetchOptions, HttpVersion, Message, Progress, Report, Target,
};
use marline_http::server::Site;
use tempfile::TempDir;

use crate::common::{TestServer, VERSIONS, client};

/// The answer to a request for a range.
#[derive(Clone, Copy, Debug)]
struct Answer {
    tag: Option<&'static str>,
    range: &'static str,
    content: &'static str,
}

impl Answer {
    /// Without a length of the content beside the range.
    fn response(self) -> Response<Body> {
        let content = Full::new(Bytes::from(self.content)).map_frame(|frame| frame);
        let response = Response::builder()
            .status(StatusCode::PARTIAL_CONTENT)
            .header(CONTENT_RANGE, self.range);
        let response = match self.tag {
            Some(tag) => response.header(ETAG, tag),
            None => response,
        };
        response.body(Body::new(content)).unwrap()
    }
}

/// A site that gives `answer` to requests for a range, and to all if `always`.
fn site(answer: Answer, always: bool) -> Site {
    Site::new(tower::service_fn(
        move |request: Request<Body>| async move {
            let is_range = request.headers().contains_key(RANGE);
            let whole = || {
                let response = Response::builder().header(ETAG, "\"two\"");
                response.body(Body::full("HELLOworld")).unwrap()
            };
            let response = match is_range || always {
                true => answer.response(),
                false => whole(),
            };
            Ok::<_, Infallible>(response)
        },
    ))
}

/// Fetches `/file` into a directory, which may contain its first five bytes.
async fn fetch(server: &TestServer, version: HttpVersion, out: &TempDir, resume: bool) -> Report {
    if resume {
        std::fs::write(out.path().join(".file.part"), "hello").unwrap();
        std::fs::write(out.path().join(".file.part.tag"), "\"one\"").unwrap();
    }
    let target = Target {
        url: server.url(version, "/file"),
        destination: Destination::File(out.path().join("file")),
        size: None,
        message: Message::default(),
    };
    let options = FetchOptions {
        resume,
        ..FetchOptions::default()
    };
    client(version)
        .fetch(vec![target], options, &Arc::new(Progress::default()))
        .await
}

#[tokio::test]
async fn only_the_rest_of_the_same_object_completes_a_part() {
    let right = Answer {
        tag: Some("\"one\""),
        range: "bytes 5-9/10",
        content: "WORLD",
    };
    let untagged = Answer { tag: None, ..right };
    let wrong = [
        Answer {
            tag: Some("\"two\""),
            ..right
        },
        Answer {
            range: "bytes 5-9/999",
            ..right
        },
        Answer {
            range: "bytes 5-9/*",
            ..right
        },
        Answer {
            range: "bytes 5-6/10",
            content: "WO",
            ..right
        },
        Answer {
            content: "WO",
            ..right
        },
        Answer {
            content: "WORLDWORLD",
            ..right
        },
    ];
    let cases = [(right, true), (untagged, true)].into_iter();
    for (answer, is_right) in cases.chain(wrong.map(|answer| (answer, false))) {
        let server = TestServer::site(site(answer, false)).await;
        for version in VERSIONS {
            let out = TempDir::new().unwrap();
            let report = fetch(&server, version, &out, true).await;
            assert_eq!(report.is_complete(), is_right, "{version:?} {answer:?}");
            let saved = std::fs::read_to_string(out.path().join("file")).ok();
            let expected = is_right.then_some("helloWORLD");
            assert_eq!(saved.as_deref(), expected, "{version:?} {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_range_that_nobody_requested_is_not_the_object() {
    let answer = Answer {
        tag: None,
        range: "bytes 5-9/10",
        content: "WORLD",
    };
    let server = TestServer::site(site(answer, true)).await;
    for version in VERSIONS {
        let out = TempDir::new().unwrap();
        let report = fetch(&server, version, &out, false).await;
        let error = report.objects[0].error.as_deref().unwrap_or_default();
        let wrong = ClientError::WrongRange(String::new()).to_string();
        assert!(error.contains(&wrong), "{version:?} {error}");
        assert!(!out.path().join("file").exists(), "{version:?}");
    }
}
