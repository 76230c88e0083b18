//! The steps between which names are used, where tests let others change them.

#[cfg(test)]
type Act = Box<dyn FnMut(&str)>;

#[cfg(test)]
thread_local! {
    /// The function that the test of this thread calls at each step.
    pub(crate) static STEP: std::cell::RefCell<Option<Act>> =
        const { std::cell::RefCell::new(None) };
}

/// Marks a step; without a test nothing happens.
#[cfg_attr(
    not(test),
    expect(unused_variables, reason = "only tests act at a step")
)]
pub(super) fn reached(step: &str) {
    // Taken out, since what it does may come here again.
    #[cfg(test)]
    if let Some(mut act) = STEP.take() {
        act(step);
        STEP.set(Some(act));
    }
}
