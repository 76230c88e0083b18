//! From intent and facts to a disk: specs, choices with reasons, creation steps.
