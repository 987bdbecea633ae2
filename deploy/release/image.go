package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/belaygo/belay/deploy/release/thirdparty"
)

// nobody is the user of the image, as in the Dockerfile and in Kubernetes.
const nobody = 65532

// writeImage writes an OCI archive with an image for each binary for Linux: the binary,
// which needs nothing else, its licences, its data directory, and /tmp. The folder has those
// of others (THIRD_PARTY_LICENSES), and LICENSE where scripts/release has put it.
func writeImage(dir, version string, at time.Time) error {
	binaries, err := filepath.Glob(filepath.Join(dir, "guard-monitor_linux_*"))
	if err != nil {
		return err
	}
	all := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, binary := range binaries {
		_, architecture, _ := strings.Cut(filepath.Base(binary), "_linux_")
		if strings.Contains(architecture, ".") {
			continue // a bill of materials
		}
		img, err := image(binary, architecture, version, at)
		if err != nil {
			return err
		}
		all = mutate.AppendManifests(all, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: architecture},
		}})
	}
	named := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{Add: all, Descriptor: v1.Descriptor{
		Annotations: map[string]string{"org.opencontainers.image.ref.name": version},
	}})
	tmp, err := os.MkdirTemp("", "belay-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if _, err := layout.Write(tmp, named); err != nil {
		return err
	}
	archive, err := pack(os.DirFS(tmp), at)
	if err != nil {
		return err
	}
	return write(filepath.Join(dir, "guard-monitor_oci.tar"), archive)
}

func image(binary, architecture, version string, at time.Time) (v1.Image, error) {
	content, err := os.ReadFile(binary) //nolint:gosec // of the folder that is given
	if err != nil {
		return nil, err
	}
	texts, err := texts(filepath.Dir(binary))
	if err != nil {
		return nil, err
	}
	files, err := layer(content, texts, at)
	if err != nil {
		return nil, err
	}
	packed, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.Append(base, mutate.Addendum{Layer: packed, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: at}, CreatedBy: "make release"}})
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(img, config(img, architecture, version, at))
}

func config(img v1.Image, architecture, version string, at time.Time) *v1.ConfigFile {
	c, err := img.ConfigFile()
	if err != nil { // it is in memory
		panic(err)
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Created = "linux", architecture, v1.Time{Time: at}
	c.Config = v1.Config{
		User: "65532:65532", WorkingDir: "/data", Entrypoint: []string{"/guard-monitor"},
		Env:     []string{"BELAY_MONITOR_DB=/data/guard-monitor.db"},
		Volumes: map[string]struct{}{"/data": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title": "guard-monitor", "org.opencontainers.image.version": version,
			"org.opencontainers.image.source": "https://" + project,
		},
	}
	return c
}

// A text is a licence in the image.
type text struct {
	name    string
	content []byte
}

// texts returns the licences that are in the folder.
func texts(dir string) (found []text, err error) {
	for _, name := range []string{"LICENSE", thirdparty.File} {
		content, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // of the folder that is given
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, text{name, content})
	}
	return found, nil
}

// layer returns the files of the image.
func layer(binary []byte, texts []text, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeDir, Name: "data/", Mode: 0o700, Uid: nobody, Gid: nobody},
		{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777},
		{Typeflag: tar.TypeDir, Name: "licenses/", Mode: 0o755},
	} {
		h.ModTime = at
		if err := w.WriteHeader(&h); err != nil {
			return nil, err
		}
	}
	for _, t := range texts {
		if err := add(w, "licenses/"+t.name, 0o644, t.content, at); err != nil {
			return nil, err
		}
	}
	err := add(w, "guard-monitor", 0o755, binary, at)
	err = errors.Join(err, w.Close()) // which writes the end
	return out.Bytes(), err
}

func add(w *tar.Writer, name string, mode int64, content []byte, at time.Time) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), ModTime: at}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

// pack returns the files as an archive, in order of name and without owners.
func pack(files fs.FS, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		return add(w, path, 0o644, content, at)
	})
	err = errors.Join(err, w.Close()) // which writes the end
	return out.Bytes(), err
}
