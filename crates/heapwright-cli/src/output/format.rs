//! The formats that subcommands offer, where they are not those of a report ([`super::Format`]).

/// What everything can be reported as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Plain {
    /// For people
    #[default]
    Text,
    /// Everything, as one JSON object
    Json,
}

/// What can be reported as a page, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WithPage {
    /// For people
    #[default]
    Text,
    /// Everything, as one JSON object
    Json,
    /// A page with pictures, complete in itself, for a browser
    Html,
}

/// What running processes can be reported as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WithMetrics {
    /// For people
    #[default]
    Text,
    /// Everything, as one JSON object
    Json,
    /// Metrics, in Prometheus's text format
    Prometheus,
}
