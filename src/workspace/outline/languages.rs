//! The line patterns of ten languages, as data: how lines begin that declare something.
//!
//! The ten most used in the developers' survey of Stack Overflow (2025) and on GitHub (Octoverse 2025) of those with
//! declarations: shells, SQL, HTML and CSS are left out, and PHP is one that replaced them would have to displace.

use super::Language;

/// The languages, by name.
pub(super) const LANGUAGES: &[Language] = &[
    Language {
        name: "Rust",
        extensions: &["rs"],
        declares: &[
            r#"^\s*(pub(\([^)]*\))?\s+)?((default|async|const|unsafe|extern(\s+"[^"]*")?)\s+)*fn\s+\w"#,
            r"^\s*(pub(\([^)]*\))?\s+)?(unsafe\s+|auto\s+)*(struct|enum|union|trait|mod|type|macro)\s+\w",
            r"^\s*(unsafe\s+)?impl\b",
            r"^\s*macro_rules!",
            r"^\s*(pub(\([^)]*\))?\s+)?(const|static)(\s+mut)?\s+[A-Z_]\w*\s*:",
        ],
        unless: &[],
    },
    Language {
        name: "Go",
        extensions: &["go"],
        declares: &[
            r"^package\s+\w",
            r"^func\b",
            r"^type\s+\w",
            r"^(var|const)\s+\w",
            // In a group of types.
            r"^\t\w+(\[[^\]]*\])?\s+(struct|interface)\s*\{",
        ],
        unless: &[],
    },
    Language {
        name: "Python",
        extensions: &["py", "pyi"],
        declares: &[
            r"^\s*(async\s+)?def\s+\w",
            r"^\s*class\s+\w",
            r"^[A-Z_][A-Z0-9_]*\s*(:[^=]*)?=[^=]",
            r"^type\s+\w+(\[[^\]]*\])?\s*=",
        ],
        unless: &[],
    },
    Language {
        name: "JavaScript",
        extensions: &["js", "jsx", "mjs", "cjs"],
        declares: &[
            r"^\s*(export\s+)?(default\s+)?(async\s+)?function\b",
            r"^\s*(export\s+)?(default\s+)?class\b",
            r"^(export\s+)?(const|let|var)\s+[\w$]+\s*=\s*(async\s*)?(function\b|\([^)]*\)\s*=>|[\w$]+\s*=>)",
            r"^export\s",
            r"^(module\.)?exports\b",
            r"^\s+((static|async|get|set)\s+)*[\w$#*]+\s*\([^)]*\)\s*\{\s*$",
        ],
        unless: &[r"^\s*(if|for|while|switch|catch|with|return|function|do|else|await)\b"],
    },
    Language {
        name: "TypeScript",
        extensions: &["ts", "tsx", "mts", "cts"],
        declares: &[
            r"^\s*(export\s+)?(default\s+)?(declare\s+)?(async\s+)?function\b",
            r"^\s*(export\s+)?(default\s+)?(declare\s+)?(abstract\s+)?class\b",
            r"^\s*(export\s+)?(declare\s+)?(interface|(const\s+)?enum|namespace|module)\s+[\w$'\x22]",
            r"^\s*(export\s+)?(declare\s+)?type\s+[\w$]+(<.*>)?\s*=",
            r"^(export\s+)?(const|let|var)\s+[\w$]+\s*(:[^=]+)?=\s*(async\s*)?(function\b|\(|[\w$]+\s*=>|<)",
            r"^(export|declare)\s",
            r"^\s+((public|private|protected|static|async|get|set|abstract|override|readonly)\s+)*[\w$#*]+\s*(<[^>]*>)?\([^)]*\)\s*(:[^={;]+)?\{\s*$",
            r"^\s+((public|private|protected|static|async|abstract|override|readonly)\s+)+[\w$#]+",
        ],
        unless: &[r"^\s*(if|for|while|switch|catch|with|return|function|do|else|await)\b\s*[({ ]"],
    },
    Language {
        name: "Java",
        extensions: &["java"],
        declares: &[
            r"^package\s",
            r"^\s*((public|protected|private|static|final|abstract|sealed|non-sealed|strictfp)\s+)*(class|interface|enum|record|@interface)\s+\w",
            r"^\s*((public|protected|private|static|final|abstract|synchronized|native|default|transient|volatile)\s+)+[\w<>\[\]?,.& ]+(\(|=|;)",
            // Members without a modifier: of an interface, or for the package.
            r"^(\t|  |    )[A-Za-z_][\w<>\[\]?,.]*\s+\w+\s*\([^)]*\)\s*(throws\s[^{;]*)?[{;]\s*$",
        ],
        unless: &[r"^\s*(return|throw|new|else|if|for|while|switch|try|catch|assert|case|yield|import)\b"],
    },
    Language { name: "C", extensions: &["c", "h"], declares: C, unless: NO_C },
    Language {
        name: "C++",
        extensions: &["cc", "cpp", "cxx", "hh", "hpp", "hxx", "ipp", "cu"],
        declares: &[
            r"^\s*(inline\s+)?namespace\b",
            r"^\s*(template\s*<.*>\s*)?(class|struct|union|enum(\s+(class|struct))?|concept)\s+[\w:]+[^;]*$",
            r"^\s*template\s*<",
            r"^\s*using\s+\w+\s*=",
            r"^\s*(typedef|#\s*define)\s",
            r"^(extern\s+)?[A-Za-z_~][\w:<>,*&\s~\[\]]*\([^;]*(\)|,|\{)[^;]*$",
            r"^\s+((virtual|static|inline|explicit|constexpr|friend)\s+)+[\w:<>,*&\s~]+\(",
            r"^(public|protected|private)\s*:",
        ],
        unless: NO_C,
    },
    Language {
        name: "C#",
        extensions: &["cs"],
        declares: &[
            r"^\s*namespace\s+\w",
            r"^\s*((public|protected|private|internal|static|sealed|abstract|partial|readonly|ref|file|unsafe|new)\s+)*(class|struct|interface|enum|record|delegate)\s+\w",
            r"^\s*((public|protected|private|internal|static|sealed|abstract|virtual|override|async|partial|readonly|const|extern|unsafe|new|required|event)\s+)+[\w<>\[\]?,.() ]+(\(|\{|=|;|$)",
        ],
        unless: &[
            r"^\s*(return|throw|new|else|if|for|foreach|while|switch|try|catch|case|yield|using|await)\b",
        ],
    },
    Language {
        name: "Ruby",
        extensions: &["rb", "rake", "gemspec"],
        declares: &[
            r"^\s*(private\s+|public\s+|protected\s+|private_class_method\s+|module_function\s+)?def\s+\S",
            r"^\s*(class|module)\s+\S",
            r"^\s*(attr_reader|attr_writer|attr_accessor|alias_method|define_method|scope|has_many|has_one|belongs_to)\b",
            r"^\s*[A-Z][A-Z0-9_]*\s*=[^=]",
        ],
        unless: &[],
    },
];

const C: &[&str] = &[
    // Of several lines, too; what ends in a semicolon at column 0 declares a function that is elsewhere.
    r"^[A-Za-z_][\w\s*]*\([^;]*$",
    r"^([A-Za-z_]\w*[\s*]+)+\w+\s*\([^()]*\)\s*;",
    r"^(typedef|struct|enum|union)\b",
    r"^#\s*define\s+\w",
];

const NO_C: &[&str] = &[
    r"^\s*(return|else|if|for|while|switch|do|case|goto|delete|throw|catch|using namespace)\b",
    // A label, or a macro that is called.
    r"^[A-Z_][A-Z0-9_]*\s*\(",
];
