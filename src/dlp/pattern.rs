//! Detectors that a policy brings along: regular expressions, each with a literal without which it is never tried.

use regex::bytes::RegexBuilder;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind};

use super::Confidence;
use super::detector::{Detector, Form, Place};

/// The most bytes that a pattern takes compiled, and its longest text.
const MOST_COMPILED: usize = 1 << 20;
const LONGEST: usize = 1_024;
/// The shortest literal that is searched for, and how many there may be.
const LITERAL: usize = 3;
const MOST_LITERALS: usize = 64;

/// Makes the detector `pattern:NAME`.
///
/// # Errors
/// Why the expression is none that can be searched for in linear time behind a literal.
pub fn detector(name: &str, regex: &str, confidence: Confidence) -> Result<Detector, String> {
    if regex.len() > LONGEST {
        return Err(format!("it has more than {LONGEST} bytes"));
    }
    let parsed = ParserBuilder::new().unicode(false).utf8(false).build().parse(regex);
    let hir = parsed.map_err(|error| first_line(&error))?;
    if hir.properties().minimum_len().unwrap_or(0) == 0 {
        return Err("it matches a text of nothing".to_owned());
    }
    let anchors = literals(&hir).ok_or_else(|| {
        format!(
            "every branch needs a literal of {LITERAL} characters or more (and there may be {MOST_LITERALS} of them), \
             such as `corp_` in `corp_[a-z0-9]{{32}}`"
        )
    })?;
    let anywhere = RegexBuilder::new(regex).unicode(false).size_limit(MOST_COMPILED).build();
    let anywhere = anywhere.map_err(|error| first_line(&error))?;
    let form = Form { place: Place::Anywhere, anywhere: Some(anywhere), ..Form::default() };
    let id = format!("pattern:{name}");
    Ok(Detector { id, confidence, is_rigid: false, home: Vec::new(), anchors, form })
}

/// The last line of an error says what is wrong; those before it draw the place.
fn first_line(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// Literals of which one stands in every text that an expression matches; none where that cannot be said.
fn literals(hir: &Hir) -> Option<Vec<String>> {
    let found = match hir.kind() {
        HirKind::Literal(literal) => vec![String::from_utf8(literal.0.to_vec()).ok()?],
        HirKind::Capture(capture) => return literals(&capture.sub),
        HirKind::Repetition(repeated) if repeated.min > 0 => return literals(&repeated.sub),
        HirKind::Concat(parts) => {
            let shortest = |found: &Vec<String>| found.iter().map(String::len).min();
            return parts.iter().filter_map(literals).max_by_key(shortest);
        }
        HirKind::Alternation(branches) => {
            branches.iter().map(literals).collect::<Option<Vec<_>>>()?.into_iter().flatten().collect()
        }
        HirKind::Empty | HirKind::Class(_) | HirKind::Look(_) | HirKind::Repetition(_) => return None,
    };
    let fits = found.len() <= MOST_LITERALS && found.iter().all(|literal| literal.len() >= LITERAL);
    fits.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchors(regex: &str) -> Result<Vec<String>, String> {
        detector("a", regex, Confidence::High).map(|detector| detector.anchors)
    }

    #[test]
    fn the_longest_literal_of_a_pattern_is_its_anchor() {
        assert_eq!(anchors("corp_[a-z0-9]{32}").unwrap(), ["corp_"]);
        assert_eq!(anchors("[a-z]{3}-(?:internal|private)-[0-9]+").unwrap(), ["internal", "private"]);
        assert_eq!(anchors("(ab|cde)(fghij)+").unwrap(), ["fghij"]);
    }

    /// D14: an expression costs no more than its text, and is tried where a literal stands alone.
    #[test]
    fn a_pattern_without_a_literal_is_refused() {
        for regex in ["[a-z]{32}", "ab[0-9]+", "corp_x|[0-9]{9}", "(corp_)?[0-9]{9}"] {
            assert!(anchors(regex).unwrap_err().contains("every branch needs a literal"), "{regex}");
        }
        assert!(anchors("(corp_)*").unwrap_err().contains("a text of nothing"));
        assert!(anchors("corp_(").unwrap_err().contains("unclosed group"));
        assert!(
            anchors("corp_[a-z]{1000}{1000}").unwrap_err().contains("size limit"),
            "{:?}",
            anchors("corp_[a-z]{1000}{1000}")
        );
        assert!(anchors(&"c".repeat(2_000)).unwrap_err().contains("1024 bytes"));
    }
}
