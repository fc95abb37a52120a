//! Whose text a part of a request to a model is.

/// Who wrote a part of a request, or what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    System,
    User,
    /// What the model said or thought.
    Assistant,
    /// A call that the model made: its name, its id, its input.
    ToolCall,
    /// What came of a call.
    ToolResult,
    /// A tool that is offered.
    ToolDefinition,
    /// A file, a picture or a recording, with its name.
    Attachment,
    /// Parameters of the request, and what is said about it.
    Metadata,
    /// A part that nobody here knows.
    Other,
}

impl Role {
    /// The word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "System",
            Self::User => "User",
            Self::Assistant => "Assistant",
            Self::ToolCall => "ToolCall",
            Self::ToolResult => "ToolResult",
            Self::ToolDefinition => "ToolDefinition",
            Self::Attachment => "Attachment",
            Self::Metadata => "Metadata",
            Self::Other => "Other",
        }
    }

    /// Whether the model wrote it: it came from the provider, unless the agent forged it.
    pub fn is_of_model(self) -> bool {
        match self {
            Self::Assistant | Self::ToolCall => true,
            Self::System
            | Self::User
            | Self::ToolResult
            | Self::ToolDefinition
            | Self::Attachment
            | Self::Metadata
            | Self::Other => false,
        }
    }
}
