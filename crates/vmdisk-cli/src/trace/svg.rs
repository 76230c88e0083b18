//! The paths as a picture: a box for each step, with the result of each operation.

use maud::{Markup, html};
use vmdisk::trace::{DiskTrace, RequestEffect, TraceStep};

use super::text::{name, words};
use super::traced::Traced;
use crate::draw::{self, WIDTH};
use crate::sanitize::line;

/// The place on the left for lines to steps that are not the next one.
const GUTTER: usize = 24;

/// The width of a box.
const BOX: usize = WIDTH - GUTTER - 4;

/// The space between boxes.
const GAP: usize = 16;

/// The most findings that a box lists.
const MAX_FINDINGS: usize = 4;

/// The most letters in a line of properties.
const MAX_LETTERS: usize = 60;

/// The paths as one picture.
pub(super) fn write(traced: &Traced) -> String {
    let guest = traced.domain.as_deref().unwrap_or(&traced.file);
    let pictures: Vec<draw::Picture> = traced.guest.disks.iter().map(picture).collect();
    draw::file(&format!("I/O paths of {guest}"), &pictures, true)
}

/// The picture of one disk.
pub(crate) fn picture(disk: &DiskTrace) -> draw::Picture {
    let picture = Picture::new(disk);
    draw::Picture {
        title: format!("I/O path of {}", name(disk)),
        height: picture.height,
        content: picture.content(),
    }
}

/// A disk with the places of its boxes.
struct Picture<'a> {
    disk: &'a DiskTrace,
    /// The top of each box.
    tops: Vec<usize>,
    height: usize,
}

impl<'a> Picture<'a> {
    fn new(disk: &'a DiskTrace) -> Self {
        let mut top = 30;
        let mut tops = Vec::with_capacity(disk.path.steps.len());
        for (number, step) in disk.path.steps.iter().enumerate() {
            tops.push(top);
            top += box_height(step, findings(disk, number).len()) + GAP;
        }
        let height = top + 44;
        Picture { disk, tops, height }
    }

    fn bottom(&self, number: usize) -> usize {
        let step = &self.disk.path.steps[number];
        self.tops[number] + box_height(step, findings(self.disk, number).len())
    }

    fn content(&self) -> Markup {
        let steps = &self.disk.path.steps;
        let loss = &self.disk.path.loss;
        let end = self.height - 40;
        html! {
            text class="title" x=(GUTTER) y="20" { (line(&name(self.disk))) }
            @for (number, step) in steps.iter().enumerate() {
                @for below in &step.below { (self.connection(number, *below)) }
            }
            @for (number, step) in steps.iter().enumerate() { (self.step(number, step)) }
            text class="word" x=(GUTTER) y=(end + 12) { "after a crash of the host:" }
            text class=(format!("word loss-{}", loss.flushed as usize)) x=(GUTTER) y=(end + 28) {
                "flushed data " (loss.flushed.name()) ", unflushed data " (loss.unflushed.name())
            }
        }
    }

    /// A line from a box to one below it: straight to the next one, else along the left side.
    fn connection(&self, from: usize, to: usize) -> Markup {
        let (Some(top), bottom) = (self.tops.get(to), self.bottom(from)) else {
            return html! {};
        };
        let middle = GUTTER + 20;
        let path = if to == from + 1 {
            format!("M{middle} {bottom}V{top}")
        } else {
            let (start, end) = (bottom.saturating_sub(12), top + 12);
            let side = 4 + 4 * (from % 4);
            format!("M{GUTTER} {start}H{side}V{end}H{GUTTER}")
        };
        html! { path class="line" d=(path) {} }
    }

    fn step(&self, number: usize, step: &TraceStep) -> Markup {
        let found = findings(self.disk, number);
        let height = box_height(step, found.len());
        // A picture inside a picture is cut at its sides, whatever the width of its letters is.
        html! {
            svg x=(GUTTER) y=(self.tops[number]) width=(BOX) height=(height) {
                rect class="box" x="0.5" y="0.5" width=(BOX - 1) height=(height - 1) rx="5" {}
                text class="layer" x="8" y="15" { (number + 1) ". " (step.layer.name()) }
                text class="name" x="8" y="31" { (line(&step.name)) title { (line(&step.name)) } }
                @for (nth, text) in properties(step).iter().enumerate() {
                    text class="word" x="8" y=(46 + 14 * nth) { (line(text)) }
                }
                @for (nth, effect) in step.effects.iter().enumerate() {
                    (chip(8 + nth * 96, chips_top(step), effect))
                }
                @for (nth, text) in found.iter().enumerate() {
                    text class="finding" x="8" y=(chips_top(step) + 50 + 15 * nth) { (line(text)) }
                }
            }
        }
    }
}

/// The findings of a step, as many as its box lists.
fn findings(disk: &DiskTrace, number: usize) -> Vec<String> {
    let own = disk.findings.iter().filter(|(step, _)| *step == number);
    let mut texts: Vec<String> = own
        .map(|(_, finding)| format!("{}: {}", finding.severity.as_str(), finding.rule.name))
        .collect();
    if texts.len() > MAX_FINDINGS {
        let more = texts.len() - MAX_FINDINGS + 1;
        texts.truncate(MAX_FINDINGS - 1);
        texts.push(format!("and {more} more findings"));
    }
    texts
}

fn chips_top(step: &TraceStep) -> usize {
    38 + 14 * properties(step).len()
}

fn box_height(step: &TraceStep, findings: usize) -> usize {
    chips_top(step) + 40 + 15 * findings
}

/// The properties of a step, in lines that fit into its box.
fn properties(step: &TraceStep) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for property in &step.properties {
        let text = format!("{}: {}", property.name, property.value);
        match lines.last_mut() {
            Some(last) if last.chars().count() + text.chars().count() < MAX_LETTERS => {
                last.push_str(" · ");
                last.push_str(&text);
            }
            Some(_) | None => lines.push(text),
        }
    }
    lines
}

/// The result of one operation.
fn chip(x: usize, y: usize, effect: &RequestEffect) -> Markup {
    let outcome = effect.outcome.name();
    let statement = &effect.statement;
    html! {
        g class=(outcome) {
            rect class="chip" x=(x) y=(y) width="90" height="33" rx="4" {}
            text class="operation" x=(x + 6) y=(y + 13) { (effect.operation.name()) }
            text class="outcome" x=(x + 6) y=(y + 27) { (outcome) }
            title { (line(&statement.text)) " [" (line(&words(&statement.basis))) "]" }
        }
    }
}
