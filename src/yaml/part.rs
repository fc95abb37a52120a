//! Where a part of a text stands in the file: inside of quotes, of a plain value, or of a block.

use super::Position;
use crate::problem::Problem;

/// Moves a problem to the part of the value that it is about. It stays where the value begins if the file writes the part
/// in another way: with escapes, or folded.
pub(crate) fn locate(file: &str, problem: &mut Problem) {
    let (Some(position), Some(part)) = (problem.position, problem.part.take()) else { return };
    let (value, offset) = *part;
    if let Some(exact) = of_part(file, position, (&value, offset)) {
        problem.position = Some(exact);
    }
}

fn of_part(file: &str, (line, column): Position, (value, offset): (&str, usize)) -> Option<Position> {
    let before = value.get(..offset)?;
    let written = file.lines().nth(line.checked_sub(1)?)?;
    let rest: String = written.chars().skip(column.checked_sub(1)?).collect();
    let (number, is_header) = (before.matches('\n').count(), rest.starts_with(['|', '>']));
    if is_header || number > 0 {
        // A block: its lines, from this one on or behind its header, have an indentation that is the same for all.
        let line = line + usize::from(is_header) + number;
        let text = value.lines().nth(number).unwrap_or_default();
        let indentation = file.lines().nth(line - 1)?.strip_suffix(text)?;
        let inside = before.rsplit('\n').next()?.chars().count();
        return indentation.trim().is_empty().then(|| (line, indentation.chars().count() + inside + 1));
    }
    let quotes = usize::from(rest.starts_with(['"', '\'']));
    let inside: String = rest.chars().skip(quotes).collect();
    inside.starts_with(before).then(|| (line, column + quotes + before.chars().count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_where_it_is_written() {
        let part = |file: &str, position, value: &str, part: &str| {
            of_part(file, position, (value, value.find(part).unwrap()))
        };
        assert_eq!(part("a: b c", (1, 4), "b c", "c"), Some((1, 6)));
        assert_eq!(part("a: 'é c'", (1, 4), "é c", "c"), Some((1, 7)));
        assert_eq!(part("a: |\n  b\n    c d\n", (1, 4), "b\n  c d\n", "d"), Some((3, 7)));
        assert_eq!(part("a: |\n  b\n    c d\n", (2, 3), "b\n  c d\n", "d"), Some((3, 7)));
        assert_eq!(part(r#"a: "b\n c""#, (1, 4), "b\n c", "c"), None, "an escaped line break");
        assert_eq!(part(r#"a: "\"b\" c""#, (1, 4), "\"b\" c", "c"), None, "an escape");
        assert_eq!(part("a: >\n  b\n  c\n", (1, 4), "b c\n", "c"), None, "folded");
    }
}
