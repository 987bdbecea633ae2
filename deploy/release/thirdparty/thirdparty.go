// Package thirdparty collects the licences of the code of others that programs contain.
//
//	texts, err := thirdparty.Licences([]string{"dist/guard-monitor_linux_amd64"})
package thirdparty

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

const (
	// File is the name of the file with the licences, beside programs and in images.
	File = "THIRD_PARTY_LICENSES"
	// project is the path of the modules whose licence is the project's own.
	project = "github.com/belaygo/belay"
)

// isLicence matches the names of files that a copy of the module's code comes with.
var isLicence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents)([-._].*)?$`)

// Licences returns the licences of Go and of the modules of the binaries, by what the
// linker has written into them, in order of path. A module without a licence is an error.
func Licences(binaries []string) ([]byte, error) {
	modules := make(map[string]bool) // path@version
	for _, binary := range binaries {
		info, err := buildinfo.ReadFile(binary)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", binary, err)
		}
		for _, m := range info.Deps {
			if name := foreign(m); name != "" {
				modules[name] = true
			}
		}
	}
	goroot, err := exec.CommandContext(context.Background(), "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString("guard-monitor contains code of others, under these licences.\n")
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(goroot)), "LICENSE"))
	if err != nil {
		return nil, err
	}
	section(&out, "Go, LICENSE", text)
	folders, err := download(slices.Sorted(maps.Keys(modules)))
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		if err := ofModule(&out, name, os.DirFS(folders[name])); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// foreign returns the module that a binary has of another project, as path@version, and ""
// for one of this project.
func foreign(m *debug.Module) string {
	if m.Path == project || strings.HasPrefix(m.Path, project+"/") {
		return ""
	}
	if m.Replace != nil {
		m = m.Replace
	}
	return m.Path + "@" + m.Version
}

// download returns the folders of modules, which are in Go's cache after a build.
func download(modules []string) (map[string]string, error) {
	cmd := exec.CommandContext(context.Background(), "go", append([]string{"mod", "download", "-json"}, modules...)...) //nolint:gosec // of the binary's own list
	cmd.Dir = os.TempDir()                                                                                              // outside of any module
	answers, err := cmd.Output()
	if err != nil && len(answers) == 0 {
		return nil, fmt.Errorf("go mod download: %w", err)
	}
	folders := make(map[string]string)
	for d := json.NewDecoder(bytes.NewReader(answers)); ; {
		var m struct{ Path, Version, Dir, Error string }
		switch err := d.Decode(&m); {
		case errors.Is(err, io.EOF):
			return folders, nil
		case err != nil:
			return nil, err
		case m.Dir == "":
			return nil, fmt.Errorf("%s@%s: %s", m.Path, m.Version, m.Error)
		}
		folders[m.Path+"@"+m.Version] = m.Dir
	}
}

// ofModule writes the licences of a module, with those of code that it has taken from others.
func ofModule(out *bytes.Buffer, name string, files fs.FS) error {
	found := false
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "testdata":
			return fs.SkipDir
		case d.IsDir() || !isLicence.MatchString(d.Name()) || strings.HasSuffix(path, ".go"):
			return nil
		}
		text, err := fs.ReadFile(files, path)
		if err == nil {
			section(out, name+", "+path, text)
			found = true
		}
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("%s has no licence", name)
	}
	return err
}

func section(out *bytes.Buffer, title string, text []byte) {
	fmt.Fprintf(out, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), title, bytes.TrimSpace(text))
}
