package thirdparty_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDockerfileHasTheLicences runs what the Dockerfile runs to build, in other folders: the
// image gets the licence, and those of what is linked.
func TestDockerfileHasTheLicences(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(file), "\\\n", "")
	out := t.TempDir()
	build := regexp.MustCompile(`(?m)^RUN (CGO_ENABLED=0 go .*)$`).FindStringSubmatch(text)
	if build == nil {
		t.Fatal("the Dockerfile builds nothing")
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", strings.ReplaceAll(build[1], "/out", out))
	cmd.Dir = root
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	copied := regexp.MustCompile(`(?m)^COPY --from=build (/.*) /licenses/$`).FindStringSubmatch(text)
	if copied == nil {
		t.Fatal("the Dockerfile copies no licences")
	}
	var licences []byte
	for name := range strings.FieldsSeq(copied[1]) {
		path := strings.NewReplacer("/src/", root+"/", "/out/", out+"/").Replace(name)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		licences = append(licences, content...)
	}
	for _, want := range []string{"Copyright 2026 The Belay Authors", "Go, LICENSE", "\nmodernc.org/sqlite@", "\ngithub.com/redis/go-redis/v9@"} {
		if !bytes.Contains(licences, []byte(want)) {
			t.Errorf("%q is missing", want)
		}
	}
}
