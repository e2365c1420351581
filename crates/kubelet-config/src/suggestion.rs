//! Suggests a known name for an unknown one.

/// The known name that is most similar to an unknown one, if any is similar.
pub(crate) fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let far = (name.chars().count() / 3).clamp(1, 4);
    let distances = known.into_iter().map(|known| (distance(name, known), known));
    distances.filter(|(distance, _)| *distance <= far).min().map(|(_, known)| known)
}

/// ` (did you mean X?)`, or nothing.
pub(crate) fn suggestion<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    nearest(name, known).map_or_else(String::new, |near| format!(" (did you mean {near}?)"))
}

/// The edit distance of two names; upper and lower case count as equal.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (number, letter) in one.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = number + 1;
        for (column, against) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *against);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_near_and_another_word_is_not() {
        let known = ["max-pods", "pod-max-pids", "node-ip"];
        let rows = [
            ("max-pod", Some("max-pods")),
            ("MAX-PODS", Some("max-pods")),
            ("nodeip", Some("node-ip")),
            ("kubeconfig", None),
            ("x", None),
        ];
        for (name, expected) in rows {
            assert_eq!(nearest(name, known), expected, "{name}");
        }
    }
}
