//! What every CRI runtime does, as one suite of cases for every Runtime, fake or real.
