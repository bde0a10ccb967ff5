//! Interim responses (RFC 9110, section 15.2).

use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, Request, Response, StatusCode};

/// The extension of a request that takes its interim responses (1xx), in order and before the response.
///
/// A server adds it to requests whose client gets what it [takes](Self::send): those over HTTP/3, as it sends none over the other
/// versions but the `100 Continue` of its own. A client that finds it in a request gives it what arrives over HTTP/3 and 1.1; over
/// HTTP/2, hyper passes interim responses over.
#[derive(Clone)]
pub struct Interim(Arc<dyn Fn(Response<()>) + Send + Sync>);

impl Interim {
    /// `take` is called with each of them. It must not block.
    pub fn new(take: impl Fn(Response<()>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    /// Takes an interim response. Other responses are dropped, and so is `101 Switching Protocols`, which is the last
    /// response on an HTTP/1.1 connection.
    pub fn send(&self, response: Response<()>) {
        let status = response.status();
        if status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS {
            (self.0)(response);
        }
    }

    /// The same for the parts of a response.
    pub(crate) fn send_parts(&self, status: StatusCode, headers: &HeaderMap) {
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.headers_mut() = headers.clone();
        self.send(response);
    }
}

impl fmt::Debug for Interim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interim").finish_non_exhaustive()
    }
}

/// Has hyper report the interim responses to a request over HTTP/1.1 to its extension, if it has one.
pub(crate) fn report_over_http1<B>(request: &mut Request<B>) {
    let Some(interim) = request.extensions().get::<Interim>().cloned() else {
        return;
    };
    hyper::ext::on_informational(request, move |response| {
        interim.send_parts(response.status(), response.headers());
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn only_interim_responses_are_taken() {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let taking = Arc::clone(&taken);
        let interim = Interim::new(move |response: Response<()>| {
            taking.lock().unwrap().push(response.status().as_u16());
        });
        for status in [100, 101, 103, 199, 200, 404] {
            let status = StatusCode::from_u16(status).unwrap();
            interim.send_parts(status, &HeaderMap::new());
        }
        assert_eq!(*taken.lock().unwrap(), [100, 103, 199]);
    }
}
