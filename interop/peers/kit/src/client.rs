//! The client of every case, over any HTTP/3 transport.

use std::future::{self, Future};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use bytes::{Buf as _, Bytes};
use h3::client::{RequestStream, SendRequest};
use h3::quic;
use http::Request;
use tokio::task::JoinSet;

use crate::cli::ClientArgs;
use crate::files;
use crate::multipath::{self, Multipath};
use crate::outcome::{Failure, Outcome};

/// Number of concurrent requests on one connection.
const IN_FLIGHT: usize = 128;
/// The time to wait after the first connection for the server's session ticket.
const TICKET_WAIT: Duration = Duration::from_millis(300);
/// Bytes that a multipath client uploads to be echoed.
const UPLOAD: usize = 2 << 20;
/// Time from the start of the transfer to changes of paths.
const CHANGE: Duration = Duration::from_millis(500);

/// Time limit for closing connections.
pub const GOODBYE: Duration = Duration::from_secs(1);

/// Resolves to whether the server accepted 0-RTT.
pub type EarlyAccepted = Pin<Box<dyn Future<Output = bool> + Send>>;

/// Completes when the key update was initiated.
pub type UpdateKeys = Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send>>;

/// A connection that a [`Stack`] opened.
pub struct Link<T> {
    /// The HTTP/3 transport.
    pub transport: T,
    /// Present if the connection started with 0-RTT.
    pub early: Option<EarlyAccepted>,
    /// Initiates a key update, as soon as one is allowed.
    pub update_keys: Box<dyn Fn() -> UpdateKeys + Send>,
    /// Moves the client to another local port.
    pub migrate: Box<dyn Fn() -> io::Result<()> + Send>,
    /// Its paths, if the stack supports multipath.
    pub multipath: Option<Arc<dyn Multipath>>,
}

/// Why a connection could not be established.
pub enum ConnectError {
    /// The server sent a Version Negotiation packet without a common version.
    VersionMismatch,
    /// Another error.
    Other(anyhow::Error),
}

/// The client API of a QUIC stack.
pub trait Stack {
    /// The HTTP/3 transport over a connection of this stack.
    type Transport: quic::Connection<Bytes, OpenStreams = Self::Opener, RecvStream: Send, SendStream: Send>
        + Send
        + 'static;
    /// Its stream opener.
    type Opener: quic::OpenStreams<Bytes, BidiStream: Send> + Clone + Send + 'static;

    /// Opens a connection, with 0-RTT if `early` and a ticket allows it.
    fn connect(
        &self,
        early: bool,
    ) -> impl Future<Output = Result<Link<Self::Transport>, ConnectError>>;

    /// Full handshakes so far: those in which a certificate was verified.
    fn full_handshakes(&self) -> usize;
}

/// Any local address and port of the family of `server`.
#[must_use]
pub fn any_address(server: SocketAddr) -> SocketAddr {
    match server {
        SocketAddr::V4(_) => (Ipv4Addr::LOCALHOST, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::LOCALHOST, 0).into(),
    }
}

/// The same for clients of multipath cases, which can send from any of their addresses.
#[must_use]
pub fn any_address_for(args: &ClientArgs) -> SocketAddr {
    match args.server {
        SocketAddr::V4(_) if !args.address.is_empty() => (Ipv4Addr::UNSPECIFIED, 0).into(),
        server => any_address(server),
    }
}

/// Runs the client of the case in `args`.
pub async fn run<S: Stack>(stack: &S, args: &ClientArgs) -> Outcome {
    let paths = args.all_paths()?;
    match args.case.as_str() {
        "versionnegotiation" => version_negotiation(stack).await,
        "handshakeloss" | "handshakecorruption" => {
            for path in &paths {
                let session = open(stack, args, false).await?;
                session.fetch(std::slice::from_ref(path)).await?;
                session.close().await;
            }
            Ok(())
        }
        "resumption" | "zerortt" => reconnect(stack, args, &paths).await,
        "keyupdate" => {
            let session = open(stack, args, false).await?;
            let (first, rest) = paths.split_at(1);
            session.fetch(first).await?;
            (session.update_keys)().await?;
            session.fetch(rest).await?;
            session.close().await;
            Ok(())
        }
        "connectionmigration" => {
            let session = open(stack, args, false).await?;
            let (first, rest) = paths.split_at(1);
            session.fetch(first).await?;
            (session.migrate)()?;
            session.fetch(rest).await?;
            session.close().await;
            Ok(())
        }
        case if multipath::is_wanted(case, false) => several_paths(stack, args, &paths).await,
        _ => {
            let session = open(stack, args, false).await?;
            session.fetch(&paths).await?;
            session.close().await;
            Ok(())
        }
    }
}

