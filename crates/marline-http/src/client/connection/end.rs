//! The reason why a connection over TCP has ended, which the errors of its requests may lack.

use std::pin::pin;
use std::sync::{Arc, OnceLock};

use crate::body::{BoxError, with_shared_source, with_source};

/// The error that ended a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct End(Arc<OnceLock<Arc<hyper::Error>>>);

impl End {
    /// Runs `connection`, and keeps its error before requests learn that it has ended.
    pub(super) async fn keep(self, connection: impl Future<Output = hyper::Result<()>>) {
        let mut connection = pin!(connection);
        if let Err(error) = connection.as_mut().await {
            let _ = self.0.set(Arc::new(error));
        }
    }

    /// The error of a request: if that only says that the connection has ended, the reason.
    pub(super) fn explain(&self, error: hyper::Error) -> BoxError {
        match self.0.get() {
            Some(end) if error.is_closed() || error.is_canceled() => {
                with_shared_source(Arc::clone(end))
            }
            _ => with_source(error),
        }
    }
}
