//! The client of the server.

use std::time::Duration;

use redis::{Client, Connection, RedisResult};

use super::ConnectError;
use crate::cache::StoredValue;

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum length of a namespace in bytes.
const MAX_NAMESPACE: usize = 64;

/// Maximum expiry time on the server, independent of the limits: a year.
const MAX_EXPIRY: Duration = Duration::from_secs(365 * 24 * 3600);

pub(super) struct Server {
    client: Client,
    namespace: String,
    connection: Option<Connection>,
}

/// A change to write.
pub(super) struct Write {
    /// The encoded key.
    pub(super) name: String,
    /// The new value; `None` deletes the record.
    pub(super) value: Option<StoredValue>,
}

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

    /// Reads a name that no record has, to check whether user, password and database are accepted.
    pub(super) fn check(&mut self) -> RedisResult<()> {
        self.read(&["-"]).map(drop)
    }

    /// Reads the values of these names.
    pub(super) fn read(&mut self, names: &[&str]) -> RedisResult<Vec<Option<Vec<u8>>>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut command = redis::cmd("MGET");
        for name in names {
            command.arg(self.key(name));
        }
        self.request(|connection| command.query(connection))
    }

    /// Writes all changes in one request.
    pub(super) fn write(&mut self, changes: &[Write]) -> RedisResult<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut pipeline = redis::pipe();
        for Write { name, value } in changes {
            let key = self.key(name);
            match value {
                Some(StoredValue { bytes, left }) => {
                    let millis = left.min(&MAX_EXPIRY).as_millis().max(1) as u64;
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
        self.request(|connection| pipeline.query(connection))
    }

    /// Sends a request. A connection that failed is not reused, because a late response could follow.
    fn request<T>(
        &mut self,
        send: impl FnOnce(&mut Connection) -> RedisResult<T>,
    ) -> RedisResult<T> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let connection = self.client.get_connection_with_timeout(TIMEOUT)?;
                connection.set_read_timeout(Some(TIMEOUT))?;
                connection.set_write_timeout(Some(TIMEOUT))?;
                connection
            }
        };
        let response = send(&mut connection)?;
        self.connection = Some(connection);
        Ok(response)
    }

    fn key(&self, name: &str) -> String {
        format!("{}:{name}", self.namespace)
    }
}
