//! All sites of a server.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use http::header::HOST;
use http::{Method, Request, Response, StatusCode};
use marline_http::proxy::UpstreamMetrics;
use marline_http::server::{
    Challenges, ClientAddress, Identity, NamedIdentity, Refusal, RouteName, Site, SiteName,
};
use marline_http::{Body, HostPattern};
use tower::service_fn;

use crate::answers::{plain, redirect, refused};
use crate::clients::{Needed, SiteClients};
use crate::config::{CertificateFiles, RouteConfig, RouteMethod, Rules, SiteConfig};
use crate::error::SiteError;
use crate::paths::{PathPattern, RequestPath};
use crate::rules::{Asked, Compiled};

/// The service of all `sites`: a request goes to the site of its host. `clients` are [those](SiteClients::of) of the same sites, and
/// `metrics` count what applications do.
///
/// # Errors
/// A site or a route does not say what to answer, or what it names cannot be opened.
///
/// # Panics
/// If it is called outside of a tokio runtime, and applications are checked.
pub fn sites(
    sites: &[SiteConfig],
    clients: &SiteClients,
    metrics: &UpstreamMetrics,
) -> Result<Site, SiteError> {
    refuse_same_names(sites)?;
    let mut served = Vec::with_capacity(sites.len());
    for (index, site) in sites.iter().enumerate() {
        let needed = Needed::new(site, clients.of_site(index));
        served.push(ServedSite::open(site, needed, metrics)?);
    }
    let served = Arc::new(Sites { sites: served });
    Ok(Site::new(service_fn(move |request: Request<Body>| {
        let served = Arc::clone(&served);
        async move { Ok(served.answer(request).await) }
    })))
}

/// The certificates of `sites` that have some.
///
/// # Errors
/// A certificate cannot be used.
pub fn identities(sites: &[SiteConfig]) -> Result<Vec<NamedIdentity>, SiteError> {
    let mut identities = Vec::new();
    for site in sites {
        for files in &site.certificates {
            let identity = identity(files, &site.title());
            let identity = identity.map_err(|error| site.written.locate(error))?;
            identities.push(NamedIdentity {
                names: site.names.clone(),
                identity,
            });
        }
    }
    Ok(identities)
}

/// The certificate of `files`, which are of `place`.
fn identity(files: &CertificateFiles, place: &str) -> Result<Identity, SiteError> {
    let lacks = |path: &Path, key, needs| match path.as_os_str().is_empty() {
        true => Err(SiteError::Needs {
            place: place.to_owned(),
            key,
            needs,
        }),
        false => Ok(()),
    };
    lacks(&files.key, "cert", "key")?;
    lacks(&files.cert, "key", "cert")?;
    Identity::from_pem_files(&files.cert, &files.key).map_err(|cause| SiteError::Identity {
        place: place.to_owned(),
        cause,
    })
}

/// The names of `sites` in metrics: the first of each, or `default`.
pub fn site_names(sites: &[SiteConfig]) -> Vec<SiteName> {
    sites.iter().map(name_of).collect()
}

fn name_of(site: &SiteConfig) -> SiteName {
    match site.names.first() {
        Some(name) => SiteName::new(&name.to_string()),
        None => SiteName::new("default"),
    }
}

/// A site that redirects every request to the same URL of `https`, on `port`, but for those of `challenges`, which it answers.
pub fn redirect_to_https(port: u16, challenges: Challenges) -> Site {
    Site::new(service_fn(move |request: Request<Body>| {
        let challenges = challenges.clone();
        async move { Ok(redirected(&request, port, &challenges)) }
    }))
}

fn redirected(request: &Request<Body>, port: u16, challenges: &Challenges) -> Response<Body> {
    if let Some(answer) = challenges.response(request.uri().path()) {
        return plain(StatusCode::OK, &answer);
    }
    let host = host_of(request).map(host_name);
    let Some(host) = host.filter(|host| host.parse::<HostPattern>().is_ok()) else {
        return refused(Refusal::Malformed, "The request names no host\n");
    };
    let port = match port {
        443 => String::new(),
        other => format!(":{other}"),
    };
    let path = request.uri().path_and_query();
    let path = path.map_or("/", |path| path.as_str());
    let path = if path.starts_with('/') { path } else { "/" };
    let target = format!("https://{host}{port}{path}");
    redirect(StatusCode::PERMANENT_REDIRECT, &target)
}

