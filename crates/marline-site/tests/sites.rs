//! Sites answer requests as their files say.

#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use marline::settings::{RawValue, apply};
use marline_http::Body;
use marline_http::proxy::UpstreamMetrics;
use marline_http::server::{Challenges, ClientAddress, Site};
use marline_site::{SiteClients, SiteConfig, redirect_to_https, sites};
use tempfile::TempDir;
use tower::ServiceExt;

fn table(entries: &[(&str, RawValue)]) -> RawValue {
    let entries = entries.iter();
    RawValue::Table(
        entries
            .map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect(),
    )
}

fn list(members: Vec<RawValue>) -> RawValue {
    RawValue::List(members)
}

/// A site with these keys, whose paths begin at `base`.
fn site(base: &Path, entries: &[(&str, RawValue)]) -> SiteConfig {
    let mut site = SiteConfig::default();
    let RawValue::Table(entries) = table(entries) else {
        unreachable!("it is a table")
    };
    apply(SiteConfig::SETTINGS, &mut site, &entries).unwrap();
    site.resolve(base);
    site
}

fn serve(configs: &[SiteConfig]) -> Site {
    let clients = SiteClients::of(configs).unwrap();
    sites(configs, &clients, &UpstreamMetrics::default()).unwrap()
}

fn refusal(config: SiteConfig) -> String {
    let clients = SiteClients::default();
    let refused = sites(&[config], &clients, &UpstreamMetrics::default());
    refused.err().unwrap().to_string()
}

fn request(target: &str) -> Request<Body> {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = target.parse().unwrap();
    let host = "example.org".parse().unwrap();
    request.headers_mut().insert(HOST, host);
    from(request, "192.0.2.1:5000")
}

fn from(mut request: Request<Body>, client: &str) -> Request<Body> {
    let client: SocketAddr = client.parse().unwrap();
    request.extensions_mut().insert(ClientAddress::new(client));
    request
}

async fn answer(site: &Site, request: Request<Body>) -> (StatusCode, String) {
    let response = whole(site, request).await;
    (response.status(), response.into_body())
}

async fn whole(site: &Site, request: Request<Body>) -> Response<String> {
    let Ok(response) = site.clone().oneshot(request).await;
    let (parts, body) = response.into_parts();
    let content = body.collect().await.unwrap().to_bytes();
    Response::from_parts(parts, String::from_utf8(content.to_vec()).unwrap())
}

fn files() -> TempDir {
    let root = TempDir::new().unwrap();
    fs::create_dir(root.path().join("www")).unwrap();
    fs::create_dir(root.path().join("www/sub")).unwrap();
    for (name, content) in [
        ("www/index.html", "home"),
        ("www/a.txt", "a"),
        ("www/sub/b.txt", "b"),
        ("www/.secret", "secret"),
        ("missing.html", "<p>not here"),
    ] {
        fs::write(root.path().join(name), content).unwrap();
    }
    root
}

#[tokio::test]
async fn a_request_goes_to_the_site_of_its_host() {
    let base = files();
    let named = |name: &str, text: &str| {
        site(
            base.path(),
            &[("names", name.into()), ("respond", text.into())],
        )
    };
    let other = site(base.path(), &[("respond", "other".into())]);
    let all = serve(&[
        named("*.example.org", "wildcard"),
        named("www.example.org", "www"),
        other,
    ]);
    for (host, expected) in [
        ("www.example.org", "www"),
        ("WWW.example.org:8443", "www"),
        ("api.example.org", "wildcard"),
        ("example.org", "other"),
        ("[::1]:443", "other"),
        ("", "other"),
    ] {
        let mut request = request("/");
        request.headers_mut().insert(HOST, host.parse().unwrap());
        assert_eq!(answer(&all, request).await.1, expected, "{host}");
    }
    let in_http2 = request("https://www.example.org/");
    assert_eq!(answer(&all, in_http2).await.1, "www");
    let only = serve(&[named("a.org", "a")]);
    let (status, _) = answer(&only, request("/")).await;
    assert_eq!(status, StatusCode::MISDIRECTED_REQUEST);
}

