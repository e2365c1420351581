//! Ids on the fake disk, over restarts of the agent.

use oarsman_world::World;
use oarsman_world::faults::FaultPlan;

use super::*;

fn manager(world: &World, life: u32) -> UserNamespaceManager {
    UserNamespaceManager::new(world.seams(life).pod_files, UserNamespaceSettings::new(65536, 3))
}

fn uid(name: &str) -> PodUid {
    PodUid::from(name)
}

async fn with_directories(world: &World, pods: &[&str]) {
    for name in pods {
        world.seams(1).pod_files.make_directories(&crate::testing::pod(name, &[])).await.unwrap();
    }
}

async fn first(manager: &UserNamespaceManager, pod: &str) -> u32 {
    manager.get_or_create(&uid(pod)).await.unwrap().first
}

#[tokio::test(start_paused = true)]
async fn a_pod_keeps_its_ids_over_a_restart_and_gives_them_back_at_its_end() {
    let world = World::new(1, FaultPlan::quiet());
    with_directories(&world, &["a", "b", "c", "d"]).await;
    let before = manager(&world, 1);
    assert_eq!(first(&before, "uid-a").await, 65536);
    assert_eq!(first(&before, "uid-b").await, 131_072);
    assert_eq!(first(&before, "uid-a").await, 65536);
    let after = manager(&world, 2);
    assert_eq!(first(&after, "uid-c").await, 196_608, "what is on disk is not given again");
    assert_eq!(first(&after, "uid-b").await, 131_072);
    let full = after.get_or_create(&uid("uid-d")).await.unwrap_err().to_string();
    assert!(full.contains("spec.hostUsers is false, and no ids are left"), "{full}");
    after.release(&uid("uid-b")).await.unwrap();
    after.release(&uid("uid-b")).await.unwrap();
    assert_eq!(first(&after, "uid-d").await, 131_072);
    let files = world.seams(2).pod_files.user_namespaces().await.unwrap();
    assert_eq!(files.keys().map(PodUid::as_str).collect::<Vec<_>>(), ["uid-a", "uid-c", "uid-d"]);
}

#[tokio::test(start_paused = true)]
async fn while_the_ids_of_one_pod_are_not_known_no_other_gets_new_ones() {
    let world = World::new(1, FaultPlan::quiet());
    with_directories(&world, &["a", "b", "bad"]).await;
    assert_eq!(first(&manager(&world, 1), "uid-a").await, 65536);
    let files = world.seams(1).pod_files;
    files.write_user_namespace(&uid("uid-bad"), "{").await.unwrap();
    // What the agent before this one calls has no answer any more.
    let files = world.seams(2).pod_files;
    let settings = UserNamespaceSettings::new(65536, 3);
    let manager = UserNamespaceManager::new(Arc::clone(&files), settings);
    let said = manager.get_or_create(&uid("uid-b")).await.unwrap_err().to_string();
    assert!(
        said.contains("the file userns of pod uid-bad: it is not what a kubelet writes"),
        "{said}"
    );
    assert_eq!(first(&manager, "uid-a").await, 65536, "a pod that has some goes on");
    files.remove(&uid("uid-bad")).await.unwrap();
    assert_eq!(first(&manager, "uid-b").await, 131_072);
}
