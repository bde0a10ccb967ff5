//! Sites and routes as files have them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Method;
use marline::settings::{
    Derived, Domain, Field, FieldValue, List, Pair, Pairs, Settings, Table, Tables, Value,
    text_values,
};
use marline_certificates::SiteAcme;
use marline_http::proxy::{ProxyConfig, WeightedUpstream};
use marline_http::server::DictionaryPattern;
use marline_http::{HostPattern, Network, RequestKey};

use crate::client_certificates::{ClientCertificateFiles, RouteCertificates};
use crate::error_pages;
use crate::fields::{self, Origin};
use crate::paths::PathPattern;
use crate::rate::Rate;
use crate::template::{PathTemplate, Template};
use crate::written::WrittenAt;

/// A site: its names, its certificates, and what it answers.
#[derive(Clone, Debug, Default)]
pub struct SiteConfig {
    /// The names by which clients ask for it. A site without names answers for all names that no other site has.
    pub names: Vec<HostPattern>,
    /// Its certificates.
    pub certificates: Vec<CertificateFiles>,
    /// Whether an authority issues its certificate, if it has none; by default, as the server's settings say.
    pub acme: Option<SiteAcme>,
    /// The certificates that its clients are asked for, if they are.
    pub client_certificates: Option<ClientCertificateFiles>,
    /// The answer where no route has one, and the rules that hold for all its routes.
    pub rules: Rules,
    /// Its routes: the first whose path and method fit answers.
    pub routes: Vec<RouteConfig>,
    /// Where it is written, for messages.
    pub written: WrittenAt,
}

/// The files of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain in PEM.
    pub cert: PathBuf,
    /// The private key in PEM.
    pub key: PathBuf,
}

/// Requests by path and method, and what is answered to them.
#[derive(Clone, Debug, Default)]
pub struct RouteConfig {
    /// Their paths; none are all.
    pub paths: Vec<PathPattern>,
    /// Their methods; none are all.
    pub methods: Vec<RouteMethod>,
    /// Whether they need a certificate of the client.
    pub client_certificates: Option<RouteCertificates>,
    /// The answer. Without a handler, it is that of the site.
    pub rules: Rules,
    /// Where it is written, for messages.
    pub written: WrittenAt,
}

/// The method of a request, as in files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteMethod(pub(crate) Method);

impl std::fmt::Display for RouteMethod {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for RouteMethod {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_method = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase());
        let method = Method::from_bytes(text.as_bytes()).ok();
        method
            .filter(|_| is_method)
            .map(Self)
            .ok_or_else(|| format!("{text:?} is not a method; write GET, POST or another method"))
    }
}

text_values!(RouteMethod);

/// The answer to requests, and its conditions.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The directory whose files are answered.
    pub dir: Option<PathBuf>,
    /// The paths that are tried in turn, until there is a file.
    pub try_files: Vec<PathTemplate>,
    /// Whether a directory without `index.html` is listed.
    pub list: bool,
    /// Whether symbolic links may lead out of the directory.
    pub follow_links: bool,
    /// Whether files and directories whose names begin with a dot are answered.
    pub dot_files: bool,
    /// The applications, and how requests are passed on to them.
    pub proxy: Option<ProxyConfig>,
    /// The target of a redirect.
    pub redirect: Option<Template>,
    /// A fixed text.
    pub respond: Option<String>,
    /// The status of a redirect or of a fixed text.
    pub status: Option<u16>,
    /// The path that replaces that of requests.
    pub rewrite: Option<PathTemplate>,
    /// Changes of the fields of requests.
    pub request_headers: Vec<Pair>,
    /// Changes of the fields of responses.
    pub response_headers: Vec<Pair>,
    /// How long browsers use HTTPS only.
    pub hsts: Option<Duration>,
    /// The origins whose scripts may read responses.
    pub cors: Vec<Origin>,
    /// Whether text is compressed; by default, that of files is.
    pub compress: Option<bool>,
    /// The paths whose text is sent as its difference from what the client has of them.
    pub dictionary: Option<DictionaryPattern>,
    /// The files shown for statuses of errors.
    pub error_pages: Vec<Pair>,
    /// The networks that may request; none are all.
    pub allow: Vec<Network>,
    /// The networks that may not.
    pub deny: Vec<Network>,
    /// The file of users and hashes of their passwords.
    pub basic_auth: Option<PathBuf>,
    /// The purpose of name and password, as browsers show it.
    pub realm: Option<String>,
    /// How often a client may request.
    pub rate: Option<Rate>,
    /// The property of requests by which they are counted.
    pub rate_by: RequestKey,
    /// Requests that a client may make at once.
    pub burst: Option<u32>,
    /// Bytes of the content of a request.
    pub max_body: Option<u64>,
}

