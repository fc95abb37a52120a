//! The `authorization` header: what stands in it, and the same with a placeholder replaced.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::HeaderName;
use zeroize::Zeroizing;

use super::unattachable::Unattachable;

/// The scheme of AWS Signature Version 4.
pub(super) const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// The header of a session token, which belongs to the key that signs.
pub(super) const SECURITY_TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");

/// Basic as clients send it: padded or not.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Users of Basic that are a fixed word of some host and no key: the key is the password beside them.
const FIXED_USERS: &[&str] = &[
    "",
    "AWS",
    "__token__",
    "_json_key",
    "_token",
    "api",
    "api-key",
    "apikey",
    "bearer",
    "git",
    "gitlab-ci-token",
    "nobody",
    "oauth",
    "oauth2",
    "oauth2accesstoken",
    "token",
    "user",
    "username",
    "x",
    "x-access-token",
    "x-bitbucket-api-token-auth",
    "x-oauth-basic",
    "x-token-auth",
];

/// One value of the header.
pub(super) enum Authorization<'a> {
    /// `user:password` of Basic, decoded (RFC 7617).
    Basic(Zeroizing<Vec<u8>>),
    /// A signature of AWS, version 4, as far as it says who signed what.
    Signed(SignatureScope<'a>),
    /// A scheme with what follows it, or bare text.
    Token { scheme: Option<&'a [u8]>, text: &'a [u8] },
}

/// `Credential=` of a signature: `ID/DATE/REGION/SERVICE/aws4_request`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SignatureScope<'a> {
    pub(super) id: &'a [u8],
    pub(super) region: &'a [u8],
    pub(super) service: &'a [u8],
}

/// The halves of a Basic value in which a placeholder stands.
#[derive(Debug, PartialEq, Eq)]
struct Halves<'a> {
    user: &'a [u8],
    password: &'a [u8],
}

impl<'a> Authorization<'a> {
    /// Reads a value; the scheme's case does not matter.
    pub(super) fn read(value: &'a [u8]) -> Self {
        let value = value.trim_ascii();
        let Some(space) = value.iter().position(|byte| matches!(byte, b' ' | b'\t')) else {
            return Self::Token { scheme: None, text: value };
        };
        let (scheme, text) = (&value[..space], value[space..].trim_ascii());
        if scheme.eq_ignore_ascii_case(b"basic")
            && let Ok(pair) = LENIENT.decode(text)
        {
            return Self::Basic(Zeroizing::new(pair));
        }
        if scheme == ALGORITHM.as_bytes()
            && let Some(scope) = SignatureScope::read(text)
        {
            return Self::Signed(scope);
        }
        Self::Token { scheme: Some(scheme), text }
    }

    /// Whether the placeholder stands here where it can be replaced: as the whole text after a scheme (or with
    /// none), or as the user or the password of Basic.
    pub(super) fn holds(&self, placeholder: &str) -> bool {
        self.beside(placeholder).is_some()
    }

    /// Whether the placeholder stands in the place of the access key id that signed.
    pub(super) fn is_signed_by(&self, placeholder: &str) -> bool {
        matches!(self, Self::Signed(scope) if scope.id == placeholder.as_bytes())
    }

    /// Whether the placeholder is the only key here: beside it in Basic stands nothing, the same placeholder,
    /// a fixed word (`x-access-token`), or an e-mail address.
    pub(super) fn holds_only(&self, placeholder: &str) -> bool {
        self.beside(placeholder).is_some_and(is_no_key)
    }

    /// What stands in Basic beside the placeholder (empty where nothing does, or the placeholder again); `None`
    /// where the placeholder does not stand here.
    pub(super) fn beside(&self, placeholder: &str) -> Option<&[u8]> {
        match self {
            Self::Basic(pair) => {
                let Halves { user, password } = halves(pair, placeholder)?;
                let rest = if user == placeholder.as_bytes() { password } else { user };
                Some(if rest == placeholder.as_bytes() { b"" } else { rest })
            }
            Self::Token { text, .. } => (*text == placeholder.as_bytes()).then_some(b""),
            Self::Signed(_) => None,
        }
    }

    /// Whether no key stands here: nothing, or a scheme alone.
    pub(super) fn is_blank(&self) -> bool {
        match self {
            Self::Basic(pair) => pair.is_empty() || pair.as_slice() == b":",
            Self::Signed(_) => false,
            Self::Token { text, .. } => {
                text.is_empty() || text.eq_ignore_ascii_case(b"bearer") || text.eq_ignore_ascii_case(b"basic")
            }
        }
    }

    /// The value with the secret in place of the placeholder; `None` if the value has no placeholder.
    pub(super) fn replaced(
        &self,
        placeholder: &str,
        secret: &[u8],
    ) -> Result<Option<Zeroizing<Vec<u8>>>, Unattachable> {
        if !self.holds(placeholder) {
            return Ok(None);
        }
        let mut value = Zeroizing::new(Vec::with_capacity(secret.len() * 3 + 64));
        match self {
            Self::Signed(_) => return Ok(None),
            Self::Token { scheme, .. } => {
                if let Some(scheme) = scheme {
                    value.extend_from_slice(scheme);
                    value.push(b' ');
                }
                value.extend_from_slice(secret);
            }
            Self::Basic(pair) => {
                let Some(halves) = halves(pair, placeholder) else { return Ok(None) };
                value.extend_from_slice(b"Basic ");
                value.extend_from_slice(halves.encoded(placeholder.as_bytes(), secret)?.as_bytes());
            }
        }
        Ok(Some(value))
    }
}

