//! A gateway on the host of a browser.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use marline_http::client::Client;
use marline_http::page::Page;
use marline_http::pipes::PipeReport;
use marline_http::proxy::{GatewayConfig, gateway};
use marline_http::server::{Handle, Server, ServerConfig};

use super::Site;
use crate::execution::http::{client, kernel};
use crate::execution::{Testbed, failed};
use crate::scenario::{HttpVersion, Job, RunError, TcpController, Topology};

/// The port on which it listens.
const PORT: u16 = 8080;

/// The name by which the browser reaches it: one that may have all properties of a page over TLS.
const NAME: &str = "localhost";

/// A gateway to the server of a page.
pub(in crate::execution) struct Gateway {
    client: Arc<Client>,
    server: Handle,
}

/// A gateway, and how a browser reaches the page through it.
pub(in crate::execution) struct Opened {
    pub(in crate::execution) gateway: Gateway,
    pub(in crate::execution) site: Site,
    pub(in crate::execution) page: Page,
}

impl Gateway {
    /// Starts the gateway of `job` on the client's host, to the server of `page`.
    ///
    /// # Errors
    /// The page has several hosts, or the gateway does not start.
    pub(in crate::execution) async fn open(
        job: &Job,
        testbed: &Testbed,
        page: &Page,
    ) -> Result<Opened, RunError> {
        let mut page = page.clone();
        let origin = page.objects.first().map(|object| object.host.clone());
        let origin = origin.unwrap_or_default();
        if page.objects.iter().any(|object| object.host != origin) {
            return Err(RunError::Unsupported(
                "a gateway has one origin, and the page several; load one of cloned/NAME or multipipe/NAME"
                    .to_owned(),
            ));
        }
        let name = origin.split(':').next().unwrap_or_default().to_owned();
        let client = Arc::new(client(job, testbed, [name])?);
        let config = GatewayConfig {
            connections: job.settings.http.connections,
            ..GatewayConfig::to(format!("https://{origin}"))
        };
        let site = gateway(Arc::clone(&client), &config).map_err(failed)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
        let mut config = ServerConfig::cleartext(address, site);
        let sockets = kernel(testbed, Topology::CLIENT)?.sockets(TcpController::Cubic);
        config.tcp_sockets = Some(sockets);
        let runtime = Arc::clone(&testbed.host(Topology::CLIENT)?.runtime);
        config.runtime = Some(Arc::clone(&runtime));
        let server = Server::bind(config).await.map_err(failed)?;
        let handle = server.handle();
        runtime.spawn(Box::pin(async {
            // A browser whose gateway fails reports the objects that it did not get.
            let _ = server.run().await;
        }));
        for object in &mut page.objects {
            object.host = format!("{NAME}:{PORT}");
        }
        Ok(Opened {
            gateway: Self {
                client,
                server: handle,
            },
            site: Site {
                version: HttpVersion::Http11Cleartext,
                address,
                pin: None,
            },
            page,
        })
    }

    /// The pipes that carried the page.
    pub(in crate::execution) fn pipes(&self) -> Vec<PipeReport> {
        self.client.pipes()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.server.shut_down();
    }
}
