//! Sizes as curl reads them.

/// A number of bytes, or of those that a letter stands for.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let scale = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err("write a number of bytes, or one with K, M, G or T".to_owned()),
    };
    let number = text[..text.len() - unit.len()].parse::<u64>();
    let size = number
        .ok()
        .and_then(|number| number.checked_mul(1 << scale));
    size.ok_or_else(|| "it is not a size in bytes".to_owned())
}