async fn version_negotiation<S: Stack>(stack: &S) -> Outcome {
    match stack.connect(false).await {
        // A stack may fall back; the relay's report shows whether there was a negotiation.
        Ok(_) | Err(ConnectError::VersionMismatch) => Ok(()),
        Err(ConnectError::Other(error)) => Err(Failure::Error(error)),
    }
}

async fn reconnect<S: Stack>(stack: &S, args: &ClientArgs, paths: &[String]) -> Outcome {
    let early = args.case == "zerortt";
    let (first, rest) = paths.split_at(1);
    let session = open(stack, args, false).await?;
    session.fetch(first).await?;
    tokio::time::sleep(TICKET_WAIT).await;
    session.close().await;

    let full = stack.full_handshakes();
    let mut session = open(stack, args, early).await?;
    session.fetch(rest).await?;
    if stack.full_handshakes() != full {
        return Err(Failure::Error(anyhow::anyhow!(
            "the second connection was not resumed"
        )));
    }
    if early {
        let accepted = match session.early.take() {
            Some(accepted) => accepted.await,
            None => return Err(Failure::Error(anyhow::anyhow!("0-RTT was not attempted"))),
        };
        if !accepted {
            return Err(Failure::Error(anyhow::anyhow!("0-RTT was not accepted")));
        }
    }
    session.close().await;
    Ok(())
}

/// Cases of [`multipath`].
async fn several_paths<S: Stack>(stack: &S, args: &ClientArgs, paths: &[String]) -> Outcome {
    let session = open(stack, args, false).await?;
    let Some(multipath) = session.multipath.clone() else {
        return Err(Failure::Unsupported("it has one path a connection"));
    };
    let (watched, case) = (Arc::clone(&multipath), args.case.clone());
    let watch = tokio::spawn(async move { multipath::watch(&*watched, &case, false).await });
    let done = use_paths(&session, &*multipath, args, paths).await;
    watch.abort();
    // The task reports their traffic when it is dropped.
    let _ = watch.await;
    done?;
    session.close().await;
    Ok(())
}

async fn use_paths<O>(
    session: &Session<O>,
    multipath: &dyn Multipath,
    args: &ClientArgs,
    paths: &[String],
) -> anyhow::Result<()>
where
    O: quic::OpenStreams<Bytes, BidiStream: Send> + Clone + Send + 'static,
{
    let (&[home, other], [first, rest @ ..]) = (args.address.as_slice(), paths) else {
        bail!("give two addresses and some paths");
    };
    if args.case == "multipath-client-only" {
        ensure!(!multipath.is_negotiated(), "the server has several paths");
        ensure!(multipath.open(other).await.is_err(), "a path was opened");
        return session.fetch(paths).await;
    }
    ensure!(multipath.is_negotiated(), "the server has one path only");
    let second = multipath.open(other).await.context("a second path")?;
    session.fetch(std::slice::from_ref(first)).await?;
    let change = async {
        match args.case.as_str() {
            "multipath-backup" => multipath.set_backup(multipath::FIRST),
            "multipath-abandon" => {
                tokio::time::sleep(CHANGE).await;
                multipath.abandon(multipath::FIRST)?;
                multipath::gone(multipath, multipath::FIRST).await
            }
            "multipath-dismiss" => multipath::gone(multipath, second).await,
            "multipath-replace" => {
                tokio::time::sleep(CHANGE).await;
                multipath.abandon(multipath::FIRST)?;
                multipath.open(home).await.context("a third path")?;
                multipath.abandon(second)?;
                multipath::gone(multipath, multipath::FIRST).await?;
                multipath::gone(multipath, second).await
            }
            _ => Ok(()),
        }
    };
    tokio::try_join!(session.fetch(rest), session.echo(UPLOAD), change)?;
    // The server may see it up to three probe timeouts later.
    tokio::time::sleep(GOODBYE).await;
    Ok(())
}

