//! The proxy that the user's own environment names: the gateway goes through it, since the agent no longer does.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};

use crate::command::private_directory::PrivateDirectory;
use crate::name::host::Authority;
use crate::policy::pattern::Pattern;
use crate::wire::percent;

/// Where the proxy for HTTPS is named, the first that is set decides.
const NAMES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];
/// This machine, which another one cannot reach: a model's server may run here.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.0/8", "::1"];

/// A proxy of the environment.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::command) enum ProxySearch {
    /// None is set, or every host is excepted from it.
    Nothing,
    Usable(Corporate),
    /// Why it is not used; holds no password.
    Unusable(String),
}

/// A proxy that the gateway can go through.
#[derive(PartialEq, Eq)]
pub(in crate::command) struct Corporate {
    pub(in crate::command) variable: &'static str,
    /// Without user and password.
    pub(in crate::command) url: String,
    /// `user:password`
    credentials: Option<String>,
    except: Vec<String>,
}

impl std::fmt::Debug for Corporate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Corporate").field("url", &self.url).field("except", &self.except).finish()
    }
}

impl Corporate {
    /// `upstream.proxy` of the settings.
    pub(super) fn settings(&self, place: &PrivateDirectory) -> anyhow::Result<Value> {
        let mut settings = json!({"url": self.url, "except": self.except});
        if let Some(credentials) = &self.credentials {
            settings["credentialsFile"] =
                place.write("upstream-proxy", credentials.as_bytes())?.display().to_string().into();
        }
        Ok(settings)
    }
}

/// Reads the variables that curl and most other clients read.
pub(in crate::command) fn find(variable: &dyn Fn(&str) -> Option<String>) -> ProxySearch {
    let set = |name: &&'static str| variable(name).filter(|value| !value.is_empty());
    let Some((name, value)) = NAMES.iter().find_map(|name| Some((*name, set(name)?))) else {
        return ProxySearch::Nothing;
    };
    let exceptions = EXCEPTIONS.iter().find_map(set).unwrap_or_default();
    let exceptions: Vec<&str> =
        exceptions.split([',', ' ']).map(str::trim).filter(|part| !part.is_empty()).collect();
    if exceptions.contains(&"*") {
        return ProxySearch::Nothing;
    }
    match parse(name, &value) {
        Ok(corporate) => {
            let except = LOOPBACK.iter().chain(&exceptions).flat_map(|part| patterns(part)).collect();
            ProxySearch::Usable(Corporate { except, ..corporate })
        }
        Err(why) => ProxySearch::Unusable(format!("{name} {why}")),
    }
}

fn parse(variable: &'static str, value: &str) -> Result<Corporate, &'static str> {
    let (scheme, rest) = value.split_once("://").unwrap_or(("http", value));
    if !scheme.eq_ignore_ascii_case("http") {
        return Err("names a proxy that is not spoken to by plain HTTP, which is not supported");
    }
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) => (Some(user), rest),
        None => (None, rest),
    };
    let credentials = match user {
        Some(user) => {
            let bytes = percent::decode(user.as_bytes());
            let text = String::from_utf8(bytes.into_owned()).map_err(|_| "holds a user that is no text")?;
            Some(if text.contains(':') { text } else { format!("{text}:") })
        }
        None => None,
    };
    let authority = rest.trim_end_matches('/');
    Authority::parse(authority).map_err(|_| "is no URL of a proxy")?;
    Ok(Corporate { variable, url: format!("http://{authority}"), credentials, except: Vec::new() })
}

/// What curl and Go mean by an entry of `NO_PROXY`, in the patterns of the settings. Entries with a port, and what is
/// no name, are left out: these hosts go through the proxy.
fn patterns(entry: &str) -> Vec<String> {
    if let Ok(ip) = entry.trim_matches(['[', ']']).parse::<IpAddr>() {
        return vec![ip.to_string()];
    }
    if let Ok(network) = entry.parse::<IpNet>() {
        return vec![network.trunc().to_string()];
    }
    let name = entry.trim_start_matches("*.").trim_start_matches('.');
    let below = format!("**.{name}");
    let hosts = if name == entry { vec![name.to_owned(), below] } else { vec![below] };
    hosts.into_iter().filter(|pattern| Pattern::parse(pattern).is_ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> ProxySearch {
        find(&|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    fn usable(variables: &[(&str, &str)]) -> Corporate {
        match found(variables) {
            ProxySearch::Usable(corporate) => corporate,
            other @ (ProxySearch::Nothing | ProxySearch::Unusable(_)) => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_proxy_is_taken_with_its_password_apart() {
        let corporate = usable(&[("HTTPS_PROXY", "http://me:p%40ss@proxy.corp.example:3128/")]);
        assert_eq!(corporate.url, "http://proxy.corp.example:3128");
        assert_eq!(corporate.credentials.as_deref(), Some("me:p@ss"));
        assert!(!format!("{corporate:?}").contains("p@ss"));
        assert_eq!(usable(&[("https_proxy", "proxy:3128")]).url, "http://proxy:3128");
        assert_eq!(usable(&[("HTTPS_PROXY", ""), ("all_proxy", "http://p.example")]).variable, "all_proxy");
    }

    #[test]
    fn exceptions_become_patterns() {
        let corporate = usable(&[
            ("HTTPS_PROXY", "http://p.example:1"),
            ("NO_PROXY", "corp.example, .corp.example,*.lan,10.1.2.3/8 192.0.2.1,[fd00::1],a.example:8443"),
        ]);
        assert_eq!(
            corporate.except[4..],
            [
                "corp.example",
                "**.corp.example",
                "**.corp.example",
                "**.lan",
                "10.0.0.0/8",
                "192.0.2.1",
                "fd00::1"
            ]
        );
    }

    #[test]
    fn this_machine_is_reached_without_the_proxy() {
        let corporate = usable(&[("HTTPS_PROXY", "http://p.example:1"), ("NO_PROXY", "")]);
        assert_eq!(corporate.except, ["localhost", "**.localhost", "127.0.0.0/8", "::1"]);
    }

    #[test]
    fn none_is_used_where_none_is_set_or_everything_is_excepted() {
        assert_eq!(found(&[]), ProxySearch::Nothing);
        assert_eq!(found(&[("HTTPS_PROXY", "http://p.example"), ("no_proxy", "*")]), ProxySearch::Nothing);
    }

    #[test]
    fn what_cannot_be_used_is_said_without_its_password() {
        for value in
            ["socks5h://me:canary@p.example:1080", "https://me:canary@p.example", "http://me:canary@:0:"]
        {
            let ProxySearch::Unusable(why) = found(&[("HTTPS_PROXY", value)]) else { panic!("{value}") };
            assert!(why.starts_with("HTTPS_PROXY ") && !why.contains("canary"), "{why}");
        }
    }
}
