package check_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// withoutDigest are the images that are named by version alone: with a digest they would
// be pinned, and without somebody who renews it they would lack every fix.
var withoutDigest = []string{
	"golang:1.26-bookworm", "golang:1.26", "busybox:1.37-musl",
	"redis:7.4-alpine", "alpine/socat:1.8.0.3", "mysql:8.4", "rabbitmq:4-management",
	"prom/prometheus:v3.5.0", "grafana/grafana:12.1.0",
}

var digest = regexp.MustCompile(`^[a-z0-9./_-]+:[A-Za-z0-9._-]+@sha256:[0-9a-f]{64}$`)

func checkImage(t *testing.T, file, image string) {
	t.Helper()
	if !slices.Contains(withoutDigest, image) && !digest.MatchString(image) {
		t.Errorf("%s: the image %q is neither NAME:VERSION@sha256:DIGEST nor one of those without a digest", file, image)
	}
}

func TestImagesArePinned(t *testing.T) {
	for name, s := range load(t).Services {
		if s.Image != "" {
			checkImage(t, "docker-compose.yml: "+name, s.Image)
		}
	}
	froms := regexp.MustCompile(`(?m)^FROM (?:--\S+ )*(\S+)`).FindAllStringSubmatch(read(t, "Dockerfile"), -1)
	if len(froms) < 2 {
		t.Fatalf("the Dockerfile has %d stages", len(froms))
	}
	for _, from := range froms {
		checkImage(t, "Dockerfile", from[1])
	}
}

// workflow is what the tests read of a workflow.
type workflow struct {
	Permissions map[string]string
	Jobs        map[string]struct {
		Container yaml.Node
		Timeout   int `yaml:"timeout-minutes"`
		Steps     []struct {
			Uses string
			With map[string]any
		}
	}
}

// Nobody but the commit decides what runs in CI, and what runs there gets no credentials.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	pinned := regexp.MustCompile(`^[\w./-]+@[0-9a-f]{40}$`)
	for _, path := range files {
		file, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		text := read(t, file)
		var w workflow
		if err := yaml.Unmarshal([]byte(text), &w); err != nil {
			t.Fatal(file, err)
		}
		if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
			t.Errorf("%s: permissions %v", file, w.Permissions)
		}
		for name, job := range w.Jobs {
			if job.Timeout == 0 {
				t.Errorf("%s: job %s may take hours", file, name)
			}
			image := job.Container.Value
			for i, n := range job.Container.Content {
				if n.Value == "image" {
					image = job.Container.Content[i+1].Value
				}
			}
			if image != "" {
				checkImage(t, file, image)
			}
			for _, step := range job.Steps {
				if step.Uses != "" && !pinned.MatchString(step.Uses) {
					t.Errorf("%s: job %s uses %s, which is no commit", file, name, step.Uses)
				}
				if strings.HasPrefix(step.Uses, "actions/checkout@") && step.With["persist-credentials"] != false {
					t.Errorf("%s: job %s leaves the credentials of its checkout to all that it runs", file, name)
				}
			}
		}
		for _, line := range regexp.MustCompile(`(?m)^.*uses: .*$`).FindAllString(text, -1) {
			if !regexp.MustCompile(` # v\d+\.\d+\.\d+$`).MatchString(line) {
				t.Errorf("%s: %q does not name the version", file, strings.TrimSpace(line))
			}
		}
	}
}
