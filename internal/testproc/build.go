package testproc

import (
	"fmt"
	"os"
	"os/exec"
)

// Build compiles the command of a package, in the module of a folder, to the absolute path of
// a file. It does so without cgo, as releases and make demo are built: all of them, and the
// tests without the race detector, share what is compiled.
func Build(folder, pkg, path string) error {
	cmd := exec.Command("go", "build", "-C", folder, "-o", path, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return nil
}
