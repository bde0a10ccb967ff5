use std::time::Duration;

use super::check::Plan;
use super::*;
use crate::client::HttpVersion;
use crate::limits;

fn object(id: &str, kind: Kind, discovered_by: Option<(&str, f64)>) -> PageObject {
    PageObject {
        id: id.to_owned(),
        host: "example.test".to_owned(),
        path: format!("/{id}"),
        kind,
        size: 20_000,
        discovered_by: discovered_by.map(|(object, share)| Discovery {
            object: object.to_owned(),
            share,
        }),
        parse: Duration::ZERO,
        think: Duration::ZERO,
        blocking: false,
        urgency: None,
        incremental: None,
    }
}

fn page() -> Page {
    Page {
        objects: vec![
            object("html", Kind::Html, None),
            object("css", Kind::Css, Some(("html", 0.2))),
            object("font", Kind::Font, Some(("css", 1.0))),
        ],
    }
}

#[test]
fn pages_are_written_as_json() {
    let text = r#"{"objects":[
        {"id":"html","host":"example.test","path":"/html","kind":"html","size":20000},
        {"id":"css","host":"example.test","path":"/css","kind":"css","size":20000,
         "discovered_by":{"object":"html","share":0.2}},
        {"id":"font","host":"example.test","path":"/font","kind":"font","size":20000,
         "discovered_by":{"object":"css","share":1}}]}"#;
    let read: Page = serde_json::from_str(text).unwrap();
    assert_eq!(read, page());
    let mut page = page();
    page.objects[0].parse = Duration::from_micros(1_500);
    page.objects[1].urgency = Some(7);
    let text = serde_json::to_string(&page).unwrap();
    assert!(text.contains("\"parse_s\":0.0015"), "{text}");
    assert_eq!(serde_json::from_str::<Page>(&text).unwrap(), page);

    let unknown = text.replace("blocking", "blocked");
    assert!(serde_json::from_str::<Page>(&unknown).is_err());
    let negative = text.replace("0.0015", "-1");
    assert!(serde_json::from_str::<Page>(&negative).is_err());
}

type Change = fn(&mut Vec<PageObject>);

#[test]
fn errors_name_the_object() {
    let error = |change: Change| {
        let mut page = page();
        change(&mut page.objects);
        page.check().unwrap_err().to_string()
    };
    page().check().unwrap();
    let wrong: [(Change, &str); 16] = [
        (Vec::clear, "no objects"),
        (
            |objects| objects[2].id = "css".to_owned(),
            "two objects are named css",
        ),
        (
            |objects| objects[2].path = "/css".to_owned(),
            "object font has the URL of css",
        ),
        (
            |objects| objects[0] = object("html", Kind::Html, Some(("font", 1.0))),
            "none is the page's document",
        ),
        (
            |objects| objects[2].discovered_by = None,
            "object font is discovered by none, but the page's document is html",
        ),
        (
            |objects| drop(objects.remove(1)),
            "object font is discovered by css, which is not on the page",
        ),
        (
            |objects| objects[1] = object("css", Kind::Css, Some(("font", 1.0))),
            "object css can never be discovered",
        ),
        (
            |objects| objects[1] = object("css", Kind::Css, Some(("css", 1.0))),
            "object css can never be discovered",
        ),
        (
            |objects| objects[1] = object("css", Kind::Css, Some(("html", 1.1))),
            "object css is discovered at the share 1.1",
        ),
        (
            |objects| objects[1] = object("css", Kind::Css, Some(("html", f64::NAN))),
            "object css is discovered at the share NaN",
        ),
        (
            |objects| objects[1].size = limits::MAX_PAGE_OBJECT_BYTES + 1,
            "object css has 1073741825 bytes",
        ),
        (
            |objects| objects[1].urgency = Some(8),
            "object css has the urgency 8",
        ),
        (
            |objects| objects[1].path = "css".to_owned(),
            "object css: https://example.testcss",
        ),
        (
            |objects| objects[1].host = "example.test/css".to_owned(),
            "object css: https://example.test/css/css",
        ),
        (
            |objects| objects[1].host = String::new(),
            "object css: https:///css",
        ),
        (
            |objects| {
                let many = 0..limits::MAX_PAGE_OBJECTS;
                let more = many.map(|i| object(&i.to_string(), Kind::Image, Some(("html", 1.0))));
                objects.extend(more);
            },
            "10003 objects",
        ),
    ];
    for (change, part) in wrong {
        let error = error(change);
        assert!(error.contains(part), "{error} does not contain {part}");
    }
}

#[test]
fn priorities_are_those_of_chrome() {
    let in_html = Some(("html", 0.5));
    let mut objects = vec![
        object("html", Kind::Html, None),
        object("css", Kind::Css, in_html),
        object("print", Kind::Css, in_html),
        object("font", Kind::Font, Some(("css", 1.0))),
        object("head.js", Kind::Js, in_html),
        object("late.js", Kind::Js, in_html),
        object("async.js", Kind::Js, Some(("late.js", 1.0))),
        object("data", Kind::Other, Some(("late.js", 1.0))),
        object("own", Kind::Image, in_html),
        object("icon", Kind::Image, in_html),
    ];
    objects[1].blocking = true;
    objects[4].blocking = true;
    (objects[8].urgency, objects[8].incremental) = (Some(6), Some(false));
    objects[9].size = 500;
    objects.extend((0..6).map(|i| object(&format!("image{i}"), Kind::Image, in_html)));
    let plan = Plan::new(&Page { objects }, HttpVersion::Http3).unwrap();
    let priorities = plan.objects.iter().map(|object| {
        let value = object.headers.get("priority");
        value.map_or("", |value| value.to_str().unwrap())
    });
    let expected = [
        "u=0, i", "u=0", "u=4", "u=1", "u=1", "u=2", "", "u=1, i", "u=6", "i", "u=2, i", "u=2, i",
        "u=2, i", "u=2, i", "i", "i",
    ];
    assert_eq!(priorities.collect::<Vec<_>>(), expected);
}

#[test]
fn a_generated_site_has_the_objects_of_its_host() {
    let mut page = page();
    page.objects[1].host = "static.test".to_owned();
    page.objects[2].path = "/font?v=1".to_owned();
    page.objects[2].think = Duration::from_millis(2);
    let site = page.generated("example.test");
    assert_eq!(site.keys().collect::<Vec<_>>(), ["/font", "/html"]);
    assert_eq!(site["/font"].think, Duration::from_millis(2));
    assert_eq!(
        page.generated("static.test")["/css"].content_type,
        "text/css"
    );
}
