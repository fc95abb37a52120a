//! Where a rule is asked: about requests, tool calls, the heads of answers, or their ends.

use super::written::RuleAction;
use crate::policy::cel::{Expression, Facts, Mistake};

/// Where rules are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A request, before it is sent.
    Request,
    /// A tool call in an answer.
    Call,
    /// The head of an answer, before any of it is sent on.
    Answer,
    /// The end of an answer, when its usage is known and nothing is left to deny.
    End,
}

impl Place {
    const ALL: [Self; 4] = [Self::Request, Self::Call, Self::Answer, Self::End];

    /// The kind of the event that a rule is asked about there, and its direction.
    pub fn event(self) -> (&'static str, &'static str) {
        match self {
            Self::Request => ("Request", "Outbound"),
            Self::Call => ("ToolCall", "Inbound"),
            Self::Answer | Self::End => ("Response", "Inbound"),
        }
    }

    /// The word in lists.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Request => "Request",
            Self::Call => "ToolCall",
            Self::Answer => "Response",
            Self::End => "ResponseEnd",
        }
    }

    fn index(self) -> usize {
        match self {
            Self::Request => 0,
            Self::Call => 1,
            Self::Answer => 2,
            Self::End => 3,
        }
    }
}

/// Some places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Places([bool; 4]);

impl Places {
    /// Where an expression can hold by `event.kind` and `event.direction`. One that reads what only the end of an answer
    /// tells is asked there alone.
    ///
    /// # Errors
    /// If it holds nowhere, or if it should deny where nothing is left to deny.
    pub(super) fn of(expression: &Expression, action: Option<RuleAction>) -> Result<Self, Vec<Mistake>> {
        let of_end = expression.reads(&["usage.", "provider.responseModel"]);
        if let (Some((field, offset)), Some(RuleAction::Deny)) = (of_end, action) {
            let message = format!(
                "event.{} is known once an answer has ended, when nothing is left to deny: write `action: Audit`, or ask \
                 event.spent of the next request",
                field.path
            );
            return Err(vec![Mistake { offset, message }]);
        }
        let may_hold = |place: &Place| {
            let (kind, direction) = place.event();
            let stage = Facts { kind, direction, ..Facts::default() };
            (*place == Place::End) == of_end.is_some() && expression.settled(&stage) != Some(false)
        };
        let places: Self = Place::ALL.into_iter().filter(may_hold).collect();
        if places == Self::default() {
            let message = "never holds: event.kind is \"Request\" with event.direction \"Outbound\", or \"ToolCall\" or \
                           \"Response\" with \"Inbound\"; event.usage and event.provider.responseModel are those of a \
                           Response";
            return Err(vec![Mistake { offset: 0, message: message.to_owned() }]);
        }
        Ok(places)
    }

    pub(super) fn has(self, place: Place) -> bool {
        self.0.get(place.index()) == Some(&true)
    }

    pub(super) fn words(self) -> Vec<&'static str> {
        Place::ALL.into_iter().filter(|place| self.has(*place)).map(Place::as_str).collect()
    }
}

impl FromIterator<Place> for Places {
    fn from_iter<T: IntoIterator<Item = Place>>(places: T) -> Self {
        let mut all = [false; 4];
        places.into_iter().for_each(|place| all[place.index()] = true);
        Self(all)
    }
}
