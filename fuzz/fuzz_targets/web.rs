//! The runtime in virtual time and the site that the HTTP targets share.

use std::convert::Infallible;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use marline_http::Body;
use marline_http::server::Site;
use tokio::runtime::{Builder, Runtime};
use tower::util::BoxCloneSyncService;

/// Virtual time that exceeds the sum of all timeouts of a connection.
pub const END: Duration = Duration::from_secs(3600);

/// Maximum size of the content of a request, in bytes.
const MAX_CONTENT: usize = 1 << 14;

pub fn runtime() -> Runtime {
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build();
    runtime.expect("a runtime starts")
}

/// Echoes the content of POST, answers GET, and rejects other methods without reading content. Checks that complete content
/// has the announced length.
pub fn site() -> Site {
    BoxCloneSyncService::new(tower::service_fn(answer))
}

async fn answer(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let status = |status: StatusCode| {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status;
        response
    };
    Ok(match *request.method() {
        Method::GET => Response::new(Body::full("hello")),
        Method::POST => {
            let announced = request.headers().get(http::header::CONTENT_LENGTH).cloned();
            let content = Limited::new(request.into_body(), MAX_CONTENT)
                .collect()
                .await;
            match content.map(|content| content.to_bytes()) {
                Ok(content) => {
                    if let Some(length) = announced {
                        assert_eq!(length.to_str().ok(), Some(&*content.len().to_string()));
                    }
                    Response::new(Body::full(content))
                }
                Err(_) => status(StatusCode::BAD_REQUEST),
            }
        }
        _ => status(StatusCode::METHOD_NOT_ALLOWED),
    })
}
