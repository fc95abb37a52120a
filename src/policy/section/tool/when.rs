//! `when` of a tool rule, judged and compiled.

use crate::call::Kind;
use crate::policy::condition::{Condition, Param, RegexBudget};
use crate::yaml::field;

use super::super::Problems;
use super::written::{Comparison, Scalar, When};

/// How deep conditions may nest.
const MOST_DEPTH: usize = 10;

/// Compiles a condition; none where it has a mistake. `kind` is the rule's, `room` is left for the
/// regular expressions of the policy.
pub(super) fn lower(
    path: &str,
    written: &When,
    kind: Option<Kind>,
    room: &mut RegexBudget,
    problems: &mut Problems,
) -> Option<Condition> {
    ConditionLowering { kind, room, problems }.condition(path, written, 0)
}

struct ConditionLowering<'a> {
    kind: Option<Kind>,
    room: &'a mut RegexBudget,
    problems: &'a mut Problems,
}

impl ConditionLowering<'_> {
    fn condition(&mut self, path: &str, written: &When, depth: usize) -> Option<Condition> {
        if depth == MOST_DEPTH {
            self.problems.add(path, format!("nests deeper than {MOST_DEPTH} conditions"));
            return None;
        }
        let test = written.param.is_some() || written.operator.is_some() || written.values.is_some();
        match (&written.any, &written.all, &written.not, test) {
            (Some(any), None, None, false) => self.list(path, "any", any, depth).map(Condition::Any),
            (None, Some(all), None, false) => self.list(path, "all", all, depth).map(Condition::All),
            (None, None, Some(not), false) => self
                .condition(&field::key(path, "not"), not, depth + 1)
                .map(|one| Condition::Not(Box::new(one))),
            (None, None, None, true) => self.test(path, written),
            (None, None, None, false) => {
                self.problems
                    .add(path, "says nothing: write {param, operator, values}, `any`, `all` or `not`");
                None
            }
            (_, _, _, _) => {
                let message = "says several things: one of `param`, `any`, `all` and `not` stands in one mapping; \
                               nest them in `all` or `any`";
                self.problems.add(path, message);
                None
            }
        }
    }

    fn list(&mut self, path: &str, word: &str, written: &[When], depth: usize) -> Option<Vec<Condition>> {
        let path = field::key(path, word);
        if written.is_empty() {
            self.problems.add(path, "name at least one condition");
            return None;
        }
        let compile = |(number, one)| self.condition(&field::item(&path, number), one, depth + 1);
        let all: Vec<Option<Condition>> = written.iter().enumerate().map(compile).collect();
        all.into_iter().collect()
    }

    fn test(&mut self, path: &str, written: &When) -> Option<Condition> {
        let text = written.param.as_deref().unwrap_or_default();
        let param = Param::parse(text, self.kind).map_err(|error| match text {
            "" => error,
            _ => format!("{}: {error}", field::quoted(text)),
        });
        let param = self.problems.keep(&field::key(path, "param"), param);
        let Some(operator) = written.operator else {
            self.problems.add(
                field::key(path, "operator"),
                "is required, as in Equals, Contains, Matches, In or Within",
            );
            return None;
        };
        let values = self.values(path, operator, written.values.as_deref())?;
        match Condition::test(param?, operator, values, self.room) {
            Ok(test) => Some(test),
            Err(wrong) => {
                for (number, message) in wrong {
                    let value = values.get(number).map(Scalar::text).unwrap_or_default();
                    let path = field::item(&field::key(path, "values"), number);
                    self.problems.add(path, format!("{}: {message}", field::quoted(&value)));
                }
                None
            }
        }
    }

    /// The values that belong to an operator.
    fn values<'a>(
        &mut self,
        path: &str,
        operator: Comparison,
        written: Option<&'a [Scalar]>,
    ) -> Option<&'a [Scalar]> {
        let values = written.unwrap_or_default();
        let message = match (operator, values) {
            (Comparison::Exists | Comparison::NotExists, []) => return Some(values),
            (Comparison::Exists | Comparison::NotExists, _) => "Exists and NotExists take no values",
            (_, []) => "name at least one value",
            (_, _) => return Some(values),
        };
        self.problems.add(field::key(path, "values"), message);
        None
    }
}
