//! The tools of agents, dialects and widely used MCP servers, as data.

use crate::call::Kind::{self, Fetch, Read, Shell, Write};

/// Tools with one kind of input.
#[derive(Debug)]
pub(super) struct CatalogueEntry {
    /// Folded; every name occurs once.
    pub(super) names: &'static [&'static str],
    pub(super) kinds: &'static [Kind],
    pub(super) takes: InputLayout,
}

/// Where an input says what the call does. A parameter is a dotted path; `*` is every element of an array. Of several
/// parameters all that are there count.
#[derive(Debug, Clone, Copy)]
pub(super) enum InputLayout {
    /// Nothing that a condition has a word for.
    Nothing,
    /// Commands: each string is one, and so is an array of strings, its arguments.
    Command(&'static [&'static str]),
    /// The same, where commands may be left out.
    CommandIfAny(&'static [&'static str]),
    /// Commands of an agent that runs `apply_patch` by itself where a shell would find none.
    CommandOrPatch(&'static [&'static str]),
    /// Paths, at least one. A path that is no absolute one begins in a parameter of [`DIRECTORIES`].
    Paths(&'static [&'static str]),
    /// Where something is moved or copied from and to: at least two paths.
    Moves(&'static [&'static str]),
    /// URLs and the paths that they are saved to, at least one of both.
    Download(&'static [&'static str], &'static [&'static str]),
    /// Paths; without one, the working directory. A `pattern` that leaves it is a path, too.
    Search(&'static [&'static str]),
    /// URLs, at least one.
    Urls(&'static [&'static str]),
    /// URLs, or none.
    UrlsIfAny(&'static [&'static str]),
    /// URLs, or a text in which they stand.
    UrlsInText(&'static [&'static str], &'static str),
    /// The text of a patch, as such or in a parameter, or one operation on a file.
    Patch(&'static [&'static str]),
    /// An editor: `command` says whether it reads or writes.
    Editor,
}

impl InputLayout {
    /// The parameters that are looked at.
    pub(super) fn keys(self) -> impl Iterator<Item = &'static str> {
        let (keys, others): (&[_], &[_]) = match self {
            Self::Nothing => (&[], &[]),
            Self::Command(keys)
            | Self::CommandIfAny(keys)
            | Self::CommandOrPatch(keys)
            | Self::Paths(keys)
            | Self::Moves(keys)
            | Self::Search(keys)
            | Self::Urls(keys)
            | Self::UrlsIfAny(keys)
            | Self::UrlsInText(keys, _)
            | Self::Patch(keys) => (keys, &[]),
            Self::Download(urls, paths) => (urls, paths),
            Self::Editor => (&["path"], &[]),
        };
        keys.iter().chain(others).copied()
    }
}

/// The parameters by which agents name one file or directory.
pub(super) const FILE: &[&str] = &[
    "file_path",
    "filePath",
    "path",
    "file",
    "filename",
    "absolute_path",
    "AbsolutePath",
    "target_file",
    "TargetFile",
    "notebook_path",
    "target_notebook",
    "dirPath",
    "dir_path",
    "relative_workspace_path",
    "target_directory",
    "DirectoryPath",
    "SearchDirectory",
    "paths.*",
    "include.*",
    "filePaths.*",
    "files.*",
    "files.*.path",
    "files.*.file_path",
    "args.file.path",
    "args.file.*.path",
    "edits.*.path",
    "edits.*.filePath",
    "edits.*.file_path",
    "replacements.*.filePath",
    "file_paths.*",
    "filepath",
    "file_name",
    "fileName",
    "relative_path",
    "full_path",
    // JetBrains
    "pathInProject",
];

/// The parameters by which agents name the directory that a file's name begins in.
pub(super) const DIRECTORIES: &[&str] = &["directory", "dir", "folder", "base_dir", "base_path"];

