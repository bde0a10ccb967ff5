//! Checks for tests that HTML is well formed.

/// Elements that have no end tag.
const VOID: [&str; 2] = ["meta", "!doctype"];

/// Panics unless tags are nested properly.
pub(crate) fn assert_nested(html: &str) {
    let mut open = Vec::new();
    for tag in html.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("a tag ends");
        let name = tag.split([' ', '\n']).next().unwrap();
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?} are not closed");
}

/// Panics unless a chart is well formed and its coordinates are finite.
pub(crate) fn assert_sound(html: &str) {
    assert_nested(html);
    for odd in ["NaN", "inf\"", "inf ", "infV", "infH", "-0.0\""] {
        assert!(!html.contains(odd), "{odd} in {html}");
    }
}

/// A figure as a page shows it, without the file behind its link.
pub(crate) fn shown(figure: &str) -> String {
    let mut parts = figure.split("<p class=\"save\">");
    let first = parts.next().unwrap_or_default().to_owned();
    let others = parts.filter_map(|part| Some(part.split_once("</p>")?.1));
    first + &others.collect::<String>()
}
