//! Fetches in ranges, from servers with faults.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_RANGE, ETAG, IF_RANGE, RANGE};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::Frame;
use marline_http::client::{
    ClientError, Destination, FetchOptions, Message, ObjectReport, Progress, Ranges, Report, Target,
};
use marline_http::server::{Site, generated};
use marline_http::{Body, BoxError};
use marline_sim::Host;
use tempfile::TempDir;
use tower::ServiceExt;

use crate::setup::{Network, PORT, client, object, run, serve_site};

const SIZE: u64 = 400_003;
const FIRST: u64 = 50_000;

/// A fault of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// It ignores `Range`.
    Whole,
    /// Its responses have no validator.
    NoValidator,
    /// The object changes before this request, counted from 0.
    Changes(usize),
    /// One response fails.
    Breaks(usize),
    /// All responses to range requests fail.
    AllBreak,
    /// One request is refused.
    Refuses(usize),
    /// All requests are refused.
    Missing,
    /// One response has another range than requested.
    Shifts(usize),
    /// One response is slow.
    IsSlow(usize),
    /// One response never ends.
    Stalls(usize),
}

impl Fault {
    fn before(self, number: usize, request: &mut Request<Body>) {
        let changed = matches!(self, Self::Changes(from) if number >= from);
        if self == Self::Whole || (changed && request.headers().contains_key(IF_RANGE)) {
            request.headers_mut().remove(RANGE);
        }
    }

    fn after(self, number: usize, mut response: Response<Body>) -> Response<Body> {
        let headers = response.headers_mut();
        let ranged = headers.contains_key(CONTENT_RANGE);
        match self {
            Self::NoValidator => {
                headers.remove(ETAG);
            }
            Self::Changes(from) if number >= from => {
                headers.insert(ETAG, HeaderValue::from_static("\"new\""));
            }
            Self::Shifts(chosen) if number == chosen => {
                let shifted = HeaderValue::from_static("bytes 1-2/400003");
                headers.insert(CONTENT_RANGE, shifted);
            }
            Self::Missing => *response.status_mut() = StatusCode::NOT_FOUND,
            Self::Refuses(chosen) if number == chosen => {
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            }
            _ => {}
        }
        let breaks = match self {
            Self::Breaks(chosen) => number == chosen,
            Self::AllBreak => ranged,
            _ => false,
        };
        if self == Self::Stalls(number) {
            return response.map(|body| Body::new(Stalling { body, begun: false }));
        }
        match breaks {
            true => response.map(|body| {
                Body::new(Breaking {
                    body,
                    broken: false,
                })
            }),
            false => response,
        }
    }
}

/// A body that fails at its first frame.
struct Breaking {
    body: Body,
    broken: bool,
}

impl http_body::Body for Breaking {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.broken {
            return Poll::Ready(Some(Err("this is a test".into())));
        }
        self.broken = true;
        let half = |frame: Frame<Bytes>| frame.map_data(|data| data.slice(..data.len() / 2));
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        frame.map(|frame| frame.map(|frame| frame.map(half)))
    }
}

/// A body that never continues after its first frame.
struct Stalling {
    body: Body,
    begun: bool,
}

impl http_body::Body for Stalling {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.begun {
            return Poll::Pending;
        }
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        self.begun = frame.is_ready();
        frame
    }
}

/// A site with `fault`.
fn site(host: &Host, fault: Fault) -> Site {
    let objects = BTreeMap::from([("/object".to_owned(), object(SIZE, Duration::ZERO))]);
    let site = generated(objects, Some(Arc::new(host.clone()))).unwrap();
    let requests = Arc::new(AtomicUsize::new(0));
    let host = host.clone();
    Site::new(tower::service_fn(move |mut request: Request<Body>| {
        let (site, host) = (site.clone(), host.clone());
        let number = requests.fetch_add(1, Relaxed);
        async move {
            fault.before(number, &mut request);
            if fault == Fault::IsSlow(number) {
                host.sleep(Duration::from_millis(400)).await;
            }
            let response = site.oneshot(request).await?;
            Ok::<_, Infallible>(fault.after(number, response))
        }
    }))
}

