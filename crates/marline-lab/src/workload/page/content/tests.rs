use super::*;
use crate::workload::page::{names, page};

fn text(contents: &BTreeMap<String, Bytes>, path: &str) -> String {
    String::from_utf8(contents[path].to_vec()).unwrap()
}

#[test]
fn every_object_has_its_size_and_is_referred_to_once() {
    for name in names().filter(|name| name.starts_with("cloned/")) {
        let before = page(name, 1).unwrap();
        let readable = readable(before.clone(), "https");
        let Readable { page, contents } = readable.unwrap_or_else(|e| panic!("{name}: {e}"));
        let total = |page: &Page| page.objects.iter().map(|o| o.size).sum::<u64>();
        assert_eq!(total(&page), total(&before), "{name}");
        for object in &page.objects {
            if let Some(content) = contents.get(&object.path) {
                assert_eq!(content.len() as u64, object.size, "{name} {}", object.id);
            }
            let Some(discovery) = &object.discovered_by else {
                continue;
            };
            let parent = text(&contents, &format!("/{}", discovery.object));
            let ends = ['>', ' ', '"'].map(|end| format!("{}{end}", object.path));
            let found: usize = ends.iter().map(|end| parent.matches(end).count()).sum();
            assert_eq!(found, 1, "{name} {}", object.id);
        }
    }
}

#[test]
fn references_end_at_the_share_of_the_document() {
    let Readable {
        page: after,
        contents,
    } = readable(page("cloned/amazon", 1).unwrap(), "https").unwrap();
    assert_eq!(after, page("cloned/amazon", 1).unwrap());
    let document = text(&contents, "/html0");
    let end = |share: f64| (document.len() as f64 * share) as usize;
    for (share, last) in [(0.2, "</script>"), (0.5, "</script>")] {
        let there = &document[..end(share)];
        assert!(
            there.ends_with(last),
            "{share}: {}",
            &there[there.len() - 80..]
        );
    }
    let blank = document[end(0.5)..].trim();
    assert!(blank.is_empty(), "{blank}");
}

#[test]
fn images_are_complete_files() {
    for size in [42, 43, 100, 65_537] {
        let image = image(size).unwrap();
        assert_eq!(image.len() as u64, size);
        let field = |at: usize| u32::from_le_bytes(image[at..at + 4].try_into().unwrap()) as usize;
        let [riff, chunk] = [field(4), field(38)];
        assert_eq!(riff + 8, PIXEL.len() + CHUNK_HEADER + chunk);
        assert!(image.len() - (riff + 8) < 2);
    }
    assert_eq!(image(41), None);
}

#[test]
fn a_document_grows_until_it_holds_its_references() {
    let mut small = page("cloned/sohu", 1).unwrap();
    small.objects[0].size = 200;
    let Readable { page: grown, .. } = readable(small.clone(), "https").unwrap();
    assert!(grown.objects[0].size > 2000, "{}", grown.objects[0].size);
    for object in &mut small.objects {
        object.size = 100;
    }
    let error = readable(small, "https").unwrap_err().to_string();
    assert!(
        error.starts_with("object html0 has 100 bytes and needs"),
        "{error}"
    );
}

#[test]
fn what_no_browser_could_find_is_named() {
    let mut page = page("cloned/sohu", 1).unwrap();
    let image = page.objects.iter().position(|o| o.kind == Kind::Image);
    let image = page.objects[image.unwrap()].id.clone();
    let data = page.objects.iter_mut().find(|o| o.kind == Kind::Other);
    let parent = data.unwrap().discovered_by.as_mut().unwrap();
    parent.object.clone_from(&image);
    let error = readable(page, "https").unwrap_err().to_string();
    let expected = format!("a browser finds no object in {image}, where other");
    assert!(error.starts_with(&expected), "{error}");
}
