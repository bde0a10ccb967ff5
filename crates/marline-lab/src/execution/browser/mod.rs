//! Chromium as a client: a browser that loads a page in the client's namespace.

mod devtools;
mod gateway;
mod process;
mod recording;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use marline_http::page::{Page, PageObject, PageReport};
use serde_json::json;
use tokio::time::timeout;

use self::devtools::{DevTools, DevToolsError};
pub(super) use self::gateway::Gateway;
use self::recording::Recording;
use super::http::{client_version, scheme};
use super::program::Program;
use super::{Kernel, failed};
use crate::scenario::{HttpVersion, RunError};

/// The time for which a browser without pending loads may find more, or paint.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// A server of a page, as a client reaches it.
#[derive(Debug)]
pub(super) struct Site {
    /// Its version of HTTP.
    pub(super) version: HttpVersion,
    /// Its address, to which all hosts of the page resolve.
    pub(super) address: SocketAddr,
    /// The SHA-256 of its public key, in base64, if it has one.
    pub(super) pin: Option<String>,
}

impl Site {
    fn url(&self, object: &PageObject) -> String {
        format!("{}://{}{}", scheme(self.version), object.host, object.path)
    }

    /// The version in reports.
    fn version_name(&self) -> &'static str {
        client_version(self.version).label()
    }

    /// The version as Chromium names it.
    const fn protocol(&self) -> &'static str {
        match self.version {
            HttpVersion::Http11 | HttpVersion::Http11Cleartext => "http/1.1",
            HttpVersion::Http2 | HttpVersion::Http2Parallel | HttpVersion::Http2Multipath => "h2",
            HttpVersion::Http3 => "h3",
        }
    }

    /// The switches by which a browser reaches the hosts of `page`, and nothing else.
    fn switches(&self, page: &Page) -> Vec<String> {
        let hosts: BTreeSet<_> = page.objects.iter().map(|o| o.host.as_str()).collect();
        let name = |host: &str| host.split(':').next().unwrap_or_default().to_owned();
        let address = self.address.ip();
        let mapped = hosts
            .iter()
            .map(|host| format!("MAP {} {address}", name(host)));
        let mut rules: Vec<_> = mapped.collect();
        rules.push("MAP * ~NOTFOUND".to_owned());
        let mut switches = vec![format!("--host-resolver-rules={}", rules.join(", "))];
        if let Some(pin) = &self.pin {
            switches.push(format!("--ignore-certificate-errors-spki-list={pin}"));
        }
        match self.version {
            HttpVersion::Http3 => {
                let hosts: Vec<_> = hosts.iter().copied().collect();
                switches.push("--enable-quic".to_owned());
                switches.push(format!("--origin-to-force-quic-on={}", hosts.join(",")));
            }
            _ => switches.push("--disable-quic".to_owned()),
        }
        if hosts.len() > 1 {
            // The server allows no other origins to use its fonts and data.
            switches.push("--disable-web-security".to_owned());
        }
        switches
    }
}

/// A browser with an empty page.
pub(super) struct Browser {
    devtools: DevTools,
    /// Its page, in the protocol.
    session: String,
    /// Name and version.
    product: String,
    process: Program,
}

/// A page that was loaded.
pub(super) struct Loaded {
    /// Page, objects and connections; the load ends with the last object, or with the load event if that is later.
    pub(super) report: PageReport,
    /// When the load event was fired, in seconds.
    pub(super) load_event_s: f64,
    /// When the load began, since 1970-01-01 UTC.
    pub(super) date: Duration,
}

impl Browser {
    /// Starts a browser with a new profile on the host of `kernel`, for a page at `site`.
    ///
    /// # Errors
    /// There is no browser, or it does not start.
    pub(super) async fn start(
        kernel: &dyn Kernel,
        site: &Site,
        page: &Page,
    ) -> Result<Self, RunError> {
        let (process, pipes) = process::start(kernel, &site.switches(page))?;
        let mut devtools = DevTools::new(pipes.commands, pipes.messages);
        let cannot = |error: DevToolsError| match process.last_line() {
            Some(line) => failed(format_args!("cannot start Chromium: {error}: {line}")),
            None => failed(format_args!("cannot start Chromium: {error}")),
        };
        let started = async {
            let version = devtools.call(None, "Browser.getVersion", json!({})).await?;
            let target = json!({ "url": "about:blank" });
            let target = devtools.call(None, "Target.createTarget", target).await?;
            let attach = json!({ "targetId": target["targetId"], "flatten": true });
            let session = devtools.call(None, "Target.attachToTarget", attach).await?;
            let session = session["sessionId"].as_str().unwrap_or_default().to_owned();
            for (method, parameters) in [
                ("Network.enable", json!({})),
                ("Page.enable", json!({})),
                ("Page.setLifecycleEventsEnabled", json!({ "enabled": true })),
            ] {
                devtools.call(Some(&session), method, parameters).await?;
            }
            let product = version["product"].as_str().unwrap_or_default().to_owned();
            Ok((session, product))
        };
        let (session, product) = started.await.map_err(cannot)?;
        Ok(Self {
            devtools,
            session,
            product,
            process,
        })
    }

    /// Name and version, as `Chrome/156.0.8078.108`.
    pub(super) fn product(&self) -> &str {
        &self.product
    }

    /// Loads `page` from `site`.
    ///
    /// # Errors
    /// The browser failed, or did not find all objects, or used another version of HTTP.
    pub(super) async fn load(&mut self, site: &Site, page: &Page) -> Result<Loaded, RunError> {
        let document = page.objects.iter().find(|o| o.discovered_by.is_none());
        let document = document.ok_or_else(|| failed("the page has no document"))?;
        let url = site.url(document);
        let navigate = json!({ "url": url });
        let session = Some(self.session.as_str());
        let answer = self.devtools.call(session, "Page.navigate", navigate);
        let answer = answer.await.map_err(|error| self.failed(&error))?;
        if let Some(why) = answer["errorText"].as_str() {
            return Err(failed(format_args!("Chromium cannot load {url}: {why}")));
        }
        let mut recording = Recording::new(site, page);
        while !(recording.is_over() && recording.is_painted()) {
            let event = self.devtools.event();
            let event = match recording.is_idle() {
                false => event.await,
                true => match timeout(IDLE_TIMEOUT, event).await {
                    Ok(event) => event,
                    // If nothing is painted, there is no time.
                    Err(_) if recording.is_over() => break,
                    Err(_) => {
                        return Err(failed(format_args!(
                            "Chromium has not requested {}",
                            recording.missing().join(", ")
                        )));
                    }
                },
            };
            recording.note(event.map_err(|error| self.failed(&error))?);
        }
        recording.finish().map_err(failed)
    }

    fn failed(&self, error: &DevToolsError) -> RunError {
        match self.process.last_line() {
            Some(line) => failed(format_args!("{error}: {line}")),
            None => failed(error),
        }
    }
}
