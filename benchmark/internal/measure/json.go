package measure

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// WriteJSON writes v to a file as JSON, in one piece. What is there and no regular
// file, like /dev/stdout, is written into, not replaced.
func WriteJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode results: %w", err)
	}
	text = append(text, '\n')
	if info, e := os.Lstat(path); e == nil && !info.Mode().IsRegular() {
		err = os.WriteFile(path, text, 0o644) //nolint:gosec // results are to be read
	} else {
		err = replace(path, text)
	}
	if err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// replace lets readers of path see either the old text or the new one.
func replace(path string, text []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), ".results-*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(text)
	err = errors.Join(err, temporary.Chmod(0o644), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
	}
	return err
}
