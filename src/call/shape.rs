//! What the parameters of a tool say of what it does, for tools that nobody knows (plain data).

/// The parameters by which the kinds of a tool are inferred.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shape {
    /// Commands that it runs.
    pub commands: Vec<Place>,
    /// Files that every call of it reads or writes.
    pub paths: Vec<Place>,
    /// The same, of calls that name one.
    pub optional_paths: Vec<Place>,
    /// The same, where their values look like paths of this machine.
    pub bare_paths: Vec<Place>,
    /// The same of absolute paths: what stands beside them says that files are elsewhere.
    pub remote_paths: Vec<Place>,
    /// What every call of it fetches.
    pub urls: Vec<Place>,
    /// The same, of calls that name one.
    pub optional_urls: Vec<Place>,
    /// Whether it writes the files that it names.
    pub writes: bool,
    /// Whether it moves or copies them from one place to another.
    pub moves: bool,
    /// Where anything may stand: what the input of a call has below it counts, too.
    pub open: Vec<Place>,
    /// Whether any parameter names a file of this machine, by whatever word.
    pub names_files: bool,
    /// Whether its parameters are not said, so that the input of a call decides.
    pub is_open: bool,
}

/// The keys on the way to a parameter, folded to letters and digits; `*` is every element of an array.
pub type Place = Vec<String>;

impl Shape {
    /// A tool of which nothing is said.
    pub fn open() -> Self {
        Self { is_open: true, ..Self::default() }
    }

    /// One tool of two definitions: it may be either.
    #[must_use]
    pub fn or(mut self, other: &Self) -> Self {
        self.commands.extend_from_slice(&other.commands);
        self.paths.extend_from_slice(&other.paths);
        self.optional_paths.extend_from_slice(&other.optional_paths);
        self.bare_paths.extend_from_slice(&other.bare_paths);
        self.remote_paths.extend_from_slice(&other.remote_paths);
        self.open.extend_from_slice(&other.open);
        self.urls.extend_from_slice(&other.urls);
        self.optional_urls.extend_from_slice(&other.optional_urls);
        self.writes |= other.writes;
        self.moves |= other.moves;
        self.names_files |= other.names_files;
        self.is_open |= other.is_open;
        self
    }
}
