//! One connection to an origin at a time, opened when first needed.

use std::sync::Arc;

use http::{HeaderMap, Response, Uri};
use tokio::sync::Mutex;

use super::{Client, ClientError, Connection, Download, Origin};

/// The response to a request, and the connection over which it came.
pub(crate) struct Answer {
    pub(crate) connection: Arc<Connection>,
    pub(crate) response: Response<Download>,
}

/// The connection for a request.
struct Usable {
    connection: Arc<Connection>,
    /// Whether it was open before.
    is_reused: bool,
}

/// Requests of one lane share its connection; when that breaks, the next request opens another.
pub(crate) struct Lane {
    origin: Origin,
    /// Lanes to its origin, itself included.
    lanes: usize,
    open: Mutex<Vec<Arc<Connection>>>,
}

impl Lane {
    /// As many `lanes` to `origin` as are used together.
    pub(crate) fn some(origin: &Origin, lanes: usize) -> impl Iterator<Item = Arc<Self>> {
        (0..lanes).map(move |_| {
            Arc::new(Self {
                origin: origin.clone(),
                lanes,
                open: Mutex::default(),
            })
        })
    }

    /// Connects, if it is not connected.
    pub(super) async fn open(&self, client: &Client) -> Result<(), ClientError> {
        self.connection(client).await.map(drop)
    }

    /// The connection to use now, opened if there is none.
    async fn connection(&self, client: &Client) -> Result<Usable, ClientError> {
        let mut open = self.open.lock().await;
        if let Some(connection) = open.last().filter(|connection| !connection.is_closed()) {
            return Ok(Usable {
                connection: Arc::clone(connection),
                is_reused: true,
            });
        }
        let connection = Arc::new(client.connect_one_of(&self.origin, self.lanes).await?);
        open.push(Arc::clone(&connection));
        Ok(Usable {
            connection,
            is_reused: false,
        })
    }

    /// Asks for `uri`; once more if a connection that was open before turns out to be dead.
    pub(crate) async fn get(
        &self,
        client: &Client,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Answer, ClientError> {
        let mut retried = false;
        loop {
            let Usable {
                connection,
                is_reused,
            } = self.connection(client).await?;
            match connection.get(&self.origin, uri, headers).await {
                Err(error) if error.is_worth_another_connection() && is_reused && !retried => {
                    retried = true;
                    let mut open = self.open.lock().await;
                    let same = |last: &&Arc<Connection>| Arc::ptr_eq(last, &connection);
                    if open.last().filter(same).is_some() && !connection.is_closed() {
                        // It answers nothing but does not know that it is dead.
                        open.push(Arc::new(
                            client.connect_one_of(&self.origin, self.lanes).await?,
                        ));
                    }
                }
                response => {
                    return Ok(Answer {
                        connection,
                        response: response?,
                    });
                }
            }
        }
    }

    /// All connections it ever opened.
    pub(crate) async fn connections(&self) -> Vec<Arc<Connection>> {
        self.open.lock().await.clone()
    }
}
