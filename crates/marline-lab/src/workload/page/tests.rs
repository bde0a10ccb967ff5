use std::collections::BTreeSet;
use std::path::Path;

use marline_http::page::Kind;

use super::*;

/// The rows of a published table, without its comments and its head.
fn published(name: &str) -> Vec<Vec<String>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/published");
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_path(directory.join(name))
        .unwrap();
    let rows = reader.records().map(Result::unwrap);
    rows.map(|row| row.iter().map(str::to_owned).collect())
        .collect()
}

#[test]
fn tables_equal_the_published_values() {
    let cloned: Vec<_> = CLONED
        .iter()
        .map(|page| {
            let counts = [page.html, page.css, page.js, page.image, page.other];
            let mut row = vec![page.name.to_owned()];
            row.extend(counts.map(|count| count.to_string()));
            row.push(counts.iter().sum::<u32>().to_string());
            row.push(page.size_kb.to_string());
            row
        })
        .collect();
    let mut expected = published("002_table5_1_cloned_pages.csv");
    for row in &mut expected {
        row[0] = format!("cloned/{}", row[0].to_lowercase());
    }
    assert_eq!(cloned, expected);

    let live = LIVE.iter().map(|page| {
        let numbers = [page.objects, page.size_kb, page.domains].map(|n| n.to_string());
        (page.name.to_owned(), numbers.to_vec())
    });
    let expected = published("002_table5_2_live_pages.csv");
    let expected = expected.iter().map(|row| {
        (
            format!("live/{}", row[0].to_lowercase()),
            row[1..4].to_vec(),
        )
    });
    assert_eq!(live.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

#[test]
fn pages_have_the_counts_and_sizes_of_their_outlines() {
    assert_eq!(names().count(), 35);
    assert_eq!(names().collect::<BTreeSet<_>>().len(), 35);
    for outline in outlines() {
        for seed in 0..20 {
            let page = page(outline.name, seed).unwrap();
            page.check().unwrap();
            let count = |kind| page.objects.iter().filter(|o| o.kind == kind).count() as u32;
            let counts = Counts {
                html: count(Kind::Html),
                css: count(Kind::Css),
                js: count(Kind::Js),
                font: count(Kind::Font),
                image: count(Kind::Image),
                other: count(Kind::Other),
            };
            assert_eq!(counts, outline.counts);
            let bytes: u64 = page.objects.iter().map(|object| object.size).sum();
            assert_eq!(bytes, outline.bytes, "{}", outline.name);
            let paths: BTreeSet<_> = page.objects.iter().map(|object| &object.path).collect();
            assert_eq!(paths.len(), page.objects.len());
            let hosts: BTreeSet<_> = page.objects.iter().map(|object| &object.host).collect();
            assert_eq!(hosts.len() as u32, outline.hosts);
        }
    }
    assert_eq!(page("cloned/nobody", 1), None);
}

#[test]
fn live_pages_have_as_many_objects_as_published() {
    for live in LIVE.iter().chain(&TODAY) {
        let page = page(live.name, 7).unwrap();
        assert_eq!(page.objects.len() as u32, live.objects);
        assert_eq!(page.objects[0].kind, Kind::Html);
    }
    let median = TODAY[2].outline().counts;
    assert_eq!((median.js, median.image), (24, 18));
}

#[test]
fn pages_depend_only_on_name_and_seed() {
    assert_eq!(page("today/large", 1), page("today/large", 1));
    assert_ne!(page("today/large", 1), page("today/large", 2));
    // Draws must not differ between machines or releases: results are identified by their seeds.
    let page = page("today/small", 1).unwrap();
    let sizes: Vec<_> = page.objects.iter().map(|object| object.size).collect();
    let expected = [
        67_333, 5_235, 7_903, 22_958, 4_992, 5_141, 12_415, 21_131, 5_647, 12_354, 12_129, 49_455,
        2_391, 5_874, 65_042,
    ];
    assert_eq!(sizes, expected);
}

#[test]
fn objects_are_discovered_as_documented() {
    let page = page("today/large", 3).unwrap();
    let discovered = |id: &str| {
        let object = page.objects.iter().find(|object| object.id == id).unwrap();
        let discovery = object.discovered_by.as_ref().unwrap();
        (discovery.object.as_str(), discovery.share)
    };
    assert_eq!(discovered("css0"), ("html0", 0.2));
    assert_eq!(discovered("js0"), ("html0", 0.2));
    assert_eq!(discovered("js23"), ("html0", 0.5));
    assert_eq!(discovered("image0"), ("html0", 0.5));
    assert_eq!(discovered("font0").1, 1.0);
    assert!(discovered("font0").0.starts_with("css"));
    let fetched = page.objects.iter().filter(|object| {
        let discovery = object.discovered_by.as_ref();
        discovery.is_some_and(|discovery| discovery.object.starts_with("js"))
    });
    assert!((3..=24).contains(&fetched.count()));
    let own = page
        .objects
        .iter()
        .filter(|object| object.host == page.objects[0].host);
    assert!((35..=50).contains(&own.count()));
    let blocking = page.objects.iter().filter(|object| object.blocking);
    assert_eq!(blocking.count(), 8 + 8);
}

#[test]
fn pages_of_multipipe_have_the_published_numbers() {
    for row in published("003_table3_pages.csv") {
        for kinds in ["", "mixed-"] {
            let page = page(&format!("multipipe/{kinds}{}", row[0]), 1).unwrap();
            page.check().unwrap();
            let sizes = || page.objects.iter().map(|object| object.size);
            let bytes = |kb: &str| (kb.parse::<f64>().unwrap() * 1000.0) as u64;
            assert_eq!(sizes().min(), Some(bytes(&row[1])));
            assert_eq!(sizes().max(), Some(bytes(&row[2])));
            assert_eq!(sizes().sum::<u64>(), bytes(&row[3]));
            assert_eq!(sizes().count().to_string(), row[4]);
        }
    }
}

#[test]
fn mixed_pages_of_multipipe_have_all_kinds_in_turn() {
    let page = page("multipipe/mixed-large", 1).unwrap();
    let ids: Vec<_> = page.objects.iter().map(|object| &object.id).collect();
    let begin = [
        "html0", "css0", "js0", "font0", "image0", "other0", "css1", "js1",
    ];
    assert_eq!(ids[..begin.len()], begin);
    for object in &page.objects[1..] {
        let is_of_the_head = matches!(object.kind, Kind::Css | Kind::Js);
        let share = object.discovered_by.as_ref().unwrap().share;
        assert_eq!(object.blocking, is_of_the_head, "{}", object.id);
        assert_eq!(share, if is_of_the_head { 0.2 } else { 0.5 });
    }
}
