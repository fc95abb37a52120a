//! URLs and remote places as programs write them.

use std::borrow::Cow;

/// `file:///path`, whichever host and case it is written with.
pub(super) fn file(text: &str) -> Option<Cow<'_, str>> {
    let (scheme, rest) = text.split_once(':')?;
    let rest = Some(rest).filter(|_| scheme.eq_ignore_ascii_case("file"))?;
    let path = match rest.strip_prefix("//") {
        Some(place) => place.get(place.find('/')?..)?,
        None => rest,
    };
    let path = path.split(['?', '#']).next().filter(|path| path.starts_with('/'))?;
    Some(if path.contains('%') { Cow::Owned(decoded(path)) } else { Cow::Borrowed(path) })
}

/// A text with `%2e` and its like decoded, as far as they are.
fn decoded(text: &str) -> String {
    let mut rest = text.as_bytes();
    let mut decoded = Vec::with_capacity(rest.len());
    while let Some((byte, after)) = rest.split_first() {
        let digits =
            after.get(..2).filter(|_| *byte == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(value.unwrap_or(*byte));
        rest = if value.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Whether which host or file a URL names depends on braces or brackets, of which `curl` makes several URLs.
pub(super) fn is_pattern(text: &str) -> bool {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = match file(text) {
        Some(_) => text,
        None => rest.split(['/', '?', '#']).next().unwrap_or_default(),
    };
    // `[::1]`
    let is_address = |text: &str| {
        text.strip_prefix('[').and_then(|rest| rest.split_once(']')).is_some_and(|(address, behind)| {
            address.contains(':')
                && address.bytes().all(|byte| byte.is_ascii_hexdigit() || b":.%".contains(&byte))
                && !behind.contains(['[', '{'])
        })
    };
    let host = authority.rsplit('@').next().unwrap_or_default();
    authority.contains('{') || (authority.contains('[') && !is_address(host))
}

/// A text with a scheme. The user of a place that is reached by SSH is left out: it is no part of the host.
pub(super) fn of_url(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if !is_scheme {
        return None;
    }
    let (authority, _) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let reached_by_ssh = matches!(scheme, "ssh" | "git+ssh" | "ssh+git" | "sftp" | "rsync" | "scp");
    let without_user = authority.split_once('@').filter(|(user, _)| reached_by_ssh && is_user(user));
    Some(match without_user {
        Some((user, _)) => format!("{scheme}://{}", rest.get(user.len() + 1..).unwrap_or_default()),
        None => text.to_owned(),
    })
}

/// `user@host:path`, `host::module`
pub(super) fn of_remote(text: &str) -> Option<String> {
    let (host, path) = text.split_once(':')?;
    if host.is_empty() || host.contains(['/', '\\']) || path.starts_with("//") {
        return None;
    }
    // A drive of Windows.
    if host.len() == 1 && path.starts_with(['/', '\\']) {
        return None;
    }
    let path = path.trim_start_matches(':');
    Some(format!("{}/{}", of_host(host), path.trim_start_matches('/')))
}

/// Whether a text can be no name of a branch, but a path: no part of such a name begins with a dot.
pub(super) fn is_no_branch(text: &str) -> bool {
    let is_revision = text.contains([':', '^', '@']) || (text.contains('~') && !text.starts_with("~/"));
    !is_revision && (text.starts_with(['.', '/', '~']) || text.contains("/."))
}

/// `helper::address`, for which git runs `git-remote-helper`.
pub(super) fn names_helper(text: &str) -> bool {
    text.split_once("::").is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-_".contains(&byte))
    })
}

/// `user@host`
pub(super) fn of_host(text: &str) -> String {
    if let Some(url) = of_url(text) {
        return url;
    }
    let host = text.split_once('@').filter(|(user, _)| is_user(user)).map_or(text, |(_, host)| host);
    format!("ssh://{host}")
}

/// `example.com/module@v1`: the first component is a host.
pub(super) fn of_module(text: &str) -> Option<String> {
    let path = text.split('@').next().unwrap_or_default();
    let host = path.split('/').next().unwrap_or_default();
    (host.contains('.') && !host.starts_with('.') && path.contains('/')).then(|| format!("https://{path}"))
}

/// `path` of `revision:path` and `:0:path`. Braces hold dates and what is searched for, `:/text` is a search, too.
pub(super) fn object_path(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    let (at, _) = text.char_indices().find(|(_, sign)| {
        match sign {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        *sign == ':' && depth == 0
    })?;
    let path = text.get(at + 1..).unwrap_or_default();
    if at > 0 {
        return Some(path).filter(|path| !path.is_empty());
    }
    let staged = path.strip_prefix(['0', '1', '2', '3']).and_then(|rest| rest.strip_prefix(':'));
    Some(staged.unwrap_or(path)).filter(|path| !path.is_empty() && !path.starts_with(['/', '(', '!', '^']))
}

/// The beginning of a URL up to the end of its authority or further.
pub(super) fn certain_beginning(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("://")?;
    (rest.find(['/', '?', '#'])? > 0).then_some(text)
}

/// What a URL is saved as: its last segment, without what git leaves out.
pub(super) fn saved_name(url: &str) -> &str {
    let path =
        url.split_once("://").map_or(url, |(_, rest)| rest).split(['?', '#']).next().unwrap_or_default();
    match path.trim_end_matches('/').rsplit_once('/') {
        Some((_, name)) => name.strip_suffix(".git").unwrap_or(name),
        None => "index.html",
    }
}

/// `container:path`, `namespace/pod:path`
pub(super) fn is_named(text: &str) -> bool {
    text.split_once(':').is_some_and(|(name, _)| !name.is_empty() && !name.starts_with(['/', '.', '~']))
}

/// Whether a text that may be a name looks like a path.
pub(super) fn looks_like_path(text: &str) -> bool {
    text.starts_with(['/', '.', '~']) || is_package(text)
}

/// `x.tgz`: a file that package managers take.
fn is_package(text: &str) -> bool {
    [".tgz", ".tar.gz", ".whl", ".zip", ".deb", ".rpm", ".gem", ".apk"].iter().any(|end| text.ends_with(end))
}

/// `script.py`
pub(super) fn has_extension(text: &str) -> bool {
    const ENDS: &[&str] =
        &["py", "js", "mjs", "cjs", "ts", "mts", "tsx", "jsx", "rb", "go", "sh", "php", "pl", "rs"];
    text.rsplit_once('.').is_some_and(|(name, end)| !name.is_empty() && ENDS.contains(&end))
}

fn is_user(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-+".contains(&byte))
}