/// An HTTP/3 session on one connection.
struct Session<O: quic::OpenStreams<Bytes>> {
    requests: SendRequest<O, Bytes>,
    driver: tokio::task::JoinHandle<()>,
    authority: Arc<str>,
    out: Arc<Path>,
    early: Option<EarlyAccepted>,
    update_keys: Box<dyn Fn() -> UpdateKeys + Send>,
    migrate: Box<dyn Fn() -> io::Result<()> + Send>,
    multipath: Option<Arc<dyn Multipath>>,
}

async fn open<S: Stack>(
    stack: &S,
    args: &ClientArgs,
    early: bool,
) -> anyhow::Result<Session<S::Opener>> {
    let link = match stack.connect(early).await {
        Ok(link) => link,
        Err(ConnectError::VersionMismatch) => bail!("no version in common"),
        Err(ConnectError::Other(error)) => return Err(error),
    };
    let (mut driver, requests) = h3::client::new(link.transport).await.context("HTTP/3")?;
    let driver = tokio::spawn(async move {
        let error = future::poll_fn(|cx| driver.poll_close(cx)).await;
        if !error.is_h3_no_error() {
            eprintln!("connection: {error}");
        }
    });
    Ok(Session {
        requests,
        driver,
        authority: args.name.as_str().into(),
        out: args.out.as_path().into(),
        early: link.early,
        update_keys: link.update_keys,
        migrate: link.migrate,
        multipath: link.multipath,
    })
}

impl<O> Session<O>
where
    O: quic::OpenStreams<Bytes, BidiStream: Send> + Clone + Send + 'static,
{
    async fn fetch(&self, paths: &[String]) -> anyhow::Result<()> {
        let mut under_way = JoinSet::new();
        for path in paths {
            if under_way.len() >= IN_FLIGHT
                && let Some(done) = under_way.join_next().await
            {
                done??;
            }
            let request = get(
                self.requests.clone(),
                Arc::clone(&self.authority),
                Arc::clone(&self.out),
                path.clone(),
            );
            under_way.spawn(request);
        }
        while let Some(done) = under_way.join_next().await {
            done??;
        }
        Ok(())
    }

    /// Uploads `bytes` bytes, and checks that they are echoed.
    async fn echo(&self, size: usize) -> anyhow::Result<()> {
        let uri = format!("https://{}/echo", self.authority);
        let request = Request::post(uri).body(())?;
        let content: Bytes = (0..size).map(|n| ((n * 31) >> 3) as u8).collect();
        let mut stream = self.requests.clone().send_request(request).await?;
        stream.send_data(content.clone()).await.context("upload")?;
        stream.finish().await?;
        let response = stream.recv_response().await.context("response")?;
        ensure!(response.status().is_success(), "{}", response.status());
        let back = read(&mut stream).await?;
        ensure!(back == content, "what came back is not what was sent");
        Ok(())
    }

    /// Closes with `H3_NO_ERROR`: the driver does so when the last requester is dropped.
    async fn close(self) {
        drop(self.requests);
        // A driver that does not end is not a failure, because all files have arrived.
        let _ = tokio::time::timeout(GOODBYE, self.driver).await;
    }
}

async fn get<O>(
    mut requests: SendRequest<O, Bytes>,
    authority: Arc<str>,
    out: Arc<Path>,
    path: String,
) -> anyhow::Result<()>
where
    O: quic::OpenStreams<Bytes>,
{
    let request = Request::get(format!("https://{authority}{path}")).body(())?;
    let mut stream = requests.send_request(request).await.context("request")?;
    stream.finish().await?;
    let response = stream.recv_response().await.context("response")?;
    ensure!(
        response.status().is_success(),
        "{path}: {}",
        response.status()
    );
    let content = read(&mut stream).await?;
    files::save(&out, &path, &content).with_context(|| path)
}

async fn read<S>(stream: &mut RequestStream<S, Bytes>) -> anyhow::Result<Vec<u8>>
where
    S: quic::RecvStream,
{
    let mut content = Vec::new();
    while let Some(mut chunk) = stream.recv_data().await.context("body")? {
        while chunk.has_remaining() {
            let part = chunk.chunk();
            content.extend_from_slice(part);
            let length = part.len();
            chunk.advance(length);
        }
    }
    Ok(content)
}
