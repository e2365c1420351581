//! Pod networking: a CNI client, and a bridge of our own for machines without one.