/// The kinds of answers to requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
    /// The files of a directory.
    Files,
    /// Applications.
    Applications,
    /// A redirect.
    Redirect,
    /// A fixed text, or a status without one.
    Fixed,
}

impl Rules {
    /// The handlers that are set, by their keys.
    pub(crate) fn handlers(&self) -> Vec<(&'static str, Handler)> {
        let all = [
            ("dir", Handler::Files, self.dir.is_some()),
            ("to", Handler::Applications, self.applications().is_some()),
            ("redirect", Handler::Redirect, self.redirect.is_some()),
            ("respond", Handler::Fixed, self.respond.is_some()),
        ];
        let set = all.into_iter().filter(|(_, _, is_set)| *is_set);
        set.map(|(key, handler, _)| (key, handler)).collect()
    }

    /// Where requests are passed on to, if they are.
    fn applications(&self) -> Option<&ProxyConfig> {
        let proxy = self.proxy.as_ref();
        proxy.filter(|proxy| !proxy.upstreams.is_empty())
    }

    /// The key whose text has the part that `*` of a path matched, if there is one.
    pub(crate) fn rest_key(&self) -> Option<&'static str> {
        let redirects = self.redirect.as_ref().is_some_and(Template::has_rest);
        let mut tried = self.try_files.iter().map(PathTemplate::as_template);
        let rewritten = self.rewrite.as_ref().map(PathTemplate::as_template);
        [
            ("redirect", redirects),
            ("try", tried.any(Template::has_rest)),
            ("rewrite", rewritten.is_some_and(Template::has_rest)),
        ]
        .into_iter()
        .find_map(|(key, has)| has.then_some(key))
    }

    /// Makes paths relative to `base`.
    fn resolve(&mut self, base: &Path) {
        for path in [&mut self.dir, &mut self.basic_auth].into_iter().flatten() {
            *path = base.join(&path);
        }
        for page in &mut self.error_pages {
            page.text = base.join(&page.text).display().to_string();
        }
        if let Some(proxy) = &mut self.proxy {
            proxy.resolve(base);
        }
    }
}

impl SiteConfig {
    /// Its keys in settings.
    pub const SETTINGS: Settings<Self> = with_rules![
        Self:
        &List {
            key: "names",
            domain: Domain::text("the name of a host, as \"example.org\" or \"*.example.org\""),
            about: "The names by which clients ask for the site; a site without names answers for all other names",
            field: |c: &mut Self| &mut c.names,
        },
        &Derived {
            key: "cert",
            domain: FILE,
            about: "The certificate chain in PEM; by default, that of the server",
            get: |c: &Self| Some(c.certificates.first().map(|one| one.cert.clone()).to_value()),
            set: |c: &mut Self, value: &Value| {
                c.first_certificate().cert = PathBuf::read(value)?;
                Ok(())
            },
        },
        &Derived {
            key: "key",
            domain: FILE,
            about: "The certificate's private key in PEM",
            get: |c: &Self| Some(c.certificates.first().map(|one| one.key.clone()).to_value()),
            set: |c: &mut Self, value: &Value| {
                c.first_certificate().key = PathBuf::read(value)?;
                Ok(())
            },
        },
        &Tables {
            key: "certificate",
            about: "Several certificates, in place of `cert` and `key`: a client gets the first that it can verify, as one of ECDSA before one of RSA",
            settings: CertificateFiles::SETTINGS,
            field: |c: &mut Self| &mut c.certificates,
        },
        &Field::new(
            "acme",
            Domain::text("a mail address, or \"off\""),
            "The mail address for an authority that issues and renews the certificate of a site without one; by setting it you agree to the authority's terms of service; the table `acme` has the authority",
            |c: &mut Self| &mut c.acme,
        ),
        &Table {
            key: "client_certificates",
            about: "The certificates that clients are asked for",
            settings: ClientCertificateFiles::SETTINGS,
            bases: &[],
            get: |c: &Self| c.client_certificates.as_ref(),
            open: |c: &mut Self| c.client_certificates.get_or_insert_default(),
            off: None,
        },
        &Tables {
            key: "route",
            about: "Requests by path and method, and what is answered to them; the first that fits answers",
            settings: RouteConfig::SETTINGS,
            field: |c: &mut Self| &mut c.routes,
        },
    ];

