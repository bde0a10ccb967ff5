//! Writes to files, pipes and devices, which may block, beside the tasks that receive.

use std::io;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};

use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle, spawn, spawn_blocking};

use super::ClientError;
use crate::limits;
use crate::runtime::RuntimeHandle;

/// A destination that takes parts in order.
pub(in crate::client) trait Output: Send + 'static {
    /// The type of a part.
    type Part: Send + 'static;

    /// Whether writing may block.
    fn may_block(&self) -> bool;

    /// Writes `part`; may block.
    fn take(&mut self, part: Self::Part) -> Result<(), ClientError>;
}

/// Passes parts to an output. With tokio, that is on threads which may block, so that a pipe that nobody reads or a slow disk stops
/// neither other tasks nor timers. Other runtimes have no such threads, and write in the task.
///
/// When it is dropped, parts that are not written may still be.
pub(in crate::client) enum Writer<O: Output> {
    Threads {
        parts: mpsc::Sender<O::Part>,
        written: JoinHandle<Result<O, ClientError>>,
    },
    Here(Mutex<O>),
}

impl<O: Output> Writer<O> {
    pub(in crate::client) fn new(mut output: O, runtime: &RuntimeHandle) -> Self {
        if !runtime.is_tokio() || !output.may_block() {
            return Self::Here(Mutex::new(output));
        }
        let (parts, mut queue) = mpsc::channel(limits::QUEUED_PARTS);
        let written = spawn(async move {
            let mut arrived = Vec::new();
            while queue.recv_many(&mut arrived, limits::QUEUED_PARTS).await > 0 {
                // A thread for what has arrived: one that waited for more would be taken as long as the download takes.
                let writing = spawn_blocking(move || {
                    arrived.drain(..).try_for_each(|part| output.take(part))?;
                    Ok((output, arrived))
                });
                (output, arrived) = unless_panicked(writing.await)?;
            }
            Ok(output)
        });
        Self::Threads { parts, written }
    }

    /// Passes `part` on, and waits while many are not written.
    ///
    /// # Errors
    /// It cannot be written, nor can others. [`end`](Self::end) has the reason.
    pub(in crate::client) async fn write(&self, part: O::Part) -> Result<(), ClientError> {
        match self {
            Self::Threads { parts, .. } => {
                let sent = parts.send(part).await;
                sent.map_err(|_| ClientError::Output(io::ErrorKind::BrokenPipe.into()))
            }
            Self::Here(output) => {
                let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
                output.take(part)
            }
        }
    }

    /// Waits until all parts are written, and returns the output.
    ///
    /// # Errors
    /// One could not be written.
    pub(in crate::client) async fn end(self) -> Result<O, ClientError> {
        match self {
            Self::Threads { parts, written } => {
                drop(parts);
                unless_panicked(written.await)
            }
            Self::Here(output) => Ok(output.into_inner().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

/// The result of a task, whose panic is one of the task that waits.
fn unless_panicked<T>(ended: Result<Result<T, ClientError>, JoinError>) -> Result<T, ClientError> {
    match ended {
        Ok(result) => result,
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        Err(error) => Err(ClientError::Output(io::Error::other(error))),
    }
}
