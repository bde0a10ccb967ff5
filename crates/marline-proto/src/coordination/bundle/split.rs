//! One initial window for all (section IV-A: each connection starts with IW / N).

/// The parts of an initial window of `packets` over `members`: at least one packet each; otherwise they
/// differ by one packet at most, larger ones first.
pub fn split_initial_window(packets: u64, members: u64) -> impl Iterator<Item = u64> {
    let members = members.max(1);
    let (share, rest) = (packets / members, packets % members);
    (0..members).map(move |place| (share + u64::from(place < rest)).max(1))
}
