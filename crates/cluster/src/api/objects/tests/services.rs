//! Services for environment variables.

use oarsman_core::pod::SOURCE_ANNOTATION;

use super::*;

fn service(namespace: &str, name: &str) -> Value {
    let ports = json!([{ "port": 80 }]);
    let labels = json!({ "much": "text" });
    let metadata = json!({ "name": name, "namespace": namespace, "labels": labels });
    json!({ "metadata": metadata, "spec": { "clusterIP": "10.0.0.1", "ports": ports } })
}

fn names(found: Option<Vec<k8s_openapi::api::core::v1::Service>>) -> Option<Vec<String>> {
    let name = |service: k8s_openapi::api::core::v1::Service| service.metadata.name.unwrap();
    found.map(|services| services.into_iter().map(name).collect())
}

#[tokio::test(start_paused = true)]
async fn a_pod_gets_the_services_of_its_namespace_and_of_the_api_server() {
    let server = FakeApiServer::default();
    for (namespace, name) in [("ns", "mine"), ("default", "kubernetes"), ("other", "theirs")] {
        server.put("/api/v1/services", service(namespace, name));
    }
    let objects = objects(&server);
    let found = async || names(objects.lookup(&pod("a", &json!([]))).await.unwrap().services);
    assert_eq!(found().await.unwrap(), ["kubernetes", "mine"]);
    server.put("/api/v1/services", service("ns", "next"));
    run_ready_tasks().await;
    assert_eq!(found().await.unwrap(), ["kubernetes", "mine", "next"]);
    server.remove("/api/v1/services", "mine");
    run_ready_tasks().await;
    assert_eq!(found().await.unwrap(), ["kubernetes", "next"]);
    let lists = server.log().into_iter().filter(|asked| asked == "list services").count();
    assert_eq!(lists, 1);
}

#[tokio::test(start_paused = true)]
async fn only_static_pods_start_before_the_first_list_of_services() {
    let server = FakeApiServer::default();
    server.fail_with(500);
    let objects = objects(&server);
    let mut fixed = pod("a", &json!([]));
    let source = (SOURCE_ANNOTATION.to_owned(), "file".to_owned());
    fixed.metadata.annotations = Some([source].into());
    let began = tokio::time::Instant::now();
    assert_eq!(names(objects.lookup(&fixed).await.unwrap().services), None);
    assert_eq!(began.elapsed(), Duration::ZERO);
    objects.lookup(&pod("b", &json!([]))).await.unwrap_err();
    server.recover();
    seconds(60).await;
    assert_eq!(names(objects.lookup(&fixed).await.unwrap().services), Some(Vec::new()));
    objects.lookup(&pod("b", &json!([]))).await.unwrap();
}
