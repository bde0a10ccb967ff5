//! The DevTools protocol over a pair of pipes: JSON, each message ended by a zero byte.

use std::collections::VecDeque;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::timeout;

/// Bytes of a message; those of a page load have some kB.
const MAX_MESSAGE: u64 = 16 << 20;

/// Events that wait for the end of a call; a page load has some thousand.
const MAX_WAITING: usize = 1 << 20;

/// The time limit for an answer. A browser that has just started takes longest.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// A connection to a browser.
pub(super) struct DevTools {
    commands: ChildStdin,
    messages: BufReader<ChildStdout>,
    /// The number of the last command.
    number: u64,
    /// Events that came while an answer was waited for.
    waiting: VecDeque<Event>,
}

/// An event of the browser.
pub(super) struct Event {
    /// Its name.
    pub(super) method: String,
    /// Its parameters.
    pub(super) parameters: Value,
}

/// The reason why the browser does not execute a command.
#[derive(Debug, thiserror::Error)]
pub(super) enum DevToolsError {
    #[error("the browser has ended")]
    Ended,
    #[error("the browser does not answer {method}: {why}")]
    NoAnswer { method: String, why: String },
    #[error("{method}: {message}")]
    Refused { method: String, message: String },
    #[error("the browser sent a malformed message of the DevTools protocol: {0}")]
    Malformed(String),
    #[error("a pipe to the browser failed: {0}")]
    Pipe(#[from] std::io::Error),
}

#[derive(Deserialize)]
struct Message {
    id: Option<u64>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Value,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    message: String,
}

impl DevTools {
    pub(super) fn new(commands: ChildStdin, messages: ChildStdout) -> Self {
        Self {
            commands,
            messages: BufReader::new(messages),
            number: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Sends a command to `session`, or to the browser, and waits for the answer.
    pub(super) async fn call(
        &mut self,
        session: Option<&str>,
        method: &str,
        parameters: Value,
    ) -> Result<Value, DevToolsError> {
        match timeout(ANSWER_TIMEOUT, self.ask(session, method, parameters)).await {
            Ok(answer) => answer,
            Err(_) => Err(DevToolsError::NoAnswer {
                method: method.to_owned(),
                why: format!("not within {} s", ANSWER_TIMEOUT.as_secs()),
            }),
        }
    }

    async fn ask(
        &mut self,
        session: Option<&str>,
        method: &str,
        parameters: Value,
    ) -> Result<Value, DevToolsError> {
        self.number += 1;
        let number = self.number;
        let mut command = json!({ "id": number, "method": method, "params": parameters });
        if let Some(session) = session {
            command["sessionId"] = session.into();
        }
        let mut text = command.to_string().into_bytes();
        text.push(0);
        self.commands.write_all(&text).await?;
        loop {
            let message = self.read().await?;
            if message.id == Some(number) {
                return match message.error {
                    Some(Refusal { message }) => Err(DevToolsError::Refused {
                        method: method.to_owned(),
                        message,
                    }),
                    None => Ok(message.result),
                };
            }
            if let Some(event) = message.event() {
                if self.waiting.len() >= MAX_WAITING {
                    return Err(DevToolsError::NoAnswer {
                        method: method.to_owned(),
                        why: format!("but has sent {MAX_WAITING} events"),
                    });
                }
                self.waiting.push_back(event);
            }
        }
    }

    /// The next event.
    pub(super) async fn event(&mut self) -> Result<Event, DevToolsError> {
        if let Some(event) = self.waiting.pop_front() {
            return Ok(event);
        }
        loop {
            if let Some(event) = self.read().await?.event() {
                return Ok(event);
            }
        }
    }

    async fn read(&mut self) -> Result<Message, DevToolsError> {
        let mut text = Vec::new();
        let mut limited = (&mut self.messages).take(MAX_MESSAGE);
        limited.read_until(0, &mut text).await?;
        match text.pop() {
            Some(0) => {}
            None => return Err(DevToolsError::Ended),
            Some(_) if text.len() as u64 + 1 < MAX_MESSAGE => return Err(DevToolsError::Ended),
            Some(_) => {
                return Err(DevToolsError::Malformed(format!(
                    "it is longer than {MAX_MESSAGE} bytes"
                )));
            }
        }
        serde_json::from_slice(&text).map_err(|error| DevToolsError::Malformed(error.to_string()))
    }
}

impl Message {
    fn event(self) -> Option<Event> {
        Some(Event {
            method: self.method?,
            parameters: self.params,
        })
    }
}
