//! Evaluates a checked expression over the facts of an event, and counts what it costs.

use std::borrow::Cow;
use std::cmp::Ordering;

use time::{Duration, OffsetDateTime, UtcOffset};

use super::cost::{REGEX, TEXT};
use super::fields::{Facts, Field};
use super::moment::is_known;
use super::syntax::Operator;
use super::tree::{Comprehension, Function, Macro, Node, NodeKind, TimePart};
use super::value::{List, Object, Value};
use crate::name::host::Host;

/// Why an expression has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error("a number does not fit 64 bits, or a timestamp the years 1 to 9999")]
    Overflow,
    #[error("a division by zero")]
    DivisionByZero,
    #[error("a list has no item of that index")]
    Index,
    #[error("event.{0} is larger than rules may read")]
    Bound(&'static str),
    #[error("it costs more than was reckoned")]
    Cost,
    /// The checker lets no such expression pass.
    #[error("a value of another type")]
    Type,
}

type Evaluated<'a> = Result<Value<'a>, Failure>;

/// One evaluation.
pub(super) struct Evaluation<'a> {
    facts: &'a Facts<'a>,
    /// The elements that the comprehensions around are at.
    variables: Vec<Value<'a>>,
    left: u64,
}

impl<'a> Evaluation<'a> {
    /// `most` is what it may cost.
    pub(super) fn new(facts: &'a Facts<'a>, most: u64) -> Self {
        Self { facts, variables: Vec::new(), left: most }
    }

    pub(super) fn bool(&mut self, node: &'a Node) -> Result<bool, Failure> {
        let Value::Bool(value) = self.value(node)? else { return Err(Failure::Type) };
        Ok(value)
    }

    fn spend(&mut self, cost: u64) -> Result<(), Failure> {
        self.left = self.left.checked_sub(cost).ok_or(Failure::Cost)?;
        Ok(())
    }

