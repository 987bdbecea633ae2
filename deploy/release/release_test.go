package main

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/belaygo/belay/deploy/release/thirdparty"
)

const (
	version = "v1.2.3"
	date    = "2026-11-23T12:00:00+01:00"
)

// released is a folder with this test's own binary under the names of releases.
func released(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	check(t, err)
	binary, err := os.ReadFile(self)
	check(t, err)
	dir := t.TempDir()
	for _, name := range []string{"guard-monitor_linux_amd64", "guard-monitor_linux_arm64", "guard-monitor_windows_amd64.exe"} {
		check(t, os.WriteFile(filepath.Join(dir, name), binary, 0o600))
	}
	check(t, run(version, date, dir))
	return dir
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	check(t, err)
	return content
}

func TestRelease(t *testing.T) {
	dir := released(t)
	t.Run("sums", func(t *testing.T) { checkSums(t, dir) })
	t.Run("bill of materials", func(t *testing.T) { checkBill(t, dir) })
	t.Run("licences", func(t *testing.T) { checkLicences(t, read(t, dir, thirdparty.File)) })
	t.Run("image", func(t *testing.T) { checkArchive(t, dir) })
}

// A folder that has something else in it is neither emptied nor released.
func TestReleaseDeletesNothing(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "thesis.txt"), []byte("mine"), 0o600))
	script := exec.Command("../../scripts/release", version, dir)
	script.Env = append(os.Environ(), "TARGETS=none/none")
	if out, err := script.CombinedOutput(); err == nil || !strings.Contains(string(out), "not empty") {
		t.Errorf("released into it: %v\n%s", err, out)
	}
	read(t, dir, "thesis.txt")
}

// A version that CHANGELOG does not date, or whose changes are not committed, gets no tag.
func TestTagsOfWhatIsReady(t *testing.T) {
	if out, err := exec.Command("git", "-C", "../..", "rev-parse").CombinedOutput(); err != nil {
		t.Skipf("it needs a clone: %s", out)
	}
	clone := filepath.Join(t.TempDir(), "clone")
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	git("clone", "-q", "--no-tags", "--sparse", "../..", clone) // the scripts alone
	git("-C", clone, "sparse-checkout", "set", "scripts")
	refuses := func(want string) {
		t.Helper()
		out, err := exec.Command(filepath.Join(clone, "scripts/release-tags"), "v99.0.0").CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("want a text with %q: %v\n%s", want, err, out)
		}
		if tags := git("-C", clone, "tag"); tags != "" {
			t.Errorf("tags: %s", tags)
		}
	}
	refuses("CHANGELOG.md has no line '## [99.0.0] - ")
	check(t, os.WriteFile(filepath.Join(clone, "CHANGELOG.md"), []byte("## [99.0.0] - 2026-12-01\n"), 0o600))
	refuses("commit your changes first")
	git("-C", clone, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-qam", "date")
	refuses("events.jsonl is missing")
}

// The sums are right, are of all files, and are the same another time.
func checkSums(t *testing.T, dir string) {
	t.Helper()
	have := read(t, dir, sums)
	if n := bytes.Count(have, []byte("\n")); n != 3+3+1+1 {
		t.Errorf("%d sums:\n%s", n, have)
	}
	if again := read(t, released(t), sums); !bytes.Equal(have, again) {
		t.Errorf("another time the sums are\n%s, not\n%s", again, have)
	}
	verify := exec.Command("sha256sum", "--strict", "-c", sums)
	verify.Dir = dir
	if out, err := verify.CombinedOutput(); err != nil {
		t.Errorf("sha256sum: %v\n%s", err, out)
	}
}

func checkBill(t *testing.T, dir string) {
	t.Helper()
	var bom cdx.BOM
	check(t, cdx.NewBOMDecoder(bytes.NewReader(read(t, dir, "guard-monitor_linux_amd64.cdx.json")), cdx.BOMFileFormatJSON).Decode(&bom))
	if main := bom.Metadata.Component; main.Version != version || main.Name != "guard-monitor_linux_amd64" || bom.Metadata.Timestamp != "2026-11-23T11:00:00Z" {
		t.Errorf("metadata %+v of %+v", bom.Metadata, main)
	}
	listed := make(map[string]string)
	for _, c := range *bom.Components {
		listed[c.Name] = c.PackageURL
	}
	for _, name := range []string{"std", "github.com/CycloneDX/cyclonedx-go", "github.com/google/go-containerregistry"} {
		if !strings.HasPrefix(listed[name], "pkg:golang/"+name+"@") || strings.HasSuffix(listed[name], "@") {
			t.Errorf("%s is listed as %q", name, listed[name])
		}
	}
}

