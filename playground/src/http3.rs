//! HTTP/3 on a connection: bytes between its streams and marline-h3.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use marline::{Connection, Priority, RecvStream, SendStream};
use marline_h3::{Config, LocalStream, RequestHead, Side, StreamEvent, Transmit};
use marline_sim::Host;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::error::Error;
use crate::page::Object;

/// The content of all objects, as far as one write takes it.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// One end of an HTTP/3 connection. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Http3 {
    connection: Connection,
    state: Arc<Mutex<marline_h3::Connection>>,
    transmits: UnboundedSender<Transmit>,
}

impl Http3 {
    /// Begins HTTP/3 on a connection of `host`.
    pub(crate) fn begin(host: &Host, connection: Connection, side: Side) -> Self {
        let (transmits, due) = unbounded_channel();
        let state = marline_h3::Connection::new(side, &Config::default());
        let this = Self {
            connection: connection.clone(),
            state: Arc::new(Mutex::new(state)),
            transmits,
        };
        host.run(async move {
            // Fails when the connection ends, as all does then.
            let _ = write_own(&connection, due).await;
        });
        host.run(this.clone().read_streams(host.clone()));
        this.with(|_| ());
        this
    }

    /// Changes the state, and has its control and QPACK streams written.
    fn with<T>(&self, change: impl FnOnce(&mut marline_h3::Connection) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut state);
        while let Some(transmit) = state.poll_transmit() {
            // Without a receiver, the connection has ended.
            let _ = self.transmits.send(transmit);
        }
        // Neither end lets field sections wait for the other's table, or changes priorities.
        while state.poll_event().is_some() {}
        result
    }

    async fn read_streams(self, host: Host) {
        while let Ok(stream) = self.connection.accept_uni().await {
            let this = self.clone();
            host.run(async move {
                let _ = this.read_stream(stream).await;
            });
        }
    }

    async fn read_stream(&self, mut stream: RecvStream) -> Result<(), Error> {
        while let Some(bytes) = stream.read_chunk(usize::MAX).await? {
            self.with(|state| state.on_stream_data(stream.id(), bytes, false))?;
        }
        Ok(())
    }

    /// Reads from a request's stream, and returns the next event of the message.
    async fn next_event(&self, stream: &mut RecvStream) -> Result<StreamEvent, Error> {
        let id = stream.id();
        loop {
            if let Some(event) = self.with(|state| state.poll_stream(id)) {
                return Ok(event);
            }
            let bytes = stream.read_chunk(usize::MAX).await?;
            let fin = bytes.is_none();
            self.with(|state| state.on_stream_data(id, bytes.unwrap_or_default(), fin))?;
        }
    }

    /// Requests `object`, and passes on how many bytes of its content have arrived.
    pub(crate) async fn fetch(
        &self,
        object: &Object,
        mut on_data: impl FnMut(u64) + Send,
    ) -> Result<(), Error> {
        let (mut send, mut recv) = self.connection.open_bi().await?;
        let id = send.id();
        let priority = object.priority();
        let request = Request::get(format!("https://www.example.org{}", object.path))
            .header("user-agent", "marline-playground")
            .header("accept", "*/*")
            .header(
                "priority",
                format!(
                    "u={}{}",
                    priority.urgency,
                    if priority.incremental { ", i" } else { "" }
                ),
            )
            .body(())
            .expect("the paths of pages are valid");
        let head = self.with(|state| state.encode_request(id, &request))?;
        send.write_chunk(head).await?;
        // Fails only for a stream that the server stopped, whose response says why.
        let _ = send.finish();
        let mut received = 0;
        let wrong = |why| Error::Response {
            path: object.path.clone(),
            why,
        };
        loop {
            match self.next_event(&mut recv).await? {
                StreamEvent::Response(head) if !head.status().is_success() => {
                    return Err(wrong("the server has no such object"));
                }
                StreamEvent::Data(bytes) => {
                    received += bytes.len() as u64;
                    on_data(received);
                }
                StreamEvent::Finished => break,
                StreamEvent::Failed(error) => return Err(error.into()),
                StreamEvent::Reset(_) => return Err(wrong("the server ended the response")),
                _ => {}
            }
        }
        self.with(|state| state.forget(id));
        match received == object.size {
            true => Ok(()),
            false => Err(wrong("the content has another size")),
        }
    }

    /// Answers the next requests, with content of the size of the object that each names.
    pub(crate) async fn answer_all(self, host: Host, objects: Arc<Vec<Object>>) {
        while let Ok((send, recv)) = self.connection.accept_bi().await {
            let (this, objects) = (self.clone(), Arc::clone(&objects));
            host.run(async move {
                // The client notices what is missing.
                let _ = this.answer(send, recv, &objects).await;
            });
        }
    }

    async fn answer(
        &self,
        mut send: SendStream,
        mut recv: RecvStream,
        objects: &[Object],
    ) -> Result<(), Error> {
        let id = send.id();
        let head = loop {
            match self.next_event(&mut recv).await? {
                StreamEvent::Request(head) => break head,
                StreamEvent::Failed(error) => return Err(error.into()),
                _ => {}
            }
        };
        let RequestHead { request, priority } = *head;
        send.set_priority(Priority::new(priority.urgency, priority.incremental));
        let object = objects
            .iter()
            .find(|object| object.path == request.uri().path());
        let status = if object.is_some() { 200 } else { 404 };
        let size = object.map_or(0, |object| object.size);
        let response = Response::builder()
            .status(status)
            .header("content-length", size)
            .header("content-type", "application/octet-stream")
            .body(())
            .expect("the fields are valid");
        let head = self.with(|state| state.encode_response(id, &response))?;
        send.write_chunk(head).await?;
        send.write_chunk(marline_h3::frame::data_header(size))
            .await?;
        let mut left = size;
        while left > 0 {
            let len = ZEROS.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            send.write_chunk(Bytes::from_static(&ZEROS[..len])).await?;
            left -= len as u64;
        }
        // Fails only for a stream that the client stopped.
        let _ = send.finish();
        self.with(|state| state.forget(id));
        Ok(())
    }
}

/// Writes the control and QPACK streams of this end.
async fn write_own(
    connection: &Connection,
    mut due: UnboundedReceiver<Transmit>,
) -> Result<(), Error> {
    let mut own = [const { None }; LocalStream::ALL.len()];
    while let Some(Transmit { stream, bytes }) = due.recv().await {
        let own = &mut own[stream as usize];
        let own = match own {
            Some(own) => own,
            None => own.insert(connection.open_uni().await?),
        };
        own.write_chunk(bytes).await?;
    }
    Ok(())
}