    /// A site without names that answers as `rules` say.
    pub fn of(rules: Rules) -> Self {
        Self {
            rules,
            ..Self::default()
        }
    }

    fn first_certificate(&mut self) -> &mut CertificateFiles {
        if self.certificates.is_empty() {
            self.certificates.push(CertificateFiles::default());
        }
        &mut self.certificates[0]
    }

    /// Makes its paths relative to `base`.
    pub fn resolve(&mut self, base: &Path) {
        self.rules.resolve(base);
        for route in &mut self.routes {
            route.rules.resolve(base);
        }
        if let Some(files) = &mut self.client_certificates {
            files.resolve(base);
        }
        let files = self.certificates.iter_mut();
        for path in files.flat_map(|files| [&mut files.cert, &mut files.key]) {
            if !path.as_os_str().is_empty() {
                *path = base.join(&path);
            }
        }
    }

    /// How messages and summaries name it: by its first name, if it has one.
    pub fn title(&self) -> String {
        match self.names.first() {
            Some(name) => format!("the site {name}"),
            None => "the site without names".to_owned(),
        }
    }

    /// Whether requests are passed on to applications, which may accept tunnels.
    pub fn has_applications(&self) -> bool {
        let routes = self.routes.iter().map(|route| &route.rules);
        routes
            .chain([&self.rules])
            .any(|rules| rules.proxy.is_some())
    }
}

impl CertificateFiles {
    /// Its keys in settings.
    const SETTINGS: Settings<Self> = &[
        &Field::new(
            "cert",
            FILE,
            "The certificate chain in PEM",
            |c: &mut Self| &mut c.cert,
        ),
        &Field::new(
            "key",
            FILE,
            "The certificate's private key in PEM",
            |c: &mut Self| &mut c.key,
        ),
    ];
}

impl RouteConfig {
    /// Its keys in settings.
    const SETTINGS: Settings<Self> = with_rules![
        Self:
        &List {
            key: "path",
            domain: Domain::text("a path, as \"/about\", or with one *, as \"/api/*\" or \"*.php\""),
            about: "The paths; without it, all",
            field: |c: &mut Self| &mut c.paths,
        },
        &List {
            key: "method",
            domain: Domain::text("a method, as \"GET\""),
            about: "The methods; without it, all",
            field: |c: &mut Self| &mut c.methods,
        },
        &Table {
            key: "client_certificates",
            about: "Whether requests need a certificate of the client, for which the site asks",
            settings: RouteCertificates::SETTINGS,
            bases: &[],
            get: |c: &Self| c.client_certificates.as_ref(),
            open: |c: &mut Self| c.client_certificates.get_or_insert_default(),
            off: None,
        },
    ];

    /// Whether a path of it has a `*`, which stands for `{rest}`.
    pub(crate) fn has_rest(&self) -> bool {
        self.paths.iter().any(PathPattern::has_rest)
    }

    /// Whether it answers every request that `later` would.
    pub(crate) fn covers(&self, later: &Self) -> bool {
        let is_method = |method| self.methods.contains(method);
        let has_methods = self.methods.is_empty()
            || (!later.methods.is_empty() && later.methods.iter().all(is_method));
        let is_covered = |path| self.paths.iter().any(|own| own.covers(path));
        // All paths, but that of `OPTIONS *`.
        let all = ["/*".parse().expect("a pattern")];
        let paths: &[PathPattern] = if later.paths.is_empty() {
            &all
        } else {
            &later.paths
        };
        has_methods && (self.paths.is_empty() || paths.iter().all(is_covered))
    }

