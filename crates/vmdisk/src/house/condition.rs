//! The condition of a house rule: an expression of minijinja over fields and facts.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use minijinja::{Environment, ErrorKind, Expression, UndefinedBehavior, Value};
use vmdisk_facts::Missing;
use vmdisk_fields::{Phrase, phrase, quoted};
use vmdisk_model::{Disk, DiskField, Domain, DomainField, FieldPath};
use vmdisk_source::Span;

use super::names::{
    Computed, FactRow, OF_GUEST, OF_HOST, OF_IMAGE, fields, map, of_field, of_json, word,
};
use crate::rules::{Context, Report};

/// The longest condition, in bytes.
const MAX_BYTES: usize = 4096;

/// The most steps of one evaluation.
const STEPS: u64 = 10_000;

/// A mistake in a house rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{title}")]
#[non_exhaustive]
pub struct ConditionMistake {
    /// The mistake.
    pub title: String,
    /// The remedy.
    pub help: Option<String>,
    /// The place in the condition.
    pub span: Option<Span>,
}

impl ConditionMistake {
    pub(super) fn new(title: impl Into<String>, help: impl Into<String>) -> Self {
        ConditionMistake {
            title: title.into(),
            help: Some(help.into()),
            span: None,
        }
    }
}

/// A compiled condition.
pub(super) struct Condition {
    expression: Expression<'static, 'static>,
    /// The names in it, each once, in the order of the text.
    names: Vec<Name>,
}

/// A name in a condition.
#[derive(Clone, Copy)]
enum Name {
    /// A field of a disk.
    Field(DiskField),
    /// A field of the image of a disk.
    Image(&'static Computed<Disk>),
    /// A fact of the host about a disk.
    Fact(&'static FactRow),
    /// A field of the guest.
    Guest(&'static Computed<Domain>),
}

/// The language of conditions: no filter, no function, and three tests of text.
fn environment<'source>() -> Environment<'source> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(STEPS));
    environment.add_test("startingwith", |text: &str, part: &str| {
        text.starts_with(part)
    });
    environment.add_test("endingwith", |text: &str, part: &str| text.ends_with(part));
    environment.add_test("containing", |text: &str, part: &str| text.contains(part));
    environment
}

/// The conditions of compiled rules, which are kept until the process ends.
static COMPILED: LazyLock<Environment<'static>> = LazyLock::new(environment);

impl Condition {
    pub(super) fn compile(text: &str) -> Result<Self, ConditionMistake> {
        if text.len() > MAX_BYTES {
            let title = format!("the condition has {} bytes", text.len());
            return Err(ConditionMistake::new(
                title,
                format!("write at most {MAX_BYTES}"),
            ));
        }
        let refused = |error: minijinja::Error| ConditionMistake {
            title: error
                .detail()
                .map_or_else(|| error.kind().to_string(), str::to_owned),
            help: None,
            span: error.range().map(|range| Span::new(range.start, range.end)),
        };
        let environment = environment();
        let written = environment.compile_expression(text).map_err(refused)?;
        let mut names = Vec::new();
        for name in written.undeclared_variables(true) {
            let at = text.find(&name).unwrap_or_default();
            let span = Span::new(at, (at + name.len()).min(text.len()));
            let found = find(&name).map_err(|mistake| ConditionMistake {
                span: Some(span),
                ..mistake
            })?;
            names.push((at, found));
        }
        names.sort_by_key(|(at, _)| *at);
        let mut seen = BTreeSet::new();
        let names = names.into_iter().map(|(_, name): (usize, Name)| name);
        let names: Vec<Name> = names.filter(|name| seen.insert(name.key())).collect();
        if names.is_empty() {
            return Err(ConditionMistake::new(
                "the condition names no field",
                "name one, such as `disk.format`",
            ));
        }
        try_out(&written, &names).map_err(refused)?;
        let kept = COMPILED.compile_expression(text.to_owned().leak());
        let expression = kept.map_err(refused)?;
        Ok(Condition { expression, names })
    }

