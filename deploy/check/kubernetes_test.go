package check_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	strict "sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/api/krusty"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// kinds are the types that the manifests may have.
func newOf(kind string) any {
	switch kind {
	case "Deployment":
		return new(apps.Deployment)
	case "PersistentVolumeClaim":
		return new(core.PersistentVolumeClaim)
	case "Service":
		return new(core.Service)
	case "ConfigMap":
		return new(core.ConfigMap)
	case "NetworkPolicy":
		return new(networking.NetworkPolicy)
	case "ServiceMonitor":
		return new(monitoring.ServiceMonitor)
	case "PrometheusRule":
		return new(monitoring.PrometheusRule)
	case "Kustomization":
		return new(kustomize.Kustomization)
	}
	return nil
}

// decode reads a manifest into the type that its kind names. A field that the type lacks
// is an error, as is one in another case: Kubernetes would ignore it.
func decode(manifest []byte) (any, error) {
	var head struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal(manifest, &head); err != nil {
		return nil, err
	}
	object := newOf(head.Kind)
	if object == nil {
		return nil, fmt.Errorf("kind %q", head.Kind)
	}
	text, err := yaml.YAMLToJSONStrict(manifest)
	if err != nil {
		return nil, err
	}
	problems, err := strict.UnmarshalStrict(text, object)
	return object, errors.Join(append(problems, err)...)
}

// build returns the manifests of a folder as kubectl apply -k sends them, by kind.
func build(t *testing.T, folder string) map[string]any {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, folder))
	if err != nil {
		t.Fatal(err)
	}
	objects := make(map[string]any)
	for _, r := range built.Resources() {
		manifest, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		object, err := decode(manifest)
		if err != nil {
			t.Fatalf("%s: %v", r.CurId(), err)
		}
		if r.GetNamespace() != "belay" || objects[r.GetKind()] != nil {
			t.Errorf("%s twice, or in the namespace %q", r.GetKind(), r.GetNamespace())
		}
		objects[r.GetKind()] = object
	}
	return objects
}

