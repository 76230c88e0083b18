//! Engines, and what their placeholders stand for.

/// An engine, the most telling first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    /// ERB, EJS or text of Ruby.
    Erb,
    /// PHP.
    Php,
    /// Handlebars and Mustache.
    Mustache,
    /// Go's `text/template`, with Helm and Packer.
    Go,
    /// Jinja and its relatives.
    Jinja,
    /// HCL's `templatefile`, or text of Ruby.
    Terraform,
    /// Lines of Mako, Cheetah and Velocity.
    Lines,
    /// `@NAME@`.
    Configure,
    /// `$NAME` and `${NAME}`.
    Variables,
    /// `%s`, `%(name)s` and `{name}`.
    Format,
    /// A word such as `__NAME__`.
    Word,
}

impl Engine {
    /// True if statements of another engine continue or end those of this one: Mustache shares its braces with Go.
    pub(super) fn has_end_of(self, other: Self) -> bool {
        let braces = [Engine::Go, Engine::Mustache];
        self == other || braces.contains(&self) && braces.contains(&other)
    }

    /// The name, after "this looks like".
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Erb => "an ERB template",
            Engine::Php => "a PHP template",
            Engine::Mustache => "a Mustache template",
            Engine::Go => "a Go template",
            Engine::Jinja => "a Jinja template",
            Engine::Terraform => "a Terraform template",
            Engine::Lines => "a Mako or Cheetah template",
            Engine::Configure => "a template with `@NAME@`",
            Engine::Variables => "a template with `${NAME}`",
            Engine::Format => "a format string",
            Engine::Word => "a template",
        }
    }
}

/// The syntax of the text that a template renders to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// XML.
    Xml,
    /// YAML or JSON.
    Yaml,
    /// A command line, a script, a makefile or a unit: text with variables of its own.
    Script,
}

/// The part of the text that a placeholder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlaceholderKind {
    /// A value or text, or a part of one.
    Value,
    /// A value without quotes in XML: the placeholder writes them.
    Unquoted,
    /// Attributes of an element.
    Attributes,
    /// The name of an element or attribute, or a part of it.
    Name,
}