struct Fetched {
    report: Report,
    progress: Arc<Progress>,
    /// The report and all times, to the nanosecond.
    text: String,
}

impl Fetched {
    fn object(&self) -> &ObjectReport {
        &self.report.objects[0]
    }
}

/// Fetches the object over three open connections.
fn fetch(fault: Fault, ranges: Ranges, size: Option<u64>, split: bool) -> Fetched {
    fetch_after(|_| {}, fault, ranges, size, split)
}

/// As [`fetch`], on a network modified by `change`.
fn fetch_after(
    change: impl FnOnce(&Network),
    fault: Fault,
    ranges: Ranges,
    size: Option<u64>,
    split: bool,
) -> Fetched {
    let out = TempDir::new().unwrap();
    let progress = Arc::new(Progress::default());
    let report = run(async |network| {
        change(network);
        let host = &network.servers[0];
        let serving = serve_site(host, site(host, fault)).await;
        let client = client(&network.client, [("example.test", serving.address)]);
        let url = "https://example.test/object".to_owned();
        client.open(&url, 3).await.unwrap();
        let target = Target {
            url,
            destination: Destination::File(out.path().join("object")),
            size,
            message: Message::default(),
        };
        let options = FetchOptions {
            connections: 3,
            split: NonZeroU64::new(FIRST).filter(|_| split),
            ranges,
            ..FetchOptions::default()
        };
        client.fetch(vec![target], options, &progress).await
    });
    let left = std::fs::read_dir(out.path()).unwrap().count();
    assert_eq!(left, usize::from(report.objects[0].error.is_none()));
    let mut comparable = report.clone();
    comparable.objects[0].file = None;
    Fetched {
        text: format!("{comparable:?}"),
        report,
        progress,
    }
}

/// The methods to split the object: the kind of ranges, and the size if it is known.
const SPLITS: [(Ranges, Option<u64>); 6] = [
    (Ranges::Auto, None),
    (Ranges::Auto, Some(SIZE)),
    (Ranges::Equal, None),
    (Ranges::Equal, Some(SIZE)),
    (Ranges::Handed, None),
    (Ranges::Handed, Some(SIZE)),
];

fn hash() -> String {
    let whole = fetch(Fault::None, Ranges::Equal, None, false);
    whole.object().sha256.clone().unwrap()
}

#[test]
fn objects_arrive_complete_despite_faults_of_the_server() {
    let hash = hash();
    let numbered = (0..3).flat_map(|number| {
        [
            Fault::Changes(number),
            Fault::Breaks(number),
            Fault::Shifts(number),
            Fault::IsSlow(number),
        ]
    });
    let faults = [Fault::None, Fault::Whole, Fault::NoValidator];
    for fault in faults.into_iter().chain(numbered) {
        for (ranges, size) in SPLITS {
            let what = format!("{fault:?} {ranges:?} {size:?}");
            let fetched = fetch(fault, ranges, size, true);
            let object = fetched.object();
            assert_eq!(object.error, None, "{what}");
            assert_eq!(object.sha256.as_ref(), Some(&hash), "{what}");
            assert_eq!(object.bytes, SIZE, "{what}");
            assert!(object.first_byte_s.is_some() && object.connection.is_some());
            assert!(matches!(object.status, Some(200 | 206)), "{what}");
            let (received, expected) = (&fetched.progress.received, &fetched.progress.expected);
            let counted = [received, expected].map(|count| count.load(Relaxed));
            assert_eq!(counted, [SIZE, SIZE], "{what}");
            assert_eq!(fetched.text, fetch(fault, ranges, size, true).text);
        }
    }
}

