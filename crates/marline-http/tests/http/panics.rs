//! Sites with defects.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request, Response};
use marline_http::Body;
use marline_http::server::{AccessLog, Site, report_panics_in_one_line};
use tower::service_fn;

use crate::common::{TestServer, VERSIONS};
use crate::log::Lines;
use crate::metrics::wait_for;

/// Content that panics after its first part.
struct Panics(Option<Bytes>);

impl http_body::Body for Panics {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        let part = self.0.take().expect("the content of a test panics");
        Poll::Ready(Some(Ok(http_body::Frame::data(part))))
    }
}

fn site() -> Site {
    Site::new(service_fn(async |request: Request<Body>| {
        Ok::<_, Infallible>(match request.uri().path() {
            "/site" => panic!("the site of a test panics"),
            "/content" => Response::new(Body::new(Panics(Some(Bytes::from_static(b"begun"))))),
            _ => Response::new(Body::full("content")),
        })
    }))
}

#[tokio::test]
async fn a_panic_fails_one_request() {
    let log = Lines::default();
    let server = TestServer::with(site(), |config| {
        config.access_log = Some(AccessLog::new(log.clone()));
        config.metrics = Some(([127, 0, 0, 1], 0).into());
    })
    .await;
    for version in VERSIONS {
        let visitor = server.connect(version).await;
        let (head, content) = visitor.get("/site", &[]).await;
        assert_eq!(
            (head.status().as_u16(), content.len()),
            (500, 0),
            "{version:?}"
        );
        let (_, content) = visitor.get("/", &[]).await;
        assert_eq!(content, b"content", "{version:?}: the connection goes on");
        let failed = match visitor.try_send(Method::GET, "/content", &[]).await {
            // HTTP/1.1 had not sent the header yet.
            Err(_) => true,
            Ok(mut response) => loop {
                match response.body_mut().chunk().await {
                    Ok(Some(_)) => {}
                    Ok(None) => break false,
                    Err(_) => break true,
                }
            },
        };
        assert!(failed, "{version:?}: content that has failed looks whole");
    }
    let lines = log.wait(3 * VERSIONS.len()).await;
    for line in lines {
        let (status, complete) = match line["path"].as_str().unwrap() {
            "/site" => (500, true),
            "/content" => (200, false),
            _ => (200, true),
        };
        assert_eq!(
            (&line["status"], &line["complete"]),
            (&status.into(), &complete.into()),
            "{line}"
        );
    }
    wait_for(&server, "marline_http_handler_panics_total 8").await;
}

/// Run by the test below in a process of its own: the hook is shared by all threads.
#[tokio::test]
#[ignore = "part of another test"]
async fn panic_with_the_hook() {
    report_panics_in_one_line();
    let server = TestServer::site(site()).await;
    let visitor = server.connect(VERSIONS[0]).await;
    assert_eq!(visitor.get("/site", &[]).await.0.status(), 500);
}

#[test]
fn a_panic_of_a_site_is_one_line() {
    let test = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "panics::panic_with_the_hook",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env("RUST_BACKTRACE", "1")
        .output()
        .unwrap();
    let errors = String::from_utf8(test.stderr).unwrap();
    assert!(test.status.success(), "{errors}");
    let lines: Vec<_> = errors.lines().collect();
    let [line] = lines[..] else {
        panic!("{errors}");
    };
    assert!(
        line.starts_with("marline: a request failed by a defect of this program at "),
        "{line}"
    );
    assert!(line.ends_with(": the site of a test panics"), "{line}");
}
