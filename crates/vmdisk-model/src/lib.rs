//! What a VM disk is: typed, without syntax, positions or IO.