    /// Reports each disk, or the guest, for which it is true.
    pub(super) fn check(
        &self,
        context: &Context<'_>,
        report: &mut Report<'_>,
        message: &str,
        help: Option<&str>,
    ) {
        let is_of_guest = |name: &Name| matches!(name, Name::Guest(_));
        if self.names.iter().all(is_of_guest) {
            let title = Phrase::from(message.to_owned());
            return self.check_at(context, None, report, title, help);
        }
        for (nth, disk) in context.disks() {
            let title = phrase!(
                "{disk_name}: {message}",
                disk_name = quoted(disk.name().to_owned()),
                message = message.to_owned(),
            );
            self.check_at(context, Some((nth, disk)), report, title, help);
        }
    }

    fn check_at(
        &self,
        context: &Context<'_>,
        disk: Option<(usize, &Disk)>,
        report: &mut Report<'_>,
        title: Phrase,
        help: Option<&str>,
    ) {
        let place = |name: &Name| name.at(disk.map_or(0, |(nth, _)| nth));
        let of_disk = |name: &&Name| matches!(name, Name::Field(_) | Name::Image(_));
        let of_guest = |name: &&Name| disk.is_none() && matches!(name, Name::Guest(_));
        let mut names = self.names.iter();
        let first = names.find(|name| of_disk(name) || of_guest(name));
        let whole = disk.map_or(FieldPath::Domain(DomainField::Domain), |(nth, _)| {
            FieldPath::Disk(nth, DiskField::Disk)
        });
        let at = first.map_or(whole, place);
        let mut missing: Option<Missing> = None;
        let mut values = Vec::new();
        for name in &self.names {
            let value = name.value(context, disk).unwrap_or_else(|lacking| {
                missing.get_or_insert(lacking);
                Value::UNDEFINED
            });
            values.push((*name, value));
        }
        match evaluate(&self.expression, values.into_iter()) {
            Ok(value) if !value.is_undefined() => {
                if value.is_true() {
                    let finding = report.finding(at, title);
                    if let Some(help) = help {
                        finding.help(help.to_owned());
                    }
                }
            }
            Err(error) if error.kind() != ErrorKind::UndefinedError => {
                let why = error.to_string();
                report.not_checked(at, Missing::new("the condition of the rule", why));
            }
            _ => {
                let what = || "a fact that the condition names".to_owned();
                let unknown = || context.missing(what, Missing::NOT_COLLECTED);
                report.not_checked(at, missing.unwrap_or_else(unknown));
            }
        }
    }
}

/// Evaluates a condition with several values, which shows names of tests, filters and functions that do not exist.
fn try_out(expression: &Expression<'_, '_>, names: &[Name]) -> Result<(), minijinja::Error> {
    for value in [Value::from(()), true.into(), 1.into(), "x".into()] {
        let members = |name: &Name| match name {
            Name::Fact(row) => map(row
                .members
                .iter()
                .map(|it| ((*it).to_owned(), value.clone()))),
            _ => value.clone(),
        };
        let tried = evaluate(expression, names.iter().map(|name| (*name, members(name))));
        if let Err(error) = tried
            && matches!(
                error.kind(),
                ErrorKind::UnknownFilter
                    | ErrorKind::UnknownFunction
                    | ErrorKind::UnknownTest
                    | ErrorKind::UnknownMethod
                    | ErrorKind::OutOfFuel
            )
        {
            return Err(error);
        }
    }
    Ok(())
}

fn evaluate(
    expression: &Expression<'_, '_>,
    values: impl Iterator<Item = (Name, Value)>,
) -> Result<Value, minijinja::Error> {
    let (mut disk, mut guest) = (Vec::new(), Vec::new());
    for (name, value) in values {
        match name {
            Name::Guest(_) => guest.push((name.word(), value)),
            _ => disk.push((name.word(), value)),
        }
    }
    let objects = [("disk", disk), ("guest", guest)];
    expression.eval(map(
        objects.map(|(name, members)| (name.to_owned(), map(members)))
    ))
}

impl Name {
    /// The object and the field.
    fn key(self) -> (bool, String) {
        (matches!(self, Name::Guest(_)), self.word())
    }

    fn word(self) -> String {
        match self {
            Name::Field(field) => word(field).unwrap_or_default(),
            Name::Image(row) => row.name.to_owned(),
            Name::Fact(row) => row.name.to_owned(),
            Name::Guest(row) => row.name.to_owned(),
        }
    }