// Every manifest has fields that Kubernetes knows, and a misspelt one is noticed.
func TestManifests(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "deploy/kubernetes/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(filepath.Join(root, "deploy/kubernetes/*/*.yaml"))
	if err != nil || len(files) < 5 || len(more) < 3 {
		t.Fatalf("%d and %d manifests, %v", len(files), len(more), err)
	}
	for _, file := range append(files, more...) {
		if filepath.Base(file) == "guard-monitor.yaml" {
			continue // settings, which guard-monitor's own tests read
		}
		path, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decode([]byte(read(t, path))); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, wrong := range [][2]string{
		{"readOnlyRootFilesystem:", "readOnlyRootFileSystem:"}, {"livenessProbe:", "livenesProbe:"}, {"replicas: 1", "replicas: one"}, {"kind: Deployment", "kind: Deploymnt"},
	} {
		text := read(t, "deploy/kubernetes/deployment.yaml")
		if broken := strings.Replace(text, wrong[0], wrong[1], 1); broken == text {
			t.Errorf("no %s", wrong[0])
		} else if _, err := decode([]byte(broken)); err == nil {
			t.Errorf("%s passed", wrong[1])
		}
	}
}

func TestKubernetes(t *testing.T) {
	objects := build(t, "deploy/kubernetes")
	deployment, settings := objects["Deployment"].(*apps.Deployment), objects["ConfigMap"].(*core.ConfigMap)
	if *deployment.Spec.Replicas != 1 || deployment.Spec.Strategy.Type != apps.RecreateDeploymentStrategyType {
		t.Errorf("%d replicas, strategy %s: two would share the volume and the queue", *deployment.Spec.Replicas, deployment.Spec.Strategy.Type)
	}
	pod := deployment.Spec.Template.Spec
	c := pod.Containers[0]
	if !strings.Contains(c.Image, "/guard-monitor:v") {
		t.Errorf("image %s", c.Image)
	}
	checkPrivileges(t, &pod)
	for what, p := range map[string]*core.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		if p.HTTPGet.Path != "/livez" || p.HTTPGet.Port.StrVal != c.Ports[0].Name {
			t.Errorf("the %s probe asks %s of the port %s: only /livez is well without a broker, or with a full disk, and lets senders of events in", what, p.HTTPGet.Path, &p.HTTPGet.Port)
		}
	}
	if c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
		t.Errorf("resources %v", c.Resources)
	}
	checkMounts(t, &pod, settings.Data["guard-monitor.yaml"], settings.Name, objects["PersistentVolumeClaim"].(*core.PersistentVolumeClaim).Name)

	labels := deployment.Spec.Template.Labels
	service := objects["Service"].(*core.Service)
	for what, selector := range map[string]map[string]string{
		"the Deployment": deployment.Spec.Selector.MatchLabels, "the Service": service.Spec.Selector,
		"the NetworkPolicy": objects["NetworkPolicy"].(*networking.NetworkPolicy).Spec.PodSelector.MatchLabels,
	} {
		for name, value := range selector {
			if labels[name] != value {
				t.Errorf("%s selects %s=%s, the pod has %v", what, name, value, labels)
			}
		}
		if len(selector) == 0 {
			t.Errorf("%s selects all", what)
		}
	}
	if policy := objects["NetworkPolicy"].(*networking.NetworkPolicy).Spec; len(policy.PolicyTypes) != 2 || len(policy.Ingress[0].From) == 0 ||
		policy.Ingress[0].Ports[0].Port.StrVal != c.Ports[0].Name {
		t.Errorf("network policy %+v", policy)
	}
	if port := service.Spec.Ports[0]; port.TargetPort.StrVal != c.Ports[0].Name || service.Spec.Type == core.ServiceTypeLoadBalancer {
		t.Errorf("service %+v", service.Spec)
	}
}

// What the settings can name is reachable, and services that post events can be let in.
func TestNetworkPolicy(t *testing.T) {
	policy := build(t, "deploy/kubernetes")["NetworkPolicy"].(*networking.NetworkPolicy).Spec
	if !slices.ContainsFunc(policy.Ingress[0].From, func(p networking.NetworkPolicyPeer) bool {
		return p.NamespaceSelector != nil && p.NamespaceSelector.MatchLabels["posts-to"] == "guard-monitor"
	}) {
		t.Error("no service may post events")
	}
	open := make(map[int]bool)
	for _, rule := range policy.Egress {
		for _, p := range rule.Ports {
			open[p.Port.IntValue()] = len(rule.To) == 0 // a name server on the node is in no namespace
		}
	}
	for port, what := range map[int]string{53: "names", 5671: "RabbitMQ", 5672: "RabbitMQ", 6379: "Redis", 26379: "Sentinel", 443: "receivers", 9093: "Alertmanager"} {
		if !open[port] {
			t.Errorf("port %d, of %s, is closed", port, what)
		}
	}
}

// checkPrivileges expects what the pod security standard "restricted" demands, and more.
func checkPrivileges(t *testing.T, pod *core.PodSpec) {
	t.Helper()
	p, c := pod.SecurityContext, pod.Containers[0].SecurityContext
	if !*p.RunAsNonRoot || *p.RunAsUser != 65532 || *p.FSGroup != 65532 || p.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
		t.Errorf("security context of the pod: %+v", p)
	}
	if *c.AllowPrivilegeEscalation || !*c.ReadOnlyRootFilesystem || !slices.Equal(c.Capabilities.Drop, []core.Capability{"ALL"}) {
		t.Errorf("security context of the container: %+v", c)
	}
	if pod.HostNetwork || pod.HostPID || pod.HostIPC || *pod.AutomountServiceAccountToken {
		t.Error("the pod has more of its host, or of the cluster, than it needs")
	}
}

// checkMounts expects that what the settings name is mounted from what is there.
func checkMounts(t *testing.T, pod *core.PodSpec, settings, configMap, claim string) {
	t.Helper()
	at := make(map[string]core.VolumeSource)
	for _, m := range pod.Containers[0].VolumeMounts {
		i := slices.IndexFunc(pod.Volumes, func(v core.Volume) bool { return v.Name == m.Name })
		if i < 0 {
			t.Fatalf("no volume %s", m.Name)
		}
		at[m.MountPath] = pod.Volumes[i].VolumeSource
	}
	if v := at["/data"].PersistentVolumeClaim; v == nil || v.ClaimName != claim || !strings.Contains(settings, "\ndb: /data/") {
		t.Errorf("the store is not on the volume %s: %+v", claim, v)
	}
	if v := at["/etc/guard-monitor"].ConfigMap; v == nil || v.Name != configMap || !slices.Contains(pod.Containers[0].Args, "/etc/guard-monitor/guard-monitor.yaml") {
		t.Errorf("the settings %s are not mounted: %+v", configMap, v)
	}
	if v := at["/run/secrets/guard-monitor"].Secret; v == nil || v.SecretName != "guard-monitor" {
		t.Errorf("secrets: %+v", v)
	}
}

func TestPrometheusOperator(t *testing.T) {
	objects := build(t, "deploy/kubernetes/prometheus-operator")
	var plain, wrapped any
	if err := yaml.Unmarshal([]byte(read(t, "deploy/prometheus/belay.rules.yaml")), &plain); err != nil {
		t.Fatal(err)
	}
	spec, err := json.Marshal(objects["PrometheusRule"].(*monitoring.PrometheusRule).Spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(spec, &wrapped); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(plain, wrapped) {
		t.Error("prometheus-rule.yaml and belay.rules.yaml have other rules")
	}

	all := build(t, "deploy/kubernetes")
	service, monitor := all["Service"].(*core.Service), objects["ServiceMonitor"].(*monitoring.ServiceMonitor).Spec
	for name, value := range monitor.Selector.MatchLabels {
		if service.Labels[name] != value {
			t.Errorf("it selects %s=%s, the service has %v", name, value, service.Labels)
		}
	}
	if monitor.Endpoints[0].Port != service.Spec.Ports[0].Name {
		t.Errorf("it scrapes the port %s", monitor.Endpoints[0].Port)
	}
}
