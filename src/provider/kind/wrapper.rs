//! The tools whose inputs are calls of other tools, as data.

use crate::call::name::cut;
use crate::fold::fold;

/// A tool whose input is calls of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrapper {
    /// `{"tool_uses": [{"recipient_name", "parameters"}]}`, and `{"tool_calls": [{"tool", "parameters"}]}`.
    List,
    One(&'static Calling),
    /// Code mode: a script, as a text (Codex) or in the parameter [`SOURCE`] (Qwen Code 0.24.4).
    Script,
}

/// A tool that calls one other tool, and where its input has that.
#[derive(Debug, PartialEq, Eq)]
pub struct Calling {
    name: &'static str,
    /// None where it calls tools of the agent's own.
    pub server: Option<&'static str>,
    pub tool: &'static str,
    pub input: &'static str,
}

const LISTS: &[&str] = &["parallel", "multi_tool_use.parallel", "batch"];

const CALLING: &[Calling] = &[
    // Cline, Roo Code, Kilo Code.
    Calling { name: "use_mcp_tool", server: Some("server_name"), tool: "tool_name", input: "arguments" },
    // Qwen Code 0.24.4.
    Calling { name: "tool_call", server: None, tool: "name", input: "arguments" },
];

const SCRIPT: &str = "exec";

/// The parameter of a script.
pub const SOURCE: &str = "source";

/// What a tool's input has in it, by the tool's name.
pub fn wrapper(name: &str) -> Option<Wrapper> {
    let folded = fold(name);
    let name = cut(&folded);
    if name == SCRIPT {
        return Some(Wrapper::Script);
    }
    let calling = || CALLING.iter().find(|calling| calling.name == name).map(Wrapper::One);
    LISTS.contains(&name).then_some(Wrapper::List).or_else(calling)
}
