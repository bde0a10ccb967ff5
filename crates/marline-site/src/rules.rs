//! The rules of a site or of a route, ready to answer.

use std::net::IpAddr;
use std::sync::Arc;

use http::header::{CONTENT_LENGTH, HeaderValue};
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::Limited;
use marline_http::proxy::{UpstreamMetrics, reverse_proxy};
use marline_http::server::{Acceptable, Compression, Refusal, Site, compressed};
use marline_http::{Body, RequestKey};
use tower::ServiceExt;

use crate::access::Access;
use crate::answers::{plain, redirect, refused};
use crate::config::{Handler, Rules};
use crate::error::SiteError;
use crate::error_pages::ErrorPages;
use crate::fields::{Changes, Cors, CorsAnswer, add_hsts, hsts};
use crate::files::Files;
use crate::template::{Parts, PathTemplate, Template};

/// The parts of a request that have to outlast it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The address of the client.
    pub(crate) client: IpAddr,
    /// The host, with the port if the request has one.
    pub(crate) host: Arc<str>,
    /// The part of the path that `*` of the route matched.
    pub(crate) rest: Arc<str>,
}

/// Compiled [`Rules`].
#[derive(Debug)]
pub(crate) struct Compiled {
    access: Access,
    max_body: Option<u64>,
    rewrite: Option<PathTemplate>,
    requests: Changes,
    responses: Changes,
    hsts: Option<HeaderValue>,
    cors: Cors,
    pages: ErrorPages,
    /// The handler, if these rules have one.
    pub(crate) answers: Option<Answers>,
}

/// Something that answers.
#[derive(Clone, Debug)]
pub(crate) enum Answers {
    /// Files, compressed if there is a compression.
    Files(Files, Option<Compression>),
    /// Applications.
    Site(Site),
    /// A redirect.
    Redirect(StatusCode, Template),
    /// A fixed text.
    Fixed(StatusCode, String),
}

impl Compiled {
    /// Opens what `rules` name; `place` is the site or the route, for messages.
    pub(crate) fn new(
        rules: &Rules,
        place: &str,
        metrics: &UpstreamMetrics,
    ) -> Result<Self, SiteError> {
        let handlers = rules.handlers();
        if let [(first, _), (second, _), ..] = handlers[..] {
            let place = place.to_owned();
            return Err(SiteError::TwoHandlers {
                place,
                first,
                second,
            });
        }
        let handler = handlers.first().map(|(_, handler)| *handler);
        let needs = |key, needs, is_wrong: bool| match is_wrong {
            true => Err(SiteError::Needs {
                place: place.to_owned(),
                key,
                needs,
            }),
            false => Ok(()),
        };
        let is_files = handler == Some(Handler::Files);
        needs("try", "dir", !rules.try_files.is_empty() && !is_files)?;
        needs("list", "dir", rules.list && !is_files)?;
        needs("dot_files", "dir", rules.dot_files && !is_files)?;
        needs("follow_links", "dir", rules.follow_links && !is_files)?;
        let has_status = matches!(handler, None | Some(Handler::Redirect | Handler::Fixed));
        needs("status", "respond", rules.status.is_some() && !has_status)?;
        if let Some(status) = rules.status {
            let place = place.to_owned();
            match handler {
                Some(Handler::Redirect) if !matches!(status, 301 | 302 | 303 | 307 | 308) => {
                    return Err(SiteError::NoRedirect { place, status });
                }
                None | Some(Handler::Fixed) if (300..400).contains(&status) => {
                    return Err(SiteError::NoTarget { place, status });
                }
                // RFC 9110, sections 15.3.5 and 15.3.6.
                Some(Handler::Fixed)
                    if matches!(status, 204 | 205)
                        && rules.respond.as_ref().is_some_and(|text| !text.is_empty()) =>
                {
                    return Err(SiteError::NoContent { place, status });
                }
                _ => {}
            }
        }
        let is_compressed = match handler {
            Some(Handler::Files) => rules.compress.unwrap_or(true),
            Some(Handler::Applications) => rules.compress.unwrap_or(false),
            None | Some(Handler::Redirect | Handler::Fixed) => false,
        };
        needs(
            "dictionary",
            "compress = true",
            rules.dictionary.is_some() && !is_compressed,
        )?;
        needs(
            "burst",
            "rate",
            rules.burst.is_some() && rules.rate.is_none(),
        )?;
        needs(
            "rate_by",
            "rate",
            rules.rate_by != RequestKey::default() && rules.rate.is_none(),
        )?;
        needs(
            "realm",
            "basic_auth",
            rules.realm.is_some() && rules.basic_auth.is_none(),
        )?;
        if let Some(proxy) = &rules.proxy {
            needs("proxy", "to", proxy.upstreams.is_empty())?;
        }
        Ok(Self {
            access: Access::new(rules)?,
            max_body: rules.max_body,
            rewrite: rules.rewrite.clone(),
            requests: Changes::of(&rules.request_headers),
            responses: Changes::of(&rules.response_headers),
            hsts: rules.hsts.and_then(hsts),
            cors: Cors::new(&rules.cors),
            pages: ErrorPages::read(&rules.error_pages)?,
            answers: Self::answers(rules, place, metrics)?,
        })
    }

