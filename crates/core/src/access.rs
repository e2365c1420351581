//! Authorization attributes of requests to the node's server, as a SubjectAccessReview has them.

#[cfg(test)]
mod tests;

/// The user name of an unauthenticated request.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group of unauthenticated users.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group of all authenticated users.
pub const AUTHENTICATED: &str = "system:authenticated";

/// What has to be allowed for a request: the verb on one of these parts of the node, the finest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// The verb; empty for a method that stands for none.
    pub verb: &'static str,
    /// Parts of the node's object.
    pub subresources: Vec<&'static str>,
}

/// Paths by what they are part of; all others are `proxy`.
const PARTS: [(&str, &[&str]); 10] = [
    ("/stats", &["stats"]),
    ("/metrics", &["metrics"]),
    ("/logs", &["log"]),
    ("/checkpoint", &["checkpoint"]),
    ("/statusz", &["statusz"]),
    ("/flagz", &["configz"]),
    ("/pods", &["pods", "proxy"]),
    ("/runningpods", &["pods", "proxy"]),
    ("/healthz", &["healthz", "proxy"]),
    ("/configz", &["configz", "proxy"]),
];

/// Paths by which a client acts in a container or connects to it. With WebSocket that begins with a GET, and who may read does not
/// yet have the right to execute: the verb is `create` whatever the method.
const ACTIONS: [&str; 4] = ["/exec", "/attach", "/portForward", "/run"];

/// What has to be allowed for a request.
pub fn attributes(method: &str, path: &str) -> Attributes {
    let below = |root: &str| {
        path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let verb = match method {
        _ if ACTIONS.iter().any(|root| below(root)) => "create",
        "POST" => "create",
        "GET" => "get",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    };
    let part = PARTS.iter().find(|(root, _)| below(root));
    let subresources = part.map_or(&["proxy"][..], |(_, parts)| *parts).to_vec();
    Attributes { verb, subresources }
}

impl Attributes {
    /// The body of the response to a forbidden request.
    pub fn forbidden(&self, user: &str) -> String {
        format!(
            "Forbidden (user={user}, verb={}, resource=nodes, subresource(s)=[{}])",
            self.verb,
            self.subresources.join(" ")
        )
    }
}
