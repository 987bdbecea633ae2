// Release writes what goes beside the binaries of guard-monitor into their folder: a list
// of what each is made of (CycloneDX), the licences of that (THIRD_PARTY_LICENSES), an image
// with those for Linux (OCI), and the SHA-256 of every file. The same binaries give the same bytes.
//
//	release -version v0.1.0 -date 2026-11-23T12:00:00Z dist
//
// A binary is called guard-monitor_OS_ARCHITECTURE, with .exe behind it for Windows.
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/belaygo/belay/deploy/release/thirdparty"
)

const sums = "SHA256SUMS"

func main() {
	version := flag.String("version", "", "of the release, such as v0.1.0")
	date := flag.String("date", "", "of its commit, as RFC 3339 has it")
	flag.Parse()
	if err := run(*version, *date, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(version, date, dir string) error {
	at, err := time.Parse(time.RFC3339, date)
	if err != nil {
		return fmt.Errorf("-date: %w", err)
	}
	binaries, err := filepath.Glob(filepath.Join(dir, "guard-monitor_*"))
	if err != nil || len(binaries) == 0 || version == "" {
		return errors.Join(errors.New("want -version, and a folder with binaries"), err)
	}
	for _, binary := range binaries {
		list, err := billOfMaterials(binary, version, at)
		if err != nil {
			return fmt.Errorf("%s: %w", binary, err)
		}
		if err := write(binary+".cdx.json", list); err != nil {
			return err
		}
	}
	texts, err := thirdparty.Licences(binaries)
	if err != nil {
		return fmt.Errorf("licences: %w", err)
	}
	if err := write(filepath.Join(dir, thirdparty.File), texts); err != nil {
		return err
	}
	if err := writeImage(dir, version, at); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	return writeSums(dir)
}

// writeSums writes the file that sha256sum -c reads.
func writeSums(dir string) error {
	files, err := os.ReadDir(dir) // in order of name
	if err != nil {
		return err
	}
	var list bytes.Buffer
	for _, f := range files {
		if f.Name() == sums {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, f.Name())) //nolint:gosec // of the folder that is given
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(content), f.Name())
	}
	return write(filepath.Join(dir, sums), list.Bytes())
}

func write(path string, content []byte) error {
	return os.WriteFile(path, content, 0o644) //nolint:gosec // what is released is for everybody
}
