//! Decides whether a request to stop pods is allowed, and if not, says how such pods are stopped instead.

use oarsman_core::ids::FullName;
use oarsman_core::pod::PodExt;
use oarsman_core::report::{NodeReport, PodReport};

use super::{PodName, StopRequest};

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StopRefusal {
    /// The request names no pod, or pods and all.
    InvalidRequest(String),
    /// There is no such pod.
    UnknownPod(String),
    /// The pod belongs to a kubelet, whose sources decide.
    NotStoppable(String),
}

/// The pods to be stopped; none when all are, and the agent with them.
pub(super) fn check_request(
    node: &NodeReport,
    request: &StopRequest,
) -> Result<Option<Vec<FullName>>, StopRefusal> {
    match (request.all, request.pods.as_slice()) {
        (true, []) if node.is_run_mode => Ok(None),
        (true, []) => Err(StopRefusal::NotStoppable(kubelet_stop_all_message(node))),
        (true, [_, ..]) => Err(StopRefusal::InvalidRequest(
            "ask for all pods or for some, not for both".to_owned(),
        )),
        (false, []) => Err(StopRefusal::InvalidRequest("name the pods to stop, or all".to_owned())),
        (false, names) => {
            names.iter().map(|name| check_pod(node, name)).collect::<Result<_, _>>().map(Some)
        }
    }
}

fn check_pod(node: &NodeReport, name: &PodName) -> Result<FullName, StopRefusal> {
    let wanted = FullName { namespace: name.namespace.clone(), name: name.name.clone() };
    match node.pods.iter().find(|pod| pod.pod.full_name() == wanted) {
        None => Err(StopRefusal::UnknownPod(format!(
            "there is no pod {}/{}",
            name.namespace, name.name
        ))),
        Some(_) if node.is_run_mode => Ok(wanted),
        Some(pod) => Err(StopRefusal::NotStoppable(kubelet_pod_message(pod))),
    }
}

fn kubelet_pod_message(pod: &PodReport) -> String {
    let name = pod.pod.full_name().name;
    match &pod.place {
        Some(url) if url.contains("://") => {
            format!("pod {name} comes from {url}: take it out there to stop it")
        }
        Some(file) => format!("pod {name} comes from {file}: remove that file to stop it"),
        None if pod.leaving => format!("pod {name} is being stopped already"),
        None => format!("pod {name} comes from the API server: delete it there to stop it"),
    }
}

fn kubelet_stop_all_message(node: &NodeReport) -> String {
    let mut places: Vec<&str> = node.pods.iter().filter_map(|pod| pod.place.as_deref()).collect();
    places.sort_unstable();
    places.dedup();
    let places =
        if places.is_empty() { String::new() } else { format!(" ({})", places.join(", ")) };
    format!("this agent is the node's kubelet: remove its pods' manifests to stop them{places}")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    fn node(is_run_mode: bool) -> NodeReport {
        let places =
            [("web-node", Some("/m/web.yaml")), ("url-node", Some("http://x/p")), ("api", None)];
        let pods = places.map(|(name, place)| {
            let mut pod = Pod::default();
            pod.metadata.name = Some(name.to_owned());
            pod.metadata.namespace = Some("default".to_owned());
            PodReport { pod, place: place.map(str::to_owned), ..PodReport::default() }
        });
        NodeReport { is_run_mode, pods: pods.into(), ..NodeReport::default() }
    }

    fn stop(name: &str) -> StopRequest {
        let (namespace, name) = ("default".to_owned(), name.to_owned());
        StopRequest { pods: vec![PodName { namespace, name }], all: false }
    }

    #[test]
    fn run_mode_stops_the_pods_it_has() {
        let all = StopRequest { all: true, ..StopRequest::default() };
        assert_eq!(check_request(&node(true), &all), Ok(None));
        let web = FullName { namespace: "default".to_owned(), name: "web-node".to_owned() };
        assert_eq!(check_request(&node(true), &stop("web-node")), Ok(Some(vec![web])));
        let unknown = StopRefusal::UnknownPod("there is no pod default/wob".to_owned());
        assert_eq!(check_request(&node(true), &stop("wob")), Err(unknown));
    }

    #[test]
    fn a_kubelet_says_how_its_pods_are_stopped() {
        let rows = [
            ("web-node", "pod web-node comes from /m/web.yaml: remove that file to stop it"),
            ("url-node", "pod url-node comes from http://x/p: take it out there to stop it"),
            ("api", "pod api comes from the API server: delete it there to stop it"),
        ];
        for (name, want) in rows {
            let want = Err(StopRefusal::NotStoppable(want.to_owned()));
            assert_eq!(check_request(&node(false), &stop(name)), want);
        }
        let all = StopRequest { all: true, ..StopRequest::default() };
        let Err(StopRefusal::NotStoppable(said)) = check_request(&node(false), &all) else {
            panic!()
        };
        assert!(said.ends_with("(/m/web.yaml, http://x/p)"), "{said}");
    }

    #[test]
    fn a_request_asks_for_something_and_for_one_thing_only() {
        let both = StopRequest { all: true, ..stop("web-node") };
        for senseless in [StopRequest::default(), both] {
            let judged = check_request(&node(true), &senseless);
            assert!(matches!(judged, Err(StopRefusal::InvalidRequest(_))), "{judged:?}");
        }
    }
}
