//! A file server over any HTTP/3 transport.

use std::path::Path;
use std::sync::Arc;

use bytes::{Buf as _, Bytes};
use h3::quic;
use h3::server::RequestStream;
use http::{Method, Response, StatusCode};

use crate::files;

/// Answers requests of one connection until it is closed.
pub async fn serve<C>(transport: C, www: Arc<Path>)
where
    C: quic::Connection<Bytes> + Send + 'static,
    C::BidiStream: quic::BidiStream<Bytes> + Send + 'static,
    C::RecvStream: Send,
    C::SendStream: Send,
    C::OpenStreams: Send,
    <C::BidiStream as quic::BidiStream<Bytes>>::SendStream: Send,
    <C::BidiStream as quic::BidiStream<Bytes>>::RecvStream: Send,
{
    let mut connection = match h3::server::Connection::new(transport).await {
        Ok(connection) => connection,
        Err(error) => return eprintln!("connection: {error}"),
    };
    loop {
        match connection.accept().await {
            Ok(Some(resolver)) => {
                let www = Arc::clone(&www);
                tokio::spawn(async move {
                    let (request, stream) = match resolver.resolve_request().await {
                        Ok(resolved) => resolved,
                        Err(error) => return eprintln!("request: {error}"),
                    };
                    let path = request.uri().path().to_owned();
                    let done = match *request.method() {
                        Method::POST => echo(stream).await,
                        _ => respond(stream, &www, &path).await,
                    };
                    if let Err(error) = done {
                        eprintln!("{path}: {error}");
                    }
                });
            }
            Ok(None) => break,
            Err(error) => {
                if !error.is_h3_no_error() {
                    eprintln!("connection: {error}");
                }
                break;
            }
        }
    }
}

async fn respond<S: quic::BidiStream<Bytes>>(
    stream: RequestStream<S, Bytes>,
    www: &Path,
    path: &str,
) -> Result<(), h3::error::StreamError> {
    let content = files::resolve(www, path).and_then(|file| std::fs::read(file).ok());
    let status = match content {
        Some(_) => StatusCode::OK,
        None => StatusCode::NOT_FOUND,
    };
    answer(stream, status, content.unwrap_or_default().into()).await
}

/// Echoes the content of a request when it is complete.
async fn echo<S: quic::BidiStream<Bytes>>(
    mut stream: RequestStream<S, Bytes>,
) -> Result<(), h3::error::StreamError> {
    let mut content = Vec::new();
    while let Some(mut chunk) = stream.recv_data().await? {
        while chunk.has_remaining() {
            let part = chunk.chunk();
            content.extend_from_slice(part);
            let length = part.len();
            chunk.advance(length);
        }
    }
    answer(stream, StatusCode::OK, content.into()).await
}

async fn answer<S: quic::BidiStream<Bytes>>(
    mut stream: RequestStream<S, Bytes>,
    status: StatusCode,
    content: Bytes,
) -> Result<(), h3::error::StreamError> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(http::header::CONTENT_LENGTH, content.len().into());
    stream.send_response(response).await?;
    if !content.is_empty() {
        stream.send_data(content).await?;
    }
    stream.finish().await
}