fn refuse_same_names(sites: &[SiteConfig]) -> Result<(), SiteError> {
    for (index, site) in sites.iter().enumerate() {
        for (before, other) in sites[..index].iter().enumerate() {
            let both_nameless = site.names.is_empty() && other.names.is_empty();
            let same = site.names.iter().find(|name| other.names.contains(name));
            if both_nameless || same.is_some() {
                let name = same.map_or("all other names".to_owned(), ToString::to_string);
                return Err(site.written.locate(SiteError::SameName {
                    first: format!("site {}", before + 1),
                    second: format!("site {}", index + 1),
                    name,
                }));
            }
        }
    }
    Ok(())
}

/// `rules` of `place`, ready to answer; `has_rest` is whether a path of it has a `*`.
fn compiled(
    rules: &Rules,
    place: &str,
    has_rest: bool,
    metrics: &UpstreamMetrics,
) -> Result<Compiled, SiteError> {
    match rules.rest_key() {
        Some(key) if !has_rest => Err(SiteError::NoRest {
            place: place.to_owned(),
            key,
        }),
        _ => Compiled::new(rules, place, metrics),
    }
}

#[derive(Debug)]
struct Sites {
    sites: Vec<ServedSite>,
}

#[derive(Debug)]
struct ServedSite {
    /// For the metrics.
    name: SiteName,
    names: Vec<HostPattern>,
    certificates: Needed,
    rules: Compiled,
    routes: Vec<Route>,
}

#[derive(Debug)]
struct Route {
    /// For the access log.
    name: RouteName,
    paths: Vec<PathPattern>,
    methods: Vec<RouteMethod>,
    needs_certificate: bool,
    rules: Compiled,
}

impl Sites {
    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let Some(client) = request.extensions().get::<ClientAddress>() else {
            // The server always says who asks.
            return refused(Refusal::Internal, "No address of a client\n");
        };
        let client = client.get().ip();
        let host: Arc<str> = host_of(&request).map(Arc::from).unwrap_or_default();
        let Some(site) = self.site(host_name(&host)) else {
            let text = "This server has no site of this name\n";
            return refused(Refusal::UnknownSite, text);
        };
        let mut response = site.answer(request, client, host).await;
        response.extensions_mut().insert(site.name.clone());
        response
    }

    /// The site of `host`: by name, by wildcard, or the one without names.
    fn site(&self, host: &str) -> Option<&ServedSite> {
        let named = self
            .sites
            .iter()
            .flat_map(|site| site.names.iter().map(move |name| (name, site)));
        HostPattern::best(host, named)
            .or_else(|| self.sites.iter().find(|site| site.names.is_empty()))
    }
}

impl ServedSite {
    fn open(
        config: &SiteConfig,
        certificates: Needed,
        metrics: &UpstreamMetrics,
    ) -> Result<Self, SiteError> {
        let place = config.title();
        let located = |error| config.written.locate(error);
        // Rules of a site hold for its routes.
        let has_rest = config.routes.iter().any(RouteConfig::has_rest);
        let rules = compiled(&config.rules, &place, has_rest, metrics).map_err(located)?;
        let mut routes = Vec::with_capacity(config.routes.len());
        for (index, route) in config.routes.iter().enumerate() {
            let place = format!("{} of {place}", route.title());
            let located = |error| route.written.locate(error);
            let mut before = config.routes[..index].iter();
            if let Some(earlier) = before.find(|earlier| earlier.covers(route)) {
                let earlier = earlier.title();
                return Err(located(SiteError::Unreachable { place, earlier }));
            }
            let own = compiled(&route.rules, &place, route.has_rest(), metrics);
            let own = own.map_err(located)?;
            if own.answers.is_none() && rules.answers.is_none() {
                return Err(located(SiteError::NoHandler { place }));
            }
            routes.push(Route::new(route, own));
        }
        if routes.is_empty() && rules.answers.is_none() {
            return Err(located(SiteError::NoHandler { place }));
        }
        Ok(Self {
            name: name_of(config),
            names: config.names.clone(),
            certificates,
            rules,
            routes,
        })
    }

