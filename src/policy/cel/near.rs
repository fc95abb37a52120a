//! Names that somebody may have meant.

/// How far a name may be from one that is meant.
const FAR: usize = 2;

/// `; did you mean …?` where a name is near, else all that there are.
pub(super) fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let distance = |known: &str| strsim::damerau_levenshtein(&name.to_lowercase(), &known.to_lowercase());
    let near = known.iter().map(|known| (distance(known), *known)).min();
    match near {
        Some((distance, known)) if distance <= FAR.min(name.len() / 2) => {
            format!("; did you mean `{known}`?")
        }
        _ => format!("; there are {}", known.join(", ")),
    }
}