    fn value(&mut self, node: &'a Node) -> Evaluated<'a> {
        self.spend(1)?;
        match &node.what {
            NodeKind::Constant(value) => Ok(value.borrowed()),
            NodeKind::Field(field) => read(field, Object::Event(self.facts)),
            NodeKind::Has(fields) => {
                self.spend(fields.len() as u64)?;
                let event = Object::Event(self.facts);
                Ok(Value::Bool(fields.iter().any(|field| (field.read)(event).is_some())))
            }
            NodeKind::Member(of, field) => self.object(of).and_then(|object| read(field, object)),
            NodeKind::HasMember(of, field) => {
                Ok(Value::Bool(self.object(of).map(|object| (field.read)(object))?.is_some()))
            }
            NodeKind::Variable(number) => self.variables.get(*number).cloned().ok_or(Failure::Type),
            NodeKind::Not(of) => Ok(Value::Bool(!self.bool(of)?)),
            NodeKind::Negate(of) => self.int(of)?.checked_neg().map(Value::Int).ok_or(Failure::Overflow),
            NodeKind::And(nodes) => self.logic(nodes, false),
            NodeKind::Or(nodes) => self.logic(nodes, true),
            NodeKind::Choice(nodes) => {
                let [condition, then, otherwise] = nodes.as_ref();
                if self.bool(condition)? { self.value(then) } else { self.value(otherwise) }
            }
            NodeKind::Binary(operator, nodes) => self.binary(*operator, nodes),
            NodeKind::List(nodes) => self.list(nodes),
            NodeKind::Index(nodes) => self.index(nodes),
            NodeKind::Call(function, nodes) => self.call(*function, nodes),
            NodeKind::Matches(of, regex) => {
                let text = self.text(of)?;
                self.spend(text.len() as u64 / REGEX)?;
                Ok(Value::Bool(regex.is_match(&text)))
            }
            NodeKind::HostIn(of, patterns) => {
                let host = Host::parse(&self.text(of)?);
                self.spend(patterns.len() as u64)?;
                Ok(Value::Bool(host.is_ok_and(|host| patterns.iter().any(|pattern| pattern.matches(&host)))))
            }
            NodeKind::TimePart(part, zone, of) => {
                let Value::Time(time) = self.value(of)? else { return Err(Failure::Type) };
                Ok(Value::Int(time_part(*part, time, *zone)))
            }
            NodeKind::Comprehension(which, of) => self.comprehension(*which, of),
        }
    }

    fn object(&mut self, node: &'a Node) -> Result<Object<'a>, Failure> {
        let Value::Object(object) = self.value(node)? else { return Err(Failure::Type) };
        Ok(object)
    }

    fn int(&mut self, node: &'a Node) -> Result<i64, Failure> {
        let Value::Int(value) = self.value(node)? else { return Err(Failure::Type) };
        Ok(value)
    }

    fn text(&mut self, node: &'a Node) -> Result<Cow<'a, str>, Failure> {
        let Value::Text(value) = self.value(node)? else { return Err(Failure::Type) };
        Ok(value)
    }

    fn items(&mut self, node: &'a Node) -> Result<List<'a>, Failure> {
        let Value::List(list) = self.value(node)? else { return Err(Failure::Type) };
        Ok(list)
    }

    /// `&&` and `||`: one operand that decides is enough, whatever fails beside it.
    fn logic(&mut self, nodes: &'a [Node], deciding: bool) -> Evaluated<'a> {
        let mut failure = None;
        for node in nodes {
            match self.bool(node) {
                Ok(value) if value == deciding => return Ok(Value::Bool(deciding)),
                Ok(_) => {}
                Err(failed) => failure = failure.or(Some(failed)),
            }
        }
        failure.map_or(Ok(Value::Bool(!deciding)), Err)
    }

    fn list(&mut self, nodes: &'a [Node]) -> Evaluated<'a> {
        self.spend(nodes.len() as u64)?;
        let values: Result<Vec<Value<'a>>, Failure> = nodes.iter().map(|node| self.value(node)).collect();
        Ok(Value::List(List::Values(values?.into())))
    }

    fn index(&mut self, nodes: &'a [Node; 2]) -> Evaluated<'a> {
        let (list, index) = (self.items(&nodes[0])?, self.int(&nodes[1])?);
        usize::try_from(index).ok().and_then(|index| list.get(index)).ok_or(Failure::Index)
    }

    fn call(&mut self, function: Function, nodes: &'a [Node]) -> Evaluated<'a> {
        let (Some(first), second) = (nodes.first(), nodes.get(1)) else { return Err(Failure::Type) };
        if function == Function::Size {
            return match self.value(first)? {
                Value::Text(text) => {
                    self.spend(text.len() as u64 / TEXT)?;
                    count(text.chars().count())
                }
                Value::List(list) => count(list.len()),
                Value::Bool(_) | Value::Int(_) | Value::Time(_) | Value::Duration(_) | Value::Object(_) => {
                    Err(Failure::Type)
                }
            };
        }
        let text = self.text(first)?;
        let Some(second) = second else {
            self.spend(text.len() as u64 / TEXT)?;
            return Ok(Value::Text(Cow::Owned(text.to_ascii_lowercase())));
        };
        let part = self.text(second)?;
        let is_whole = function == Function::Contains;
        let compared = if is_whole { text.len() } else { text.len().min(part.len()) };
        self.spend(compared as u64 / TEXT)?;
        Ok(Value::Bool(match function {
            Function::Contains => memchr::memmem::find(text.as_bytes(), part.as_bytes()).is_some(),
            Function::StartsWith => text.starts_with(&*part),
            Function::EndsWith => text.ends_with(&*part),
            Function::Size | Function::LowerAscii => return Err(Failure::Type),
        }))
    }

    fn binary(&mut self, operator: Operator, nodes: &'a [Node; 2]) -> Evaluated<'a> {
        let (left, right) = (self.value(&nodes[0])?, self.value(&nodes[1])?);
        match operator {
            Operator::Equal => self.equal(&left, &right).map(Value::Bool),
            Operator::NotEqual => self.equal(&left, &right).map(|equal| Value::Bool(!equal)),
            Operator::Less => self.compare(&left, &right).map(|order| Value::Bool(order.is_lt())),
            Operator::LessOrEqual => self.compare(&left, &right).map(|order| Value::Bool(order.is_le())),
            Operator::Greater => self.compare(&left, &right).map(|order| Value::Bool(order.is_gt())),
            Operator::GreaterOrEqual => self.compare(&left, &right).map(|order| Value::Bool(order.is_ge())),
            Operator::In => self.is_in(&left, &right),
            Operator::Add => self.add(left, right),
            Operator::Subtract => subtract(&left, &right),
            Operator::Multiply | Operator::Divide | Operator::Remainder => {
                let (Value::Int(left), Value::Int(right)) = (left, right) else { return Err(Failure::Type) };
                arithmetic(operator, left, right)
            }
        }
    }

    fn is_in(&mut self, value: &Value<'a>, list: &Value<'a>) -> Evaluated<'a> {
        let Value::List(list) = list else { return Err(Failure::Type) };
        for number in 0..list.len() {
            self.spend(1)?;
            let Some(item) = list.get(number) else { break };
            if self.equal(value, &item)? {
                return Ok(Value::Bool(true));
            }
        }
        Ok(Value::Bool(false))
    }

    fn equal(&mut self, left: &Value<'a>, right: &Value<'a>) -> Result<bool, Failure> {
        let (Value::List(one), Value::List(other)) = (left, right) else {
            return self.compare(left, right).map(Ordering::is_eq);
        };
        if one.len() != other.len() {
            return Ok(false);
        }
        for number in 0..one.len() {
            self.spend(1)?;
            let (Some(left), Some(right)) = (one.get(number), other.get(number)) else { break };
            if !self.equal(&left, &right)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn compare(&mut self, left: &Value<'a>, right: &Value<'a>) -> Result<Ordering, Failure> {
        match (left, right) {
            (Value::Text(one), Value::Text(other)) => {
                self.spend(one.len().min(other.len()) as u64 / TEXT)?;
                Ok(one.cmp(other))
            }
            (Value::Int(one), Value::Int(other)) | (Value::Duration(one), Value::Duration(other)) => {
                Ok(one.cmp(other))
            }
            (Value::Bool(one), Value::Bool(other)) => Ok(one.cmp(other)),
            (Value::Time(one), Value::Time(other)) => Ok(one.cmp(other)),
            _ => Err(Failure::Type),
        }
    }

    fn add(&mut self, left: Value<'a>, right: Value<'a>) -> Evaluated<'a> {
        match (left, right) {
            (Value::Int(one), Value::Int(other)) => {
                one.checked_add(other).map(Value::Int).ok_or(Failure::Overflow)
            }
            (Value::Duration(one), Value::Duration(other)) => {
                one.checked_add(other).map(Value::Duration).ok_or(Failure::Overflow)
            }
            (Value::Time(time), Value::Duration(length)) | (Value::Duration(length), Value::Time(time)) => {
                later(time, Duration::nanoseconds(length))
            }
            (Value::Text(one), Value::Text(other)) => {
                self.spend((one.len() + other.len()) as u64 / TEXT)?;
                Ok(Value::Text(Cow::Owned(one.into_owned() + &other)))
            }
            (Value::List(one), Value::List(other)) => {
                self.spend((one.len() + other.len()) as u64)?;
                let all =
                    [&one, &other].into_iter().flat_map(|list| (0..list.len()).filter_map(|n| list.get(n)));
                Ok(Value::List(List::Values(all.collect())))
            }
            _ => Err(Failure::Type),
        }
    }

    fn comprehension(&mut self, which: Macro, of: &'a Comprehension) -> Evaluated<'a> {
        let list = self.items(&of.list)?;
        let mut state = Gathered { failure: None, holding: 0, kept: Vec::new() };
        for number in 0..list.len() {
            self.spend(1)?;
            let Some(item) = list.get(number) else { break };
            self.variables.push(item.clone());
            let decided = self.element(which, of, item, &mut state);
            self.variables.pop();
            if let Some(decided) = decided? {
                return Ok(decided);
            }
        }
        match (which, state.failure) {
            (_, Some(failure)) => Err(failure),
            (Macro::All, None) => Ok(Value::Bool(true)),
            (Macro::Exists, None) => Ok(Value::Bool(false)),
            (Macro::ExistsOne, None) => Ok(Value::Bool(state.holding == 1)),
            (Macro::Filter | Macro::Map, None) => Ok(Value::List(List::Values(state.kept.into()))),
        }
    }

    /// Asks of one element. Returns the result where it is certain.
    fn element(
        &mut self,
        which: Macro,
        of: &'a Comprehension,
        item: Value<'a>,
        state: &mut Gathered<'a>,
    ) -> Result<Option<Value<'a>>, Failure> {
        match which {
            Macro::All | Macro::Exists => match self.bool(&of.body) {
                Ok(holds) if holds == (which == Macro::Exists) => return Ok(Some(Value::Bool(holds))),
                Ok(_) => {}
                Err(failed) => state.failure = state.failure.or(Some(failed)),
            },
            Macro::ExistsOne => state.holding += usize::from(self.bool(&of.body)?),
            Macro::Filter => {
                if self.bool(&of.body)? {
                    state.kept.push(item);
                }
            }
            Macro::Map => {
                let meant = of.filter.as_ref().map_or(Ok(true), |filter| self.bool(filter))?;
                if meant {
                    let value = self.value(&of.body)?;
                    state.kept.push(value);
                }
            }
        }
        Ok(None)
    }
}

/// What a comprehension has found so far.
struct Gathered<'a> {
    failure: Option<Failure>,
    holding: usize,
    kept: Vec<Value<'a>>,
}

/// Reads a field; what is not there is empty.
fn read<'a>(field: &'static Field, object: Object<'a>) -> Evaluated<'a> {
    match (field.read)(object) {
        None => Ok(field.empty()),
        Some(value) if field.is_over(&value) => Err(Failure::Bound(field.path)),
        Some(value) => Ok(value),
    }
}

fn count<'a>(count: usize) -> Evaluated<'a> {
    i64::try_from(count).map(Value::Int).map_err(|_| Failure::Overflow)
}

fn arithmetic<'a>(operator: Operator, left: i64, right: i64) -> Evaluated<'a> {
    if right == 0 && operator != Operator::Multiply {
        return Err(Failure::DivisionByZero);
    }
    let result = if operator == Operator::Multiply {
        left.checked_mul(right)
    } else if operator == Operator::Divide {
        left.checked_div(right)
    } else {
        left.checked_rem(right)
    };
    result.map(Value::Int).ok_or(Failure::Overflow)
}

fn subtract<'a>(left: &Value<'a>, right: &Value<'a>) -> Evaluated<'a> {
    match (left, right) {
        (Value::Int(one), Value::Int(other)) => {
            one.checked_sub(*other).map(Value::Int).ok_or(Failure::Overflow)
        }
        (Value::Duration(one), Value::Duration(other)) => {
            one.checked_sub(*other).map(Value::Duration).ok_or(Failure::Overflow)
        }
        (Value::Time(one), Value::Time(other)) => {
            let length = (*one - *other).whole_nanoseconds();
            i64::try_from(length).map(Value::Duration).map_err(|_| Failure::Overflow)
        }
        (Value::Time(time), Value::Duration(length)) => {
            let length = Duration::nanoseconds(*length).checked_neg().ok_or(Failure::Overflow)?;
            later(*time, length)
        }
        _ => Err(Failure::Type),
    }
}

fn later<'a>(time: OffsetDateTime, length: Duration) -> Evaluated<'a> {
    time.checked_add(length).filter(is_known).map(Value::Time).ok_or(Failure::Overflow)
}

fn time_part(part: TimePart, time: OffsetDateTime, zone: UtcOffset) -> i64 {
    // At the ends of the calendar the zone may lead out of it; UTC is near enough there.
    let time = time.checked_to_offset(zone).unwrap_or(time);
    i64::from(match part {
        TimePart::Hours => time.hour(),
        TimePart::Minutes => time.minute(),
        TimePart::DayOfWeek => time.weekday().number_days_from_sunday(),
        TimePart::Date => time.day(),
        TimePart::Month => u8::from(time.month()) - 1,
    })
}
