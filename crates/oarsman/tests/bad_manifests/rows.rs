//! Manifests that cannot be run, and the expected message after the file name.

/// Stands for a valid pod in a row, whose container and spec may go on.
pub(crate) const GOOD: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: main
    image: web:1
";

/// Stands for the beginning of a pod in a row, up to its spec.
pub(crate) const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n";

/// Nine levels of ten aliases each: unfolded, a thousand million words.
const BOMB: &str = "\
a0: &a0 lol
a1: &a1 [*a0,*a0,*a0,*a0,*a0,*a0,*a0,*a0,*a0,*a0]
a2: &a2 [*a1,*a1,*a1,*a1,*a1,*a1,*a1,*a1,*a1,*a1]
a3: &a3 [*a2,*a2,*a2,*a2,*a2,*a2,*a2,*a2,*a2,*a2]
a4: &a4 [*a3,*a3,*a3,*a3,*a3,*a3,*a3,*a3,*a3,*a3]
a5: &a5 [*a4,*a4,*a4,*a4,*a4,*a4,*a4,*a4,*a4,*a4]
a6: &a6 [*a5,*a5,*a5,*a5,*a5,*a5,*a5,*a5,*a5,*a5]
a7: &a7 [*a6,*a6,*a6,*a6,*a6,*a6,*a6,*a6,*a6,*a6]
a8: &a8 [*a7,*a7,*a7,*a7,*a7,*a7,*a7,*a7,*a7,*a7]
a9: &a9 [*a8,*a8,*a8,*a8,*a8,*a8,*a8,*a8,*a8,*a8]
";

