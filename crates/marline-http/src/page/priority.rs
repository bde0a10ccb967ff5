//! The priorities of requests in Chrome (RFC 9218): its resource priorities, as it sends them over HTTP/3.

use http::{HeaderMap, HeaderValue};
use marline::Priority;

use super::model::{Kind, PageObject};

/// The number of images of a document that come before the others if they are large.
const FIRST_IMAGES: usize = 5;

/// Smaller images count as icons. Chrome counts pixels, which the description of a page does not
/// contain.
const LARGE_IMAGE_BYTES: u64 = 10_000;

/// The priorities of `objects`; `parents` are the indices of the objects that discover them.
pub(super) fn of(objects: &[PageObject], parents: &[Option<usize>]) -> Vec<Priority> {
    let mut first_images = 0;
    let priorities = objects.iter().zip(parents).map(|(object, parent)| {
        let in_html = parent.is_none_or(|parent| objects[parent].kind == Kind::Html);
        let urgency = match object.kind {
            Kind::Html => 0,
            Kind::Css if object.blocking => 0,
            // Style sheets for other media are as late as prefetches.
            Kind::Css => 4,
            Kind::Font | Kind::Other => 1,
            Kind::Js if object.blocking => 1,
            // Late scripts of the document itself; those that scripts insert are asynchronous.
            Kind::Js if in_html => 2,
            Kind::Js => 3,
            Kind::Image if in_html && object.size >= LARGE_IMAGE_BYTES => {
                first_images += 1;
                if first_images <= FIRST_IMAGES { 2 } else { 3 }
            }
            Kind::Image => 3,
        };
        // Style sheets, scripts and fonts are usable only when complete.
        let incremental = matches!(object.kind, Kind::Html | Kind::Image | Kind::Other);
        Priority::new(
            object.urgency.unwrap_or(urgency),
            object.incremental.unwrap_or(incremental),
        )
    });
    priorities.collect()
}

/// The `priority` field, without parameters that have their default value.
pub(super) fn headers(priority: Priority) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let default = Priority::default();
    let urgency = (priority.urgency != default.urgency).then(|| format!("u={}", priority.urgency));
    let value = match (urgency, priority.incremental) {
        (Some(urgency), true) => format!("{urgency}, i"),
        (Some(urgency), false) => urgency,
        (None, true) => "i".to_owned(),
        (None, false) => return headers,
    };
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert("priority", value);
    }
    headers
}