/// The parameters by which agents name where they search.
const DIRECTORY: &[&str] = &[
    "path",
    "dir_path",
    "directory",
    "dirPath",
    "file_path",
    "relative_workspace_path",
    "target_directory",
    "target_directories.*",
    "DirectoryPath",
    "SearchDirectory",
];

/// The same where a file goes from one place to another.
const FROM_TO: &[&str] = &[
    "source",
    "destination",
    "src",
    "dst",
    "from",
    "to",
    "source_path",
    "destination_path",
    "old_path",
    "new_path",
    "oldPath",
    "newPath",
    "path",
    "sourcePath",
    "destinationPath",
    "target",
    "target_path",
    "from_path",
    "to_path",
    "new_name",
];

const COMMAND: &[&str] = &["command", "cmd", "CommandLine", "commands.*", "script", "code"];

/// The same by the words of fewer tools.
const OTHER_COMMAND: &[&str] = &[
    "command",
    "cmd",
    "commands.*",
    "commands.*.command",
    "script",
    "code",
    "query",
    "command_line",
    "argv",
    "task.command",
    "task.args",
    "input",
];

/// Each command of `commands` is one; `command` is one with its arguments.
const CODEX: &[&str] = &["command", "cmd", "commands.*", "input", "action.command", "action.commands.*"];

const URL: &[&str] = &["url", "Url", "uri", "urls.*", "href"];

/// Words that many a server has for something else: they count as whole names alone.
pub(super) const GENERIC: &[&str] = &[
    "create", "download", "list", "replace", "view", "python", "terminal", "memory", "patch", "execute",
    "monitor", "process", "repl", "run_task",
];

/// Codex's own tools that do nothing that a kind stands for: they count where a script calls one with an input that is
/// not written in it.
pub(super) const KINDLESS: &[&str] = &[
    "update_plan",
    "request_user_input",
    "request_permissions",
    "wait",
    "spawn_agent",
    "send_input",
    "send_message",
    "followup_task",
    "resume_agent",
    "wait_agent",
    "close_agent",
    "list_agents",
    "list_mcp_resources",
    "list_mcp_resource_templates",
    "read_mcp_resource",
];

/// What is typed into a program that runs already.
const TYPED: &[&str] = &["chars", "input", "Input", "input_text", "data", "text", "command"];

