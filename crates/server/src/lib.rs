//! HTTPS on 10250, health and metrics.
