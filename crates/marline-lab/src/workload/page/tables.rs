//! The published data of the pages.

use super::{Counts, Outline};

/// A page of Manzoor's table 5.1: counts by kind, and the size in kB.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cloned {
    pub(super) name: &'static str,
    pub(super) html: u32,
    pub(super) css: u32,
    pub(super) js: u32,
    pub(super) image: u32,
    pub(super) other: u32,
    pub(super) size_kb: u32,
}

impl Cloned {
    pub(super) fn outline(&self) -> Outline {
        Outline {
            name: self.name,
            counts: Counts {
                html: self.html,
                css: self.css,
                js: self.js,
                font: 0,
                image: self.image,
                other: self.other,
            },
            bytes: u64::from(self.size_kb) * 1000,
            hosts: 1,
        }
    }
}

/// A page of Manzoor's table 5.2, of which only the number of objects, their size in kB and the number of
/// hosts are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Live {
    pub(super) name: &'static str,
    pub(super) objects: u32,
    pub(super) size_kb: u32,
    pub(super) domains: u32,
}

impl Live {
    pub(super) fn outline(&self) -> Outline {
        Outline {
            name: self.name,
            counts: mix(self.objects),
            bytes: u64::from(self.size_kb) * 1000,
            hosts: self.domains,
        }
    }
}

/// The median desktop page of the HTTP Archive in 2024: 71 requests, of which 24 for scripts and 18 for
/// images. The kinds of the others are not published there, and are set to common numbers.
const MIX: [u32; 6] = [2, 8, 24, 5, 18, 14];
const MIX_TOTAL: u32 = 71;

/// `objects` in the proportions of [`MIX`], by largest remainders, with at least one document.
fn mix(objects: u32) -> Counts {
    let quotas = MIX.map(|share| share * objects);
    let mut counts = quotas.map(|quota| quota / MIX_TOTAL);
    let mut order = [0, 1, 2, 3, 4, 5];
    // The sort is stable: of equal remainders, the earlier kind comes first.
    order.sort_by_key(|&kind| std::cmp::Reverse(quotas[kind] % MIX_TOTAL));
    let missing = objects - counts.iter().sum::<u32>();
    for &kind in order.iter().take(missing as usize) {
        counts[kind] += 1;
    }
    if counts[0] == 0 {
        let most = (1..6).max_by_key(|&kind| counts[kind]).unwrap_or(2);
        counts[most] -= 1;
        counts[0] = 1;
    }
    let [html, css, js, font, image, other] = counts;
    Counts {
        html,
        css,
        js,
        font,
        image,
        other,
    }
}

/// A document with large images, as of section 5.3.1, whose number and size are not published.
pub(super) const IMAGES: Cloned = Cloned {
    name: "images",
    html: 1,
    css: 0,
    js: 0,
    image: 20,
    other: 0,
    size_kb: 8000,
};

/// Table 5.1: 15 pages copied to one server.
#[rustfmt::skip]
pub(super) const CLONED: [Cloned; 15] = [
    Cloned { name: "cloned/baidu", html: 1, css: 1, js: 1, image: 6, other: 1, size_kb: 50 },
    Cloned { name: "cloned/google", html: 2, css: 1, js: 3, image: 5, other: 1, size_kb: 56 },
    Cloned { name: "cloned/live", html: 2, css: 2, js: 2, image: 2, other: 0, size_kb: 262 },
    Cloned { name: "cloned/twitter", html: 6, css: 1, js: 4, image: 2, other: 3, size_kb: 421 },
    Cloned { name: "cloned/wikipedia", html: 1, css: 1, js: 2, image: 20, other: 1, size_kb: 441 },
    Cloned { name: "cloned/reddit", html: 4, css: 2, js: 5, image: 26, other: 2, size_kb: 470 },
    Cloned { name: "cloned/yahoo", html: 16, css: 13, js: 5, image: 48, other: 4, size_kb: 839 },
    Cloned { name: "cloned/vk", html: 4, css: 1, js: 14, image: 3, other: 1, size_kb: 920 },
    Cloned { name: "cloned/taobao", html: 2, css: 2, js: 7, image: 38, other: 4, size_kb: 1320 },
    Cloned { name: "cloned/instagram", html: 3, css: 1, js: 7, image: 25, other: 1, size_kb: 1409 },
    Cloned { name: "cloned/qq", html: 15, css: 6, js: 19, image: 115, other: 6, size_kb: 1728 },
    Cloned { name: "cloned/sohu", html: 13, css: 11, js: 33, image: 167, other: 4, size_kb: 2056 },
    Cloned { name: "cloned/youtube", html: 8, css: 3, js: 5, image: 113, other: 20, size_kb: 2911 },
    Cloned { name: "cloned/facebook", html: 1, css: 1, js: 8, image: 123, other: 1, size_kb: 3560 },
    Cloned { name: "cloned/amazon", html: 5, css: 2, js: 14, image: 41, other: 2, size_kb: 3723 },
];

/// Table 5.2: 10 pages on their own servers.
#[rustfmt::skip]
pub(super) const LIVE: [Live; 10] = [
    Live { name: "live/google", objects: 17, size_kb: 286, domains: 1 },
    Live { name: "live/bing", objects: 32, size_kb: 421, domains: 1 },
    Live { name: "live/wikipedia", objects: 36, size_kb: 882, domains: 2 },
    Live { name: "live/mozilla", objects: 37, size_kb: 931, domains: 2 },
    Live { name: "live/poloniex", objects: 19, size_kb: 1028, domains: 2 },
    Live { name: "live/paypal", objects: 64, size_kb: 1415, domains: 2 },
    Live { name: "live/instagram", objects: 35, size_kb: 1785, domains: 3 },
    Live { name: "live/blogger", objects: 61, size_kb: 2061, domains: 2 },
    Live { name: "live/twitter", objects: 18, size_kb: 2429, domains: 2 },
    Live { name: "live/facebook", objects: 86, size_kb: 4266, domains: 2 },
];

/// Current pages: the smallest is a simple page, the largest is the median page.
#[rustfmt::skip]
pub(super) const TODAY: [Live; 3] = [
    Live { name: "today/small", objects: 15, size_kb: 300, domains: 6 },
    Live { name: "today/medium", objects: 40, size_kb: 1200, domains: 6 },
    Live { name: "today/large", objects: 71, size_kb: 2600, domains: 6 },
];
