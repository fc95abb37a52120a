//! An access key of AWS: its id, its secret and a session token, read from one value.

use std::sync::Arc;

use serde::Deserialize;
use zeroize::Zeroizing;

use crate::secret::{Secret, Unfit};

/// What requests are signed with.
#[derive(Debug, PartialEq, Eq)]
pub struct AccessKey {
    pub(super) id: Arc<Secret>,
    pub(super) secret: Arc<Secret>,
    pub(super) session_token: Option<Arc<Secret>>,
}

/// Why a value is no access key. The text never quotes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoAccessKey {
    #[error(
        "holds no access key: write JSON with accessKeyId, secretAccessKey and, where there is one, sessionToken, or \
         lines aws_access_key_id = …, aws_secret_access_key = …"
    )]
    Unreadable,
    #[error("names {0} twice")]
    Twice(&'static str),
    #[error("has no {0}")]
    Missing(&'static str),
    #[error("has an unfit {0}: it {1}")]
    Unfit(&'static str, Unfit),
    #[error("has an access key id with `/` or `,` in it")]
    Id,
}

/// The parts as they were written.
#[derive(Default)]
struct WrittenKey {
    id: Option<Zeroizing<String>>,
    secret: Option<Zeroizing<String>>,
    session_token: Option<Zeroizing<String>>,
}

/// JSON as AWS's tools write it (`aws sts`, `credential_process`), and in lower camel case.
#[derive(Deserialize)]
struct Json {
    #[serde(rename = "accessKeyId", alias = "AccessKeyId")]
    id: Option<String>,
    #[serde(rename = "secretAccessKey", alias = "SecretAccessKey")]
    secret: Option<String>,
    #[serde(rename = "sessionToken", alias = "SessionToken")]
    session_token: Option<String>,
}

const ID: &str = "access key id";
const SECRET: &str = "secret access key";
const TOKEN: &str = "session token";

impl AccessKey {
    /// All parts: none of them is for the agent's eyes.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &Arc<Secret>> {
        [Some(&self.id), Some(&self.secret), self.session_token.as_ref()].into_iter().flatten()
    }

    /// Reads JSON, or lines as they stand in AWS's shared credentials file and in files of environment variables.
    pub(super) fn parse(raw: &[u8]) -> Result<Self, NoAccessKey> {
        let text = std::str::from_utf8(raw).map_err(|_| NoAccessKey::Unreadable)?;
        let written = if text.trim_start().starts_with('{') { json(text) } else { lines(text) }?;
        let id = part(written.id.as_ref(), ID)?.ok_or(NoAccessKey::Missing(ID))?;
        if id.expose().iter().any(|byte| b"/,".contains(byte)) {
            return Err(NoAccessKey::Id);
        }
        let secret = part(written.secret.as_ref(), SECRET)?.ok_or(NoAccessKey::Missing(SECRET))?;
        let session_token = part(written.session_token.as_ref(), TOKEN)?;
        Ok(Self { id, secret, session_token })
    }
}

fn part(text: Option<&Zeroizing<String>>, name: &'static str) -> Result<Option<Arc<Secret>>, NoAccessKey> {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
    Secret::parse(text.trim().as_bytes())
        .map(|part| Some(Arc::new(part)))
        .map_err(|unfit| NoAccessKey::Unfit(name, unfit))
}

fn json(text: &str) -> Result<WrittenKey, NoAccessKey> {
    let json: Json = serde_json::from_str(text).map_err(|_| NoAccessKey::Unreadable)?;
    let [id, secret, session_token] =
        [json.id, json.secret, json.session_token].map(|it| it.map(Zeroizing::new));
    Ok(WrittenKey { id, secret, session_token })
}

fn lines(text: &str) -> Result<WrittenKey, NoAccessKey> {
    let mut written = WrittenKey::default();
    for line in
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';', '[']))
    {
        let (name, value) = line.split_once('=').ok_or(NoAccessKey::Unreadable)?;
        let (place, what) = match name.trim().to_ascii_lowercase().as_str() {
            "aws_access_key_id" => (&mut written.id, ID),
            "aws_secret_access_key" => (&mut written.secret, SECRET),
            "aws_session_token" => (&mut written.session_token, TOKEN),
            _ => continue,
        };
        if place.replace(Zeroizing::new(value.trim().to_owned())).is_some() {
            return Err(NoAccessKey::Twice(what));
        }
    }
    if written.id.is_none() && written.secret.is_none() {
        return Err(NoAccessKey::Unreadable);
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, NoAccessKey> {
        let text_of = |secret: &Arc<Secret>| String::from_utf8(secret.expose().to_vec()).unwrap();
        AccessKey::parse(text.as_bytes()).map(|key| {
            let token = key.session_token.as_ref().map(text_of).unwrap_or_default();
            format!("{} {} {token}", text_of(&key.id), text_of(&key.secret))
        })
    }

    #[test]
    fn an_access_key_is_json_or_lines() {
        let both = "AKIDEXAMPLE wJalrXUtnFEMI/K7MDENG ";
        for text in [
            r#"{"accessKeyId": "AKIDEXAMPLE", "secretAccessKey": "wJalrXUtnFEMI/K7MDENG"}"#,
            r#"{"Version": 1, "AccessKeyId": "AKIDEXAMPLE", "SecretAccessKey": "wJalrXUtnFEMI/K7MDENG"}"#,
            r#"{"accessKeyId": "AKIDEXAMPLE", "secretAccessKey": "wJalrXUtnFEMI/K7MDENG", "sessionToken": ""}"#,
            "[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = wJalrXUtnFEMI/K7MDENG\n",
            "# for CI\r\nAWS_ACCESS_KEY_ID=AKIDEXAMPLE\r\nAWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG\r\nregion=x\r\n",
        ] {
            assert_eq!(read(text).as_deref(), Ok(both), "{text}");
        }
        let token = "aws_access_key_id=AKIDEXAMPLE\naws_secret_access_key=secretsecret\naws_session_token=tokentoken==\n";
        assert_eq!(read(token).as_deref(), Ok("AKIDEXAMPLE secretsecret tokentoken=="));
    }

    #[test]
    fn what_is_no_access_key_is_told_without_the_value() {
        let cases = [
            ("canary-of-a-plain-key", NoAccessKey::Unreadable),
            ("", NoAccessKey::Unreadable),
            ("{\"accessKeyId\": 1}", NoAccessKey::Unreadable),
            ("{", NoAccessKey::Unreadable),
            ("a=b\n", NoAccessKey::Unreadable),
            ("{\"accessKeyId\": \"AKIDEXAMPLE\"}", NoAccessKey::Missing(SECRET)),
            ("aws_secret_access_key=canarycanary", NoAccessKey::Missing(ID)),
            ("aws_access_key_id=AKIDEXAMPLE\naws_access_key_id=AKIDEXAMPLE", NoAccessKey::Twice(ID)),
            ("aws_access_key_id=AK/EXAMPLE\naws_secret_access_key=canarycanary", NoAccessKey::Id),
            (
                "aws_access_key_id=AKIDEXAMPLE\naws_secret_access_key=canary 7",
                NoAccessKey::Unfit(SECRET, Unfit::Invisible(7)),
            ),
        ];
        for (text, expected) in cases {
            let error = read(text).unwrap_err();
            assert_eq!(error, expected, "{text}");
            assert!(!error.to_string().contains("canary"));
        }
        assert_eq!(AccessKey::parse(b"\xff\xfe"), Err(NoAccessKey::Unreadable));
    }
}