// The text has the licence of Go, and of each module of the binary.
func checkLicences(t *testing.T, texts []byte) {
	t.Helper()
	self, err := os.Executable()
	check(t, err)
	info, err := buildinfo.ReadFile(self)
	check(t, err)
	for _, m := range info.Deps {
		if !bytes.Contains(texts, []byte("\n"+m.Path+"@"+m.Version+", ")) {
			t.Errorf("no licence of %s", m.Path)
		}
	}
	for _, want := range []string{"Go, LICENSE", "The Go Authors", "Apache License"} {
		if !bytes.Contains(texts, []byte(want)) {
			t.Errorf("%q is missing", want)
		}
	}
}

// The archive is a valid image for each architecture, with the binary and no root.
func checkArchive(t *testing.T, dir string) {
	t.Helper()
	unpacked := t.TempDir()
	checkEnd(t, read(t, dir, "guard-monitor_oci.tar"))
	archive := tar.NewReader(bytes.NewReader(read(t, dir, "guard-monitor_oci.tar")))
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		check(t, err)
		path := filepath.Join(unpacked, filepath.FromSlash(h.Name))
		check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		content, err := io.ReadAll(archive)
		check(t, err)
		check(t, os.WriteFile(path, content, 0o600))
	}
	outer, err := layout.ImageIndexFromPath(unpacked)
	check(t, err)
	check(t, validate.Index(outer))
	top, err := outer.IndexManifest()
	check(t, err)
	if len(top.Manifests) != 1 || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != version {
		t.Fatalf("index %+v", top.Manifests)
	}
	images, err := outer.ImageIndex(top.Manifests[0].Digest)
	check(t, err)
	list, err := images.IndexManifest()
	check(t, err)
	if len(list.Manifests) != 2 {
		t.Fatalf("%d images, want 2", len(list.Manifests))
	}
	for _, m := range list.Manifests {
		img, err := images.Image(m.Digest)
		check(t, err)
		checkImage(t, img, m.Platform.Architecture, read(t, dir, "guard-monitor_linux_"+m.Platform.Architecture))
	}
}

// checkEnd expects the two empty blocks at the end of an archive, without which tar
// fails; Go's reader does not miss them.
func checkEnd(t *testing.T, archive []byte) {
	t.Helper()
	const block = 512
	if len(archive)%block != 0 || !bytes.HasSuffix(archive, make([]byte, 2*block)) {
		t.Errorf("an archive of %d bytes has no end", len(archive))
	}
}

func checkImage(t *testing.T, img v1.Image, architecture string, binary []byte) {
	t.Helper()
	c, err := img.ConfigFile()
	check(t, err)
	if text, _ := json.Marshal(c.Config); c.Architecture != architecture || c.OS != "linux" || c.Config.User != "65532:65532" ||
		len(c.Config.Entrypoint) != 1 || c.Config.Entrypoint[0] != "/guard-monitor" {
		t.Errorf("image for %s: %s", c.Architecture, text)
	}
	layers, err := img.Layers()
	check(t, err)
	layer, err := layers[0].Uncompressed()
	check(t, err)
	defer layer.Close()
	packed, err := io.ReadAll(layer)
	check(t, err)
	checkEnd(t, packed)
	files := mutate.Extract(img)
	defer files.Close()
	found := make(map[string]bool)
	for r := tar.NewReader(files); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		check(t, err)
		name := strings.TrimSuffix(h.Name, "/")
		found[name] = true
		content, err := io.ReadAll(r)
		check(t, err)
		switch name {
		case "guard-monitor":
			if h.Mode != 0o755 || !bytes.Equal(content, binary) {
				t.Errorf("the binary has the mode %o and %d bytes", h.Mode, len(content))
			}
		case "data":
			if h.Uid != nobody || h.Mode != 0o700 {
				t.Errorf("/data is of %d, mode %o", h.Uid, h.Mode)
			}
		}
	}
	if len(found) != 5 || !found["guard-monitor"] || !found["data"] || !found["tmp"] || !found["licenses/"+thirdparty.File] {
		t.Errorf("files %v", found)
	}
}

func TestRefusesWhatIsNone(t *testing.T) {
	dir := t.TempDir()
	if err := run(version, date, dir); err == nil {
		t.Error("a folder without binaries passed")
	}
	check(t, os.WriteFile(filepath.Join(dir, "guard-monitor_linux_amd64"), []byte("none"), 0o600))
	for _, args := range [][2]string{{version, date}, {"", date}, {version, "today"}} {
		if err := run(args[0], args[1], dir); err == nil {
			t.Errorf("%v passed", args)
		}
	}
}
