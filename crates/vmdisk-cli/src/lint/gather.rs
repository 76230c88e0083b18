//! Combines the results of all inputs, in their order, as soon as they are ready.

use crate::input::complaints::complaints;
use crate::input::inputs::{Inputs, Origin};
use crate::lint::mode::Mode;
use crate::lint::results::Done;
use crate::lint::totals::Totals;
use crate::output::Stream;
use crate::render::document::{Document, Items, Renderer};
use crate::report::input::InputReport;
use crate::stop::Stop;

/// Combines the results of inputs.
pub(crate) struct Gathering<'a, 'o> {
    inputs: &'a Inputs,
    mode: Mode,
    renderers: &'a [Renderer<'a>],
    /// The first report, if it is printed as soon as there is something of it.
    stream: Option<Stream<'o>>,
    /// A report for each renderer.
    documents: Vec<Document>,
    totals: Totals<'a>,
    /// True for each search that found an input.
    holds_ours: Vec<bool>,
}

impl<'a, 'o> Gathering<'a, 'o> {
    /// Begins to combine results; the first report is printed to `stream`, if there is one.
    pub(crate) fn new(
        inputs: &'a Inputs,
        mode: Mode,
        renderers: &'a [Renderer<'a>],
        mut stream: Option<Stream<'o>>,
        totals: Totals<'a>,
    ) -> Result<Self, Stop> {
        if let Some(stream) = &mut stream {
            stream.write(|out| renderers[0].begin(out))?;
        }
        Ok(Gathering {
            inputs,
            mode,
            renderers,
            stream,
            documents: renderers.iter().map(Document::new).collect(),
            totals,
            holds_ours: vec![false; inputs.searches.len()],
        })
    }

    /// Adds the result of the input with a number.
    pub(crate) fn take(&mut self, number: usize, done: Done) -> Result<(), Stop> {
        if let Origin::Found(search) = self.inputs.files[number].origin {
            self.holds_ours[search] = true;
        }
        if done.is_named_elsewhere {
            return Ok(());
        }
        let Done {
            checked,
            named,
            items,
            is_named_elsewhere: _,
            diff,
            fixed,
            is_guest: _,
            needs: _, // Compared when all inputs are done.
        } = done;
        if matches!(self.mode, Mode::Diff(_)) && !diff.is_empty() {
            self.totals.add_change();
            let diff = vec![diff.into_bytes()];
            match &mut self.stream {
                Some(stream) => stream.write(|out| out.write_all(&diff[0]))?,
                None => self.documents[0].push(&diff)?,
            }
        }
        if fixed.is_some() {
            self.totals.fixed = fixed;
        }
        for (checked, items) in std::iter::once(&checked).chain(&named).zip(&items) {
            self.add(checked, items)?;
        }
        Ok(())
    }

    /// Adds an input with its items for each report.
    fn add(&mut self, checked: &InputReport, items: &[Items]) -> Result<(), Stop> {
        self.totals.add(checked)?;
        let documents = self.documents.iter_mut().zip(self.renderers).zip(items);
        for (number, ((document, renderer), items)) in documents.enumerate() {
            match &mut self.stream {
                Some(stream) if number == 0 => {
                    let mut items = items.iter();
                    stream.write(|out| items.try_for_each(|item| out.write_all(item)))?;
                }
                Some(_) | None => document.add(renderer, checked, items)?,
            }
        }
        Ok(())
    }

    /// Adds facts files that could not be read, and messages about searches. Returns the reports that are not printed
    /// yet, and the numbers.
    pub(crate) fn finish(
        mut self,
        failed: Vec<InputReport>,
    ) -> Result<(Vec<Document>, Totals<'a>), Stop> {
        let searches = self.inputs.searches.iter().zip(&self.holds_ours);
        let complaints = searches.flat_map(|(search, holds_ours)| complaints(search, *holds_ours));
        let late: Vec<InputReport> = complaints.chain(failed).collect();
        for checked in late {
            let items: Vec<Items> = self
                .renderers
                .iter()
                .map(|one| one.items(&checked))
                .collect();
            self.add(&checked, &items)?;
        }
        if let Some(mut stream) = self.stream {
            stream.write(|out| self.renderers[0].end(out))?;
            stream.end()?;
            self.documents.remove(0);
        }
        Ok((self.documents, self.totals))
    }
}