#[test]
fn a_wrong_size_does_not_change_the_object() {
    let hash = hash();
    for size in [FIRST, FIRST + 1, SIZE - 1, SIZE + 1, 10 * SIZE] {
        for ranges in [Ranges::Equal, Ranges::Handed] {
            let fetched = fetch(Fault::None, ranges, Some(size), true);
            assert_eq!(fetched.object().sha256.as_ref(), Some(&hash), "{size}");
        }
    }
}

#[test]
fn an_object_that_no_connection_delivers_is_an_error() {
    for (ranges, size) in SPLITS {
        let fetched = fetch(Fault::AllBreak, ranges, size, true);
        let failure = fetched.object().failure.as_deref();
        assert!(
            matches!(
                failure,
                Some(ClientError::Truncated { .. } | ClientError::NoResponse { .. })
            ),
            "{failure:?}"
        );
        let fetched = fetch(Fault::Missing, ranges, size, true);
        assert_eq!(fetched.object().status, Some(404));
        let error = fetched.object().error.as_deref().unwrap();
        assert!(error.contains("404"), "{error}");
    }
}

#[test]
fn a_refused_range_is_requested_again() {
    let hash = hash();
    for ranges in [Ranges::Equal, Ranges::Handed] {
        for refused in 1..4 {
            let fetched = fetch(Fault::Refuses(refused), ranges, None, true);
            assert_eq!(fetched.object().sha256.as_ref(), Some(&hash), "{refused}");
        }
    }
}

#[test]
fn a_known_size_saves_a_round_trip() {
    let end_s = |size| fetch(Fault::None, Ranges::Equal, size, true).object().end_s;
    let saved = end_s(None) - end_s(Some(SIZE));
    assert!((0.02..0.08).contains(&saved), "{saved}");
}

#[test]
fn a_stalled_range_is_handed_to_another_connection() {
    let end_s = |fault, ranges| fetch(fault, ranges, Some(SIZE), true).object().end_s;
    let [equal, handed] = [Ranges::Equal, Ranges::Handed].map(|ranges| end_s(Fault::None, ranges));
    assert!(
        handed < equal + 0.01,
        "no range is handed over: {handed} {equal}"
    );
    for stalled in 0..3 {
        let fetched = fetch(Fault::Stalls(stalled), Ranges::Handed, Some(SIZE), true);
        assert_eq!(fetched.object().sha256, Some(hash()), "{stalled}");
        assert_eq!(fetched.progress.received.load(Relaxed), SIZE);
        let end_s = fetched.object().end_s;
        assert!((1.0..1.6).contains(&end_s), "{end_s}");
    }
}

#[test]
fn the_ranges_of_a_stalled_connection_are_requested_on_others() {
    let hash = hash();
    for chosen in 0..3 {
        // Of one connection, all packets of the server after the first 40 kB are lost.
        let blackhole = |network: &Network| {
            let mut seen: Vec<Vec<u8>> = Vec::new();
            let mut sent = 0;
            network.access.lose_if(move |_, packet| {
                let bytes = &packet.body.payload;
                let short = bytes[0] & 0x80 == 0;
                if packet.body.source.port() != PORT || !short {
                    return false;
                }
                let id = bytes[1..9].to_vec();
                let known = seen.iter().position(|seen| *seen == id);
                let number = known.unwrap_or_else(|| {
                    seen.push(id);
                    seen.len() - 1
                });
                sent += if number == chosen { bytes.len() } else { 0 };
                number == chosen && sent > 40_000
            });
        };
        let size = Some(SIZE);
        let fetched = fetch_after(blackhole, Fault::None, Ranges::Handed, size, true);
        let object = fetched.object();
        assert_eq!(
            (&object.error, object.sha256.as_ref()),
            (&None, Some(&hash))
        );
        assert_eq!(fetched.progress.received.load(Relaxed), SIZE);
        assert!((1.0..2.0).contains(&object.end_s), "{}", object.end_s);
    }
}
