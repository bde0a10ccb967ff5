//! Values of tables in the sentences of a page.

/// The text with each `{{ROW | COLUMN}}` replaced by the cell of that row and column, up to a bracket in it. The table
/// is the first of the page that has both; with `{{ROW | COLUMN | LINE}}`, the first below that line or heading.
///
/// # Errors
///
/// A sentence that names what no table has.
pub(crate) fn filled(text: &str) -> Result<String, String> {
    let mut made = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find("{{") {
        let (before, after) = (&rest[..begin], &rest[begin + 2..]);
        let end = after.find("}}").ok_or("{{ without }}")?;
        let place = &after[..end];
        let found = cell(text, place).ok_or_else(|| format!("no table has {{{{{place}}}}}"))?;
        made.push_str(before);
        made.push_str(found);
        rest = &after[end + 2..];
    }
    made.push_str(rest);
    Ok(made)
}

/// The cell that `place` names.
fn cell<'a>(text: &'a str, place: &str) -> Option<&'a str> {
    let mut parts = place.split(" | ").map(str::trim);
    let (row, column) = (parts.next()?, parts.next()?);
    let lines = text.lines();
    let below = parts.next().unwrap_or_default();
    let mut lines =
        lines.skip_while(|line| !below.is_empty() && line.trim_start_matches(['#', ' ']) != below);
    let mut at = None;
    let mut is_inside = false;
    lines.find_map(|line| {
        let cells: Option<Vec<_>> = line.strip_prefix('|').map(cells);
        let was_inside = std::mem::replace(&mut is_inside, cells.is_some());
        let cells = cells?;
        if !was_inside {
            at = cells.iter().skip(1).position(|name| *name == column);
            return None;
        }
        let value = cells.get(at? + 1)?;
        let is_row = cells[0].trim_matches(['`', '*']) == row;
        is_row.then(|| value.split(" (").next().unwrap_or(value))
    })
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_end()
        .trim_end_matches('|')
        .split('|')
        .map(str::trim)
        .collect()
}

#[test]
fn sentences_cite_cells() {
    let text = "\
Takes {{ours | far}}, others {{theirs | far}}; near {{ours | near | Second}}.

| | far |
| --- | --- |
| `ours` | 2.0 s (1.9 to 2.1) |
| theirs | 9 s |

## Second

| | near |
| --- | --- |
| ours | 1 s |
";
    let first = filled(text).unwrap();
    assert_eq!(
        first.lines().next().unwrap(),
        "Takes 2.0 s, others 9 s; near 1 s."
    );
    assert!(filled("{{ours | nowhere}}").is_err());
    assert!(filled(&text.replace("Second}}", "Third}}")).is_err());
}
