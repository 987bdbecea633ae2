package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// An output is the file that results go to.
type output struct {
	path string
	made bool // by openOutput: it was not there before
}

// openOutput makes sure now that results can be written to path later. "" = to a
// new file in the folder for temporary files.
func openOutput(path string) (output, error) {
	if path == "" {
		file, err := os.CreateTemp("", "belay-results-*.json")
		if err != nil {
			return output{}, fmt.Errorf("make a file for the results: %w", err)
		}
		return output{path: file.Name(), made: true}, file.Close()
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // the user names it
	made := err == nil
	if errors.Is(err, fs.ErrExist) {
		file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644) //nolint:gosec // the user names it
	}
	if err != nil {
		return output{}, usagef("-json: %w", err)
	}
	return output{path: path, made: made}, file.Close()
}

// openIfNamed is openOutput for a command that needs no file.
func openIfNamed(path string) (output, error) {
	if path == "" {
		return output{}, nil
	}
	return openOutput(path)
}

// discard removes the file if openOutput made it and nothing was written to it.
func (o output) discard() {
	if info, err := os.Lstat(o.path); o.made && err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		_ = os.Remove(o.path)
	}
}