    fn answers(
        rules: &Rules,
        place: &str,
        metrics: &UpstreamMetrics,
    ) -> Result<Option<Answers>, SiteError> {
        let status = |default| {
            let status = rules
                .status
                .and_then(|status| StatusCode::from_u16(status).ok());
            status.unwrap_or(default)
        };
        if let Some(target) = &rules.redirect {
            let status = status(StatusCode::PERMANENT_REDIRECT);
            return Ok(Some(Answers::Redirect(status, target.clone())));
        }
        if rules.respond.is_some() || (rules.status.is_some() && rules.handlers().is_empty()) {
            let text = rules.respond.clone().unwrap_or_default();
            return Ok(Some(Answers::Fixed(status(StatusCode::OK), text)));
        }
        if let Some(files) = Files::open(rules)? {
            let compression = || Compression::new(rules.dictionary.clone());
            let compression = rules.compress.unwrap_or(true).then(compression);
            return Ok(Some(Answers::Files(files, compression)));
        }
        let Some(proxy) = &rules.proxy else {
            return Ok(None);
        };
        let site = reverse_proxy(proxy.clone(), metrics);
        let site = site.map_err(|cause| SiteError::UpstreamTls {
            place: place.to_owned(),
            cause,
        })?;
        Ok(Some(Answers::Site(match rules.compress {
            Some(true) => compressed(site, Compression::new(rules.dictionary.clone())),
            _ => site,
        })))
    }

    /// Lets a request pass, changed as these rules say, or answers it.
    pub(crate) async fn admit(
        &self,
        request: Request<Body>,
        asked: &Asked,
    ) -> Result<Request<Body>, Response<Body>> {
        // A preflight request has no credentials.
        if let Some(response) = self.cors.preflight(&request) {
            return Err(response);
        }
        self.access.check(asked.client, request.headers()).await?;
        let mut request = match self.max_body {
            Some(max) => limited(request, max).ok_or_else(|| {
                let text = "The content of the request is too large\n";
                refused(Refusal::ContentTooLarge, text)
            })?,
            None => request,
        };
        if self.access.needs_user() {
            // The application need not know the password.
            request.headers_mut().remove(http::header::AUTHORIZATION);
        }
        self.requests.apply_to_request(request.headers_mut());
        if let Some(rewrite) = &self.rewrite {
            let target = rewritten(rewrite, &request, asked);
            let target = target.ok_or_else(|| refused(Refusal::Path, "Bad request\n"))?;
            *request.uri_mut() = target;
        }
        Ok(request)
    }

    /// The fields of responses about the origin of a request with the fields `asked`.
    pub(crate) fn origin(&self, asked: &HeaderMap) -> CorsAnswer {
        self.cors.answer(asked)
    }

    /// Completes a response to a request with `method` from `origin`.
    pub(crate) fn complete(
        &self,
        method: &Method,
        origin: CorsAnswer,
        response: Response<Body>,
    ) -> Response<Body> {
        let mut response = self.pages.apply(method, response);
        let headers = response.headers_mut();
        origin.apply(headers);
        add_hsts(self.hsts.as_ref(), headers);
        self.responses.apply(headers);
        response
    }
}

impl Answers {
    /// The response to `request`.
    pub(crate) async fn answer(&self, request: Request<Body>, asked: &Asked) -> Response<Body> {
        match self {
            Self::Files(files, compression) => {
                let acceptable = compression.as_ref().map(|_| Acceptable::to(&request));
                let response = files.answer(request, &asked.host, &asked.rest).await;
                match compression.as_ref().zip(acceptable) {
                    Some((compression, acceptable)) => {
                        compression.apply(acceptable, response).await
                    }
                    None => response,
                }
            }
            Self::Site(site) => {
                let Ok(response) = site.clone().oneshot(request).await;
                response
            }
            Self::Redirect(status, target) => {
                let parts = Parts::of(&request, &asked.host, &asked.rest);
                redirect(*status, &target.fill_location(parts))
            }
            Self::Fixed(status, text) => plain(*status, text),
        }
    }
}

/// The request, whose content may have `max` bytes; none if it announces more.
fn limited(request: Request<Body>, max: u64) -> Option<Request<Body>> {
    let announced = request.headers().get(CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > max) {
        return None;
    }
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    Some(match announced {
        Some(_) => request,
        None => request.map(|body| Body::new(Limited::new(body, max))),
    })
}

/// The target of `request` with another path.
fn rewritten<B>(rewrite: &PathTemplate, request: &Request<B>, asked: &Asked) -> Option<Uri> {
    let mut target = rewrite.fill(Parts::of(request, &asked.host, &asked.rest));
    if !rewrite.as_template().has_query()
        && let Some(query) = request.uri().query()
    {
        target = format!("{target}?{query}");
    }
    let target = target.parse::<PathAndQuery>().ok()?;
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = Some(target);
    Uri::from_parts(parts).ok()
}