/// The name of the row, the manifest, and the message.
pub(crate) const ROWS: &[(&str, &str, &str)] = &[
    (
        "tab",
        "apiVersion: v1\nkind: Pod\nmetadata:\n\tname: web\n",
        ": it is not YAML: tabs disallowed within this context (block indentation) at line 4, column 2; correct it, or finish writing it",
    ),
    (
        "unclosed-quote",
        "{POD}  containers:\n  - name: \"main\n    image: web:1\n",
        ": it is not YAML: invalid indentation in multiline quoted scalar at line 7, column 5; correct it, or finish writing it",
    ),
    (
        "unclosed-bracket",
        "{POD}  containers: [{name: main, image: web:1}\n",
        ": it is not YAML: unclosed bracket '[' at line 5, column 15; correct it, or finish writing it",
    ),
    (
        "indentation",
        "{POD}containers:\n- name: main\n  image: web:1\n",
        ": the pod is not valid: spec.containers: Required value: a pod has at least one container; correct these fields (no pod has these fields, which may be indented wrongly: containers)",
    ),
    (
        "bad-indent",
        "{POD}  containers:\n  - name: main\n     image: web:1\n",
        ": it is not YAML: mapping values are not allowed in this context at line 7, column 11; correct it, or finish writing it",
    ),
    ("empty", "", ": it is empty or has nothing but comments; write a Pod into it, or remove it"),
    (
        "comments",
        "# nothing yet\n",
        ": it is empty or has nothing but comments; write a Pod into it, or remove it",
    ),
    (
        "json",
        "{\"apiVersion\": \"v1\", \"kind\": \"Pod\",}",
        ": it is not JSON: trailing comma at line 1 column 36; correct it, or finish writing it",
    ),
    (
        "scalar",
        "hello\n",
        ": it is not a map of fields: a manifest begins with apiVersion: v1, kind: Pod, metadata and spec",
    ),
    (
        "list",
        "- a\n- b\n",
        ": it is not a map of fields: a manifest begins with apiVersion: v1, kind: Pod, metadata and spec",
    ),
    (
        "no-kind",
        "apiVersion: v1\nmetadata: {name: web}\n",
        ": kind: Required value: write kind: Pod (or ConfigMap, Secret)",
    ),
    (
        "no-api-version",
        "kind: Pod\nmetadata: {name: web}\n",
        ": apiVersion: Required value: write apiVersion: v1",
    ),
    (
        "wrong-api-version",
        "apiVersion: apps/v1\nkind: Pod\nmetadata: {name: web}\n",
        ": apiVersion: a Pod has v1, not \"apps/v1\": write apiVersion: v1",
    ),
    (
        "deployment",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n",
        ": kind: a Deployment makes pods by way of a cluster, and only Pods are run here: copy its spec.template into a Pod (apiVersion: v1, kind: Pod, with a metadata.name)",
    ),
    (
        "service",
        "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n",
        ": kind: \"Service\" is nothing that is run here, only Pods with their ConfigMaps and Secrets are: take it out",
    ),
    (
        "lowercase-kind",
        "apiVersion: v1\nkind: pod\nmetadata: {name: web}\n",
        ": kind: it is spelled Pod, not \"pod\": write kind: Pod",
    ),
    (
        "compose",
        "services:\n  web:\n    image: web:1\n",
        ": kind: Required value: write kind: Pod (or ConfigMap, Secret)",
    ),
    (
        "no-name",
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: main\n    image: web:1\n",
        ": metadata.name: Required value: give it a name, as in metadata: {name: web}",
    ),
    (
        "bad-name",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: Web_1}\nspec:\n  containers:\n  - name: main\n    image: web:1\n",
        ": the pod is not valid: metadata.name: Invalid value: \"Web_1\": use lower-case letters, digits and '-', in parts with dots between, as in example.com; correct these fields",
    ),
    (
        "no-spec",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n",
        ": the pod is not valid: spec.containers: Required value: a pod has at least one container; correct these fields",
    ),
    (
        "no-containers",
        "{POD}  restartPolicy: Never\n",
        ": the pod is not valid: spec.containers: Required value: a pod has at least one container; correct these fields",
    ),
    (
        "container-no-name",
        "{POD}  containers:\n  - image: web:1\n",
        ": the pod is not valid: spec.containers[0].name: Required value; correct these fields",
    ),
    (
        "two-containers",
        "{GOOD}  - name: main\n    image: web:2\n",
        ": the pod is not valid: spec.containers[1].name: Duplicate value: \"main\"; correct these fields",
    ),
    (
        "no-image",
        "{POD}  containers:\n  - name: main\n",
        ": the pod is not valid: spec.containers[0].image: Required value; correct these fields",
    ),
    (
        "bad-image",
        "{POD}  containers:\n  - name: main\n    image: 'web 1'\n",
        ": the image of container \"main\": couldn't parse image name \"web 1\": invalid reference format: write it as in registry.example/team/web:1.2",
    ),
    (
        "upper-image",
        "{POD}  containers:\n  - name: main\n    image: Web:1\n",
        ": the image of container \"main\": couldn't parse image name \"Web:1\": invalid reference format: repository name must be lowercase: write it as in registry.example/team/web:1.2",
    ),
    (
        "bad-quantity",
        "{GOOD}    resources: {limits: {memory: lots}}\n",
        ": spec.containers[0].resources.limits[memory]: Invalid value: \"lots\": \"lots\" is not a quantity: write a number and a suffix, such as 250m, 1.5 or 64Mi",
    ),
    (
        "limit-below",
        "{GOOD}    resources: {requests: {cpu: 2}, limits: {cpu: 1}}\n",
        ": the pod is not valid: spec.containers[0].resources.requests: Invalid value: \"2\": must not be more than the limit of cpu, 1; correct these fields",
    ),
    (
        "restart-policy",
        "{GOOD}  restartPolicy: Sometimes\n",
        ": the pod is not valid: spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: Always, Never, OnFailure; correct these fields",
    ),
    (
        "bad-port",
        "{GOOD}    ports: [{containerPort: 70000}]\n",
        ": the pod is not valid: spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be from 1 to 65535; correct these fields",
    ),
    (
        "port-type",
        "{GOOD}    ports: '80'\n",
        ": spec.containers[0].ports: Invalid value: it is the text \"80\", and must be a list: begin each item with a dash",
    ),
    (
        "port-type2",
        "{GOOD}    ports: [{containerPort: http}]\n",
        ": spec.containers[0].ports[0].containerPort: Invalid value: it is the text \"http\", and must be a whole number",
    ),
    (
        "same-host-port",
        "{GOOD}    ports: [{containerPort: 80, hostPort: 80}, {containerPort: 81, hostPort: 80}]\n",
        ": the pod is not valid: spec.containers[0].ports[1].hostPort: Duplicate value: \"TCP//80\"; correct these fields",
    ),
    (
        "same-port-name",
        "{GOOD}    ports: [{containerPort: 80, name: a}, {containerPort: 81, name: a}]\n",
        ": the pod is not valid: spec.containers[0].ports[1].name: Duplicate value: \"a\"; correct these fields",
    ),
    (
        "unknown-volume",
        "{GOOD}    volumeMounts: [{name: data, mountPath: /data}]\n",
        ": the pod is not valid: spec.containers[0].volumeMounts[0].name: Not found: \"data\": the pod has no such volume, or a bad one; correct these fields",
    ),
    (
        "two-volume-kinds",
        "{GOOD}  volumes: [{name: data, emptyDir: {}, hostPath: {path: /a}}]\n",
        ": the pod is not valid: spec.volumes[0].hostPath: Forbidden: a volume has one source only; correct these fields",
    ),
    (
        "no-mount-path",
        "{GOOD}    volumeMounts: [{name: data}]\n  volumes: [{name: data, emptyDir: {}}]\n",
        ": the pod is not valid: spec.containers[0].volumeMounts[0].mountPath: Required value; correct these fields",
    ),
    (
        "host-path",
        "{GOOD}  volumes: [{name: data, hostPath: {}}]\n",
        ": the pod is not valid: spec.volumes[0].hostPath.path: Required value; correct these fields",
    ),
    (
        "missing-config-map",
        "{GOOD}    envFrom: [{configMapRef: {name: settings}}]\n",
        ": the pod refers to ConfigMap \"settings\", which is not given: add it to the file, or mark the reference optional",
    ),
    (
        "missing-secret",
        "{GOOD}  volumes: [{name: v, secret: {secretName: login}}]\n",
        ": the pod refers to Secret \"login\", which is not given: add it to the file, or mark the reference optional",
    ),
    (
        "missing-key",
        "{GOOD}    env: [{name: A, valueFrom: {secretKeyRef: {name: login, key: pass}}}]\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: hunter2}\n",
        ", document 1: the pod refers to key \"pass\" of Secret \"login\", which has password: correct the key, or mark the reference optional",
    ),
    (
        "base64",
        "{GOOD}---\napiVersion: v1\nkind: Secret\nmetadata: {name: login}\ndata: {password: hunter2}\n",
        ", document 2: data[password]: Invalid value: must be base64: write the output of `base64 -w0`, or text in stringData",
    ),
    (
        "config-number",
        "{GOOD}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {port: 80}\n",
        ", document 2: data[port]: Invalid value: 80: must be text: put it in quotes",
    ),
    (
        "config-key",
        "{GOOD}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {'a b': x}\n",
        ", document 2: the ConfigMap is not valid: data[a b]: Invalid value: \"a b\": use letters, digits, '-', '_' and '.', as in key.name; correct these fields",
    ),
    (
        "two-pods",
        "{GOOD}---\n{POD}  containers:\n  - name: main\n    image: web:2\n",
        ", document 2: Pod \"web\" of namespace \"default\" is in two-pods.yaml, document 1, too: give one of the two another name",
    ),
    (
        "env-no-name",
        "{GOOD}    env: [{value: x}]\n",
        ": the pod is not valid: spec.containers[0].env[0].name: Required value; correct these fields",
    ),
    (
        "env-both",
        "{GOOD}    env: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]\n",
        ": the pod is not valid: spec.containers[0].env[0].valueFrom: Invalid value: \"\": a variable has a value or a source, not both; correct these fields",
    ),
    (
        "env-number",
        "{GOOD}    env: [{name: A, value: 80}]\n",
        ": spec.containers[0].env[0].value: Invalid value: it is the number 80, and must be text: put it in quotes",
    ),
    (
        "init-probe",
        "{GOOD}  initContainers:\n  - name: first\n    image: web:1\n    livenessProbe: {exec: {command: [a]}}\n",
        ": the pod is not valid: spec.initContainers[0].livenessProbe: Forbidden: an init container has this only with restartPolicy Always; correct these fields",
    ),
    (
        "account",
        "{GOOD}  serviceAccountName: web\n",
        ": the pod refers to a service account, which only a cluster has: take spec.serviceAccountName out of the pod",
    ),
    (
        "claim",
        "{GOOD}  volumes: [{name: data, persistentVolumeClaim: {claimName: disk}}]\n",
        ": the pod refers to a volume claim, which only a cluster has: take the persistentVolumeClaim out of the pod",
    ),
    (
        "bomb",
        BOMB,
        ": it is not YAML: alias replay limit exceeded: total_replayed_events=50001 > 50000 at line 1, column 9 (defined at line 5, column 9) (used at line 6, column 18); correct it, or finish writing it",
    ),
    (
        "probe-two",
        "{GOOD}    livenessProbe: {exec: {command: [a]}, tcpSocket: {port: 80}}\n",
        ": the pod is not valid: spec.containers[0].livenessProbe.tcpSocket: Forbidden: there may be one handler only; correct these fields",
    ),
    (
        "pull-policy",
        "{GOOD}    imagePullPolicy: Sometimes\n",
        ": the pod is not valid: spec.containers[0].imagePullPolicy: Unsupported value: \"Sometimes\": supported values: Always, IfNotPresent, Never; correct these fields",
    ),
    (
        "command-text",
        "{GOOD}    command: echo hello\n",
        ": spec.containers[0].command: Invalid value: it is the text \"echo hello\", and must be a list: begin each item with a dash",
    ),
];