    async fn answer(
        &self,
        request: Request<Body>,
        client: IpAddr,
        host: Arc<str>,
    ) -> Response<Body> {
        let method = request.method().clone();
        let path = RequestPath::new(request.uri().path());
        if path.has_dot_segments() {
            // Routes and what answers could take it for different paths.
            return refused(Refusal::Path, "The path has . or .. in it\n");
        }
        let fitting = self
            .routes
            .iter()
            .find_map(|route| Some((route, route.rest(&method, &path)?)));
        let (route, rest) = match fitting {
            Some((route, rest)) => (Some(route), rest),
            None => (None, ""),
        };
        let origin = self.rules.origin(request.headers());
        let origin_of_route = route.map(|route| route.rules.origin(request.headers()));
        let asked = Asked {
            client,
            host,
            // Usually empty, which takes no allocation.
            rest: match rest {
                "" => Arc::default(),
                rest => rest.into(),
            },
        };
        let response = self.answer_by(route, request, &asked).await;
        let response = match (route, origin_of_route) {
            (Some(route), Some(origin)) => {
                let mut response = route.rules.complete(&method, origin, response);
                response.extensions_mut().insert(route.name.clone());
                response
            }
            _ => response,
        };
        self.rules.complete(&method, origin, response)
    }

    async fn answer_by(
        &self,
        route: Option<&Route>,
        request: Request<Body>,
        asked: &Asked,
    ) -> Response<Body> {
        let needs_certificate = route.is_some_and(|route| route.needs_certificate);
        if let Some(response) = self.certificates.refusal(&request, needs_certificate) {
            return response;
        }
        let request = match self.rules.admit(request, asked).await {
            Ok(request) => request,
            Err(response) => return response,
        };
        let (request, answers) = match route {
            None => (request, None),
            Some(route) => match route.rules.admit(request, asked).await {
                Ok(request) => (request, route.rules.answers.as_ref()),
                Err(response) => return response,
            },
        };
        match answers.or(self.rules.answers.as_ref()) {
            Some(answers) => answers.answer(request, asked).await,
            None => refused(Refusal::NoRoute, "Not found\n"),
        }
    }
}

impl Route {
    fn new(config: &RouteConfig, rules: Compiled) -> Self {
        Self {
            name: RouteName::new(&config.name()),
            paths: config.paths.clone(),
            methods: config.methods.clone(),
            needs_certificate: Needed::by_route(config),
            rules,
        }
    }

    /// The part of the path that `*` stands for, if a request with this method and path is one of the route.
    fn rest<'a>(&self, method: &Method, path: &RequestPath<'a>) -> Option<&'a str> {
        let has_method = |of_route: &RouteMethod| {
            // HEAD is GET without content.
            of_route.0 == *method || (*method == Method::HEAD && of_route.0 == Method::GET)
        };
        if !self.methods.is_empty() && !self.methods.iter().any(has_method) {
            return None;
        }
        if self.paths.is_empty() {
            return Some("");
        }
        self.paths.iter().find_map(|pattern| pattern.rest(path))
    }
}

/// The host that a request asks for, with its port: `:authority`, or `Host`.
fn host_of<B>(request: &Request<B>) -> Option<&str> {
    if let Some(authority) = request.uri().authority() {
        return Some(authority.as_str());
    }
    request.headers().get(HOST)?.to_str().ok()
}

/// `host` without a port.
fn host_name(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port))
            if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() =>
        {
            // An IPv6 address has brackets.
            match name.contains(':') && !name.ends_with(']') {
                true => host,
                false => name,
            }
        }
        _ => host,
    }
}
