//! Applications behind a proxy: some that follow a script byte by byte, and one that answers everything.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A server of HTTP/1.1 whose answers a test writes.
pub(crate) struct Application {
    pub(crate) address: SocketAddr,
    /// The headers of the requests that arrived.
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
    pub(crate) connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Application {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The behaviour of a connection after the header of a request.
pub(crate) type Script = Arc<
    dyn Fn(TcpStream, String) -> futures_util::future::BoxFuture<'static, Option<TcpStream>>
        + Send
        + Sync,
>;

impl Application {
    /// Runs `script` for each request; a connection that it returns gets more.
    pub(crate) async fn with(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let connections = Arc::new(AtomicUsize::new(0));
        let (seen, count) = (Arc::clone(&requests), Arc::clone(&connections));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, SeqCst);
                let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
                tokio::spawn(async move {
                    let mut open = Some(stream);
                    while let Some(mut stream) = open.take() {
                        let Some(header) = read_header(&mut stream).await else {
                            return;
                        };
                        seen.lock().unwrap().push(header.clone());
                        open = script(stream, header).await;
                    }
                });
            }
        });
        Self {
            address,
            requests,
            connections,
            task,
        }
    }

    /// Sends `answer` to each request, and closes the connection if it has to.
    pub(crate) async fn that_sends(answer: impl Into<Vec<u8>>, then: Then) -> Self {
        let answer: Arc<Vec<u8>> = Arc::new(answer.into());
        Self::with(Arc::new(move |mut stream, _| {
            let answer = Arc::clone(&answer);
            Box::pin(async move {
                stream.write_all(&answer).await.ok()?;
                match then {
                    Then::Continue => Some(stream),
                    Then::Close => None,
                    Then::Reset => {
                        socket2::SockRef::from(&stream)
                            .set_linger(Some(std::time::Duration::ZERO))
                            .ok()?;
                        None
                    }
                    Then::Hang => {
                        std::future::pending::<()>().await;
                        None
                    }
                }
            })
        }))
        .await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn last_request(&self) -> String {
        self.requests.lock().unwrap().last().unwrap().clone()
    }
}

/// The behaviour of an application after its answer.
#[derive(Clone, Copy)]
pub(crate) enum Then {
    /// Takes the next request on the connection.
    Continue,
    Close,
    Reset,
    Hang,
}

async fn read_header(stream: &mut TcpStream) -> Option<String> {
    let mut header = Vec::new();
    while !header.ends_with(b"\r\n\r\n") {
        header.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8_lossy(&header).into_owned())
}

/// The value of a field in a header; in lower case, as proxies write them.
pub(crate) fn field<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = header.lines();
    lines.find_map(|line| {
        let (key, value) = line.split_once(": ")?;
        key.eq_ignore_ascii_case(name).then_some(value)
    })
}