#[tokio::test]
async fn the_first_route_that_fits_answers() {
    let base = files();
    let route = |path: &str, text: &str| table(&[("path", path.into()), ("respond", text.into())]);
    let posts = table(&[
        ("method", "POST".into()),
        ("path", "/api/*".into()),
        ("respond", "post".into()),
    ]);
    let routes = list(vec![posts, route("/api/*", "api"), route("/a*", "a")]);
    let all = serve(&[site(
        base.path(),
        &[("dir", "www".into()), ("route", routes)],
    )]);
    for (method, target, expected) in [
        ("GET", "/api/x", "api"),
        ("POST", "/api/x", "post"),
        ("GET", "//api//x", "api"),
        ("GET", "/%61pi/x", "api"),
        ("GET", "/a.txt", "a"),
        ("GET", "/sub/b.txt", "b"),
    ] {
        let mut request = request(target);
        *request.method_mut() = method.parse().unwrap();
        assert_eq!(answer(&all, request).await.1, expected, "{target}");
    }
    for target in ["/x/../api/x", "/x/%2e%2e/a.txt", "/./a.txt"] {
        let (status, _) = answer(&all, request(target)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{target}");
    }
}

#[tokio::test]
async fn redirects_and_rewrites_have_parts_of_the_request() {
    let base = files();
    let routes = list(vec![
        table(&[
            ("path", "/old/*".into()),
            ("redirect", "https://new.org/{rest}{query}".into()),
        ]),
        table(&[("path", "/gone".into()), ("status", RawValue::Integer(410))]),
        table(&[("path", "/v1/*".into()), ("rewrite", "/sub/{rest}".into())]),
    ]);
    let all = serve(&[site(
        base.path(),
        &[("dir", "www".into()), ("route", routes)],
    )]);
    let moved = whole(&all, request("/old/a%20b?q=1")).await;
    assert_eq!(moved.status(), StatusCode::PERMANENT_REDIRECT);
    assert_eq!(moved.headers()[LOCATION], "https://new.org/a%20b?q=1");
    let (status, _) = answer(&all, request("/gone")).await;
    assert_eq!(status, StatusCode::GONE);
    assert_eq!(answer(&all, request("/v1/b.txt?x")).await.1, "b");
}

#[tokio::test]
async fn one_page_answers_for_paths_without_a_file() {
    let base = files();
    let tried = list(vec!["{path}".into(), "/index.html".into()]);
    let all = serve(&[site(base.path(), &[("dir", "www".into()), ("try", tried)])]);
    assert_eq!(answer(&all, request("/a.txt")).await.1, "a");
    assert_eq!(
        answer(&all, request("/app/view?x=1")).await,
        (StatusCode::OK, "home".to_owned())
    );
    let hidden = answer(&all, request("/.secret")).await;
    assert_eq!(hidden.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn directories_are_listed_if_that_is_on() {
    let base = files();
    let plain = serve(&[site(base.path(), &[("dir", "www".into())])]);
    let (status, _) = answer(&plain, request("/sub/")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let keys = [("dir", "www".into()), ("list", RawValue::Switch(true))];
    let listed = serve(&[site(base.path(), &keys)]);
    let page = whole(&listed, request("/sub/")).await;
    assert_eq!(page.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
    assert!(page.body().contains("href=\"./b.txt\""), "{}", page.body());
    assert_eq!(answer(&listed, request("/")).await.1, "home");
    fs::remove_file(base.path().join("www/index.html")).unwrap();
    std::os::unix::fs::symlink("/", base.path().join("www/outside")).unwrap();
    let (_, page) = answer(&listed, request("/")).await;
    assert!(
        page.contains("./sub/") && !page.contains("secret"),
        "{page}"
    );
    assert!(
        !page.contains("./outside"),
        "a link out of the directory: {page}"
    );
    let (status, _) = answer(&listed, request("/outside/")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn errors_have_pages() {
    let base = files();
    let pages = table(&[("404", "missing.html".into())]);
    let all = serve(&[site(
        base.path(),
        &[("dir", "www".into()), ("error_pages", pages)],
    )]);
    let missing = whole(&all, request("/nothing")).await;
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    assert_eq!(missing.body(), "<p>not here");
    assert_eq!(missing.headers()[CACHE_CONTROL], "no-store");
}

#[tokio::test]
async fn clients_are_admitted_by_network_password_and_rate() {
    let base = files();
    let hash = bcrypt::hash("secret", 4).unwrap();
    fs::write(base.path().join("users"), format!("ana:{hash}\n")).unwrap();
    let routes = list(vec![
        table(&[
            ("path", "/inside/*".into()),
            ("allow", list(vec!["192.0.2.0/24".into()])),
            ("deny", "192.0.2.7".into()),
            ("respond", "inside".into()),
        ]),
        table(&[
            ("path", "/users/*".into()),
            ("basic_auth", "users".into()),
            ("realm", "the club".into()),
            ("respond", "users".into()),
        ]),
        table(&[
            ("path", "/slow".into()),
            ("rate", "1/h".into()),
            ("respond", "slow".into()),
        ]),
    ]);
    let all = serve(&[site(
        base.path(),
        &[("dir", "www".into()), ("route", routes)],
    )]);
    for (client, expected) in [
        ("192.0.2.1:1", StatusCode::OK),
        ("[::ffff:192.0.2.1]:1", StatusCode::OK),
        ("192.0.2.7:1", StatusCode::FORBIDDEN),
        ("198.51.100.1:1", StatusCode::FORBIDDEN),
    ] {
        let (status, _) = answer(&all, from(request("/inside/x"), client)).await;
        assert_eq!(status, expected, "{client}");
    }
    let refused = whole(&all, request("/users/x")).await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let challenge = refused.headers()[WWW_AUTHENTICATE].to_str().unwrap();
    assert!(challenge.contains("realm=\"the club\""), "{challenge}");
    let mut known = request("/users/x");
    // ana:secret
    let credentials = "Basic YW5hOnNlY3JldA==".parse().unwrap();
    known.headers_mut().insert(AUTHORIZATION, credentials);
    assert_eq!(answer(&all, known).await.0, StatusCode::OK);
    assert_eq!(answer(&all, request("/slow")).await.0, StatusCode::OK);
    let limited = whole(&all, request("/slow")).await;
    assert_eq!(limited.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(limited.headers()[RETRY_AFTER], "3600");
}

#[tokio::test]
async fn fields_of_site_and_route_are_changed() {
    let base = files();
    let routes = list(vec![table(&[
        ("path", "/a.txt".into()),
        (
            "response_headers",
            table(&[("X-Of", "route".into()), ("-etag", "".into())]),
        ),
    ])]);
    let all = serve(&[site(
        base.path(),
        &[
            ("dir", "www".into()),
            ("hsts", "365d".into()),
            ("cors", "*".into()),
            ("response_headers", table(&[("X-Of", "site".into())])),
            ("route", routes),
        ],
    )]);
    let mut asked = request("/a.txt");
    let origin = "https://app.org".parse().unwrap();
    asked.headers_mut().insert("origin", origin);
    let response = whole(&all, asked).await;
    let headers = response.headers();
    assert_eq!(headers["x-of"], "site", "the site's own come last");
    assert!(!headers.contains_key("etag"));
    assert_eq!(headers["strict-transport-security"], "max-age=31536000");
    assert_eq!(headers["access-control-allow-origin"], "*");
}

#[tokio::test]
async fn content_has_a_limit() {
    let base = files();
    let keys = [
        ("respond", "ok".into()),
        ("max_body", RawValue::Integer(10)),
    ];
    let all = serve(&[site(base.path(), &keys)]);
    let mut large = request("/");
    large.headers_mut().insert("content-length", 11.into());
    let (status, _) = answer(&all, large).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn plain_http_is_redirected_to_its_own_host() {
    let challenges = Challenges::default();
    let to_https = redirect_to_https(443, challenges.clone());
    let moved = whole(&to_https, request("/a?b")).await;
    assert_eq!(moved.headers()[LOCATION], "https://example.org/a?b");
    let mut strange = request("/");
    strange.headers_mut().insert(HOST, "a/b".parse().unwrap());
    assert_eq!(answer(&to_https, strange).await.0, StatusCode::BAD_REQUEST);
    let with_port = whole(&redirect_to_https(8443, challenges.clone()), request("/")).await;
    assert_eq!(with_port.headers()[LOCATION], "https://example.org:8443/");
    let _answered = challenges.answer_http("token", "token.thumbprint");
    let validating = request("/.well-known/acme-challenge/token");
    let (status, content) = answer(&to_https, validating).await;
    assert_eq!(
        (status, content.as_str()),
        (StatusCode::OK, "token.thumbprint")
    );
}

#[tokio::test]
async fn a_site_that_makes_no_sense_is_refused() {
    let base = files();
    for (keys, words) in [
        (vec![], "does not say what to answer"),
        (
            vec![("dir", "www".into()), ("respond", "x".into())],
            "has both `dir` and `respond`",
        ),
        (
            vec![("respond", "x".into()), ("list", RawValue::Switch(true))],
            "has `list`, which needs `dir`",
        ),
        (vec![("dir", "nowhere".into())], "cannot serve"),
        (
            vec![
                ("redirect", "/new".into()),
                ("status", RawValue::Integer(200)),
            ],
            "redirects with the status 200",
        ),
        (
            vec![("status", RawValue::Integer(301))],
            "the status 301 of a redirect, which needs `redirect`",
        ),
        (
            vec![("respond", "x".into()), ("status", RawValue::Integer(205))],
            "the status 205, whose responses have no content",
        ),
        (
            vec![("redirect", "/new/{rest}".into())],
            "has {rest} in `redirect`, but no `path` of it has a *",
        ),
        (
            vec![("respond", "x".into()), ("basic_auth", "nobody".into())],
            "cannot read the users of",
        ),
        (
            vec![("route", list(vec![table(&[("path", "/x".into())])]))],
            "the route /x of the site without names does not say what to answer",
        ),
    ] {
        let message = refusal(site(base.path(), &keys));
        assert!(message.contains(words), "{message}");
    }
    let one = site(
        base.path(),
        &[("names", "a.org".into()), ("respond", "x".into())],
    );
    let clients = SiteClients::default();
    let twice = sites(&[one.clone(), one], &clients, &UpstreamMetrics::default());
    let message = twice.err().unwrap().to_string();
    assert!(
        message.contains("site 1 and site 2 both are for a.org"),
        "{message}"
    );
}