    fn at(self, disk: usize) -> FieldPath {
        match self {
            Name::Field(field) => FieldPath::Disk(disk, field),
            Name::Image(row) => (row.at)(disk),
            Name::Fact(_) => FieldPath::Disk(disk, DiskField::Source),
            Name::Guest(row) => (row.at)(disk),
        }
    }

    /// The value for a disk, and for its guest.
    fn value(self, context: &Context<'_>, disk: Option<(usize, &Disk)>) -> Result<Value, Missing> {
        let (nth, disk) = match (self, disk) {
            (Name::Guest(row), _) => return Ok((row.value)(context.domain)),
            (_, Some(disk)) => disk,
            (_, None) => return Ok(Value::from(())),
        };
        let at = self.at(nth);
        if context.open_fields.is_some_and(|open| open.contains(&at)) {
            return Err(
                context.missing(|| "the value of a variable".to_owned(), Missing::OPEN_VALUE)
            );
        }
        match self {
            Name::Field(_) => Ok(of_field(context.domain.value(at))),
            Name::Image(row) => Ok((row.value)(disk)),
            Name::Fact(row) => row.value(context, disk),
            Name::Guest(row) => Ok((row.value)(context.domain)),
        }
    }
}

impl FactRow {
    /// The fact about a disk. A disk without a path on the host, and a fact that is absent, have no member.
    fn value(&self, context: &Context<'_>, disk: &Disk) -> Result<Value, Missing> {
        let path = disk.backend.image().and_then(|image| image.host_path());
        let Some(path) = path else {
            return Ok(self.absent());
        };
        let host = context.host(|| format!("{} of {path}", self.name))?;
        match (self.of)(host, path)? {
            serde_json::Value::Null => Ok(self.absent()),
            fact => Ok(of_json(fact)),
        }
    }

    fn absent(&self) -> Value {
        let none = |member: &&'static str| ((*member).to_owned(), Value::from(()));
        map(self.members.iter().map(none))
    }
}

/// The meaning of a name in a condition.
fn find(name: &str) -> Result<Name, ConditionMistake> {
    let mut words = name.split('.');
    let (object, field, member) = (words.next(), words.next(), words.next());
    match (object, field) {
        (Some("disk"), Some(field)) => of_disk(field, member),
        (Some("guest"), Some(field)) => {
            let row = OF_GUEST.iter().find(|row| row.name == field);
            let known = OF_GUEST.iter().map(|row| row.name);
            row.map(Name::Guest)
                .ok_or_else(|| unknown("guest", field, known))
        }
        (Some(object @ ("disk" | "guest")), None) => Err(ConditionMistake::new(
            format!("`{object}` has no value of its own"),
            format!("name a field, such as `{object}.name`"),
        )),
        _ => Err(ConditionMistake::new(
            format!("there is no `{name}`"),
            "a text is in quotes, and names begin with `disk.` or `guest.`",
        )),
    }
}

fn of_disk(field: &str, member: Option<&str>) -> Result<Name, ConditionMistake> {
    if let Some((_, known)) = fields().find(|(name, _)| name == field) {
        return Ok(Name::Field(known));
    }
    if let Some(row) = OF_IMAGE.iter().find(|row| row.name == field) {
        return Ok(Name::Image(row));
    }
    let Some(row) = OF_HOST.iter().find(|row| row.name == field) else {
        let names: Vec<String> = fields().map(|(name, _)| name).collect();
        let further = OF_IMAGE.iter().map(|row| row.name);
        let further = further.chain(OF_HOST.iter().map(|row| row.name));
        return Err(unknown(
            "disk",
            field,
            names.iter().map(String::as_str).chain(further),
        ));
    };
    match member {
        Some(member) if row.members.contains(&member) => Ok(Name::Fact(row)),
        Some(member) => {
            let object = format!("disk.{field}");
            Err(unknown(&object, member, row.members.iter().copied()))
        }
        None => Err(ConditionMistake::new(
            format!("`disk.{field}` has no value of its own"),
            format!("name a member, such as `disk.{field}.{}`", row.members[0]),
        )),
    }
}

/// The mistake of a name that an object does not have.
fn unknown<'a>(
    object: &str,
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> ConditionMistake {
    let help = match vmdisk_source::nearest(name, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("it has {}", known.collect::<Vec<_>>().join(", ")),
    };
    ConditionMistake::new(format!("`{object}` has no `{name}`"), help)
}
