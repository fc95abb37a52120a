//! `shell`: what rules see of the commands of Shell calls.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::page::{Heading, Page, row};
use super::{Lowering, Owner, PolicySection};
use crate::call::ShellTerms;
use crate::decision::{Decision, Verdict};
use crate::policy::scope::{Mode, PolicyScope, TIERS, Tier};
use crate::yaml::field;

/// What rules see of shell commands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, expecting = "a mapping: {files, directory}")]
pub struct WrittenShell {
    /// What becomes of commands that read, write or fetch. Of several policies Native comes before Judge, and Judge
    /// before Ignore; a policy that does not write it takes no part, and without any it is Judge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<ShellFiles>,
    /// The absolute directory in which relative paths begin, of commands, file tools and patches. Absent: such paths
    /// are not judged by their directory. The cluster's decides; two of one tier are a mistake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum ShellFiles {
    /// Rules of kind Read, Write and Fetch are about file tools alone. The built-in rule about control files stays.
    Ignore,
    /// Deny and Audit rules of kind Read, Write and Fetch are about files and URLs that commands name, too.
    Judge,
    /// Also denies a command that does nothing but a file tool's work, where the request offers such a tool.
    Native,
}

/// The section of all policies.
#[derive(Debug)]
pub(in crate::policy) struct Shell {
    enforced: ShellSettings,
    all: ShellSettings,
}

/// The section as some policies set it.
#[derive(Debug)]
struct ShellSettings {
    files: ShellFiles,
    /// The denial of Native, without its reason.
    native: Option<Decision>,
    directory: Option<Arc<str>>,
}

#[derive(Serialize)]
pub(in crate::policy) struct ShellListed {
    shell: ShellSettingsListed,
}

#[derive(Serialize)]
struct ShellSettingsListed {
    files: ShellFiles,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
}

impl PolicySection for Shell {
    type Written = Option<WrittenShell>;
    type Lowered = WrittenShell;
    type Listed = ShellListed;

    fn lower<'a>(written: &'a Option<WrittenShell>, lowering: &mut Lowering<'a>) -> WrittenShell {
        let shell = written.clone().unwrap_or_default();
        if let Some(directory) = shell.directory.as_deref().filter(|directory| !is_clean(directory)) {
            let message = format!(
                "{}: expected an absolute path without `.`, `..` and a slash at its end, as in /workspace",
                field::quoted(directory)
            );
            lowering.problems.add(DIRECTORY, message);
        }
        shell
    }

    fn unite(policies: Vec<(&Owner, WrittenShell)>, _: Mode) -> Self {
        let of = |scope| ShellSettings::of(&policies, scope);
        Self { enforced: of(PolicyScope::Enforced), all: of(PolicyScope::All) }
    }

    fn list(&self, scope: PolicyScope) -> ShellListed {
        let ShellSettings { files, directory, .. } = self.at(scope);
        let directory = directory.as_ref().map(ToString::to_string);
        ShellListed { shell: ShellSettingsListed { files: *files, directory } }
    }

    fn rows(listed: &ShellListed, page: &mut Page) {
        let ShellSettingsListed { files, directory } = &listed.shell;
        page.add(Heading::Settings, row("files in shell commands", format!("{files:?}")));
        if let Some(directory) = directory {
            page.add(Heading::Settings, row("where relative paths begin", directory.as_str()));
        }
    }
}

/// The field of the directory.
const DIRECTORY: &str = "spec.shell.directory";

impl ShellSettings {
    /// The section of the policies of a scope, the cluster's first.
    fn of(policies: &[(&Owner, WrittenShell)], scope: PolicyScope) -> Self {
        let visible = || policies.iter().filter(|(owner, _)| scope.shows(owner.audit));
        let native = visible().find(|(_, written)| written.files == Some(ShellFiles::Native));
        let denial =
            |owner: &Owner| Decision::by(owner.rule("shell"), Verdict::Deny, "").under(owner.enforcement());
        let directory = visible().find_map(|(_, written)| written.directory.as_deref());
        Self {
            files: visible().filter_map(|(_, written)| written.files).max().unwrap_or(ShellFiles::Judge),
            native: native.map(|(owner, _)| denial(owner)),
            directory: directory.map(Arc::from),
        }
    }
}

impl Shell {
    fn at(&self, scope: PolicyScope) -> &ShellSettings {
        match scope {
            PolicyScope::Enforced => &self.enforced,
            PolicyScope::All => &self.all,
        }
    }

    /// What is to be read for a pod that these policies decide for. The built-in rule about control files is in force
    /// wherever a policy selects the pod, so that commands are read wherever one does.
    pub(in crate::policy) fn terms(&self, scope: PolicyScope) -> ShellTerms {
        ShellTerms {
            reads: true,
            directory: self.at(scope).directory.clone(),
            prefers_file_tools: self.all.native.is_some(),
        }
    }

    /// Where relative paths begin.
    pub(in crate::policy) fn directory(&self, scope: PolicyScope) -> Option<&str> {
        self.at(scope).directory.as_deref()
    }

    /// Whether rules are about what commands read, write and fetch.
    pub(in crate::policy) fn judges(&self, scope: PolicyScope) -> bool {
        self.at(scope).files != ShellFiles::Ignore
    }

    /// The denial of a command that does a file tool's work, without its reason; none where no policy asks for that.
    pub(in crate::policy) fn native(&self, scope: PolicyScope) -> Option<Decision> {
        self.at(scope).native.clone()
    }
}

/// Whether a directory is written in the one way in which paths are joined to it.
fn is_clean(directory: &str) -> bool {
    let Some(below) = directory.strip_prefix('/') else { return false };
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(char::is_control);
    below.is_empty() || below.split('/').all(is_plain)
}

/// The directories of policies that apply together, one for each tier.
#[derive(Default)]
pub(in crate::policy) struct DirectoryClaims([Option<(String, String)>; TIERS]);

impl DirectoryClaims {
    /// Returns the field and what is wrong with it, where another policy of the tier has another directory. `place` is
    /// where this one is written.
    pub(in crate::policy) fn clash(
        &mut self,
        tier: Tier,
        written: &WrittenShell,
        place: impl FnOnce(&str) -> String,
    ) -> Option<(&'static str, String)> {
        let (directory, first) = (written.directory.as_ref()?, self.0.get_mut(tier.index())?);
        let Some((other, at)) = first else {
            *first = Some((directory.clone(), place(DIRECTORY)));
            return None;
        };
        let message = format!("{} is not {} of {at}", field::quoted(directory), field::quoted(other));
        (directory != other).then_some((DIRECTORY, message))
    }
}