/// What is known.
pub(super) const CATALOGUE: &[CatalogueEntry] = &[
    // Claude Code, opencode, Anthropic's own tool, OpenHands, Kiro, Amp, MCP servers of shells.
    CatalogueEntry {
        names: &[
            "bash",
            "bash_code_execution",
            "execute_bash",
            "executebash",
            "run_bash",
            "powershell",
            "shell_execute",
            "execute_shell",
            "execute_shell_command",
            "run_shell",
            "run_command",
            "runcommand",
            "execute_command",
            "executecommand",
            "run_shell_command",
            "run_terminal_cmd",
            "run_terminal_command",
            "run_in_terminal",
            "runinterminal",
            "terminal",
            "launch-process",
            "execute_ipython_cell",
            "ipython",
            "code_execution",
            "execute_code",
            "execute_python",
            "run_python",
            "python",
        ],
        kinds: &[Shell],
        takes: InputLayout::Command(COMMAND),
    },
    // What belongs to a command that runs already.
    CatalogueEntry {
        names: &[
            "bashoutput",
            "killbash",
            "killshell",
            "get_terminal_output",
            "read_terminal",
            "kill-process",
        ],
        kinds: &[Shell],
        takes: InputLayout::Nothing,
    },
    CatalogueEntry {
        names: &["write_stdin", "send_command_input", "write-process", "send_to_terminal"],
        kinds: &[Shell],
        takes: InputLayout::CommandIfAny(TYPED),
    },
    // Tools that run what they are given under other words.
    CatalogueEntry {
        names: &[
            // deepagents 0.7.32 (`{command}`); Factory's Droid has `Execute`. OpenClaw's `exec {command}` is not here: in
            // Codex and Qwen Code `exec` is a script of calls, so that its parameters have to say which it is.
            "execute",
            // Desktop Commander 0.2.52: `start_process {command, shell}`.
            "start_process",
            // Cline 3.0.65: `run_commands {commands}`.
            "run_commands",
            // Claude Code's `mcp__ide__executeCode {code}`; Claude Code 2.1.197 has `REPL {code}`.
            "executecode",
            "repl",
            // LangChain's tools of these names: `{query}` and `{commands}`.
            "python_repl",
            "python_repl_ast",
            // mcp-server-commands, before it was called `run_command`: `run_process {command_line, argv}`.
            "run_process",
            // Goose's extension computercontroller: `automation_script {language, script}`,
            // `computer_control {script}`.
            "automation_script",
            "computer_control",
            // VS Code: `create_and_run_task {task: {command, args}}`.
            "create_and_run_task",
            "run_notebook_cell",
        ],
        kinds: &[Shell],
        takes: InputLayout::Command(OTHER_COMMAND),
    },
    CatalogueEntry {
        names: &[
            // Claude Code 2.1.197 (`Monitor {command, ws}`) and Qwen Code 0.24.4 (`monitor {command}`).
            "monitor",
            // Copilot 1.0.102: `write_bash {sessionId, input}`.
            "write_bash",
            "write_powershell",
            // Desktop Commander 0.2.52: `interact_with_process {pid, input}`.
            "interact_with_process",
            // OpenClaw 2026.9.6: `process {action, sessionId, data}`.
            "process",
        ],
        kinds: &[Shell],
        takes: InputLayout::CommandIfAny(TYPED),
    },
    CatalogueEntry {
        names: &[
            // Copilot 1.0.102.
            "read_bash",
            "stop_bash",
            "list_bash",
            "read_powershell",
            "stop_powershell",
            "list_powershell",
            // VS Code: a task of the workspace's own.
            "run_task",
            "get_task_output",
            "kill_terminal",
            // Desktop Commander 0.2.52.
            "read_process_output",
            "force_terminate",
            // Crush.
            "job_output",
            "job_kill",
        ],
        kinds: &[Shell],
        takes: InputLayout::Nothing,
    },
    // Codex, and what OpenAI has defined.
    CatalogueEntry {
        names: &[
            "shell",
            "shell_command",
            "shell_call",
            "exec_command",
            "local_shell",
            "local_shell_call",
            "unified_exec",
            "container.exec",
        ],
        kinds: &[Shell, Write],
        takes: InputLayout::CommandOrPatch(CODEX),
    },
    CatalogueEntry {
        names: &["apply_patch", "applypatch", "apply_patch_call", "patch"],
        kinds: &[Write],
        takes: InputLayout::Patch(&["input", "patch", "patchText", "patch_text", "diff"]),
    },
    // Readers of files.
    CatalogueEntry {
        names: &[
            "read",
            "read_file",
            "readfile",
            "read_many_files",
            "read_files",
            "read_multiple_files",
            "read_text_file",
            "read_media_file",
            "fs_read",
            "fsread",
            "notebookread",
            "view",
            "view_file",
            "view_image",
            "open_file",
            "get_file_info",
            "get_file_contents",
            "read_notebook",
            "list_code_definition_names",
            "read_lints",
        ],
        kinds: &[Read],
        takes: InputLayout::Paths(FILE),
    },
    // Searches in files.
    CatalogueEntry {
        names: &[
            "glob",
            "grep",
            "grep_search",
            "search_file_content",
            "search_files",
            "file_search",
            "find_files",
            "find_by_name",
            "codebase_search",
            "ls",
            "list",
            "list_dir",
            "list_files",
            "list_directory",
            "list_directory_with_sizes",
            "directory_tree",
        ],
        kinds: &[Read],
        takes: InputLayout::Search(DIRECTORY),
    },
    // Writers of files.
    CatalogueEntry {
        names: &[
            "write",
            "write_file",
            "writefile",
            "writetofile",
            "write_to_file",
            "fs_write",
            "fswrite",
            "save-file",
            "create",
            "create_file",
            "createfile",
            "new_file",
            "create_directory",
            "createdirectory",
            "edit",
            "edit_file",
            "editfile",
            "editfiles",
            "edit_files",
            "multiedit",
            "multi_edit",
            "edit_notebook",
            "edit_notebook_file",
            "notebookedit",
            "replace",
            "replace_in_file",
            "replace_file_content",
            "replace_string_in_file",
            "multi_replace_string_in_file",
            "apply_diff",
            "insert_content",
            "insert_edit_into_file",
            "search_and_replace",
            "search_replace",
            "str_replace",
            "undo_edit",
            "reapply",
            "delete_file",
            "deletefile",
            "remove_file",
            "remove-files",
            "append_file",
            // Serena: `create_text_file {relative_path, content}`.
            "create_text_file",
            // JetBrains: `create_new_file {pathInProject, text}`.
            "create_new_file",
            // Desktop Commander 0.2: `edit_block {file_path, old_string, new_string}`.
            "edit_block",
        ],
        kinds: &[Write],
        takes: InputLayout::Paths(FILE),
    },
    // Zed: `move_path` and `copy_path {source_path, destination_path}`.
    CatalogueEntry {
        names: &["move_file", "rename_file", "copy_file", "move_path", "copy_path"],
        kinds: &[Write],
        takes: InputLayout::Moves(FROM_TO),
    },
    // Crush: `download {url, file_path, timeout}`.
    CatalogueEntry { names: &["download"], kinds: &[Fetch, Write], takes: InputLayout::Download(URL, FILE) },
    // Editors of many commands.
    CatalogueEntry {
        names: &[
            "str_replace_editor",
            "str-replace-editor",
            "str_replace_based_edit_tool",
            "text_editor",
            "text_editor_code_execution",
            // OpenHands: `file_editor {command, path, …}`.
            "file_editor",
            "memory",
        ],
        kinds: &[Read, Write],
        takes: InputLayout::Editor,
    },
    // What asks the network.
    CatalogueEntry {
        names: &[
            "webfetch",
            "web-fetch",
            "fetch",
            "fetch_url",
            "fetch_webpage",
            "fetchwebpage",
            "fetch_html",
            "fetch_markdown",
            "fetch_json",
            "fetch_txt",
            "read_web_page",
            "read_url_content",
            "http_request",
            "open_simple_browser",
            "browser_navigate",
            "puppeteer_navigate",
            "url_context",
        ],
        kinds: &[Fetch],
        takes: InputLayout::Urls(URL),
    },
    // Browsers and readers of pages: Playwright's server 0.0.83 (`browser_navigate`), Chrome DevTools' 1.11.0, Firecrawl's
    // 3.22.2, Tavily's 0.2.22, Exa's 3.4.1, Cline 3.0.65 (`fetch_web_content {requests: [{url}]}`).
    CatalogueEntry {
        names: &[
            "navigate_page",
            "new_page",
            "playwright_navigate",
            "firecrawl_scrape",
            "firecrawl_crawl",
            "firecrawl_map",
            "firecrawl_extract",
            "tavily_extract",
            "tavily_crawl",
            "tavily_map",
            "crawling_exa",
            "web_fetch_exa",
            "fetch_web_content",
        ],
        kinds: &[Fetch],
        takes: InputLayout::UrlsIfAny(&["url", "urls", "urls.*", "requests.*.url"]),
    },
    CatalogueEntry { names: &["web_fetch"], kinds: &[Fetch], takes: InputLayout::UrlsInText(URL, "prompt") },
    CatalogueEntry {
        names: &[
            "websearch",
            "web-search",
            "web_search",
            "web_search_call",
            "web_search_preview",
            "search_web",
            "google_web_search",
            "google_search",
            "web__run",
            "web.run",
            "browser_action",
        ],
        kinds: &[Fetch],
        takes: InputLayout::UrlsIfAny(&["url", "urls.*", "action.url"]),
    },
];
