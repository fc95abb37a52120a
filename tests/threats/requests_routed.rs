//! Requests of Messages that a model of Chat Completions answers by a route: what policy does to them is done before they are
//! translated, so that each fares as it does at the agent's own provider.

use super::requests::{Fate, MESSAGES, Models, Row, models_with, reply};

/// Where the model is.
pub(super) const HOST: &str = "chat.models.example";

/// Tries the rows of Messages under a policy with these lines and a route: those that fare otherwise, and how.
pub(super) fn problems<'r>(spec: &str, rows: &'r [Row]) -> Vec<(&'r Row, String)> {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.door == MESSAGES).collect();
    // Under policies that only record nothing is routed.
    if rows.is_empty() || spec.contains("Audit") {
        return Vec::new();
    }
    let routes = format!(
        "modelProviders: [{{name: chat, endpoint: 'https://{HOST}/v1', dialect: OpenAIChat}}]\n\
         models: [{{name: stand-in, provider: chat}}]\n\
         routes: [{{name: all, match: {{models: ['*']}}, to: [stand-in]}}]"
    );
    let test = models_with(&format!("{spec}\n{routes}"), |seen| reply(seen.path()), |setup| setup);
    rows.into_iter().filter_map(|row| compare(&test, row).err().map(|problem| (row, problem))).collect()
}

fn compare(test: &Models, row: &Row) -> Result<(), String> {
    let asked = test.post(row.door, &row.sent);
    let body =
        |index: usize| asked.reached.get(index).map(|seen| String::from_utf8_lossy(&seen.body).into_owned());
    match &row.fate {
        Fate::Refused(rule) => match (body(0), asked.answer.header("x-postern-rule")) {
            (Some(body), _) => Err(format!("came as  {body}")),
            (None, found) if found != Some(rule) => Err(format!("answered {:?}", asked.answer)),
            (None, _) => Ok(()),
        },
        // What no model of Chat can be told is no door.
        Fate::Untouched if is_unsayable(&asked.answer.text()) => Ok(()),
        Fate::Untouched => match asked.reached.as_slice() {
            [seen] if asked.answer.status == 200 && seen.authority == HOST => Ok(()),
            reached => Err(format!("reached {reached:?}, answered {:?}", asked.answer)),
        },
        Fate::Becomes(expected) => {
            let twin = test.post(row.door, expected);
            let twin_body = twin.reached.first().map(|seen| String::from_utf8_lossy(&seen.body).into_owned());
            let is_same = body(0) == twin_body && asked.answer.status == twin.answer.status;
            let is_said = asked.answer.status == 200 || is_unsayable(&asked.answer.text());
            let told =
                || format!("expected {twin_body:?}\n  came as  {:?}, answered {:?}", body(0), asked.answer);
            if is_same && is_said { Ok(()) } else { Err(told()) }
        }
    }
}

fn is_unsayable(text: &str) -> bool {
    text.contains("Class: Translate")
}
