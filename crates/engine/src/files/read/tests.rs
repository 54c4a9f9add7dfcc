//! Every engine through the same checks.
