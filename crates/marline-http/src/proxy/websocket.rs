//! WebSockets: extended CONNECT (RFC 8441, RFC 9220) and Upgrades of clients to an Upgrade of HTTP/1.1 at applications (RFC
//! 6455), or to extended CONNECT at those of HTTP/3 and of HTTP/2 without TLS.

use std::hash::{BuildHasher, Hasher, RandomState};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use marline_h3::Protocol;
use sha1::{Digest, Sha1};

use super::failure::{Failure, cause};
use super::fields;
use super::request_body::HeldBody;
use super::tunnel::{Joined, Task};
use crate::body::Body;

/// The name of the protocol in `Upgrade` and `:protocol`.
pub(super) const WEBSOCKET: &str = "websocket";

/// Turns the header of an extended CONNECT into that of an Upgrade. `key` is the nonce for clients that have sent none,
/// as over HTTP/2 and 3; returns the value of `Sec-WebSocket-Accept` that the answer to it must have.
pub(super) fn ask_for_upgrade(headers: &mut HeaderMap, key: [u8; 16]) -> Option<HeaderValue> {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static(WEBSOCKET));
    headers.remove(CONTENT_LENGTH);
    headers
        .entry(SEC_WEBSOCKET_VERSION)
        .or_insert(HeaderValue::from_static("13"));
    if headers.contains_key(SEC_WEBSOCKET_KEY) {
        return None;
    }
    let key = HeaderValue::try_from(STANDARD.encode(key)).ok()?;
    let answer = accept(&key);
    headers.insert(SEC_WEBSOCKET_KEY, key);
    answer
}

/// Turns a request for an Upgrade into one by extended CONNECT over `version`; others stay.
pub(super) fn ask_for_tunnel(request: &mut Request<()>, version: Version) {
    let headers = request.headers_mut();
    if headers.remove(UPGRADE).is_none() {
        return;
    }
    headers.remove(CONNECTION);
    headers.remove(SEC_WEBSOCKET_KEY);
    *request.method_mut() = Method::CONNECT;
    let extensions = request.extensions_mut();
    if version == Version::HTTP_2 {
        extensions.insert(hyper::ext::Protocol::from_static(WEBSOCKET));
    } else if let Some(protocol) = Protocol::new(WEBSOCKET) {
        extensions.insert(protocol);
    }
}

/// The value of `Sec-WebSocket-Accept` for a key (RFC 6455, section 4.2.2).
pub(super) fn accept(key: &HeaderValue) -> Option<HeaderValue> {
    let mut hash = Sha1::new();
    hash.update(key.as_bytes());
    hash.update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    HeaderValue::try_from(STANDARD.encode(hash.finalize())).ok()
}

/// A new nonce. It only keeps caches from answering, so that the hash of a random state is enough.
pub(super) fn nonce() -> [u8; 16] {
    let half = || RandomState::new().build_hasher().finish().to_be_bytes();
    let mut nonce = [0; 16];
    nonce[..8].copy_from_slice(&half());
    nonce[8..].copy_from_slice(&half());
    nonce
}

/// A tunnel through an application that has changed to the protocol.
pub(super) struct Upgraded {
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
    /// Sends the content of the client; `None` if the connection of the application does.
    pub(super) task: Option<Task>,
}

/// A tunnel through an application that has accepted extended CONNECT. Over HTTP/3 it takes the content of the client as that of a
/// request; over HTTP/2, `content` is joined with it. `key` is that of a client that has asked for an Upgrade.
///
/// # Errors
/// The connection has ended.
pub(super) async fn connected(
    mut response: Response<Body>,
    content: &HeldBody,
    key: Option<&HeaderValue>,
) -> Result<Upgraded, Failure> {
    let mut headers = std::mem::take(response.headers_mut());
    fields::remove_hop_by_hop(&mut headers);
    headers.remove(CONTENT_LENGTH);
    headers.remove(SEC_WEBSOCKET_ACCEPT);
    if let Some(accept) = key.and_then(accept) {
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    if response.version() != Version::HTTP_2 {
        return Ok(Upgraded {
            headers,
            body: response.into_body(),
            task: None,
        });
    }
    let Joined { body, task } = join(&mut response, content).await?;
    Ok(Upgraded {
        headers,
        body,
        task: Some(task),
    })
}

/// Joins `content` with the stream that hyper has for `response`.
async fn join(response: &mut Response<Body>, content: &HeldBody) -> Result<Joined, Failure> {
    let on = hyper::upgrade::on(response);
    let stream = on.await.map_err(|error| Failure::Response(cause(&error)))?;
    let (read, write) = tokio::io::split(TokioIo::new(stream));
    Ok(Joined::new(read, write, content.to_body()))
}

/// Joins `content`, sent by the client, with the connection of `response`. `accept` is the required value of
/// `Sec-WebSocket-Accept`, if the client does not check it.
///
/// # Errors
/// The response does not change to the protocol.
pub(super) async fn upgraded(
    mut response: Response<Body>,
    content: &HeldBody,
    accept: Option<HeaderValue>,
) -> Result<Upgraded, Failure> {
    let malformed = |what: &str| Failure::Response(what.to_owned());
    let upgrade: Option<&HeaderValue> = response.headers().get(UPGRADE);
    let is_websocket =
        upgrade.is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(WEBSOCKET.as_bytes()));
    if response.status() != StatusCode::SWITCHING_PROTOCOLS || !is_websocket {
        return Err(malformed("it does not change to the protocol websocket"));
    }
    let Some(accepted) = response.headers().get(SEC_WEBSOCKET_ACCEPT) else {
        return Err(malformed("it accepts no websocket"));
    };
    if accept.as_ref().is_some_and(|accept| accept != accepted) {
        return Err(malformed("it accepts another websocket"));
    }
    let Joined { body, task } = join(&mut response, content).await?;
    let mut headers = std::mem::take(response.headers_mut());
    fields::remove_hop_by_hop(&mut headers);
    headers.remove(CONTENT_LENGTH);
    if accept.is_some() {
        headers.remove(SEC_WEBSOCKET_ACCEPT);
    }
    Ok(Upgraded {
        headers,
        body,
        task: Some(task),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_accepted_as_in_rfc_6455() {
        let key = HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(accept(&key).unwrap(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
