//! Image headers (qcow2, raw guesses, and friends) from bytes handed to it.
