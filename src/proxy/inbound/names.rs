//! Finds the destination of a request: every name in it must agree with the name of its connection.

use std::borrow::Cow;

use http::request::Parts;
use http::{StatusCode, header};

use super::session::Naming;
use crate::decision::Decision;
use crate::name::host::{Authority, Host};
use crate::proxy::error::{Refusal, Stop};
use crate::proxy::upstream::Origin;

/// Returns the destination, if all names in the request agree.
pub(crate) fn target(naming: &Naming, parts: &Parts) -> Result<Origin, Stop> {
    match naming {
        Naming::Reverse(origin) => Ok(origin.clone()),
        Naming::Fixed(origin) => {
            for claim in claims(parts)? {
                agree(origin, &claim)?;
            }
            Ok(origin.clone())
        }
        Naming::PerRequest => absolute(parts),
    }
}

/// The destination of an absolute-form request to the explicit proxy (RFC 9112, section 3.2.2).
fn absolute(parts: &Parts) -> Result<Origin, Stop> {
    if parts.uri.scheme_str() != Some("http") {
        return Err(framing("a proxy takes http:// URLs, and CONNECT for all else").into());
    }
    let named = parts.uri.authority().ok_or_else(|| framing("the request names no destination"))?;
    let Authority { host, port } = parse(named.as_str())?;
    let origin = Origin { tls: false, host, port: port.unwrap_or(80) };
    for claim in claims(parts)? {
        agree(&origin, &claim)?;
    }
    Ok(origin)
}

/// Everything in the head that names a destination.
fn claims(parts: &Parts) -> Result<Vec<Authority>, Stop> {
    let mut claims = Vec::with_capacity(2);
    if let Some(authority) = parts.uri.authority() {
        claims.push(parse(authority.as_str())?);
    }
    for host in parts.headers.get_all(header::HOST) {
        let text = host.to_str().map_err(|_| framing("the Host field is not ASCII"))?;
        claims.push(parse(text)?);
    }
    if claims.is_empty() && parts.version != http::Version::HTTP_10 {
        return Err(framing("the request names no host").into());
    }
    Ok(claims)
}

fn parse(text: &str) -> Result<Authority, Stop> {
    Authority::parse(text).map_err(|why| framing(format!("the request's host is not one: {why}")).into())
}

fn agree(origin: &Origin, claim: &Authority) -> Result<(), Stop> {
    // A Host without a port is common on every port; one with another port names another server.
    if claim.host == origin.host && claim.port.is_none_or(|port| port == origin.port) {
        return Ok(());
    }
    let reason = format!("the request is for {} and its connection for {}", Shown(claim), origin.authority());
    let decision = Decision::builtin("name-mismatch", reason);
    Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, decision).into())
}

struct Shown<'a>(&'a Authority);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.0.host, self.0.port) {
            (host, None) => host.fmt(f),
            (Host::Ip(std::net::IpAddr::V6(ip)), Some(port)) => write!(f, "[{ip}]:{port}"),
            (host, Some(port)) => write!(f, "{host}:{port}"),
        }
    }
}

/// The refusal of a request that two parsers could read differently; it closes the connection.
pub(crate) fn framing(reason: impl Into<Cow<'static, str>>) -> Refusal {
    Refusal::closing(StatusCode::BAD_REQUEST, Decision::builtin("framing", reason))
}
