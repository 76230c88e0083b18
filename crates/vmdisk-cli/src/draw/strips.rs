//! Rows with a name, a text and a strip of marks over a common axis.

use maud::{Markup, html};

use super::{Picture, WIDTH};
use crate::sanitize::line;

/// The sides of the strips, and the height of a strip and of a row with its words.
const LEFT: f64 = 12.0;
const RIGHT: f64 = WIDTH as f64 - 12.0;
const STRIP: usize = 26;
const ROW: usize = STRIP + 22;
const TOP: usize = 30;

/// The most letters of a name.
const MAX_NAME: usize = 34;

/// The values from left to right.
pub(crate) struct Axis {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) is_logarithmic: bool,
    /// Values with their words.
    pub(crate) ticks: Vec<(f64, String)>,
    /// The words below the ticks.
    pub(crate) words: String,
    /// The value of no difference, or of all that was asked.
    pub(crate) reference: Option<f64>,
}

impl Axis {
    /// A logarithmic axis around positive values, with round numbers as ticks.
    pub(crate) fn logarithmic(
        values: impl Iterator<Item = f64>,
        words: &str,
        format: &dyn Fn(f64) -> String,
    ) -> Self {
        let (low, high) = range(values.filter(|value| *value > 0.0 && value.is_finite()));
        let (low, high) = (low / 1.1, high * 1.1);
        let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let span = (high / low).log10();
        let steps: &[f64] = match span {
            ..0.7 => &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0],
            ..1.6 => &[1.0, 2.0, 5.0],
            ..2.6 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let numbers = decades.flat_map(|it| steps.iter().map(move |step| step * 10_f64.powi(it)));
        let numbers: Vec<f64> = numbers.filter(|it| (low..=high).contains(it)).collect();
        let every = numbers.len().div_ceil(6).max(1);
        let ticks = numbers.into_iter().step_by(every);
        Axis {
            low,
            high,
            is_logarithmic: true,
            ticks: ticks.map(|tick| (tick, format(tick))).collect(),
            words: words.to_owned(),
            reference: None,
        }
    }

    /// The place of a value.
    pub(crate) fn x(&self, value: f64) -> f64 {
        let scale = |value: f64| match self.is_logarithmic {
            true => value.max(f64::MIN_POSITIVE).ln(),
            false => value,
        };
        let (low, high) = (scale(self.low), scale(self.high));
        let share = (scale(value) - low) / (high - low).max(f64::MIN_POSITIVE);
        LEFT + (RIGHT - LEFT) * share.clamp(0.0, 1.0)
    }
}

/// The smallest and the largest of some values.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let all = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if all.0.is_finite() { all } else { (0.5, 2.0) }
}

/// A mark in a strip; heights are shares of it, from below.
pub(crate) enum Mark {
    /// An interval with its middle.
    Interval { low: f64, middle: f64, high: f64 },
    /// A bar from the left side of the axis, or from another value, of some height.
    Bar { from: f64, to: f64, height: f64 },
    /// A point.
    Point { at: f64, height: f64 },
    /// A point that does not count.
    Cross { at: f64, height: f64 },
    /// A line over the whole height, with words.
    Line { at: f64, words: String },
    /// A line from one side to the other.
    Level { height: f64 },
}

/// One row.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) text: String,
    /// The class of its marks, which has a colour.
    pub(crate) class: &'static str,
    pub(crate) marks: Vec<Mark>,
}

/// The rows of a picture.
pub(crate) struct Strips {
    pub(crate) title: String,
    pub(crate) axis: Axis,
    pub(crate) rows: Vec<Row>,
}

impl Strips {
    /// Draws the rows.
    pub(crate) fn draw(&self) -> Picture {
        let bottom = TOP + ROW * self.rows.len();
        let axis = &self.axis;
        let content = html! {
            text class="title" x=(LEFT) y="19" { (line(&self.title)) }
            @for (value, words) in &axis.ticks {
                @let x = number(axis.x(*value));
                line class="grid" x1=(x) x2=(x) y1=(TOP) y2=(bottom) {}
                text class="tick" x=(x) y=(bottom + 14) text-anchor=(anchor(axis.x(*value))) { (line(words)) }
            }
            @for (nth, row) in self.rows.iter().enumerate() { (self.row(row, TOP + ROW * nth)) }
            text class="word" x=(LEFT) y=(bottom + 30) { (line(&axis.words)) }
        };
        Picture {
            title: self.title.clone(),
            height: bottom + 44,
            content,
        }
    }

    fn row(&self, row: &Row, top: usize) -> Markup {
        let name: String = match row.name.chars().count() > MAX_NAME {
            true => row.name.chars().take(MAX_NAME - 1).chain(['…']).collect(),
            false => row.name.clone(),
        };
        let strip = (top + 20) as f64;
        html! {
            g class=(row.class) {
                text class="name" x=(LEFT) y=(top + 14) { (line(&name)) title { (line(&row.name)) } }
                text class="value" x=(RIGHT) y=(top + 14) text-anchor="end" { (line(&row.text)) }
                // Words stay free of the line.
                @if let Some(reference) = self.axis.reference {
                    @let x = number(self.axis.x(reference));
                    line class="reference" x1=(x) x2=(x) y1=(number(strip - 1.0)) y2=(number(strip + STRIP as f64)) {}
                }
                @for mark in &row.marks { (self.mark(mark, strip)) }
            }
        }
    }

    fn mark(&self, mark: &Mark, top: f64) -> Markup {
        let axis = &self.axis;
        let height = STRIP as f64 - 4.0;
        let x = |value: f64| number(axis.x(value));
        let y = |share: f64| number(top + height * (1.0 - share.clamp(0.0, 1.0)));
        let middle = top + height / 2.0;
        html! {
            @match mark {
                Mark::Interval { low, middle: at, high } => {
                    path class="interval" d=(format!(
                        "M{0} {1}V{2}M{0} {3}H{4}M{4} {1}V{2}", x(*low), number(middle - 5.0), number(middle + 5.0), number(middle), x(*high)
                    )) {}
                    circle class="point" cx=(x(*at)) cy=(number(middle)) r="4.5" {}
                }
                Mark::Bar { from, to, height: share } => {
                    @let (left, right) = (axis.x(*from), axis.x(*to));
                    rect class="bar" x=(number(left)) y=(y(*share)) width=(number((right - left).max(0.5))) height=(number(height * share.clamp(0.0, 1.0))) {}
                }
                Mark::Point { at, height: share } => { circle class="point" cx=(x(*at)) cy=(y(*share)) r="3" {} }
                Mark::Cross { at, height: share } => {
                    path class="cross" transform=(format!("translate({} {})", x(*at), y(*share))) d="M-3 -3L3 3M-3 3L3 -3" {}
                }
                Mark::Line { at, words } => {
                    line class="mark" x1=(x(*at)) x2=(x(*at)) y1=(y(1.0)) y2=(y(0.0)) {}
                    text class="note" x=(number(axis.x(*at) + 3.0)) y=(number(top + 9.0)) { (words) }
                }
                Mark::Level { height: share } => { line class="level" x1=(LEFT) x2=(RIGHT) y1=(y(*share)) y2=(y(*share)) {} }
            }
        }
    }
}

/// Words at the sides stay inside.
fn anchor(x: f64) -> &'static str {
    match x {
        ..40.0 => "start",
        x if x > RIGHT - 28.0 => "end",
        _ => "middle",
    }
}

fn number(value: f64) -> String {
    format!("{value:.1}")
}
