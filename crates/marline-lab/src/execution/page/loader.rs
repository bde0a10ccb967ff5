//! The loader of a page: marline's client, or a browser.

use std::sync::Arc;
use std::time::Duration;

use marline::{Instant, Runtime};
use marline_http::client::Client;
use marline_http::page::{LoadOptions, Page, PageReport};

use super::load_options;
#[cfg(target_os = "linux")]
use crate::execution::browser::{Browser, Gateway, Site};
use crate::execution::http::client;
use crate::execution::{Testbed, failed};
use crate::scenario::{HttpClient, Job, RunError, Topology};

/// The loader of a page.
pub(super) struct Loader {
    runtime: Arc<dyn Runtime>,
    kind: Kind,
}

enum Kind {
    Marline {
        client: Arc<Client>,
        options: LoadOptions,
    },
    #[cfg(target_os = "linux")]
    Chromium(Box<Chromium>),
}

#[cfg(target_os = "linux")]
struct Chromium {
    browser: Browser,
    /// The server of the page, for the browser.
    site: Site,
    page: Page,
    gateway: Option<Gateway>,
}

/// A page that was loaded.
pub(super) struct Loaded {
    /// When it began.
    pub(super) started: Instant,
    /// The same since 1970-01-01 UTC.
    pub(super) date: Duration,
    pub(super) report: PageReport,
    /// When the browser's load event was fired, in seconds.
    pub(super) load_event_s: Option<f64>,
    /// Name and version of the browser.
    pub(super) browser: Option<String>,
}

impl Loader {
    /// The client of `job`, for the page of `served`.
    pub(super) async fn open(
        job: &Job,
        testbed: &Testbed,
        served: &super::Site,
    ) -> Result<Self, RunError> {
        let http = &job.settings.http;
        let kind = match http.client {
            HttpClient::Marline => Kind::Marline {
                client: Arc::new(client(job, testbed, served.names.clone())?),
                options: load_options(job),
            },
            HttpClient::Chromium => chromium(job, testbed, served).await?,
        };
        Ok(Self {
            runtime: Arc::clone(&testbed.host(Topology::CLIENT)?.runtime),
            kind,
        })
    }

    /// `page`, as its client requests it: through a gateway it has another host.
    pub(super) fn seen<'a>(&'a self, page: &'a Page) -> &'a Page {
        match &self.kind {
            Kind::Marline { .. } => page,
            #[cfg(target_os = "linux")]
            Kind::Chromium(chromium) => &chromium.page,
        }
    }

    /// Loads `page`.
    pub(super) async fn load(&mut self, page: &Page) -> Result<Loaded, RunError> {
        let date = self.runtime.unix_time();
        let started = self.runtime.now();
        match &mut self.kind {
            Kind::Marline { client, options } => Ok(Loaded {
                started,
                date,
                report: marline_http::page::load(client, page, *options, &Arc::default())
                    .await
                    .map_err(failed)?,
                load_event_s: None,
                browser: None,
            }),
            #[cfg(target_os = "linux")]
            Kind::Chromium(chromium) => {
                let Chromium {
                    browser,
                    site,
                    page,
                    gateway,
                } = &mut **chromium;
                let mut loaded = browser.load(site, page).await?;
                if let Some(gateway) = gateway {
                    loaded.report.pipes = gateway.pipes();
                }
                Ok(Loaded {
                    started,
                    date: loaded.date,
                    report: loaded.report,
                    load_event_s: Some(loaded.load_event_s),
                    browser: Some(browser.product().to_owned()),
                })
            }
        }
    }
}

#[cfg(target_os = "linux")]
async fn chromium(job: &Job, testbed: &Testbed, served: &super::Site) -> Result<Kind, RunError> {
    use crate::scenario::BackendKind;

    let kernel = testbed.host(Topology::CLIENT)?.kernel.as_ref();
    let kernel = kernel.filter(|_| job.settings.backend == BackendKind::Emu);
    let kernel = kernel.ok_or_else(|| {
        RunError::Unsupported("Chromium runs in real time; add --backend emu".to_owned())
    })?;
    let mut gateway = None;
    let mut page = served.page.clone();
    let mut site = Site {
        version: job.settings.http.version,
        address: testbed.server_address()?,
        pin: served.pin.clone(),
    };
    if job.settings.http.gateway {
        let opened = Gateway::open(job, testbed, &page).await?;
        (gateway, site, page) = (Some(opened.gateway), opened.site, opened.page);
    }
    let browser = Browser::start(&**kernel, &site, &page).await?;
    Ok(Kind::Chromium(Box::new(Chromium {
        browser,
        site,
        page,
        gateway,
    })))
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unused_async, reason = "as on Linux")]
async fn chromium(_: &Job, _: &Testbed, _: &super::Site) -> Result<Kind, RunError> {
    Err(RunError::Unsupported(
        "Chromium runs in the emulator, which needs Linux".to_owned(),
    ))
}