impl<'a> SignatureScope<'a> {
    /// Reads what follows the scheme; `None` where it is written in another way than AWS's.
    fn read(text: &'a [u8]) -> Option<Self> {
        let mut fields = text.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        let mut credentials = fields.by_ref().filter_map(|field| field.strip_prefix(b"Credential="));
        let (credential, None) = (credentials.next()?, credentials.next()) else { return None };
        let mut words = credential.split(|&byte| byte == b'/');
        let (id, _, region, service) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let is_whole = words.next() == Some(b"aws4_request") && words.next().is_none();
        is_whole.then_some(Self { id, region, service })
    }
}

impl Halves<'_> {
    fn encoded(&self, placeholder: &[u8], secret: &[u8]) -> Result<Zeroizing<String>, Unattachable> {
        if self.user == placeholder && secret.contains(&b':') {
            return Err(Unattachable::ColonInUser);
        }
        let mut pair = Zeroizing::new(Vec::with_capacity(self.user.len() + secret.len() * 2 + 1));
        pair.extend_from_slice(if self.user == placeholder { secret } else { self.user });
        pair.push(b':');
        pair.extend_from_slice(if self.password == placeholder { secret } else { self.password });
        Ok(Zeroizing::new(base64::prelude::BASE64_STANDARD.encode(pair.as_slice())))
    }
}

/// Splits `user:password` where one of them is the placeholder, which may hold colons of its own.
fn halves<'a>(pair: &'a [u8], placeholder: &str) -> Option<Halves<'a>> {
    let placeholder = placeholder.as_bytes();
    if let Some([b':', password @ ..]) = pair.strip_prefix(placeholder) {
        return Some(Halves { user: &pair[..placeholder.len()], password });
    }
    match pair.strip_suffix(placeholder) {
        // The host splits at the first colon, so a user with one would move the split.
        Some([user @ .., b':']) if !user.contains(&b':') => {
            Some(Halves { user, password: &pair[user.len() + 1..] })
        }
        _ => None,
    }
}

fn is_no_key(half: &[u8]) -> bool {
    let is_email = || {
        let at = half.iter().position(|&byte| byte == b'@');
        at.is_some_and(|at| at > 0 && half[at..].contains(&b'.'))
    };
    FIXED_USERS.iter().any(|word| word.as_bytes() == half) || is_email()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};

    fn basic(pair: &str) -> String {
        format!("bAsIc {}", BASE64_STANDARD.encode(pair))
    }

    fn swap(value: &str) -> Option<String> {
        let value = Authorization::read(value.as_bytes()).replaced("postern:git", b"real-key-1").unwrap()?;
        let text = std::str::from_utf8(&value).unwrap();
        Some(match text.strip_prefix("Basic ") {
            Some(pair) => String::from_utf8(BASE64_STANDARD.decode(pair).unwrap()).unwrap(),
            None => text.to_owned(),
        })
    }

    #[test]
    fn the_placeholder_is_replaced_after_any_scheme_and_bare() {
        assert_eq!(swap("Bearer postern:git").as_deref(), Some("Bearer real-key-1"));
        assert_eq!(swap("bearer   postern:git ").as_deref(), Some("bearer real-key-1"));
        assert_eq!(swap("token postern:git").as_deref(), Some("token real-key-1"));
        assert_eq!(swap("postern:git").as_deref(), Some("real-key-1"));
        assert_eq!(swap("Bearer postern:git2"), None);
        assert_eq!(swap("Bearer postern:git, Basic x"), None);
    }

    #[test]
    fn the_placeholder_is_replaced_as_user_or_password_of_basic() {
        assert_eq!(swap(&basic("x-access-token:postern:git")).as_deref(), Some("x-access-token:real-key-1"));
        assert_eq!(swap(&basic("postern:git:")).as_deref(), Some("real-key-1:"));
        assert_eq!(swap(&basic("postern:git:postern:git")).as_deref(), Some("real-key-1:real-key-1"));
        assert_eq!(swap(&basic("a:b:postern:git")), None);
        assert_eq!(swap(&basic("postern:git")), None);
        let unpadded = format!("Basic {}", BASE64_STANDARD_NO_PAD.encode("u:postern:git"));
        assert_eq!(swap(&unpadded).as_deref(), Some("u:real-key-1"));
    }

    #[test]
    fn a_second_key_beside_the_placeholder_in_basic_is_seen() {
        let only = |pair: &str| Authorization::read(basic(pair).as_bytes()).holds_only("postern:git");
        assert!(only("x-access-token:postern:git"));
        assert!(only("postern:git:x-oauth-basic"));
        assert!(only("me@corp.example:postern:git"));
        assert!(!only("sk_live_attacker:postern:git"));
        assert!(!only("postern:git:sk_live_attacker"));
    }

    #[test]
    fn a_key_with_a_colon_cannot_be_a_user() {
        let value = basic("postern:git:");
        let result = Authorization::read(value.as_bytes()).replaced("postern:git", b"real:key-1");
        assert_eq!(result.unwrap_err(), Unattachable::ColonInUser);
    }
}
