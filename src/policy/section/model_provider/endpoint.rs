//! Reads the endpoint of a provider. Messages repeat nothing of the text: it may have a password in it.

use crate::name::gateway;
use crate::name::host::{Authority, DnsName, Host};
use crate::name::path::NormalPath;
use crate::policy::routing::Endpoint;

/// The longest endpoint, in bytes.
const MOST_BYTES: usize = 2048;

/// What is appended: the paths of the three APIs.
const APPENDED: [&str; 3] = ["/chat/completions", "/messages", "/responses"];

/// The one name without a dot that is complete (RFC 6761 section 6.3).
const LOCALHOST: &str = "localhost";

/// Reads `https://HOST[:PORT][/PATH]`, or the same with `http`.
pub(super) fn read(text: &str) -> Result<Endpoint, String> {
    if text.is_empty() {
        return Err("is required: https://HOST[:PORT]/PATH, as in https://llm.corp.example/v1".to_owned());
    }
    if text.len() > MOST_BYTES {
        return Err(format!("is longer than {MOST_BYTES} bytes"));
    }
    let (is_tls, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
        (Some(rest), _) => (true, rest),
        (None, Some(rest)) => (false, rest),
        (None, None) => return Err("expected a URL that begins with https:// (or http://)".to_owned()),
    };
    for (sign, what) in [('#', "a fragment"), ('?', "a query")] {
        if rest.contains(sign) {
            return Err(format!(
                "has {what}; leave `{sign}` and all behind it out, and write fields of the body as `params`"
            ));
        }
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if authority.contains('@') {
        return Err(
            "has a user in front of the host; the key is a credential, which `credential` names".to_owned()
        );
    }
    let (host, port) = host(authority)?;
    Ok(Endpoint {
        host,
        port: port.unwrap_or_else(|| Endpoint::usual_port(is_tls)),
        path: path_of(path)?,
        is_tls,
    })
}

fn host(authority: &str) -> Result<(Host, Option<u16>), String> {
    let said = |error: crate::name::host::NameError| format!("has no valid host: {error}");
    let Authority { host, port } = if authority.is_ascii() {
        Authority::parse(authority).map_err(said)?
    } else {
        let (name, port) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
        let name = DnsName::parse_written(name).map_err(said)?;
        Authority::parse(&format!("{name}{port}")).map_err(said)?
    };
    if let Some(name) = host.name() {
        gateway::refuse_own(name.clone()).map_err(said)?;
        incomplete(name).map_or(Ok(()), Err)?;
    }
    Ok((host, port))
}

/// Says why a name is not complete: it would be completed by a search domain, which the gateway does not do.
fn incomplete(name: &DnsName) -> Option<String> {
    let name = name.as_str();
    if name.ends_with(".svc") {
        return Some(format!(
            "has an incomplete name: search domains are not tried; write {name}.cluster.local, or the domain of your \
             cluster behind it"
        ));
    }
    let is_bare = !name.contains('.') && name != LOCALHOST;
    is_bare.then(|| {
        format!(
            "has an incomplete name: search domains are not tried; write all of it, as in \
             {name}.NAMESPACE.svc.cluster.local"
        )
    })
}

/// Reads the path in front of what is appended, in its one canonical form and without a slash at its end.
fn path_of(text: &str) -> Result<String, String> {
    let bare = text.trim_end_matches('/');
    if bare.is_empty() {
        return Ok(String::new());
    }
    let path = NormalPath::parse(bare);
    if path.is_ambiguous() || !bare.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("has a path that servers read in different ways; write it plainly, as in /v1".to_owned());
    }
    if let Some(end) = APPENDED.into_iter().find(|end| path.as_str().ends_with(end)) {
        return Err(format!("ends in {end}, which is appended; leave that out"));
    }
    Ok(path.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_scheme_a_host_a_port_and_a_path() {
        for (text, shown) in [
            ("https://api.deepseek.com/v1", "https://api.deepseek.com/v1"),
            ("https://api.deepseek.com:443/v1/", "https://api.deepseek.com/v1"),
            (
                "https://VLLM.models.svc.cluster.local.:8443/v1",
                "https://vllm.models.svc.cluster.local:8443/v1",
            ),
            ("http://localhost:11434", "http://localhost:11434"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
            ("https://[2001:db8::1]:8443/a/b", "https://[2001:db8::1]:8443/a/b"),
            ("https://bücher.example/v1", "https://xn--bcher-kva.example/v1"),
            ("https://bücher.example:8443", "https://xn--bcher-kva.example:8443"),
            ("https://x.openai.azure.com/openai/v1", "https://x.openai.azure.com/openai/v1"),
        ] {
            assert_eq!(read(text).map(|endpoint| endpoint.to_string()).as_deref(), Ok(shown), "{text}");
        }
        let endpoint = read("http://10.0.0.1/x").unwrap();
        assert_eq!((endpoint.port, endpoint.is_tls, endpoint.path.as_str()), (80, false, "/x"));
    }

    #[test]
    fn what_is_no_endpoint_is_refused_and_not_repeated() {
        for (text, part) in [
            ("", "is required"),
            ("api.deepseek.com/v1", "begins with https://"),
            ("ftp://api.deepseek.com", "begins with https://"),
            ("HTTPS://api.deepseek.com", "begins with https://"),
            ("https://me:hunter2@api.deepseek.com/v1", "has a user"),
            ("https://api.deepseek.com/v1?key=hunter2", "has a query"),
            ("https://api.deepseek.com/v1#hunter2", "has a fragment"),
            ("https://vllm:8443/v1", "has an incomplete name"),
            ("https://vllm.models.svc/v1", "write vllm.models.svc.cluster.local"),
            ("https://", "no valid host"),
            ("https://a_b.example/v1", "no valid host"),
            ("https://a.example:0/v1", "no valid host"),
            ("https://a.example:65536/v1", "no valid host"),
            ("https://*.example.com/v1", "no valid host"),
            ("https://bücher.example:x", "no valid host"),
            ("https://a.example/v1/../x", "read in different ways"),
            ("https://a.example//v1", "read in different ways"),
            ("https://a.example/v1 x", "read in different ways"),
            ("https://a.example/v1/chat/completions", "ends in /chat/completions, which is appended"),
            ("https://a.example/v1/messages/", "ends in /messages"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(part) && !said.contains("hunter2"), "{text}: {said}");
        }
        assert!(read(&format!("https://a.example/{}", "x".repeat(2048))).unwrap_err().contains("longer"));
    }
}
