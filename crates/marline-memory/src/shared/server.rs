//! The server, as far as this store needs it.

use std::time::Duration;

use redis::{Client, Connection, RedisResult};

use super::ConnectError;

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of a namespace, at most.
const MAX_NAMESPACE: usize = 64;

/// The longest that the server keeps a record, whatever the limits: a year.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

pub(super) struct Server {
    client: Client,
    namespace: String,
    connection: Option<Connection>,
}

/// A record as the server is to have it, and for how long; none at all.
pub(super) type Written = Option<(Vec<u8>, Duration)>;

impl Server {
    pub(super) fn new(url: &str, namespace: &str) -> Result<Self, ConnectError> {
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b':');
        if namespace.is_empty()
            || namespace.len() > MAX_NAMESPACE
            || !namespace.bytes().all(is_plain)
        {
            return Err(ConnectError::Namespace(namespace.into()));
        }
        let client = Client::open(url).map_err(|error| ConnectError::Url {
            reason: error.to_string(),
        })?;
        Ok(Self {
            client,
            namespace: namespace.into(),
            connection: None,
        })
    }

    /// What the server has under each of these names.
    pub(super) fn read(&mut self, names: &[&str]) -> RedisResult<Vec<Option<Vec<u8>>>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut command = redis::cmd("MGET");
        for name in names {
            command.arg(self.key(name));
        }
        self.ask(|connection| command.query(connection))
    }

    /// Has the server keep these, all at once.
    pub(super) fn write(&mut self, changes: &[(String, Written)]) -> RedisResult<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut pipeline = redis::pipe();
        for (name, value) in changes {
            let key = self.key(name);
            match value {
                Some((bytes, left)) => {
                    let millis = left.min(&LONGEST).as_millis().max(1) as u64;
                    pipeline
                        .cmd("SET")
                        .arg(key)
                        .arg(bytes)
                        .arg("PX")
                        .arg(millis)
                        .ignore()
                }
                None => pipeline.cmd("DEL").arg(key).ignore(),
            };
        }
        self.ask(|connection| pipeline.query(connection))
    }

    /// A connection that failed is not used again: an answer may be under way still.
    fn ask<T>(
        &mut self,
        question: impl FnOnce(&mut Connection) -> RedisResult<T>,
    ) -> RedisResult<T> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let connection = self.client.get_connection_with_timeout(PATIENCE)?;
                connection.set_read_timeout(Some(PATIENCE))?;
                connection.set_write_timeout(Some(PATIENCE))?;
                connection
            }
        };
        let answer = question(&mut connection)?;
        self.connection = Some(connection);
        Ok(answer)
    }

    fn key(&self, name: &str) -> String {
        format!("{}:{name}", self.namespace)
    }
}