    /// How messages and summaries name it.
    pub fn title(&self) -> String {
        match self.paths.is_empty() && self.methods.is_empty() {
            true => "the route for everything".to_owned(),
            false => format!("the route {}", self.name()),
        }
    }

    /// Its name in logs: methods and paths, or `*` for everything.
    pub fn name(&self) -> String {
        let paths: Vec<_> = self.paths.iter().map(ToString::to_string).collect();
        let methods: Vec<_> = self.methods.iter().map(ToString::to_string).collect();
        let parts = [methods.join(", "), paths.join(", ")];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        match parts.is_empty() {
            true => "*".to_owned(),
            false => parts.join(" "),
        }
    }
}

const FILE: Domain = Domain::text("the path of a file");
const DIRECTORY: Domain = Domain::text("the path of a directory");
const TEMPLATE: Domain = Domain::text(
    "text, in which {host}, {path}, {query}, {uri} and {rest} are parts of the request",
);
const NETWORK: Domain = Domain::text("an address, or a network as \"192.0.2.0/24\"");

/// The keys of something with [`Rules`]: those given, and those of the rules.
macro_rules! with_rules {
    ($owner:ty: $($own:expr,)*) => {
        &[
            $($own,)*
            &Field::new("dir", DIRECTORY, "The directory whose files are answered", |c: &mut $owner| &mut c.rules.dir),
            &List {
                key: "try",
                domain: TEMPLATE,
                about: "Paths to try in turn until there is a file, as [\"{path}\", \"/index.html\"] for an application of one page",
                field: |c: &mut $owner| &mut c.rules.try_files,
            },
            &Field::new("list", Domain::SWITCH, "Whether a directory without index.html is listed", |c: &mut $owner| &mut c.rules.list),
            &Field::new("follow_links", Domain::SWITCH, "Whether symbolic links may lead out of the directory", |c: &mut $owner| &mut c.rules.follow_links),
            &Field::new("dot_files", Domain::SWITCH, "Whether files are answered whose names, or whose directories' names, begin with a dot; those below /.well-known/ always are", |c: &mut $owner| &mut c.rules.dot_files),
            &List {
                key: "to",
                domain: Domain::text("an application, as \"http://127.0.0.1:8000\", or with a weight, as \"http://127.0.0.1:8000 weight=3\""),
                about: "The applications: http:// for HTTP/1.1, h2c:// for HTTP/2, https:// for both over TLS, h3:// for HTTP/3, unix: for HTTP/1.1 over a Unix socket; the table `proxy` has their settings",
                field: |c: &mut $owner| upstreams(&mut c.rules),
            },
            &Table {
                key: "proxy",
                about: "How requests are passed on to applications",
                settings: ProxyConfig::SETTINGS,
                bases: &[],
                get: |c: &$owner| c.rules.proxy.as_ref(),
                open: |c: &mut $owner| c.rules.proxy.get_or_insert_default(),
                off: None,
            },
            &Field::new("redirect", TEMPLATE.or("none"), "The target of a redirect", |c: &mut $owner| &mut c.rules.redirect),
            &Field::new("respond", Domain::text("text"), "A fixed text to answer", |c: &mut $owner| &mut c.rules.respond),
            &Field::new("status", Domain::integer(200, 599), "The status of `redirect` (308 by default) or of `respond` (200 by default)", |c: &mut $owner| &mut c.rules.status),
            &Field::new("rewrite", TEMPLATE.or("none"), "The path that replaces that of requests", |c: &mut $owner| &mut c.rules.rewrite),
            &Pairs {
                key: "request_headers",
                about: "Changes of the fields of requests before they are passed on",
                allowed: "fields and their values: NAME sets, +NAME adds, -NAME removes, with * at its end all that begin so",
                check: fields::check,
                field: |c: &mut $owner| &mut c.rules.request_headers,
            },
            &Pairs {
                key: "response_headers",
                about: "Changes of the fields of responses",
                allowed: "fields and their values: NAME sets, +NAME adds, -NAME removes, with * at its end all that begin so",
                check: fields::check,
                field: |c: &mut $owner| &mut c.rules.response_headers,
            },
            &Field::new("hsts", Domain::time(Duration::from_secs(1), Duration::from_secs(10 * 365 * 24 * 3600)).or("off"), "How long browsers use HTTPS only (Strict-Transport-Security)", |c: &mut $owner| &mut c.rules.hsts),
            &List {
                key: "cors",
                domain: Domain::text("an origin, as \"https://app.example.org\", or \"*\""),
                about: "The origins whose scripts may read responses (CORS)",
                field: |c: &mut $owner| &mut c.rules.cors,
            },
            &Field::new("compress", Domain::SWITCH, "Whether text is compressed for clients that accept it; by default, that of files is", |c: &mut $owner| &mut c.rules.compress),
            &Field::new("dictionary", Domain::text("a path with one * at most, as \"/app/*.js\"").or("none"), "The paths whose text is sent as its difference from what the client has of them (RFC 9842)", |c: &mut $owner| &mut c.rules.dictionary),
            &Pairs {
                key: "error_pages",
                about: "Files to show for errors, but for those that an application answers",
                allowed: "statuses, as 404 or 5xx, and files",
                check: error_pages::check,
                field: |c: &mut $owner| &mut c.rules.error_pages,
            },
            &List {
                key: "allow",
                domain: NETWORK,
                about: "The networks that may request; without it, all",
                field: |c: &mut $owner| &mut c.rules.allow,
            },
            &List {
                key: "deny",
                domain: NETWORK,
                about: "The networks that may not request",
                field: |c: &mut $owner| &mut c.rules.deny,
            },
            &Field::new("basic_auth", FILE, "The file of users, as `htpasswd -B` makes it: with it, requests need a name and a password", |c: &mut $owner| &mut c.rules.basic_auth),
            &Field::new("realm", Domain::text("text"), "The purpose of the name and the password, as browsers show it", |c: &mut $owner| &mut c.rules.realm),
            &Field::new("rate", Domain::text("requests per second, minute or hour, as \"10/s\"").or("none"), "How often a client may request; more are answered with 429", |c: &mut $owner| &mut c.rules.rate),
            &Field::new("rate_by", Domain::text("address, header:NAME or cookie:NAME"), "The property by which requests are counted for `rate`; those without the field or the cookie are counted by address. Clients choose both: limit a route by them, and its site by address", |c: &mut $owner| &mut c.rules.rate_by),
            &Field::new("burst", Domain::integer(1, 1_000_000), "Requests that a client may make at once within `rate`; by default those of a second", |c: &mut $owner| &mut c.rules.burst),
            &Field::new("max_body", Domain::bytes(0, 1 << 50), "The largest size of the content of a request; larger ones are answered with 413", |c: &mut $owner| &mut c.rules.max_body),
        ]
    };
}
use with_rules;

fn upstreams(rules: &mut Rules) -> &mut Vec<WeightedUpstream> {
    &mut rules.proxy.get_or_insert_default().upstreams
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline::settings::rows;

    #[test]
    fn every_key_is_described_once() {
        let rows = rows(SiteConfig::SETTINGS, "site.", &SiteConfig::default());
        let mut keys: Vec<_> = rows.iter().map(|row| row.key.as_str()).collect();
        assert!(keys.contains(&"site.route.path"));
        assert!(keys.contains(&"site.certificate.cert"));
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), all);
        assert!(
            rows.iter()
                .all(|row| !row.about.is_empty() && !row.allowed.is_empty())
        );
    }

    #[test]
    fn methods_are_in_capitals() {
        assert!("GET".parse::<RouteMethod>().is_ok());
        assert!("PROPFIND".parse::<RouteMethod>().is_ok());
        for text in ["", "get", "G T"] {
            assert!(text.parse::<RouteMethod>().is_err(), "{text}");
        }
    }
}
