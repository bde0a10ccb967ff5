use super::*;
use crate::cases::CASES;

#[test]
fn cells_show_marks_and_footnotes() {
    let (subject, peer) = (
        Peer::named("marline").unwrap(),
        Peer::named("quinn").unwrap(),
    );
    let cases: Vec<&Case> = CASES.iter().take(4).collect();
    let verdicts = [
        Verdict::Passed,
        Verdict::Failed("lost its way".to_owned()),
        Verdict::Unsupported("cannot".to_owned()),
    ];
    let outcomes: Vec<Outcome> = cases
        .iter()
        .zip(verdicts)
        .map(|(case, verdict)| Outcome {
            subject: subject.name,
            peer: peer.name,
            case: case.name,
            role: Role::Server,
            verdict,
            note: None,
            duration_s: 1.0,
            relay: None,
            links: None,
        })
        .collect();
    let nowhere = Path::new("/nonexistent");
    let section = Section {
        subject,
        peers: vec![peer],
        cases: cases.clone(),
    };
    let text = render(&[section], &[Role::Server], &outcomes, nowhere);
    let cells: Vec<&str> = text
        .lines()
        .filter(|line| {
            cases
                .iter()
                .any(|case| line.starts_with(&format!("| {} |", case.name)))
        })
        .filter_map(|line| line.rsplit(" | ").next())
        .collect();
    assert_eq!(cells, ["✓ |", "✗[^1] |", "–[^2] |", "· |"]);
    assert!(text.contains("1 passed, and 1 failed."));
    assert!(text.ends_with("[^1]: lost its way\n[^2]: cannot\n"));
}

#[test]
fn equal_reasons_share_a_footnote() {
    let mut notes = Notes::default();
    let marks = ["a", "b", "a"].map(|reason| notes.mark(reason));
    assert_eq!(marks, ["[^1]", "[^2]", "[^1]"]);
}
