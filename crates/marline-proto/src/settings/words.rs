//! Messages about unknown words, with the nearest known one.

/// Lists of known words stop helping when they are longer than this, if a near word is found.
const LISTED: usize = 12;

/// `unknown {what} "{word}"`, with the nearest known word if one is near, and those that are known.
pub fn unknown<'a>(what: &str, word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let mut words: Vec<&str> = Vec::new();
    for name in known {
        if !words.contains(&name) {
            words.push(name);
        }
    }
    let nearest = words
        .iter()
        .map(|name| (distance(word, name), *name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, name)| *distance < name.len() && *distance <= (name.len() / 3).max(1));
    match nearest {
        Some((_, name)) if words.len() > LISTED => {
            format!("unknown {what} \"{word}\"; did you mean {name}?")
        }
        Some((_, name)) => format!(
            "unknown {what} \"{word}\"; did you mean {name}? known: {}",
            words.join(", ")
        ),
        None => format!("unknown {what} \"{word}\"; known: {}", words.join(", ")),
    }
}

/// Characters to insert, delete, replace or swap with their neighbor, so that `a` becomes `b` (optimal string
/// alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_of_two_words_is_their_number_of_edits() {
        for (a, b, edits) in [
            ("", "", 0),
            ("", "abc", 3),
            ("hybird", "hybrid", 1),
            ("fiar", "fair", 1),
            ("cubik", "cubic", 1),
            ("scope", "scop", 1),
            ("lissen", "listen", 1),
        ] {
            assert_eq!(distance(a, b), edits, "{a} {b}");
            assert_eq!(distance(b, a), edits, "{b} {a}");
        }
    }

    #[test]
    fn only_a_similar_word_is_proposed() {
        let known = ["newreno", "cubic", "bbr"];
        assert_eq!(
            unknown("controller", "cubci", known),
            "unknown controller \"cubci\"; did you mean cubic? known: newreno, cubic, bbr"
        );
        assert_eq!(
            unknown("controller", "vegas", known),
            "unknown controller \"vegas\"; known: newreno, cubic, bbr"
        );
    }
}
